"""A repository in memory that keeps the contract of `ports.Repository`: a run of days is thousands of commits.

It is remote and mirror at once, with two branches as chains of commits, each a complete mapping of path to blob, and
the branches of clusters by their tips.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from reconciler.core.commits.commit_date import date_after
from reconciler.core.commits.trailers import is_own, is_trailer
from reconciler.core.fleet.path_history import PathChange, PathHistories, path_histories
from reconciler.errors import Conflict
from reconciler.model.branch_loss import ReportedCommit
from reconciler.model.ids import BlobId, ClusterName, CommitId, TreeId
from reconciler.model.tree import (
    Advance,
    Branch,
    BranchSection,
    Commit,
    FileChange,
    Identity,
    LoggedChanges,
    LoggedCommit,
    Projection,
    Tips,
    TreeEntry,
    alone,
    blob_of,
)

OURS = Identity(name="Overspill", email="overspill@overspill.dev")
PERSON = Identity(name="Ada", email="ada@example.com")
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

SOURCE, OUTPUT = "source", "output"


@dataclass(frozen=True, slots=True)
class MemoryCommit:
    """A commit, its parent and all its files."""

    id: CommitId
    parent: CommitId | None
    tree: Mapping[str, BlobId]
    log: LoggedCommit


class MemoryRepository:
    """Both branches in memory. People commit with `commit_as_person`."""

    def __init__(self, source: Mapping[str, bytes | str] | None = None) -> None:
        """Begin with these files on the source branch; without any there is none."""
        self.commits: dict[CommitId, MemoryCommit] = {}
        self.blobs: dict[BlobId, bytes] = {}
        self.heads: dict[str, CommitId | None] = {SOURCE: None, OUTPUT: None}
        self.clusters: dict[ClusterName, Branch] = {}
        self._projected: dict[CommitId, Branch] = {}
        if source is not None:
            self.commit_as_person(SOURCE, source)

    def commit_as_person(
        self,
        branch: str,
        writes: Mapping[str, bytes | str] | None = None,
        *,
        removes: Iterable[str] = (),
        at: datetime = EPOCH,
        message: str = "by hand\n",
    ) -> CommitId:
        """Commit as a person, on top of a branch."""
        data = {path: text.encode() if isinstance(text, str) else text for path, text in (writes or {}).items()}
        commit = Commit(message=message, author=PERSON, at=at, removes=tuple(removes), writes=data)
        head = self._commit(self.heads[branch], commit, PERSON)
        self.heads[branch] = head
        return head

    def tree(self, branch: str = OUTPUT, under: str = "") -> dict[str, bytes]:
        """Return the files of a branch below a path prefix."""
        return {
            path: self.blobs[blob] for path, blob in self._files(self.heads[branch]).items() if path.startswith(under)
        }

    # The port

    def fetch(self) -> Tips:
        """Return the tips."""
        return self.tips()

    def tips(self) -> Tips:
        """Return the tips."""
        output = self.heads[OUTPUT]
        return Tips(source=self.heads[SOURCE], output=output, output_at=self.commits[output].log.at if output else None)

    def branch_names(self) -> list[str]:
        """Name the source branch, if it is there."""
        return ["main"] if self.heads[SOURCE] else []

    def entries(
        self,
        commit: CommitId,
        *,
        under: Sequence[str] = (),
        sizes: bool = False,
        others: bool = False,  # noqa: ARG002 -- it holds files alone
    ) -> list[TreeEntry]:
        """List the files of a commit below some directories."""
        return [
            TreeEntry(path=path, blob=blob, size=len(self.blobs[blob]) if sizes else -1)
            for path, blob in sorted(self._files(commit).items())
            if _below(path, under)
        ]

    def obstacles(self, commit: CommitId, directories: Iterable[str]) -> Mapping[str, str]:
        """Find the paths that hold a file in place of a directory."""
        files = self._files(commit)
        return {path: "file" for path in directories if path in files}

    def changes(self, old: CommitId, new: CommitId, *, under: Sequence[str] = ()) -> list[FileChange]:
        """List the files that differ between two commits."""
        before, after = self._files(old), self._files(new)
        return [
            FileChange(path=path, old=before.get(path), new=after.get(path))
            for path in sorted(before.keys() | after.keys())
            if before.get(path) != after.get(path) and _below(path, under)
        ]

    def read(self, blobs: Iterable[BlobId]) -> Mapping[BlobId, bytes]:
        """Read blobs."""
        return {blob: self.blobs[blob] for blob in blobs}

    def held(self, places: Collection[tuple[CommitId, str]]) -> Mapping[tuple[CommitId, str], BlobId | None]:
        """Find the blobs of files at commits."""
        return {place: self._files(place[0]).get(place[1]) for place in places if place[0] in self.commits}

    @property
    def has_memory(self) -> bool:
        """Return False: it keeps nothing from one opening to the next."""
        return False

    def look_for(self, commit: CommitId, *, branch: str, reported_by: str) -> ReportedCommit:  # noqa: ARG002 -- it holds one
        """Search the output branch for a commit."""
        head = self.heads[OUTPUT]
        is_held = head is not None and any(each.id == commit for each in self._chain(head))
        return ReportedCommit.HELD if is_held else ReportedCommit.LOST

    def last_written(self, tip: CommitId) -> CommitId | None:
        """Find the newest commit of ours."""
        for commit in self._chain(tip):
            if is_own(commit.log, OURS):
                return commit.id
        return None

    def log(
        self,
        tip: CommitId,
        *,
        since: datetime | None = None,
        limit: int | None = None,
        base: CommitId | None = None,
    ) -> list[LoggedCommit]:
        """Read commits back, newest first."""
        logged: list[LoggedCommit] = []
        for commit in self._chain(tip):
            if len(logged) == limit or commit.id == base or (since is not None and commit.log.at < since):
                break
            logged.append(commit.log)
        return logged

    def section(
        self,
        tip: CommitId,
        *,
        since: datetime,
        base: CommitId | None = None,
        under: Sequence[str] = (),
        limit: int | None = None,
    ) -> BranchSection:
        """Read a branch back, each commit with the files that it changed."""
        commits: list[LoggedChanges] = []
        for commit in self._chain(tip):
            ended = commit.id == base or len(commits) == limit
            if ended or (commit.log.at < since and is_own(commit.log, OURS)):
                return BranchSection(base=commit.log, commits=tuple(reversed(commits)))
            before = self._files(commit.parent)
            paths = sorted({path for path, _ in before.items() ^ commit.tree.items() if _below(path, under)})
            files = (FileChange(path=path, old=before.get(path), new=commit.tree.get(path)) for path in paths)
            commits.append(LoggedChanges(commit=commit.log, files=tuple(files)))
        return BranchSection(base=None, commits=tuple(reversed(commits)))

    def earlier(self, commit: CommitId, path: str, *, limit: int = 20) -> list[BlobId]:
        """List earlier versions of a file, newest first."""
        versions: list[BlobId] = []
        last = self._files(commit).get(path)
        for before in self._chain(self.commits[commit].parent):
            if len(versions) == limit:
                break
            blob = before.tree.get(path)
            if blob is not None and blob != last:
                versions.append(blob)
            last = blob
        return versions

    def states(self, commit: CommitId, paths: Sequence[str], *, limit: int) -> list[Mapping[str, BlobId]]:
        """List what stood at some paths before each commit that changed any of them, newest first."""
        states: list[Mapping[str, BlobId]] = []
        for each in self._chain(commit):
            if len(states) == limit:
                break
            before = self._files(each.parent)
            if any(each.tree.get(path) != before.get(path) for path in paths):
                states.append({path: before[path] for path in paths if path in before})
        return states

    def past_versions(self, commit: CommitId, paths: Collection[str], *, base: CommitId | None = None) -> PathHistories:
        """List the versions that stood at some paths before, newest first."""
        based = base is not None and any(each.id == base for each in self._chain(commit))
        return PathHistories(
            paths=path_histories(paths, self._path_changes(commit, base if based else None)), based=based
        )

    def _path_changes(self, commit: CommitId, base: CommitId | None) -> Iterable[list[PathChange]]:
        for each in self._chain(commit):
            if each.id == base:
                return
            before = self._files(each.parent)
            differing = sorted({path for path, _ in before.items() ^ each.tree.items()})
            yield [
                PathChange(
                    path=path,
                    old=before.get(path),
                    stood=path in before,
                    stands=path in each.tree,
                    new=each.tree.get(path),
                )
                for path in differing
            ]

    def write(self, base: CommitId | None, commits: Sequence[Commit]) -> list[CommitId]:
        """Write commits on top of one, and return their ids."""
        ids: list[CommitId] = []
        for commit in commits:
            base = self._commit(base, commit, OURS)
            ids.append(base)
        return ids

    def branches(self) -> Mapping[ClusterName, Branch]:
        """Return the branches of clusters."""
        return dict(self.clusters)

    def forget_branches(self) -> None:
        """Do nothing: nothing is expected of the branches of clusters here."""

    def due_branches(self, lacking: Collection[ClusterName]) -> frozenset[ClusterName]:
        """Return all of them: nothing is refused here."""
        return frozenset(lacking)

    def directories(self, commits: Sequence[CommitId]) -> list[Mapping[ClusterName, TreeId]]:
        """Return for each commit the tree ids of its cluster directories."""
        return [_directories(self._files(commit)) for commit in commits]

    def project(self, projections: Sequence[Projection]) -> list[Advance]:
        """Write commits for branches of clusters, and return their new tips."""
        advances: list[Advance] = []
        for projection in projections:
            base = projection.base
            old = parent = base.commit if base else None
            at = base.at if base else EPOCH
            for snapshot in projection.snapshots:
                at = date_after(snapshot.at, at)
                identity = f"{parent}\n{snapshot.message}\n{at.isoformat()}\n{snapshot.directory}"
                parent = CommitId(_sha1(identity))
                tree = alone(projection.cluster, snapshot.directory)
                self._projected[parent] = Branch(commit=parent, tree=tree, at=at)
            if parent is not None:
                advances.append(Advance(cluster=projection.cluster, old=old, new=parent))
        return advances

    def refuse_unsigned(self) -> None:
        """Do nothing: commits of a lab have no signatures."""

    def begin_push(
        self, new: CommitId, *, old: CommitId | None, branches: Sequence[Advance] = ()
    ) -> Callable[[], Sequence[Advance]]:
        """Move the output branch and those of clusters at once, unless any has another tip than expected."""
        moved: list[str] = [advance.cluster for advance in branches if self._tip_of(advance.cluster) != advance.old]
        moved += ["output"] if self.heads[OUTPUT] != old else []
        if not moved:
            self.heads[OUTPUT] = new
            self.clusters.update({advance.cluster: self._projected[advance.new] for advance in branches})

        def end() -> Sequence[Advance]:
            if moved:
                raise Conflict(f"moved: {moved}")
            return branches

        return end

    def _tip_of(self, cluster: ClusterName) -> CommitId | None:
        branch = self.clusters.get(cluster)
        return branch.commit if branch else None

    def _chain(self, tip: CommitId | None) -> Iterable[MemoryCommit]:
        while tip is not None:
            commit = self.commits[tip]
            yield commit
            tip = commit.parent

    def _files(self, commit: CommitId | None) -> Mapping[str, BlobId]:
        return self.commits[commit].tree if commit is not None else {}

    def _commit(self, base: CommitId | None, commit: Commit, committer: Identity) -> CommitId:
        files = dict(self._files(base))
        for gone in commit.removes:
            files = {path: blob for path, blob in files.items() if path != gone and not path.startswith(f"{gone}/")}
        blobs = {path: blob_of(data) for path, data in commit.writes.items()}
        files |= blobs
        self.blobs.update(zip(blobs.values(), commit.writes.values(), strict=True))
        at = date_after(commit.at, self.commits[base].log.at if base else None)
        content = "\n".join(f"{path} {blob}" for path, blob in sorted(files.items()))
        commit_id = CommitId(_sha1(f"{base}\n{commit.message}\n{committer.email}\n{at.isoformat()}\n{content}"))
        subject, _, body = commit.message.partition("\n")
        last = commit.message.strip().rpartition("\n\n")[2].splitlines()
        log = LoggedCommit(
            id=commit_id,
            at=at,
            author=commit.author,
            committer=committer,
            subject=subject,
            body=body.strip(),
            trailers=dict(line.split(": ", 1) for line in last if is_trailer(line)),
        )
        self.commits[commit_id] = MemoryCommit(commit_id, base, files, log)
        return commit_id


def _directories(files: Mapping[str, BlobId]) -> dict[ClusterName, TreeId]:
    """Return an id for the content of each directory of a cluster that has files."""
    lines: dict[str, list[str]] = {}
    for path, blob in sorted(files.items()):
        root, _, rest = path.partition("/")
        cluster, _, inner = rest.partition("/")
        if root == "clusters" and inner:
            lines.setdefault(cluster, []).append(f"{inner} {blob}")
    return {ClusterName(name): TreeId(_sha1("\n".join(content))) for name, content in lines.items()}


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def _below(path: str, under: Sequence[str]) -> bool:
    return not under or any(path == part or path.startswith(f"{part}/") for part in under)
