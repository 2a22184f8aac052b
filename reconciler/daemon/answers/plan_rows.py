"""The rows of a plan: each commit with its change, and the reason in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.core.commits import message_parts
from reconciler.core.commits.messages import held, reason_clause
from reconciler.core.commits.write import RenderedPlan
from reconciler.model.action import Action
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import RestraintKind
from reconciler.model.plan import Change
from reconciler.model.tree import Commit
from reconciler.text.wording import as_clause


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A change in a line; None for what it does not have."""

    action: str
    workload: WorkloadId | None = None
    placement: str | None = None
    cluster: str | None = None
    """The cluster with the subset, or the clusters of a request."""
    replicas: int | str | None = None
    """The replicas, or those before and after: ``4 -> 2``."""
    until: datetime | None = None
    why: str


def plan_rows(rendered: RenderedPlan) -> list[PlanRow]:
    """Return a row for each commit, in their order."""
    first = rendered.commits[: len(rendered.commits) - len(rendered.changes)]
    return [*map(_first_commit_row, first), *map(_row, rendered.changes)]


def _first_commit_row(commit: Commit) -> PlanRow:
    """Return the row of a commit that only begins a branch or a directory, which its subject names."""
    return PlanRow(action="Start", why=commit.message.partition("\n")[0].partition(": ")[2])


def _row(change: Change) -> PlanRow:
    """Return the row of a change."""
    placement = change.after or change.before
    return PlanRow(
        action="Update" if change.is_update else change.action.value,
        workload=change.workload,
        placement=None if placement is None else placement.name,
        cluster=_places(change),
        replicas=_replicas(change),
        until=_until(change),
        why=_why(change),
    )


def _places(change: Change) -> str:
    """Name the cluster of a placement with its subset, or the clusters of what is no placement."""
    if change.after is not None or change.before is not None:
        return change.placement.where
    if change.proposal is not None:
        return ", ".join(placement.where for placement in change.proposal.placements)
    if change.record is not None:
        return ", ".join(change.clusters)
    return ", ".join(sorted({restraint.cluster or "all" for restraint in change.restraints}))


def _replicas(change: Change) -> int | str | None:
    match change.action:
        case Action.PROPOSE | Action.APPROVE if change.proposal is not None:
            return change.proposal.replicas
        case Action.RESIZE | Action.REVERT if not change.is_update:
            return f"{change.replicas_before} -> {change.replicas_after}"
        case _:
            return None if change.after is None else change.after.replicas


def _until(change: Change) -> datetime | None:
    match change.action:
        case Action.PROPOSE | Action.APPROVE if change.proposal is not None:
            return change.proposal.until
        case Action.HOLD if change.restraint is not None:
            return change.restraint.until
        case _:
            return None if change.after is None else change.after.expires_at


def _why(change: Change) -> str:
    detail, chosen = as_clause(change.detail), reason_clause(change.choice)
    match change.action:
        case Action.PLACE if change.shortage is not None:
            missing = message_parts.describe_missing(change.shortage)
            return f"{missing}{message_parts.describe_causes(change.shortage, change.placement)}{chosen}"
        case Action.PLACE:
            return f"{detail or 'asked for by name'}{chosen}"
        case Action.RESIZE:
            return f"{detail}{message_parts.describe_signals(change.shortage, change.placement)}{chosen}"
        case Action.MOVE:
            return f"from {change.former.where}, {change.why}: {detail}{chosen}"
        case Action.REVERT:
            hold = change.restraint if change.restraint and change.restraint.kind is RestraintKind.HOLD else None
            until = held(hold)
            ends = f"; {until[0].lower()}{as_clause(until[1:])}" if until else ""
            return f"{': '.join(filter(None, (change.why, detail)))}{ends}"
        case Action.HOLD | Action.EXTEND | Action.RESTORE | Action.RELEASE:
            return message_parts.reason(change)
        case _:
            return as_clause(message_parts.reason(change))
