"""Failed placements: they end with the words of their engine, and the next cluster is tried."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from reconciler.core.capacity.scalable_nodes import longest_delay
from reconciler.core.decide.candidates import gang_health
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import policy_of, revert
from reconciler.core.decide.steps.unschedulable import is_movable
from reconciler.core.observe.demand import UnseenPrimary
from reconciler.core.observe.rollouts import RolloutFailure
from reconciler.model.end_reason import EndReason
from reconciler.model.placement import Placement
from reconciler.model.rollout import EngineState
from reconciler.model.units import format_duration


def end_failed(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Revert placements that their engine has given up, or that were unhealthy for the rollout timeout of their policy.

    Only placements that are seen can fail. Those of an unseen primary stay, since their replicas could go nowhere else.
    """
    for path, ailment in sorted(inputs.rollouts.ailing.items()):
        placement = inputs.ledger.placements.get(path)
        if placement is None or placement not in working_plan.of(placement.workload):
            continue  # it has ended in an earlier step
        working_plan.decide(placement.workload, partial(_end_failed, inputs, working_plan, placement, ailment))


def _end_failed(inputs: PassInput, working_plan: WorkingPlan, placement: Placement, ailment: RolloutFailure) -> None:
    if isinstance(inputs.demands.get(placement.workload), UnseenPrimary):
        return
    timeout = policy_of(inputs.desired, placement.workload).rollout_timeout
    timeout += longest_delay(inputs.desired.clusters.get(placement.cluster))  # its pods may wait for a node
    unknown = not inputs.absence_counts and placement.workload not in inputs.desired.policies
    final = ailment.state is EngineState.FAILED and _is_new(inputs, placement, timeout)
    if final and _is_in_sight_since(inputs, placement):
        revert(inputs, working_plan, placement, EndReason.FAILED, ailment.message or "its engine has given up")
    elif unknown or ailment.behind:
        return  # a file is broken that may give it more time, or what runs is well and only the engine is late
    elif _has_groups_left(inputs, placement, ailment, timeout):
        return  # its own controller makes the others anew, and they need not go for that
    elif gang_health.describe_partial_gang(inputs, placement):
        return  # it runs, and the others wait for room beside it
    elif ailment.waits and is_movable(inputs, working_plan, placement):
        return  # it has moved as far as others have room, and the rest takes the next room that there is
    elif inputs.now - ailment.since >= timeout:
        revert(inputs, working_plan, placement, EndReason.FAILED, _late(inputs, placement, ailment))
    else:
        working_plan.wake(ailment.since + timeout)


def _is_new(inputs: PassInput, placement: Placement, timeout: timedelta) -> bool:
    """Tell whether a placement can never have been healthy as it stands.

    A healthy placement may have failed for a passing reason and gets its time to recover. After a restart nobody
    knows what was healthy; what is older than the timeout would have ended, had it not been.
    """
    return not inputs.rollouts.has_arrived(placement) and inputs.now - placement.changed_at < timeout


def _has_groups_left(inputs: PassInput, placement: Placement, ailment: RolloutFailure, timeout: timedelta) -> bool:
    """Tell whether a set of several groups that was healthy has lost some of them and not all.

    It was healthy where this process has seen so, or where it would have ended long ago had it not been.
    """
    seen = inputs.observed.clusters.get(placement.cluster)
    ready = seen.ready.get(placement.name, 0) if seen is not None else 0
    was_well = inputs.rollouts.has_arrived(placement) or ailment.since - placement.changed_at >= timeout
    if not ready or not was_well:
        return False
    return unit_of_workload(inputs, placement.workload, placement).has_groups_left(placement.replicas, ready)


def _is_in_sight_since(inputs: PassInput, placement: Placement) -> bool:
    """Tell whether the cluster was seen after its engine failed: it may fail because the cluster is going out of sight.

    An engine that names no moment cannot be compared.
    """
    report = inputs.observed.reports.get(placement.path)
    seen = inputs.observed.clusters.get(placement.cluster)
    return report is None or report.since is None or (seen is not None and seen.observed_at >= report.since)


def _late(inputs: PassInput, placement: Placement, ailment: RolloutFailure) -> str:
    lasted = format_duration(inputs.now - ailment.since)
    again = "no longer" if inputs.rollouts.has_arrived(placement) else "not"
    return f"{again} healthy for {lasted}{': ' if ailment.message else ''}{ailment.message}"
