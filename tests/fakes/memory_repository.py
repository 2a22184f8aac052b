"""A repository in memory that keeps the whole contract of `ports.Repository`, for tests of what is above it.

It holds two branches as lists of commits, each a complete mapping of path to bytes, and those of clusters by
where they stand. People commit with `person`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from reconciler.errors import Conflict
from reconciler.model.ids import BlobId, ClusterName, CommitId, TreeId
from reconciler.model.tree import (
    Advance,
    Branch,
    Commit,
    FileChange,
    Identity,
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


@dataclass(frozen=True, slots=True)
class Snapshot:
    id: CommitId
    parent: CommitId | None
    tree: Mapping[str, bytes]
    log: LoggedCommit


class MemoryRepository:
    """Both branches, as remote and mirror at once; `before_push` lets a test move the tip at the worst moment."""

    def __init__(self, source: Mapping[str, bytes | str] | None = None) -> None:
        self.commits: dict[CommitId, Snapshot] = {}
        self.blobs: dict[BlobId, bytes] = {}
        self.heads: dict[str, CommitId | None] = {"source": None, "output": None}
        self.projected: dict[CommitId, Branch] = {}
        self.clusters: dict[ClusterName, Branch] = {}
        self.reads: list[BlobId] = []
        self.pushes = 0
        self.before_push: Callable[[], None] = lambda: None
        if source is not None:
            self.person("source", source)

    # what people do

    def person(
        self,
        branch: str,
        writes: Mapping[str, bytes | str] | None = None,
        *,
        removes: Iterable[str] = (),
        at: datetime = EPOCH,
    ) -> CommitId:
        """Commit as a person, on top of the branch."""
        data = {path: text.encode() if isinstance(text, str) else text for path, text in (writes or {}).items()}
        commit = Commit(message="by hand\n", author=PERSON, at=at, removes=tuple(removes), writes=data)
        self.heads[branch] = self._commit(self.heads[branch], commit, PERSON)
        return self.heads[branch]

    def tree(self, branch: str = "output", under: str = "") -> dict[str, bytes]:
        head = self.heads[branch]
        files = self.commits[head].tree if head else {}
        return {path: data for path, data in files.items() if path.startswith(under)}

    def subjects(self) -> list[str]:
        head = self.heads["output"]
        return [commit.subject for commit in self.log(head)] if head else []

    def right(self) -> bool:
        """Tell whether each cluster with files has a branch, and each branch what the output branch has for it."""
        head = self.heads["output"]
        there = _directories(self.commits[head].tree) if head else {}
        return there.keys() <= self.clusters.keys() and all(
            branch.tree == alone(name, there.get(name)) for name, branch in self.clusters.items()
        )

    # the port

    def fetch(self) -> Tips:
        return self.tips()

    def branch_names(self) -> list[str]:
        return ["main"] if self.heads["source"] else []

    def tips(self) -> Tips:
        output = self.heads["output"]
        at = self.commits[output].log.at if output else None
        return Tips(source=self.heads["source"], output=output, output_at=at)

    def entries(self, commit: CommitId, *, under: Sequence[str] = (), sizes: bool = False) -> list[TreeEntry]:
        return [
            TreeEntry(path=path, blob=blob_of(data), size=len(data) if sizes else -1)
            for path, data in sorted(self.commits[commit].tree.items())
            if _below(path, under)
        ]

    def changes(self, old: CommitId, new: CommitId, *, under: Sequence[str] = ()) -> list[FileChange]:
        before, after = self.commits[old].tree, self.commits[new].tree
        return [
            FileChange(
                path=path,
                old=blob_of(before[path]) if path in before else None,
                new=blob_of(after[path]) if path in after else None,
            )
            for path in sorted(before.keys() | after.keys())
            if before.get(path) != after.get(path) and _below(path, under)
        ]

    def read(self, blobs: Iterable[BlobId]) -> Mapping[BlobId, bytes]:
        wanted = list(blobs)
        self.reads += wanted
        return {blob: self.blobs[blob] for blob in wanted}

    def held(self, places: Iterable[tuple[CommitId, str]]) -> Mapping[tuple[CommitId, str], BlobId | None]:
        found = {place: self.commits[place[0]].tree.get(place[1]) for place in places if place[0] in self.commits}
        return {place: None if data is None else blob_of(data) for place, data in found.items()}

    def last_written(self, tip: CommitId) -> CommitId | None:
        at: CommitId | None = tip
        while at is not None:
            log = self.commits[at].log
            if "Overspill-Action" in log.trailers and log.committer.email == OURS.email:
                return at
            at = self.commits[at].parent
        return None

    def log(self, tip: CommitId, *, since: datetime | None = None, limit: int | None = None) -> list[LoggedCommit]:
        found: list[LoggedCommit] = []
        at: CommitId | None = tip
        while at is not None and (limit is None or len(found) < limit):
            log = self.commits[at].log
            if since is not None and log.at < since:
                break
            found.append(log)
            at = self.commits[at].parent
        return found

    def earlier(self, commit: CommitId, path: str, *, limit: int = 20) -> list[BlobId]:
        found: list[BlobId] = []
        last = self.commits[commit].tree.get(path)
        at = self.commits[commit].parent
        while at is not None and len(found) < limit:
            data = self.commits[at].tree.get(path)
            if data is not None and data != last:
                found.append(blob_of(data))
            last, at = data, self.commits[at].parent
        return found

    def write(self, base: CommitId | None, commits: Sequence[Commit]) -> list[CommitId]:
        ids: list[CommitId] = []
        for commit in commits:
            base = self._commit(base, commit, OURS)
            ids.append(base)
        return ids

    def branches(self) -> Mapping[ClusterName, Branch]:
        return dict(self.clusters)

    def directories(self, commits: Sequence[CommitId]) -> list[Mapping[ClusterName, TreeId]]:
        return [_directories(self.commits[commit].tree) for commit in commits]

    def project(self, projections: Sequence[Projection]) -> list[Advance]:
        advances: list[Advance] = []
        for projection in projections:
            base = projection.base
            old = parent = base.commit if base else None
            at = base.at if base else EPOCH
            for one in projection.snapshots:
                at = max(at, one.at)
                identity = f"{parent}\n{one.message}\n{at.isoformat()}\n{one.directory}"
                name = CommitId(hashlib.sha1(identity.encode(), usedforsecurity=False).hexdigest())
                self.projected[name] = Branch(commit=name, tree=alone(projection.cluster, one.directory), at=at)
                parent = name
            assert parent is not None, "a projection of nothing"
            advances.append(Advance(cluster=projection.cluster, old=old, new=parent))
        return advances

    def begin_push(
        self, new: CommitId, *, old: CommitId | None, branches: Sequence[Advance] = ()
    ) -> Callable[[], None]:
        self.before_push()
        moved = [advance.cluster for advance in branches if self._stands(advance.cluster) != advance.old]
        moved += ["output"] if self.heads["output"] != old else []
        if not moved:
            self.heads["output"] = new
            self.clusters.update({advance.cluster: self.projected[advance.new] for advance in branches})
            self.pushes += 1

        def end() -> None:
            if moved:
                raise Conflict(f"moved: {moved}")

        return end

    def _stands(self, cluster: ClusterName) -> CommitId | None:
        there = self.clusters.get(cluster)
        return there.commit if there else None

    def _commit(self, base: CommitId | None, commit: Commit, committer: Identity) -> CommitId:
        tree = dict(self.commits[base].tree) if base else {}
        for gone in commit.removes:
            tree = {path: data for path, data in tree.items() if path != gone and not path.startswith(f"{gone}/")}
        tree.update(commit.writes)
        at = max(commit.at, self.commits[base].log.at) if base else commit.at
        content = "\n".join(f"{path} {blob_of(data)}" for path, data in sorted(tree.items()))
        identity = f"{base}\n{commit.message}\n{committer.email}\n{at.isoformat()}\n{content}"
        commit_id = CommitId(hashlib.sha1(identity.encode(), usedforsecurity=False).hexdigest())
        subject, _, body = commit.message.partition("\n")
        last = commit.message.strip().rpartition("\n\n")[2]
        trailers = dict(line.split(": ", 1) for line in last.splitlines() if line.startswith("Overspill-"))
        log = LoggedCommit(
            id=commit_id,
            at=at,
            author=commit.author,
            committer=committer,
            subject=subject,
            body=body.strip(),
            trailers=trailers,
        )
        self.commits[commit_id] = Snapshot(commit_id, base, tree, log)
        self.blobs.update({blob_of(data): data for data in commit.writes.values()})
        return commit_id


def _directories(tree: Mapping[str, bytes]) -> dict[ClusterName, TreeId]:
    """Name the content of each directory of a cluster, as long as it has any."""
    files: dict[str, list[str]] = {}
    for path, data in sorted(tree.items()):
        parts = path.split("/", 2)
        if parts[0] == "clusters" and len(parts) > 2:
            files.setdefault(parts[1], []).append(f"{parts[2]} {blob_of(data)}")
    return {
        ClusterName(name): TreeId(hashlib.sha1("\n".join(lines).encode(), usedforsecurity=False).hexdigest())
        for name, lines in files.items()
    }


def _below(path: str, under: Sequence[str]) -> bool:
    return not under or any(path == part or path.startswith(f"{part}/") for part in under)
