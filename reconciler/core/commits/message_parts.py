"""Parts of messages for commits and terminals: changes of requests themselves, and shortages with their causes."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.decide.state.gate import describe_places
from reconciler.model.approval import BurstProposal, ProposalEnd
from reconciler.model.placement import Placement
from reconciler.model.plan import (
    Amend,
    Approve,
    Close,
    EndProposal,
    Forget,
    ProposalChange,
    Propose,
    Receive,
    RequestChange,
    Shortage,
)
from reconciler.model.request import Asker, RequestRecord
from reconciler.model.units import format_duration
from reconciler.text.timestamps import format_time
from reconciler.text.wording import as_clause, count, is_gpu, models_in_selector, resource_label, sanitize, sentence


def record_of(change: RequestChange) -> RequestRecord:
    """Return the request as a change leaves it, or as it removes it."""
    match change:
        case Receive(record=record) | Forget(record=record):
            return record
        case Amend(after=after) | Close(after=after):
            return after


def subject(change: RequestChange) -> str:
    """Write the first line of a change's commit message."""
    record = record_of(change)
    match change:
        case Receive():
            done = "received"
        case Amend(before=before) if record.cluster is not None and record.cluster != before.cluster:
            done = f"reserved on {record.cluster}"
        case Amend():
            done = "changed"
        case Close():
            done = record.ended.status.lower() if record.ended else "closed"
        case Forget():
            done = "forgotten"
    return f"request({record.workload}): {done}"


def request_reason(change: RequestChange) -> str:
    """Say why, for the middle of a sentence."""
    match change:
        case Receive(record=record):
            if record.asker is Asker.FILE:
                return "a file of the fleet repository asks for it"
            by = f" by {as_clause(record.author)}" if record.author else ""
            return f"asked for through the API{by}"
        case Close(after=record):
            return as_clause(record.ended.message) if record.ended else ""
        case Amend(detail=detail) | Forget(detail=detail):
            return as_clause(detail)


def request_paragraphs(change: RequestChange) -> Iterator[str]:
    """Yield the paragraphs of a commit's body, one line each, still unbroken."""
    yield sentence(request_reason(change))
    if isinstance(change, Receive):
        yield from (sentence(note) for note in change.notes)
    if isinstance(change, Close):
        yield "It stays in the ledger, and nothing of it begins again."


def proposal_subject(change: ProposalChange) -> str:
    """Write the first line of a change's commit message."""
    proposal = change.proposal
    what = describe_places(proposal.placements)
    match change:
        case Propose(before=None):
            return f"propose({proposal.workload}): {what}"
        case Propose(before=before) if before is not None and before.foreign != proposal.foreign:
            return f"propose({proposal.workload}): its branch is as it was proposed again"
        case Propose():
            return f"propose({proposal.workload}): its pull request"
        case Approve():
            return f"approve({proposal.workload}): {what}"
        case EndProposal(why=why):
            return f"proposal({proposal.workload}): {_PROPOSAL_ENDS[why]}"


_PROPOSAL_ENDS = {
    ProposalEnd.APPROVED: "approved, and placed",
    ProposalEnd.NOT_PLACED: "approved, and not placed",
    ProposalEnd.REFUSED: "refused",
    ProposalEnd.TIMED_OUT: "nobody answered in time",
    ProposalEnd.WITHDRAWN: "withdrawn",
    ProposalEnd.REPLACED: "replaced by another",
    ProposalEnd.TOO_LATE: "approved too late",
}


def proposal_reason(change: ProposalChange) -> str:
    """Say why, for the middle of a sentence."""
    match change:
        case Propose(proposal=proposal, before=None):
            return as_clause(proposal.reason)
        case Propose(proposal=proposal, before=before) if before is not None and before.foreign != proposal.foreign:
            return as_clause(proposal.foreign)
        case Propose(proposal=proposal):
            return as_clause(proposal.pull_request)
        case Approve(detail=detail) | EndProposal(detail=detail):
            return as_clause(detail)


def proposal_paragraphs(change: ProposalChange) -> Iterator[str]:
    """Yield the paragraphs of a commit's body, one line each, still unbroken."""
    yield sentence(proposal_reason(change))
    if isinstance(change, Propose) and change.before is None:
        yield from proposal_terms(change.proposal)


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
