"""Pushes: branches of the remote move together or not at all, but for those of clusters that the host refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.adapters.git import remote as address
from reconciler.adapters.git import remote_errors
from reconciler.adapters.git.branches import RemoteBranches
from reconciler.adapters.git.run import Output
from reconciler.errors import HostKeyChanged, InvalidInput, OverspillError, Transient
from reconciler.model.ids import CommitId

_OTHERS_FAULT = (
    "[rejected] (atomic push failed)",
    "[remote rejected] (atomic push failure)",
    "[remote rejected] (atomic transaction failed)",
)
"""Git's summaries of a branch that did not move because another one was rejected."""
_OF_ALL = "pre-receive hook declined"
"""Git's summary of each branch of a push that a hook has refused as a whole. GitLab and Gitea check the rules of
branches so, and need not say which branch it is; a push that a `reference-transaction` hook aborts has no summaries."""
_MOST_PUSHES = 24
"""Pushes by which the branch is found that such a hook refuses. It takes two for each halving of its neighbours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefUpdate:
    """The move of one branch on the remote."""

    branch: str
    """The full name of the branch."""
    old: CommitId | None
    """The commit that it must have before; None if it must not exist."""
    new: CommitId | None
    """None to remove it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedMove:
    """The move of a branch that the host refuses."""

    error: OverspillError
    is_of_all: bool
    """Whether a hook has refused several branches as a whole, which may be for the sake of any of them."""


RefusedMoves = Mapping[str, RefusedMove]
"""The branches that were refused for their own sake, by their full names."""


def begin(branches: RemoteBranches, moves: Sequence[RefUpdate], *, together: bool = True) -> Callable[[], RefusedMoves]:
    """Start a push that moves branches forward; the returned function waits for its end.

    The caller has checked that each `new` descends from its `old`. Leases name the commits that the remote must still
    have, so a branch that was reset or removed meanwhile is not moved. The returned function returns the branches that
    the remote refuses for their own sake; where they move `together`, none has moved then. It raises Conflict where a
    branch has another commit, and InvalidInput or Transient where the push failed for another reason.
    """
    atomic = ["--atomic"] if together and len(moves) > 1 else []
    leases = [f"--force-with-lease={move.branch}:{move.old or ''}" for move in moves]
    command = ["push", "--porcelain", "--progress", "--no-verify", *atomic, *leases, address.NAME]
    branches.doubtful = True
    under_way = branches.runner.begin([*command, *(f"{move.new or ''}:{move.branch}" for move in moves)], remote=True)

    def end() -> RefusedMoves:
        done = under_way()
        return _refusals(branches, moves, done) if done.status else {}

    return end


def carry_out(branches: RemoteBranches, moves: Sequence[RefUpdate]) -> None:
    """Push, and raise the error of the first branch that is refused; see `begin`."""
    for refusal in begin(branches, moves)().values():
        raise refusal.error


def carry_out_output(
    branches: RemoteBranches, moves: Sequence[RefUpdate], refused: RefusedMoves
) -> tuple[RefusedMoves, list[RefUpdate]]:
    """Push the output branch alone, if it is to move, after the remote has refused some of the branches of a push.

    Branches of clusters are made from the output branch, and the next pass brings them to it, so that they may move
    after it. Returns the branches of clusters that were refused for their own sake, and the moves of those that are
    still to be pushed, each for itself. Raises the error of the output branch where that is refused, else as `begin`
    does.
    """
    is_of_all = _is_of_all(moves, refused)
    if branches.output in refused and not is_of_all:
        raise refused[branches.output].error
    output = [move for move in moves if move.branch == branches.output]
    if output:
        carry_out(branches, output)
    known = {} if is_of_all else refused
    return known, [move for move in moves if move.branch not in {branches.output, *known}]


def carry_out_each(branches: RemoteBranches, moves: Sequence[RefUpdate]) -> RefusedMoves:
    """Push branches of clusters, each of which moves or not for itself; returns those that are refused.

    A push that is refused as a whole is halved, until the branches are found that it is refused for, or the number of
    pushes is spent: what is left then stays refused as a whole.
    """
    refused: dict[str, RefusedMove] = {}
    groups = [list(moves)] if moves else []
    pushes = 0
    while groups:
        group = groups.pop(0)
        pushes += 1
        answer = begin(branches, group, together=False)()
        if _is_of_all(group, answer) and pushes + len(groups) + 2 <= _MOST_PUSHES:
            half = len(group) // 2
            groups += [group[:half], group[half:]]
        else:
            refused.update(answer)
    return refused


def _is_of_all(moves: Sequence[RefUpdate], refused: RefusedMoves) -> bool:
    """Return whether a push was refused as a whole."""
    return len(refused) == len(moves) and all(refusal.is_of_all for refusal in refused.values())


def rehearse(branches: RemoteBranches, commit: CommitId) -> None:
    """Try a push of the output branch as a dry run, which sends no commit and moves no branch.

    The remote answers as to any push, so that it shows a login without the right to push; its hooks and its rules for
    single branches have no say. Raises InvalidInput for a refusal, else Transient.
    """
    command = ["push", "--dry-run", "--porcelain", "--no-verify", address.NAME, f"{commit}:{branches.output}"]
    done = branches.runner.run(command, remote=True)
    if done.status:
        move = RefUpdate(branch=branches.output, old=None, new=commit)
        for refusal in _refusals(branches, [move], done).values():
            raise refusal.error


def doing(branches: RemoteBranches, branch: str) -> str:
    """Describe the push for an error."""
    return f"pushing {branch.removeprefix('refs/heads/')} to {branches.remote.shown}"


def _refusals(branches: RemoteBranches, moves: Sequence[RefUpdate], done: Output) -> RefusedMoves:
    """Return the branches that a failed push was refused for, from their summaries; raises any other failure of it."""
    summaries: dict[str, str] = {}
    for refspec, summary in remote_errors.parse_rejections(done.stdout):
        summaries.setdefault(refspec.partition(":")[2], summary)
    pushed = [move.branch for move in moves if move.branch in summaries]
    said = branches.remote.redact(done.stderr)
    if not pushed:
        if not remote_errors.is_abort_by_hook(said):
            raise branches.failure(doing(branches, moves[0].branch), done)
        return {
            move.branch: RefusedMove(
                error=branches.failure(doing(branches, move.branch), done), is_of_all=len(moves) > 1
            )
            for move in moves
        }
    locked = remote_errors.find_locked_branches(said) - {branches.output}
    blocked = {*remote_errors.find_branches_in_the_way(said), *locked}
    own = [branch for branch in pushed if summaries[branch] not in _OTHERS_FAULT or branch in blocked]
    refused: dict[str, RefusedMove] = {}
    for branch in own or pushed:
        summary = summaries[branch]
        error = remote_errors.rejection(doing(branches, branch), summary, said, branches.remote, branch=branch)
        if branch in locked:  # a lock that a dead process has left is no move of the branch
            error = Transient(str(error))
        is_of_branch = isinstance(error, InvalidInput) or (isinstance(error, Transient) and error.pause is None)
        if not own or not is_of_branch or isinstance(error, HostKeyChanged):
            raise error
        refused[branch] = RefusedMove(error=error, is_of_all=_OF_ALL in summary and len(moves) > 1)
    return refused
