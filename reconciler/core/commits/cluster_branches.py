"""The commits that branches of clusters lack, compared with the output branch.

Level-triggered, not edge-triggered: the state of each branch counts, not how it came about. A branch that a person
moved, or that fell behind, gets one commit that corrects it; a branch that was up to date gets a commit for each commit
of the output branch that changed the cluster's directory, with the same message.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from reconciler.core.commits.trailers import Trailer, write_trailers
from reconciler.model.action import Action
from reconciler.model.ids import ClusterName, CommitId, TreeId
from reconciler.model.policy import Desired
from reconciler.model.tree import ROOT, Advance, Branch, BranchCommit, Commit, Identity, Projection, alone
from reconciler.text.wording import join_names


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchState:
    """A commit of the output branch, with the ids of the clusters' directories in it."""

    commit: CommitId
    directories: Mapping[ClusterName, TreeId]
    written: Commit | None = None  # as this pass wrote it; None for the tip that the pass began with


def keeps_cluster_branches(desired: Desired) -> bool:
    """Return whether branches of clusters may have to be kept up to date.

    With broken files the Fleet's setting is unknown. Existing branches are kept up to date then, so that the end of a
    burst reaches an engine that follows one.
    """
    return desired.fleet.branch_per_cluster or desired.incomplete


def project(
    desired: Desired,
    branches: Mapping[ClusterName, Branch],
    states: Sequence[BranchState],
    *,
    now: datetime,
    author: Identity,
) -> tuple[Projection, ...]:
    """Compute the commits of each branch. `states` are the tip before the pass, if there was one, and its commits.

    A branch that is correct already is left out, however that came about.
    """
    if not states:
        return ()
    last = states[-1].directories
    return tuple(
        Projection(cluster=cluster, base=branch, snapshots=_snapshots(cluster, branch, states, now, author))
        for cluster in sorted(_clusters(desired, branches, last))
        if (branch := branches.get(cluster)) is None or branch.tree != alone(cluster, last.get(cluster))
    )


def _clusters(
    desired: Desired, branches: Mapping[ClusterName, Branch], directories: Collection[ClusterName]
) -> set[ClusterName]:
    """List the clusters that have a branch: those of the fleet, those that have files, and those that had one before.

    A branch is never removed: Flux and Argo CD take nothing away when one is not there. A person's stays as it is.
    """
    before = {cluster for cluster, branch in branches.items() if not branch.is_foreign}
    if desired.fleet.branch_per_cluster:
        return {*desired.clusters, *directories, *before}
    return before


def _snapshots(
    cluster: ClusterName, branch: Branch | None, states: Sequence[BranchState], now: datetime, author: Identity
) -> tuple[BranchCommit, ...]:
    """Walk along the states, and keep each in which the directory is another than in the one before."""
    tree = branch.tree if branch else None
    snapshots: list[BranchCommit] = []
    for state in states:
        directory = state.directories.get(cluster)
        wanted = alone(cluster, directory)
        if wanted == tree:
            continue
        tree = wanted
        if state.written is None:
            message = catch_up_message(cluster, state.commit, new=branch is None)
            snapshots.append(BranchCommit(message=message, author=author, at=now, directory=directory))
        else:
            message = projected(state.written.message, state.commit)
            commit = state.written
            snapshots.append(BranchCommit(message=message, author=commit.author, at=commit.at, directory=directory))
    return tuple(snapshots)


def branches_of(clusters: Sequence[str]) -> str:
    """Name the branches of some clusters."""
    return f"{'branch' if len(clusters) == 1 else 'branches'} of {join_names(clusters)}"


def line(advances: Sequence[Advance]) -> str:
    """Say in one line that branches were put right with nothing else to push."""
    return f"follow({join_names(advance.cluster for advance in advances)}): brought to where the output branch stands"


def projected(message: str, commit: CommitId) -> str:
    """Write the message of a commit that stands for one of the output branch: the same, and which one it is."""
    return f"{message.rstrip()}\n{write_trailers([(Trailer.OUTPUT, commit)])}\n"


def catch_up_message(cluster: ClusterName, commit: CommitId, *, new: bool) -> str:
    """Write the message of the commit that begins a cluster's branch, or brings it to where the output branch is."""
    verb, action, why = (
        "follow",
        Action.FOLLOW,
        f"{ROOT}/{cluster} was changed by hand on the output branch, or this branch was.",
    )
    if new:
        verb, action, why = (
            "start",
            Action.START,
            f"This branch holds {ROOT}/{cluster} of the output branch, and nothing else.",
        )
    trailers = write_trailers([(Trailer.ACTION, action), (Trailer.CLUSTER, cluster), (Trailer.OUTPUT, commit)])
    return f"{verb}({cluster}): the output branch at {commit[:12]}\n\n{why}\n\n{trailers}\n"
