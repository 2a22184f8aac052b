"""Other repositories that templates are made from, each fetched in its turn beside the others.

A few threads look at what is due, one repository each: one that hangs, or sends progress for ever, costs itself the
time of its look, is then asked later and later, and holds up no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from threading import Condition, Thread
from time import monotonic
from typing import NamedTuple

from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.run import RemoteBounds
from reconciler.backoff import backoff
from reconciler.bulkhead import Seam, attempt
from reconciler.core.fleet.sources.plain_manifests import read_source
from reconciler.errors import Bug, InvalidInput, OverspillError
from reconciler.model.bounds import SOURCE_OUTPUT, SOURCE_SECONDS, SOURCE_SIZE, SOURCE_THREADS
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
"""Seconds for the threads to end; what waits for a remote is given up within one."""
_LONGEST = timedelta(minutes=5)
"""Longest wait before a repository is asked again that has failed."""
BOUNDS = RemoteBounds(
    silence=timedelta(seconds=30),
    standstill=timedelta(seconds=SOURCE_SECONDS.most),
    total=timedelta(seconds=SOURCE_SECONDS.most),
    size=SOURCE_SIZE.most,
    output=SOURCE_OUTPUT,
)
"""Bounds on one exchange with a repository that a template names."""
MAX_AGE = timedelta(minutes=2)
"""Time for which the last content of a repository that does not answer counts, as an observation does."""


class _RepositoryPlace(NamedTuple):
    """A branch of a repository, or a commit of it."""

    url: str
    revision: str
    at: str


@dataclass(slots=True, kw_only=True)
class _Look:
    """The looks at one place: its sources, and when the next is due, on the monotonic clock."""

    sources: frozenset[RepositorySource]
    due: float
    failures: int = 0
    served: int = 0
    """The turn of its last look."""


class SourceRepositories:
    """Reads the sources in other repositories, and keeps what was read last (a `ports.ClusterView`).

    Only repositories that the Fleet names are fetched. `open_repository` opens one by its URL and branch; `patience`
    bounds the wait of `follow` for first contents, and is zero in a daemon, which is woken instead. The threads start
    with the first sources.
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
        self._looks: dict[_RepositoryPlace, _Look] = {}
        self._active: set[str] = set()
        self._opened: dict[tuple[str, str], GitRepository] = {}
        self._read_at: dict[RepositorySource, datetime] = {}
        self._contents: RepositoryContents = {}
        self._threads: list[Thread] = []
        self._turn = 0
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
            self._read_at = {source: at for source, at in self._read_at.items() if source in wanted}
            self._plan()
            while len(self._threads) < min(len(self._looks), SOURCE_THREADS.most):
                thread = Thread(target=self._run, name=f"sources-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify_all()
            if self._patience:
                self._changed.wait_for(lambda: len(self._contents) == len(self._sources), self._patience)

    def observe(self) -> Observed:
        """Return what was read last; never wait for more."""
        return Observed(sources=self._contents)

    def is_closing(self) -> bool:
        """Return whether nothing is to be waited for any more."""
        return self._closing

    def close(self) -> None:
        """Read nothing more. A second call does nothing."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(_LAST)
        with ExitStack() as stack:  # all are closed, whatever one of them raises
            for place in self._opened.keys() - {place for place in self._opened if place[0] in self._active}:
                stack.callback(self._opened.pop(place).close)

    def _plan(self) -> None:
        """Plan the looks at what is wanted; a place with other sources than before is looked at soon."""
        now, places = monotonic(), dict[_RepositoryPlace, set[RepositorySource]]()
        for source in self._sources:
            places.setdefault(_RepositoryPlace(source.url, source.revision, source.at), set()).add(source)
        for place in self._looks.keys() - places.keys():
            del self._looks[place]
        for place, sources in places.items():
            look = self._looks.setdefault(place, _Look(sources=frozenset(sources), due=now))
            if look.sources != sources:
                look.sources = frozenset(sources)
                look.due = look.due if look.failures else now

    def _run(self) -> None:
        """Look at what is due until closed."""
        while True:
            with self._changed:
                while not self._closing and (place := self._next()) is None and not self._unwanted():
                    self._changed.wait(self._rest())
                if self._closing:
                    return
                unwanted = [self._opened.pop(key) for key in self._unwanted()]
                place = self._next()
                if place is not None:
                    look, start = self._looks[place], monotonic()
                    self._active.add(place.url)
                    self._turn += 1
                    look.served = self._turn
                    sources = [source for source in sorted(look.sources, key=str) if not self._is_final(source)]
            for repository in unwanted:
                attempt(Seam.VIEW, "sources", repository.close)
            if place is not None:
                contents, failed = self._look_at(place, sources)
                with self._changed:
                    self._active.discard(place.url)
                    look.failures = look.failures + 1 if failed else 0
                    look.due = start + self._every
                    if failed:
                        longest = max(self._every, _LONGEST.total_seconds())
                        look.due = monotonic() + backoff(look.failures, first=self._every, longest=longest, luck=1)
                self._publish(contents)

    def _next(self) -> _RepositoryPlace | None:
        """Return the place whose turn it is; None where none is due of a repository that nobody reads now."""
        now = monotonic()
        due = (place for place in self._free() if self._looks[place].due <= now)
        return min(due, key=lambda place: (self._looks[place].served, place), default=None)

    def _free(self) -> list[_RepositoryPlace]:
        """List the places that may be looked at: not yet read for good, and of a repository that nobody reads now."""
        return [
            place
            for place, look in self._looks.items()
            if place.url not in self._active and not all(map(self._is_final, look.sources))
        ]

    def _rest(self) -> float | None:
        """Return the seconds until the next look is due; None where a change is waited for."""
        dues = [self._looks[place].due for place in self._free()]
        return max(0.001, min(dues) - monotonic()) if dues else None

    def _unwanted(self) -> list[tuple[str, str]]:
        """List what is open and no source names any more."""
        wanted = {(place.url, place.revision) for place in self._looks}
        return [key for key in self._opened if key not in wanted and key[0] not in self._active]

    def _look_at(self, place: _RepositoryPlace, sources: Iterable[RepositorySource]) -> tuple[RepositoryContents, bool]:
        """Read the sources in one place, and return whether that failed."""
        key = place.url, place.revision
        try:
            if key not in self._opened:
                self._opened[key] = self._open(place.url, place.revision or _ANY)
            contents = attempt(Seam.VIEW, place.url, partial(self._read, self._opened[key], sources))
            if not isinstance(contents, Bug):
                return contents, False
            trouble, remedy = contents.summary, "see the log"
        except OverspillError as error:
            trouble, remedy = str(error), "see whether this machine may read it"
        now = self._clock.now()
        unread = {
            source: UnreadSource(message=trouble, remedy=remedy)
            for source in sources
            if source not in self._read_at or now - self._read_at[source] > MAX_AGE
        }
        return unread, True

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
        entries = repository.entries(commit, sizes=True, others=True)
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
