"""Replicas of a placement that do not exist, since the autoscaler that ships with it has scaled them down.

A placement states how many replicas there may be. Where a HorizontalPodAutoscaler or a ScaledObject of KEDA comes with
it, that decides how many there are, down to none.
"""

from __future__ import annotations

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.fleet.burst_replicas import autoscaler_kind
from reconciler.model.placement import Placement


def scaled_down_by(placement: Placement, inputs: PassInput) -> str:
    """Return the kind of the autoscaler by which replicas without pods were scaled down; empty where they may yet come.

    Until the engine has called a placement healthy, its replicas have still to start.
    """
    template = inputs.desired.templates.get(placement.workload)
    if template is None or not inputs.rollouts.has_arrived(placement):
        return ""
    return autoscaler_kind(template, inputs.desired.kinds)
