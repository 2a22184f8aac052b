"""One sentence on a workload: what it misses, what runs elsewhere until when, what is spare, and what waits why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.blocked import blocked_clauses
from reconciler.core.explain.scaled_down import scaled_down_by
from reconciler.core.workloads import replica_count
from reconciler.model.demand import Demand
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan, Reason, ReasonTraits, Suppressed
from reconciler.text.ages import format_age
from reconciler.text.wording import as_clause, conjugate, count, join_names, sanitize


def summarize(demand: Demand, inputs: PassInput, placements: Sequence[Placement], plan: Plan) -> str:
    """Write the sentence for a demand that is seen, with the placements as the branch has them."""
    needed, placed = demand.needed, sum(placement.replicas for placement in placements)
    if needed:
        since = min(step.since for step in demand.waiting if not step.spare)
        replicas = f"{count(needed, 'replica')} on {demand.primary}"
        lasts = f"has missed {replicas} for {format_age(inputs.now - since)}"
        head = f"{demand.workload} {lasts if since < inputs.now else f'misses {replicas}'}"
    elif demand.reported and demand.running < demand.wanted:
        runs = f"{demand.workload} runs {demand.running} of {demand.wanted} on {demand.primary}"
        rest = demand.wanted - demand.running
        head = f"{runs}, and {'the others do' if rest > 1 else 'the other does'} not wait for room"
    elif demand.reported:
        head = f"{demand.workload} misses nothing on {demand.primary}, which runs {demand.running} of {demand.wanted}"
    else:
        head = f"{demand.workload} is not found on {demand.primary}"
    spare = spare_replicas(demand, placed)
    parts = [
        head,
        *blocked_clauses(demand),
        *(clause for placement in placements for clause in _where(placement, inputs)),
        *([f"{describe_spare(spare)}, kept by {_keepers(demand)}"] if spare else []),
        *_waits(demand, placed, plan),
    ]
    return f"{'; '.join(parts)}."


def spare_replicas(demand: Demand, placed: int) -> int:
    """Count the placed replicas that nothing misses: those that headroom or a forecast wants beforehand."""
    return max(0, min(placed, demand.missing) - demand.needed)


def describe_spare(spare: int) -> str:
    """Say how many of the replicas elsewhere are spare."""
    return f"{spare} of those elsewhere {conjugate(spare, 'is')} spare"


def _keepers(demand: Demand) -> str:
    return join_names(dict.fromkeys(sanitize(step.signal, 80) for step in demand.waiting if step.spare))


def _where(placement: Placement, inputs: PassInput) -> Iterator[str]:
    """Say how many replicas of a placement run, how many have no node yet, and how many its autoscaler leaves out."""
    seen = inputs.observed.clusters.get(placement.cluster)
    where, end = sanitize(placement.where), _until(placement.expires_at, inputs.now)
    if seen is None:
        yield f"{placement.replicas} placed on {where}, which is not seen, {end}"
        return
    bound = min(placement.replicas, replica_count.bound_replicas(placement, seen))
    starting, scaler = placement.replicas - bound, scaled_down_by(placement, inputs)
    waiting = min(starting, replica_count.pending_replicas(placement, seen)) if scaler else starting
    place = "there" if bound else f"on {where} {end}"
    if bound:
        yield f"{bound} {conjugate(bound, 'runs')} on {where} {end}"
    if waiting:
        yield f"{waiting} placed {place} {conjugate(waiting, 'has')} no node yet"
    if less := starting - waiting:
        yield f"{less} placed {place} {conjugate(less, 'is')} scaled down by its {scaler}"


def _until(end: datetime, now: datetime) -> str:
    if end <= now:
        return "past their time"
    return f"until {end:%H:%M} UTC" if end.date() == now.date() else f"until {end:%Y-%m-%d %H:%M} UTC"


def _waits(demand: Demand, placed: int, plan: Plan) -> Iterator[str]:
    """Say what becomes of the replicas that are not placed yet: what the next pass places, and what waits."""
    left = demand.missing - placed
    if left <= 0:
        return
    going = dict[str, int]()
    for change in plan.changes:
        if change.grows and change.workload == demand.workload:  # a move takes nothing from those that wait
            where = change.placement.where
            going[where] = going.get(where, 0) + change.growth
    for where, more in going.items():
        yield f"{more} {conjugate(more, 'goes')} to {sanitize(where)} in the next pass"
    left -= sum(going.values())
    if left > 0:
        held = [suppressed for suppressed in plan.suppressed if suppressed.workload == demand.workload]
        yield f"{left} {conjugate(left, 'waits')}{_why(held)}"


def _why(held: Iterable[Suppressed]) -> str:
    """Return the reason of those that wait: the first cluster's where nothing fits, else what holds all back."""
    for suppressed in held:
        if suppressed.reason.has(ReasonTraits.OF_STANDING):
            continue
        refusal = next(iter(suppressed.refusals), None)
        if suppressed.reason is Reason.NOTHING_FITS and refusal is not None:
            return f" ({sanitize(refusal.where)}: {as_clause(refusal.message)})"
        return f" ({as_clause(suppressed.message)})"
    return ""
