"""Gangs that run with their minimum while the rest of their pods wait for room beside them, as pods tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.core.decide.candidates.gang_start import may_start
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import placement_needs
from reconciler.core.observe.rollouts import RolloutFailure
from reconciler.model.placement import Placement
from reconciler.model.rollout import EngineState
from reconciler.text.wording import count


def describe_partial_gang(inputs: PassInput, placement: Placement) -> str:
    """Say that a gang runs without all of its pods; empty where all of them serve, or fewer than its minimum.

    The roles of its bound pods are unknown: where one role lacks its minimum, the scheduler starts none of them.
    """
    seen = inputs.observed.clusters.get(placement.cluster)
    ready = seen.ready.get(placement.name, 0) if seen is not None else 0
    needed = placement_needs(inputs, placement) if ready else None
    if needed is None or not may_start(needed) or not needed.start <= ready < needed.pods:
        return ""
    pending = None if seen is None else seen.pending_pods.get(placement.name)
    others = "the others wait there" if pending is not None and pending.replicas else "no other is seen there"
    return f"{ready} of its {count(needed.pods, 'pod')} serve, its minimum is {needed.start}, and {others}"


def unhealthy_placements(inputs: PassInput, placements: Iterable[Placement]) -> Mapping[str, RolloutFailure]:
    """Gather which of some placements are not healthy, by directory.

    A gang that runs with its minimum is healthy: its engine only waits for pods without a node. Failures are reported.
    """
    failures = inputs.rollouts.ailing
    own = {
        placement.path: (placement, failures[placement.path]) for placement in placements if placement.path in failures
    }
    return {
        path: ailment
        for path, (placement, ailment) in own.items()
        if ailment.state is EngineState.FAILED or not describe_partial_gang(inputs, placement)
    }


def is_healthy(inputs: PassInput, placement: Placement) -> bool | None:
    """Tell whether a placement is healthy by its reports; a gang is healthy with its minimum."""
    return bool(describe_partial_gang(inputs, placement)) or inputs.rollouts.is_healthy(placement)
