"""What stood in files of the source branch before it was rewritten: by a squash, a filter, or another branch.

A rewritten history does not say so, as that of ``git lfs migrate import``, in which a file was never anything but a
pointer. So the mirror keeps the tip before, and its files are taken for what stood before the first tip that does not
follow it. A mirror beside that of the passes asks that one. Where nothing is remembered, as on an empty disk, the
output branch names the commits that were decided on, as long as the remote still hands them out. They are looked for
when a history is read for the first time, which may be in a later process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from urllib.parse import quote

from reconciler.adapters.git import remote as address
from reconciler.adapters.git import remote_errors
from reconciler.adapters.git.branches import RemoteBranches
from reconciler.adapters.git.decisions import decided_on
from reconciler.adapters.git.history import History
from reconciler.adapters.git.mirror_commits import FETCH
from reconciler.adapters.git.objects import parse_changes, parse_entries
from reconciler.adapters.git.signed_source import SignedSource, UncheckedSignature
from reconciler.core.fleet.path_history import CommitFiles, PathHistories, PathHistory, written_files
from reconciler.errors import Conflict, OverspillError
from reconciler.model.ids import BlobId, CommitId
from reconciler.model.tree import Identity

_MOST = 20
"""Times that a branch was rewritten which are kept; the mirror is asked about each where history is read."""
_MOST_DECISIONS = 200
"""Commits of the output branch that are searched for what was decided on before."""
_ABSENT = ("couldn't find remote ref", "not our ref", "unadvertised object")
"""What git says of a commit that the remote does not have, or does not hand out by its id."""
_MOST_ABSENT = 5
"""Commits that were decided on and that the remote has no more, after which it is asked for none before them."""
_MOST_TRIES = 10
"""Times that the remote may fail in the search for what was before the first tip, until passes go on without."""


class RewrittenSource:
    """Remembers the tips of the source branch that later ones do not follow, in refs of the mirror."""

    def __init__(self, branches: RemoteBranches, committer: Identity, signed: SignedSource | None) -> None:
        """Take the committer of our own commits, and the signatures where they are required; nothing is read yet."""
        self._branches = branches
        self._signed = signed
        self._committer = committer
        self._place = f"refs/overspill/rewritten/{quote(branches.source.removeprefix('refs/heads/'), safe='')}/"
        self._last, self._former = f"{self._place}last", f"{self._place}former/"
        self._unknown = f"{self._place}unknown/"
        """Holds the first tip of a mirror without memory until it is known what was before that, by the number of
        times that this could not be found out. The next process finds it there."""
        self._noted: tuple[int, CommitId] | None = None
        """The mirror, by its number, and the tip that it holds as the last one."""

    def note(self, tip: CommitId | None) -> None:
        """Take the tip of the source branch, or what is in force of it, for what later ones follow.

        A branch that is set back to an earlier commit is not rewritten: its history says what it held.
        """
        if tip is None or self._noted == (self._branches.renewals, tip):
            return
        last = self._remembered()
        if last is None:
            self._update({self._last: tip, f"{self._unknown}0": tip})
        elif last != tip:
            history = self._history()
            if not (history.leads_to(tip, last) or history.leads_to(last, tip)):
                self._update({f"{self._former}{tip}": last})
                self._drop_others(tip)
            self._update({self._last: tip})
        self._noted = self._branches.renewals, tip

    def with_former(self, answer: PathHistories, commit: CommitId, paths: Collection[str]) -> PathHistories:
        """Add to the histories of paths the versions that stood at them before the branch was rewritten.

        They are the oldest. A path that was deleted since then has none.
        """
        self._recall()
        histories = dict(answer.paths)
        for path, history in self._former_histories(commit, paths).items():
            histories[path] = _extended(histories.get(path), history)
        return replace(answer, paths=histories)

    def former_version(self, commit: CommitId, path: str) -> tuple[BlobId, ...]:
        """Return the versions of one file before the branch was rewritten, newest first."""
        self._recall()
        history = self._former_histories(commit, (path,)).get(path)
        return () if history is None else history.versions

    def _remembered(self) -> CommitId | None:
        """Return the last tip, by this mirror or by that of the passes."""
        if not self._refs(self._last):
            self._branches.commits.fetch_beside(f"+{self._place}*:{self._place}*")
        return dict(self._refs(self._last)).get(self._last)

    def _recall(self) -> None:
        """Find rewritings before the first tip of a mirror without memory, by the commits that were decided on.

        Raises Transient or InvalidInput where the remote cannot be asked; after some times that is the end of it. Where
        a signature cannot be checked it raises UncheckedSignature until that is mended.
        """
        for ref, tip in self._refs(self._unknown):
            tries = int(ref.removeprefix(self._unknown)) + 1
            try:
                self._recall_before(tip)
            except UncheckedSignature as error:  # the machine is to blame, not the remote: this counts as no try
                raise UncheckedSignature(f"looking for what was before {tip[:12]}: {error}") from error
            except OverspillError:
                if tries < _MOST_TRIES:
                    self._update({ref: None, f"{self._unknown}{tries}": tip})
                    raise
            self._update({ref: None})

    def _recall_before(self, tip: CommitId) -> None:
        branches = self._branches
        first = tip
        line: str = branches.source if tip == branches.tips.source else tip
        absent = 0
        for earlier in islice(decided_on(branches, self._committer, most=_MOST_DECISIONS), _MOST):
            if earlier == tip:
                continue
            if not self._obtain(earlier):
                absent += 1
                if absent == _MOST_ABSENT:
                    return
                continue
            if self._signed is not None and not self._signed.is_signed(earlier):
                continue  # anybody who pushes to the output branch can name a commit there
            if branches.history(line).reaches(tip, earlier):
                first = earlier if self._history().leads_to(tip, earlier) else first
            elif self._history().is_whole(tip) and not branches.history(earlier).reaches(earlier, tip):
                # Of a history that is read in part alone, nothing says that it has no such commit.
                self._update({f"{self._former}{first}": earlier})
                first, tip, line = earlier, earlier, earlier

    def _obtain(self, commit: CommitId) -> bool:
        """Fetch a commit by its id if the mirror lacks it; False where the remote does not hand it out."""
        branches = self._branches
        if branches.commits.holds(commit):
            return True
        done = branches.runner.run([*FETCH, "--depth=1", address.NAME, commit], remote=True)
        if done.status and not any(words in done.stderr for words in _ABSENT):
            # Whatever the remote says of it, the mirror is not to blame: it is kept.
            doing = f"fetching commit {commit[:12]}, which was decided on"
            raise remote_errors.failure(doing, branches.remote.redact(done.stderr), branches.remote)
        return branches.commits.holds(commit)

    def _former_histories(self, commit: CommitId, paths: Collection[str]) -> dict[str, PathHistory]:
        history = self._history()
        found: dict[str, PathHistory] = {}
        for first, former in self._rewritings(commit):
            since = history.past_versions(commit, paths, base=first).paths
            asked = {path: each.asked for path, each in since.items() if not each.ended}
            after = self._changed_files(former, first) if asked else {}
            written = written_files(after.items())
            for path, owner, blob in self._files(former, asked):
                taken_by = {blob: CommitFiles(blobs=written, own=after.get(path))} if path in after else {}
                history_there = PathHistory(asked=owner, versions=(blob,), taken_by=taken_by)
                found[path] = _extended(found.get(path), history_there)
            before = history.past_versions(former, asked).paths if asked else {}
            earlier = self._former_histories(former, asked) if asked else {}
            for path, each in (*before.items(), *earlier.items()):
                if each.versions:
                    older = replace(each, asked=asked.get(each.asked, each.asked))
                    found[path] = _extended(found.get(path), older)
        return found

    def _changed_files(self, former: CommitId, first: CommitId) -> dict[str, BlobId | None]:
        """Return what stood at each path that a rewriting changed after it; None for no file."""
        differing = ["diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", former, first]
        return {change.path: change.new for change in parse_changes(self._branches.local(differing))}

    def _files(self, commit: CommitId, asked: Mapping[str, str]) -> Iterator[tuple[str, str, BlobId]]:
        """Yield the files at some paths of a commit, and below them: path, path that was asked about, and blob."""
        if not asked:
            return
        for entry in parse_entries(self._branches.local(["ls-tree", "-r", "-z", commit]), sizes=False):
            parts = entry.path.split("/")
            for length in range(len(parts), 0, -1):
                owner = asked.get("/".join(parts[:length]))
                if owner is not None:
                    yield entry.path, owner, entry.blob
                    break

    def _rewritings(self, commit: CommitId) -> Iterator[tuple[CommitId, CommitId]]:
        """Yield the times that the branch of a commit was rewritten: the first tip after it, and the last before."""
        history = self._history()
        for ref, former in self._refs(self._former):
            first = CommitId(ref.removeprefix(self._former))
            if first != former and history.leads_to(commit, first):
                yield first, former

    def _drop_others(self, tip: CommitId) -> None:
        """Forget what no longer counts for a tip, and what was rewritten too often."""
        refs = self._refs(self._former)
        if len(refs) <= _MOST:
            return
        kept: set[CommitId] = set()
        tips = [tip]
        while tips and len(kept) < _MOST:
            for first, former in self._rewritings(tips.pop()):
                if first not in kept:
                    kept.add(first)
                    tips.append(former)
        for ref, _ in refs:
            if ref.removeprefix(self._former) not in kept:
                self._update({ref: None})

    def _update(self, refs: Mapping[str, CommitId | None]) -> None:
        """Set refs, or delete those with None, all or none of them; on a disk that is full, passes go on without."""
        lines = (f"update {ref} {commit}\n" if commit else f"delete {ref}\n" for ref, commit in refs.items())
        self._branches.runner.run(["update-ref", "--stdin"], stdin="".join(lines).encode())

    def _refs(self, prefix: str) -> list[tuple[str, CommitId]]:
        listing = self._branches.local(["for-each-ref", "--format=%(objectname) %(refname)", prefix])
        pairs = (line.split(" ", 1) for line in listing.decode().splitlines())
        return [(ref, CommitId(commit)) for commit, ref in pairs]

    def _history(self) -> History:
        """Return the history of commits that the remote may have no more: the mirror alone knows them."""
        branches = self._branches
        return History(branches.reader, branches.local, branches.shallow, deepen=_refuse_to_deepen)


def _extended(history: PathHistory | None, older: PathHistory) -> PathHistory:
    """Add older versions to a history."""
    history = history or PathHistory(asked=older.asked, ended=True)
    versions = tuple(dict.fromkeys((*history.versions, *older.versions)))
    return replace(history, versions=versions, taken_by={**older.taken_by, **history.taken_by})


def _refuse_to_deepen(depth: int) -> None:
    """Leave the history of a former branch as the mirror has it."""
    raise Conflict(f"what the branch was before is not deepened to {depth} commits")
