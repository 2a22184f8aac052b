"""Settles the loss of branches by a person's word: known commits are pushed back, or given up.

No way forces a branch. A commit that is not known stays in the history of its branch whatever a person chooses. Nothing
is visible before the one push of all branches, so that whoever is killed before it can begin again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reconciler.adapters.git import push
from reconciler.adapters.git.branches import RemoteBranches
from reconciler.adapters.git.commits import parse
from reconciler.adapters.git.fastimport import grafted_stream, settling_stream
from reconciler.core.commits.branch_loss import accept_message, describe_loss, restore_message
from reconciler.core.commits.commit_date import date_after
from reconciler.core.commits.trailers import Trailer
from reconciler.core.ledger.read import ROOTS, approved_workload
from reconciler.errors import InvalidInput
from reconciler.model.branch_loss import BranchLoss, BranchLossKind
from reconciler.model.ids import CommitId, TreeId
from reconciler.model.tree import Commit, Identity

UNHELD_REMEDY = (
    "try it where the daemon runs or with its OVERSPILL_CACHE_DIR, or push that commit from any clone that has it, or"
    " give it up with --accept"
)
"""What settles the loss of a known commit that neither this machine nor the remote holds."""


class RestoreWay(StrEnum):
    """How the loss of a branch is settled."""

    PUSH = "push"
    """The known commit is pushed: it follows what the branch has now, or the branch is gone."""
    MERGE = "merge"
    """A commit joins the known history and the commits that are not known, with the known files of ours."""
    REWRITE = "rewrite"
    """The commits that the mirror holds are written again, since the remote lacks those before them."""
    ACCEPT = "accept"
    """A commit gives up what was known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    """The settlement of one branch's loss, whose commits are in the mirror alone."""

    loss: BranchLoss
    way: RestoreWay
    new: CommitId
    """Where the branch is to stand."""
    commits: int
    """Number of commits that the branch gains."""
    written: tuple[CommitId, ...] = ()
    """The new commits among them, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """What all commits of a restoration have in common."""

    person: Identity
    """Who decides; the author."""
    committer: Identity
    trailers: Sequence[str] = ()
    """Lines of an organisation that end each message."""


def draft(
    branches: RemoteBranches,
    losses: Mapping[str, BranchLoss],
    *,
    accept: bool,
    now: datetime,
    writing: Writing,
) -> list[Restoration]:
    """Write the commits that settle all losses into the mirror.

    A commit that an engine has reported and that nobody holds keeps no other loss from being settled: it is left out.
    Raises InvalidInput where known commits are to be pushed back and neither mirror nor remote holds them, and where
    placements of the branch would be deleted for what may never have been its state.
    """
    output_lost = branches.output in losses

    def gives_up(loss: BranchLoss) -> bool:
        # A cluster's branch that is gone comes back as it was, as its files follow from the output branch; unless that
        # is lost as well, or nobody holds the commit, which an engine may have made up.
        return accept and (output_lost or loss.tip is not None or not branches.commits.obtain(loss.known))

    settled = list(losses.values())
    if not accept:
        settled = [loss for loss in settled if not loss.reported_by or branches.commits.obtain(loss.known)] or settled
    return [_settle(branches, loss, accept=gives_up(loss), now=now, writing=writing) for loss in settled]


def carry_out(branches: RemoteBranches, restorations: Sequence[Restoration]) -> None:
    """Push all of it at once. Raises Conflict where a branch has moved since it was judged."""
    moves = [
        push.RefUpdate(branch=f"refs/heads/{each.loss.branch}", old=each.loss.tip, new=each.new)
        for each in restorations
    ]
    branches.list_no_first_commits()
    push.carry_out(branches, moves)


def _settle(
    branches: RemoteBranches, loss: BranchLoss, *, accept: bool, now: datetime, writing: Writing
) -> Restoration:
    at = date_after(date_after(now, loss.known_at), loss.tip_at)
    if accept:
        tree = _tree(branches, loss.tip) if loss.tip else TreeId(_empty_tree(branches))
        parents = [loss.tip] if loss.tip else []
        commit = Commit(message=accept_message(loss), author=writing.person, at=at)
        new = _commit(branches, loss, tree, parents, commit, writing=writing)
        return Restoration(loss=loss, way=RestoreWay.ACCEPT, new=new, commits=1, written=(new,))
    if not branches.commits.obtain(loss.known):
        raise InvalidInput(
            f"restoring branch {loss.branch}: {describe_loss(loss)}; neither this machine nor the remote holds"
            f" {loss.known[:12]} ({UNHELD_REMEDY})"
        )
    if _lacks_parents(branches, loss):
        # Without the commits before them, hosts refuse a push of these.
        branches.commits.fetch_history(loss.known)
    if _lacks_parents(branches, loss):
        chain = branches.local(["rev-list", "--first-parent", "--reverse", loss.known]).decode().split()
        raws = list(branches.reader.read(chain))
        pairs = list(zip(chain, raws, strict=True))
        made = branches.local(["fast-import", "--quiet", "--done"], stdin=grafted_stream(loss.tip, pairs))
        again = [CommitId(line) for line in made.decode().split()]
        new = _join(branches, loss, [again[-1]], at, writing=writing)
        return Restoration(loss=loss, way=RestoreWay.REWRITE, new=new, commits=len(chain) + 1, written=(*again, new))
    if loss.kind in (BranchLossKind.GONE, BranchLossKind.REWOUND):
        excluded = [f"^{loss.tip}"] if loss.tip else []
        gained = int(branches.local(["rev-list", "--count", loss.known, *excluded]))
        return Restoration(loss=loss, way=RestoreWay.PUSH, new=loss.known, commits=gained)
    parents = [loss.known, *([loss.tip] if loss.tip else [])]
    new = _join(branches, loss, parents, at, writing=writing)
    gained = int(branches.local(["rev-list", "--count", new, *([f"^{loss.tip}"] if loss.tip else [])]))
    return Restoration(loss=loss, way=RestoreWay.MERGE, new=new, commits=gained, written=(new,))


def _lacks_parents(branches: RemoteBranches, loss: BranchLoss) -> bool:
    """Return whether the commits to push include one whose parents neither the mirror nor the branch has."""
    shallow = branches.shallow()
    excluded = [f"^{loss.tip}"] if loss.tip else []
    cut = [name for name in branches.local(["rev-list", loss.known, *excluded]).decode().split() if name in shallow]
    return any(parse(CommitId(name), raw).parents for name, raw in zip(cut, branches.reader.read(cut), strict=True))


def _join(
    branches: RemoteBranches, loss: BranchLoss, parents: Sequence[CommitId], at: datetime, *, writing: Writing
) -> CommitId:
    """Write the commit with our known files, and with what else the branch has now.

    It brings no approval back: whoever said yes did so to what stood then, and may have taken it back.
    """
    _refuse_deletion(branches, loss)
    approvals = sorted(path for path in branches.commits.records(loss.known) if approved_workload(path) is not None)
    commit = Commit(message=restore_message(loss), author=writing.person, at=at, removes=tuple(approvals))
    return _commit(branches, loss, _merged_tree(branches, loss), parents, commit, writing=writing)


def _refuse_deletion(branches: RemoteBranches, loss: BranchLoss) -> None:
    """Refuse to delete placements of the output branch for what may never have been its state.

    What a mirror knows was its state, unless it holds nothing of ours. What an engine or a person names was, if the
    newest commit of ours in it names the branch and the branch lacks that; else it may be of another branch, or a
    person's commit beside this one.
    """
    if loss.tip is None or not loss.is_output:
        return
    held, known = branches.commits.records(loss.tip), branches.commits.records(loss.known)
    if not any(map(_is_placement, held - known)):
        return
    own = branches.commits.recent(loss.known).own
    why = ""
    if loss.is_known:
        if own is None and not known:
            why = f"{loss.known[:12]} holds no record of Overspill, so that every placement would be deleted"
    elif own is None or not Trailer.BRANCH.among(own):
        why = f"nothing says that {loss.known[:12]} is of this branch, and placements that it lacks would be deleted"
    elif branches.commits.has_own_of(loss.known, f"refs/heads/{loss.branch}", loss.tip):
        why = f"the branch has all that Overspill wrote before {loss.known[:12]}, and later placements would be deleted"
    if why:
        raise InvalidInput(
            f"restoring branch {loss.branch}: {describe_loss(loss)}; {why} (merge it with git if that is meant, or go"
            " on without it with --accept)"
        )


def _is_placement(path: str) -> bool:
    return path.endswith("/placement.yaml")


def _merged_tree(branches: RemoteBranches, loss: BranchLoss) -> TreeId:
    """Write the tree with our known files, and with what else the branch has now."""
    if loss.tip is None:
        return _tree(branches, loss.known)
    theirs = branches.local(["ls-tree", "-z", loss.tip]).split(b"\0")
    ours = branches.local(["ls-tree", "-z", loss.known]).split(b"\0")
    names = {root.encode() for root in ROOTS}
    kept = [entry for entry in theirs if entry and entry.partition(b"\t")[2] not in names]
    back = [entry for entry in ours if entry and entry.partition(b"\t")[2] in names]
    made = branches.local(["mktree", "-z", "--missing"], stdin=b"".join(entry + b"\0" for entry in (*kept, *back)))
    return TreeId(made.decode().strip())


def _empty_tree(branches: RemoteBranches) -> str:
    return branches.local(["mktree"], stdin=b"").decode().strip()


def _tree(branches: RemoteBranches, commit: CommitId) -> TreeId:
    return TreeId(branches.local(["rev-parse", f"{commit}^{{tree}}"]).decode().strip())


def _commit(
    branches: RemoteBranches,
    loss: BranchLoss,
    tree: TreeId,
    parents: Sequence[CommitId],
    commit: Commit,
    *,
    writing: Writing,
) -> CommitId:
    """Write one commit into the mirror."""
    text = settling_stream(tree, parents, commit, writing.committer, branch=loss.branch, trailers=writing.trailers)
    return CommitId(branches.local(["fast-import", "--quiet", "--done"], stdin=text).decode().strip())
