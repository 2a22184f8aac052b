"""Other repositories that templates are made from, fetched in rounds by a thread of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import partial
from threading import Condition, Thread
from time import monotonic

from reconciler.adapters.git.repository import GitRepository
from reconciler.bulkhead import Seam, attempt
from reconciler.core.fleet.sources.plain_manifests import read_source
from reconciler.errors import Bug, InvalidInput, OverspillError
from reconciler.model.capacity import Observed
from reconciler.model.ids import CommitId
from reconciler.model.manifest_source import RepositoryContents, RepositorySource, SourceContent, UnreadSource
from reconciler.model.policy import Desired
from reconciler.ports import Clock, Wake

WOKEN_BY = "observation"
EVERY = timedelta(seconds=30)
"""Time between two rounds, as between two looks at the fleet repository."""
_ANY = "main"
"""The branch that a repository is opened with of which only commits are read."""
_LAST = 2
"""Seconds for the thread to end; one that waits for a remote ends with the process."""
MAX_AGE = timedelta(minutes=2)
"""Time for which the last content of a repository that does not answer counts, as an observation does."""


class SourceRepositories:
    """Reads the sources in other repositories, and keeps what was read last (a `ports.ClusterView`).

    Only repositories that the Fleet names are fetched. `open_repository` opens one by its URL and branch; `patience`
    bounds the wait of `follow` for first contents, and is zero in a daemon, which is woken instead. The thread starts
    with the first source.
    """

    def __init__(
        self,
        open_repository: Callable[[str, str], GitRepository],
        *,
        clock: Clock,
        wake: Wake | None = None,
        patience: timedelta = timedelta(),
        every: timedelta = EVERY,
    ) -> None:
        self._open = open_repository
        self._clock = clock
        self._wake = wake
        self._patience = patience.total_seconds()
        self._every = every.total_seconds()
        self._changed = Condition()
        self._sources: frozenset[RepositorySource] = frozenset()
        self._read_at: dict[RepositorySource, datetime] = {}
        self._contents: RepositoryContents = {}
        self._thread: Thread | None = None
        self._closing = False

    def follow(self, desired: Desired) -> None:
        """Read these sources from now on."""
        wanted = frozenset(
            key.source
            for key in desired.sources
            if isinstance(key.source, RepositorySource) and key.source.url in desired.fleet.source_repositories
        )
        with self._changed:
            if wanted == self._sources:
                return
            self._sources = wanted
            self._contents = {source: content for source, content in self._contents.items() if source in wanted}
            if wanted and self._thread is None:
                self._thread = Thread(target=self._run, name="sources", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            if self._patience:
                self._changed.wait_for(lambda: len(self._contents) == len(self._sources), self._patience)

    def observe(self) -> Observed:
        """Return what was read last; never wait for more."""
        return Observed(sources=self._contents)

    def close(self) -> None:
        """Read nothing more. A second call does nothing."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_LAST)

    def _run(self) -> None:
        """Read all sources in rounds until closed; new ones start a round at once."""
        opened: dict[tuple[str, str], GitRepository] = {}
        try:
            while True:
                with self._changed:
                    wanted, closing = self._sources, self._closing
                if closing:
                    return
                start = monotonic()
                for place in opened.keys() - {(source.url, source.revision) for source in wanted}:
                    attempt(Seam.VIEW, place[0], opened.pop(place).close)
                self._read_at = {source: at for source, at in self._read_at.items() if source in wanted}
                open_sources = [source for source in wanted if not self._is_final(source)]
                for url, revision, at in sorted({(each.url, each.revision, each.at) for each in open_sources}):
                    here = [each for each in open_sources if (each.url, each.revision, each.at) == (url, revision, at)]
                    self._publish(self._round(opened, (url, revision), here))
                with self._changed:
                    rest = max(0.0, self._every - (monotonic() - start))
                    self._changed.wait_for(partial(self._must_act, wanted), rest)
        finally:
            with ExitStack() as stack:  # all are closed, whatever one of them raises
                for repository in opened.values():
                    stack.callback(repository.close)

    def _must_act(self, wanted: frozenset[RepositorySource]) -> bool:
        """Tell whether the next round, or the end, cannot wait."""
        return self._closing or self._sources != wanted

    def _round(
        self,
        opened: dict[tuple[str, str], GitRepository],
        place: tuple[str, str],
        sources: Iterable[RepositorySource],
    ) -> RepositoryContents:
        """Read the sources in one branch of a repository, or at one commit of it."""
        try:
            if place not in opened:
                opened[place] = self._open(place[0], place[1] or _ANY)
            contents = attempt(Seam.VIEW, place[0], partial(self._read, opened[place], sources))
            if not isinstance(contents, Bug):
                return contents
            trouble, remedy = contents.summary, "see the log"
        except OverspillError as error:
            trouble, remedy = str(error), "see whether this machine may read it"
        now = self._clock.now()
        return {
            source: UnreadSource(message=trouble, remedy=remedy)
            for source in sources
            if source not in self._read_at or now - self._read_at[source] > MAX_AGE
        }

    def _is_final(self, source: RepositorySource) -> bool:
        """Tell whether a source was read that cannot change: a commit."""
        return bool(source.at) and isinstance(self._contents.get(source), SourceContent)

    def _read(self, repository: GitRepository, sources: Iterable[RepositorySource]) -> RepositoryContents:
        (at,) = {source.at for source in sources}
        commit = CommitId(at) if at else repository.fetch().source
        if commit is None:
            raise InvalidInput("the branch does not exist")
        if at:
            repository.fetch_commit(commit)
        entries = repository.entries(commit, sizes=True)
        contents: dict[RepositorySource, SourceContent | UnreadSource] = {}
        for source in sources:
            contents[source] = read_source(source, entries, repository.read, commit)
            self._read_at[source] = self._clock.now()
        return contents

    def _publish(self, contents: RepositoryContents) -> None:
        """Put contents into the observation that passes read, and wake the daemon where they are others."""
        with self._changed:
            known = {source: content for source, content in contents.items() if source in self._sources}
            changed = any(self._contents.get(source) != content for source, content in known.items())
            if changed:
                self._contents = {**self._contents, **known}
            self._changed.notify_all()
        if changed and self._wake is not None:
            self._wake(WOKEN_BY)
