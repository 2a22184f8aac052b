"""Words on a branch of the remote that lacks what was pushed, and messages of the commits that settle it."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core.commits.trailers import Trailer, write_trailers
from reconciler.errors import LostBranch, Problem
from reconciler.model.action import Action
from reconciler.model.branch_loss import BranchLoss, BranchLossKind
from reconciler.text.timestamps import format_time
from reconciler.text.wording import count

NOTHING_WRITTEN = "nothing is written until that is settled"
_WAYS_OUT = (
    "look with `overspill restore --dry-run`, push it back with `overspill restore`,"
    " or go on without it with `overspill restore --accept`"
)


def describe_loss(loss: BranchLoss) -> str:
    """Say in one clause what is known of a branch, and where the remote has it now."""
    known = f"{loss.known[:12]}{f' of {format_time(loss.known_at)}' if loss.known_at else ''}"
    source = "it was last seen at" if loss.is_known else "a person has named"
    source = f"the engine of {loss.reported_by} has applied" if loss.reported_by else source
    tip = f"{loss.tip[:12]}{f' of {format_time(loss.tip_at)}' if loss.tip_at else ''}" if loss.tip else ""
    match loss.kind:
        case BranchLossKind.GONE:
            now = "the remote has no such branch any more"
        case BranchLossKind.REWOUND:
            now = f"the remote has rewound it to {tip}"
        case BranchLossKind.DIVERGED:
            now = f"it is now at {tip} with {count(loss.unknown, 'other commit')} instead"
        case BranchLossKind.REPLACED:
            now = f"it is now at {tip}, which shares no commit with that one"
    return f"{source} {known}, and {now}"


NOTHING_HAPPENS = (
    "branches that Overspill writes lack commits that they had, so that no burst begins, ends or is renewed until that"
    " is settled"
)
"""The loss for people who cannot settle it: it names no branch, since those of clusters are named after them."""
WHO_SETTLES = (
    "whoever runs Overspill settles it: `overspill restore --dry-run`, where the daemon runs, shows what was lost"
)


def shared_problem(losses: Sequence[BranchLoss]) -> tuple[Problem, ...]:
    """Return the losses as one problem for everybody, without a name; none where nothing is lost."""
    return (Problem(path="fleet repository", message=NOTHING_HAPPENS, hint=WHO_SETTLES),) if losses else ()


def loss_problem(loss: BranchLoss) -> Problem:
    """Return the loss as a problem for whatever shows what stands: status, plan, the page."""
    unheld = (
        ""
        if loss.known_at
        else f", while nothing of {loss.known[:12]} is held here, so that what it placed is not shown"
    )
    return Problem(
        path=f"branch {loss.branch}",
        message=f"{describe_loss(loss)}{unheld}; {NOTHING_WRITTEN}",
        hint=f"try: {_ways_out(loss)}",
    )


def refusal(losses: Sequence[BranchLoss]) -> LostBranch:
    """Return the error of every write while branches lack what was pushed."""
    named = "; ".join(f"branch {loss.branch}: {describe_loss(loss)}" for loss in losses)
    return LostBranch(f"{named}; {NOTHING_WRITTEN} (try: {_ways_out(losses[0])})")


def _ways_out(loss: BranchLoss) -> str:
    if not _to_be_named(loss):
        return _WAYS_OUT
    return _WAYS_OUT.replace("restore`", f"restore --commit {loss.known}`").replace(
        "restore --accept", f"restore --accept --commit {loss.known}"
    )


def preview_command(loss: BranchLoss) -> str:
    """Return the command that shows what a restore would do, and does nothing."""
    return f"overspill restore{f' --commit {loss.known}' if _to_be_named(loss) else ''} --dry-run"


def _to_be_named(loss: BranchLoss) -> bool:
    """Return whether a command on another machine has to be told the commit: `--commit` is for the output branch."""
    return loss.is_output and bool(loss.reported_by)


def restore_message(loss: BranchLoss) -> str:
    """Write the message of the commit that puts back what a branch had, beside the commits that it has now."""
    return _message(
        f"Restore {loss.branch} to {loss.known[:12]}",
        f"Before that, {describe_loss(loss)}. A person had the known state put back; files beside it stay.",
        loss,
    )


def accept_message(loss: BranchLoss) -> str:
    """Write the message of the commit by which a person gives up what a branch had."""
    return _message(
        f"Accept the loss of {loss.branch} after {loss.known[:12]}" if loss.tip else f"Begin {loss.branch} again",
        f"Before that, {describe_loss(loss)}. A person had Overspill go on without it.",
        loss,
    )


def _message(subject: str, why: str, loss: BranchLoss) -> str:
    cluster = [] if loss.is_output else [(Trailer.CLUSTER, loss.branch.rpartition("/")[2])]
    # Another machine may know an earlier one alone, and have no way to see that the last one follows it.
    lost = [(Trailer.SUPERSEDES, commit) for commit in (*loss.earlier, loss.known)]
    trailers = write_trailers([(Trailer.ACTION, Action.START), *cluster, *lost])
    return f"{subject}\n\n{why[0].upper()}{why[1:]}\n\n{trailers}\n"
