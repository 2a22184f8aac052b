"""Pushes: branches of the remote move together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reconciler.adapters.git import remote as address
from reconciler.adapters.git import remote_errors
from reconciler.adapters.git.branches import RemoteBranches
from reconciler.adapters.git.run import Output
from reconciler.errors import OverspillError
from reconciler.model.ids import CommitId

_OTHERS_FAULT = ("[rejected] (atomic push failed)", "[remote rejected] (atomic push failure)")
"""Git's summary of a branch that did not move because another one was rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefUpdate:
    """The move of one branch on the remote."""

    branch: str
    """The full name of the branch."""
    old: CommitId | None
    """The commit that it must have before; None if it must not exist."""
    new: CommitId | None
    """None to remove it."""


def begin(branches: RemoteBranches, moves: Sequence[RefUpdate]) -> Callable[[], None]:
    """Start a push that moves branches forward; the returned function waits for its end.

    The caller has checked that each `new` descends from its `old`. Leases name the commits that the remote must still
    have, so a branch that was reset or removed meanwhile is not moved. The returned function raises Conflict for that,
    InvalidInput for a rejection that needs a person, else Transient.
    """
    together = ["--atomic"] if len(moves) > 1 else []
    leases = [f"--force-with-lease={move.branch}:{move.old or ''}" for move in moves]
    command = ["push", "--porcelain", "--progress", "--no-verify", *together, *leases, address.NAME]
    branches.doubtful = True
    under_way = branches.runner.begin([*command, *(f"{move.new or ''}:{move.branch}" for move in moves)], remote=True)

    def end() -> None:
        done = under_way()
        if done.status:
            raise _rejection(branches, moves[0].branch, done)

    return end


def rehearse(branches: RemoteBranches, commit: CommitId) -> None:
    """Try a push of the output branch as a dry run, which sends no commit and moves no branch.

    The remote answers as to any push, so that it shows a login without the right to push; its hooks and its rules for
    single branches have no say. Raises InvalidInput for a refusal, else Transient.
    """
    command = ["push", "--dry-run", "--porcelain", "--no-verify", address.NAME, f"{commit}:{branches.output}"]
    done = branches.runner.run(command, remote=True)
    if done.status:
        raise _rejection(branches, branches.output, done)


def doing(branches: RemoteBranches, branch: str) -> str:
    """Describe the push for an error."""
    return f"pushing {branch.removeprefix('refs/heads/')} to {branches.remote.shown}"


def _rejection(branches: RemoteBranches, first: str, done: Output) -> OverspillError:
    """Return the error of a failed push, from the summary of the rejected branch."""
    refused = remote_errors.parse_rejections(done.stdout)
    if not refused:
        return branches.failure(doing(branches, first), done)
    refspec, summary = next((update for update in refused if update[1] not in _OTHERS_FAULT), refused[0])
    branch = refspec.partition(":")[2]
    return remote_errors.rejection(
        doing(branches, branch), summary, branches.remote.redact(done.stderr), branches.remote, branch=branch
    )
