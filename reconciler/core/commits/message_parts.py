"""Parts of messages for commits and terminals: requests, proposals, and shortages with their causes."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.decide.state.gate import describe_places
from reconciler.model.action import Action
from reconciler.model.approval import BurstProposal, ProposalEnd
from reconciler.model.placement import Placement
from reconciler.model.plan import Change, Shortage
from reconciler.model.request import Asker, RequestRecord
from reconciler.model.units import format_duration
from reconciler.text.timestamps import format_time
from reconciler.text.wording import as_clause, count, is_gpu, models_in_selector, resource_label, sanitize, sentence

_PROPOSAL_ENDS = {
    ProposalEnd.APPROVED: "approved, and placed",
    ProposalEnd.NOT_PLACED: "approved, and not placed",
    ProposalEnd.REFUSED: "refused",
    ProposalEnd.TIMED_OUT: "nobody answered in time",
    ProposalEnd.WITHDRAWN: "withdrawn",
    ProposalEnd.REPLACED: "replaced by another",
    ProposalEnd.TOO_LATE: "approved too late",
}


_REQUEST_STEPS = {Action.RECEIVE: "received", Action.AMEND: "changed", Action.FORGET: "forgotten"}


def request_summary(change: Change, record: RequestRecord) -> str:
    """Say in the subject what becomes of a request."""
    before = change.record_before
    match change.action:
        case Action.AMEND if before is not None and record.cluster not in (None, before.cluster):
            return f"reserved on {record.cluster}"
        case Action.CLOSE:
            return record.ended.status.lower() if record.ended else "closed"
        case _:
            return _REQUEST_STEPS[change.action]


def proposal_summary(change: Change, proposal: BurstProposal) -> str:
    """Say in the subject what becomes of a proposal."""
    before = change.proposal_before
    if isinstance(change.why, ProposalEnd):
        return _PROPOSAL_ENDS[change.why]
    if before is None:
        return describe_places(proposal.placements)
    return "its branch is as it was proposed again" if before.foreign != proposal.foreign else "its pull request"


def reason(change: Change) -> str:
    """Return why a change is made, in the words of whoever asked for it or saw it."""
    record, proposal = change.record, change.proposal
    match change.action:
        case Action.HOLD if change.restraint is not None:
            return change.restraint.reason
        case Action.RECEIVE if record is not None:
            by = f" by {as_clause(record.author)}" if record.author else ""
            is_file = record.asker is Asker.FILE
            return "a file of the fleet repository asks for it" if is_file else f"asked for through the API{by}"
        case Action.CLOSE if record is not None:
            return record.ended.message if record.ended else ""
        case Action.PROPOSE if proposal is not None:
            before = change.proposal_before
            if before is None:
                return proposal.reason
            return proposal.foreign if before.foreign != proposal.foreign else proposal.pull_request
        case _:
            return change.detail


def proposal_terms(proposal: BurstProposal) -> Iterator[str]:
    """Yield what a proposal would bring, what it costs, how long it lasts and until when it stands."""
    for placement in proposal.placements:
        beside = f", beside {placement.beside} there" if placement.beside else ""
        price = placement.price_per_gpu_hour
        cost = "an unknown price" if price is None else f"{price:.2f} $/GPU-h, {price * placement.gpus:.2f} $/h"
        yield (
            f"{sanitize(placement.where)}: {count(placement.replicas, 'replica')}{beside},"
            f" {count(placement.gpus, 'GPU')}, {cost}, for {format_duration(placement.duration)}."
        )
    total = proposal.dollars_per_hour
    if len(proposal.placements) > 1 and total is not None:
        yield f"In all {count(proposal.gpus, 'GPU')}, {total:.2f} $/h."
    yield sentence(proposal.renewals)
    yield f"It stands until {format_time(proposal.until)}."


MAX_CAUSES = 5
"""Causes of pods, and signals beside them, that one message names."""


def describe_shortage(shortage: Shortage | None, placement: Placement) -> str:
    """Describe a shortage for the body of a commit; empty for none."""
    if shortage is None:
        return ""
    return f"{describe_wait(shortage, placement)}{_kind(shortage)}{describe_causes(shortage, placement)}."


def describe_wait(shortage: Shortage, placement: Placement) -> str:
    """Say how much is missing for how long: as pods, unless something else asks for some of it."""
    if shortage.asks:
        return describe_missing(shortage)
    return f"{_pods(shortage.replicas, placement)} unschedulable on {shortage.primary}{_wait_clause(shortage)}"


def describe_missing(shortage: Shortage) -> str:
    """Say how many replicas are missing for how long, and how many are wanted beforehand."""
    missing = shortage.replicas - shortage.spare
    if not missing:
        return f"{count(shortage.spare, 'replica')} wanted beforehand for {shortage.primary}"
    more = f", and {shortage.spare} wanted beforehand" if shortage.spare else ""
    return f"{count(missing, 'replica')} missing on {shortage.primary}{_wait_clause(shortage)}{more}"


def describe_causes(shortage: Shortage, placement: Placement) -> str:
    """List after a colon the causes of unschedulable pods and the other signals; empty where unknown."""
    parts = [sanitize(cause, 100) for cause in shortage.causes[:MAX_CAUSES]]
    if shortage.asks:
        pods = [f"{_pods(shortage.unschedulable, placement)} {', '.join(parts) or 'unschedulable'}"]
        parts = [*pods[: shortage.unschedulable], *(as_clause(ask) for ask in shortage.asks[:MAX_CAUSES])]
    return f": {'; '.join(parts)}" if parts else ""


def describe_signals(shortage: Shortage | None, placement: Placement) -> str:
    """List the causes where a signal other than unschedulable pods asks; empty otherwise."""
    return describe_causes(shortage, placement) if shortage is not None and shortage.asks else ""


def _wait_clause(shortage: Shortage) -> str:
    """Say for how long; nothing where it begins this very second, as a planned burst does."""
    return f" for {format_duration(shortage.waited)}" if shortage.waited else ""


def _pods(replicas: int, placement: Placement) -> str:
    group = placement.shape.group_size
    return count(replicas, "pod") if group == 1 else f"{count(replicas, 'replica')} of {group} pods"


def _kind(shortage: Shortage) -> str:
    """Name in brackets the scarce resources: GPUs with their model, else all requested resources."""
    names = sorted(shortage.requests.amounts)
    short = [name for name in names if is_gpu(name)] or names
    names_and_models = [sanitize(resource_label(name), 80) for name in short] + models_in_selector(
        shortage.node_selector
    )
    return f" ({', '.join(names_and_models)})" if names_and_models else ""
