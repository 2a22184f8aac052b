"""Runs: placements of what runs once, whose end is their completion, their failure, or a person's word.

A run that is over is not begun again by time alone: its workload is held until its demand has gone once or a person
releases it (docs/reference/kinds.md, "How a run ends").
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core.capacity.units import PlacementUnit
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import unseen
from reconciler.core.workloads.ends import failed_object
from reconciler.core.workloads.single_run import RUNS_ONCE, completions, describe_second_run
from reconciler.model.demand import Demand
from reconciler.model.end_reason import EndReason
from reconciler.model.placement import Placement, Restraint
from reconciler.model.policy import BurstPolicy
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.wording import count, join_names

_WHOLE = "and what runs once goes elsewhere whole, when all of its pods lack room"


def restraint_after(inputs: PassInput, placement: Placement, why: EndReason) -> Restraint | None:
    """Return the restraint that the end of a placement leaves: the hold of a run that is over, else a cool-down."""
    policy = inputs.desired.policies.get(placement.workload) or BurstPolicy(name="")
    if _is_over(inputs, placement, policy, why):
        return lifecycle.run_hold(placement, why, inputs.now)
    limits = inputs.desired.limits.get(placement.workload.workspace)
    return lifecycle.cool_down(placement, policy, why, inputs.now, limits)


def is_run(inputs: PassInput, placement: Placement) -> bool:
    """Return whether a placement runs once: by its template, or by its record where the template is unknown."""
    return unit_of_workload(inputs, placement.workload, placement).once


def is_awaited(inputs: PassInput, demand: Demand) -> bool:
    """Return whether the primary still holds back what runs once, whether or not any of it is missing now.

    It has then neither run nor been deleted there, so that a run elsewhere is not superfluous.
    """
    return unit_of_workload(inputs, demand.workload).once and demand.reported and demand.held


def may_grow(unit: PlacementUnit, template: WorkloadTemplate, placements: Sequence[Placement]) -> bool:
    """Return whether a run that has begun may get more pods where it is: it is elastic, and deployed as it began."""
    version, made_from = lifecycle.file_version(template), template.made_from
    digest = "" if made_from is None else made_from.digest
    return unit.elastic and all(
        placement.template_version in ("", version) and placement.source_digest == digest for placement in placements
    )


def describe_repetition(
    unit: PlacementUnit, demand: Demand, template: WorkloadTemplate, placements: Sequence[Placement]
) -> str:
    """Say why more of what runs once, beside its `placements`, would do the same work again; empty if it would not."""
    if not unit.once:
        return ""
    # 1. A pod of it has a node at home, or Kueue has begun it.
    if demand.pods_at_home:
        second_run = describe_second_run(demand.pods_at_home, demand.primary, copy="a copy")
        return f"{second_run} (let Kueue queue it, so that none of its pods runs before all of them can)"
    started = demand.started or demand.claimed
    if started:
        return describe_second_run(0, demand.primary, copy="a copy", started=started)
    # 2. It has begun elsewhere, cannot grow there, and is no gang, which is one copy however large.
    if placements and unit.is_lone_run and not may_grow(unit, template, placements):
        return f"it began on {join_names(place.where for place in placements)}, and a part would begin again"
    # 3. Its pods may get a node at home at any time.
    if demand.reported and not demand.held:
        return (
            f"nothing holds it on {demand.primary}, where it may start while a copy runs elsewhere (let Kueue queue"
            f' it, or gate its pods; where two copies may run, annotate its template: {RUNS_ONCE}: "false")'
        )
    return ""


def describe_part(unit: PlacementUnit, demand: Demand) -> str:
    """Say why what runs once does not lack room as a whole; empty where it does, and for what may go in part.

    The rest would have to run at home, and only the whole is one run (docs/reference/kinds.md, "What runs once").
    """
    if not unit.once:
        return ""
    if demand.blocked:
        pods = sum(each.replicas for each in demand.blocked)
        reasons = join_names(sorted({str(each.reason) for each in demand.blocked}))
        waits = "waits" if pods == 1 else "wait"
        return (
            f"{count(pods, 'pod')} of it {waits} on {demand.primary} for something else than room ({reasons}), {_WHOLE}"
        )
    whole = min(demand.wanted, unit.size or demand.wanted)
    if demand.missing < whole:
        lack = "is" if demand.missing == 1 else "are"
        return f"{demand.missing} of {count(whole, 'replica')} {lack} missing on {demand.primary}, {_WHOLE}"
    return ""


def describe_run_at_home(inputs: PassInput, demand: Demand) -> str:
    """Say that what runs once and is placed elsewhere runs, or begins, by its primary as well; empty where it does not.

    What is not heard any more ends nothing.
    """
    runs = demand.pods_at_home or (demand.started and not demand.stale)
    if not runs or not unit_of_workload(inputs, demand.workload).once:
        return ""
    return describe_second_run(demand.pods_at_home, demand.primary, copy="the copy", started=demand.started)


def may_still_run(inputs: PassInput, placement: Placement) -> bool:
    """Return whether a run that is about to end by its time may still be at work, and so needs more of it.

    Of some kinds nothing says that a run is complete. These are at work while a pod of theirs is seen.
    """
    seen, name = inputs.observed.clusters.get(placement.cluster), placement.name
    # 1. Nobody can tell.
    if seen is None or unseen(inputs.desired.fleet, inputs.observed, placement.cluster, inputs.now):
        return True
    # 2. Its end will be told: by its object, or by as many pods as it states.
    template, kinds = inputs.desired.templates[placement.workload], inputs.desired.kinds
    if name in seen.unfinished or completions(template.spec, placement.replicas, kinds):
        return True
    # 3. Its pods are there, or still on their way.
    policy = inputs.desired.policies[placement.workload]
    on_its_way = inputs.now - placement.changed_at < policy.in_flight_timeout
    return on_its_way or bool(seen.bound.get(name)) or name in seen.pending_pods or name in seen.unadmitted


def _is_over(inputs: PassInput, placement: Placement, policy: BurstPolicy, why: EndReason) -> bool:
    match why:
        # 1. It is complete, whatever it is.
        case EndReason.SUCCEEDED:
            return True
        # 2. Its time is over, or it does nothing: elsewhere it would begin from its start.
        case EndReason.EXPIRED | EndReason.IDLE:
            return is_run(inputs, placement)
        # 3. It ran, and has failed. What never began is tried on the next cluster.
        case EndReason.FAILED:
            return is_run(inputs, placement) and _has_run(inputs, placement, policy)
        # 4. A person, the files, another workload or the loss of its cluster ended it there: it may go elsewhere.
        case _:
            return False


def _has_run(inputs: PassInput, placement: Placement, policy: BurstPolicy) -> bool:
    """Return whether a failed run may have done some of its work, and was not merely evicted.

    A run that was healthy is known as such while this process lives. One that had been older than the rollout timeout
    before it failed would have ended long ago, had it never been healthy.
    """
    seen, name = inputs.observed.clusters.get(placement.cluster), placement.name
    if seen is None or unseen(inputs.desired.fleet, inputs.observed, placement.cluster, inputs.now):
        return True
    # 1. Its object says so, or some of its pods have done their part.
    if failed_object(placement, seen) is not None or name in seen.succeeded:
        return True
    # 2. A queue, or the lack of nodes, has ended its pods.
    if name in seen.unadmitted or name in seen.pending_pods:
        return False
    failure = inputs.rollouts.ailing.get(placement.path)
    lasted = failure is not None and failure.since - placement.changed_at >= policy.rollout_timeout
    return inputs.rollouts.has_arrived(placement) or lasted or bool(seen.ready.get(name))
