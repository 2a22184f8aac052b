"""The rows of a plan: each commit with its change, and the reason in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.core.commits import message_parts
from reconciler.core.commits.messages import held, reason_clause, replaces_source
from reconciler.core.commits.write import RenderedPlan
from reconciler.model.ids import WorkloadId
from reconciler.model.ledger import Drift
from reconciler.model.placement import RestraintKind
from reconciler.model.plan import (
    Change,
    EndProposal,
    Extend,
    Hold,
    Move,
    Place,
    ProposalChange,
    Release,
    RequestChange,
    Resize,
    Restore,
    Revert,
    Shortage,
)
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
    if isinstance(change, RequestChange):
        return _request_row(change)
    if isinstance(change, ProposalChange):
        return _proposal_row(change)
    cells: tuple[int | str | None, datetime | None, str]
    match change:
        case Place(placement=placement, shortage=None, choice=choice, detail=detail):
            cells = (
                placement.replicas,
                placement.expires_at,
                f"{as_clause(detail) or 'asked for by name'}{reason_clause(choice)}",
            )
        case Place(placement=placement, shortage=Shortage() as shortage, choice=choice):
            missing = f"{message_parts.describe_missing(shortage)}{message_parts.describe_causes(shortage, placement)}"
            cells = (placement.replicas, placement.expires_at, f"{missing}{reason_clause(choice)}")
        case Resize(before=before, after=placement, detail=detail, shortage=shortage, choice=choice):
            cells = (
                placement.replicas if _is_update(change) else f"{before.replicas} -> {placement.replicas}",
                placement.expires_at,
                f"{as_clause(detail)}{message_parts.describe_signals(shortage, placement)}{reason_clause(choice)}",
            )
        case Extend(after=placement, detail=detail):
            cells = (placement.replicas, placement.expires_at, detail)
        case Move(before=before, after=placement, why=why, detail=detail, choice=choice):
            cells = (
                placement.replicas,
                placement.expires_at,
                f"from {before.where}, {why}: {as_clause(detail)}{reason_clause(choice)}",
            )
        case Revert(placement=placement, why=why, detail=detail, restraint=restraint):
            hold = restraint if restraint is not None and restraint.kind is RestraintKind.HOLD else None
            reason = f"{why}: {as_clause(detail)}" if as_clause(detail) else str(why)
            until = held(hold)
            reason += f"; {until[0].lower()}{as_clause(until[1:])}" if until else ""
            cells = (f"{placement.replicas} -> 0", None, reason)
        case Restore(drifted=Drift(placement=placement), detail=detail):
            cells = (placement.replicas, placement.expires_at, detail)
        case Hold(placement=placement, restraint=restraint):
            cells = (None, restraint.until, restraint.reason)
        case Release(workload=workload, restraints=restraints, detail=detail):
            clusters = ", ".join(sorted({restraint.cluster or "all" for restraint in restraints}))
            return PlanRow(action="Release", workload=workload, cluster=clusters, why=detail)
    number, end, reason = cells
    return PlanRow(
        action="Update" if _is_update(change) else type(change).__name__,
        workload=placement.workload,
        placement=placement.name,
        cluster=placement.where,
        replicas=number,
        until=end,
        why=reason,
    )


def _is_update(change: Change) -> bool:
    """Tell whether a change keeps the number of replicas and takes up another version of their source."""
    return isinstance(change, Resize) and replaces_source(change.before, change.after)


def _proposal_row(change: ProposalChange) -> PlanRow:
    """Return the row of a change to a proposal."""
    proposal = change.proposal
    stands = not isinstance(change, EndProposal)
    return PlanRow(
        action=type(change).__name__,
        workload=proposal.workload,
        cluster=", ".join(placement.where for placement in proposal.placements),
        replicas=proposal.replicas if stands else None,
        until=proposal.until if stands else None,
        why=message_parts.proposal_reason(change),
    )


def _request_row(change: RequestChange) -> PlanRow:
    """Return the row of a change to the record of a request."""
    record = message_parts.record_of(change)
    clusters = ", ".join(record.request.clusters)
    why = message_parts.request_reason(change)
    return PlanRow(action=type(change).__name__, workload=record.workload, cluster=clusters, why=why)
