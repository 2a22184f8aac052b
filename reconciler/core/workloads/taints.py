"""Taints and tolerations, evaluated as by the scheduler's TaintToleration plugin."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.scheduling import Taint, Toleration

_REPELLING = frozenset({"NoSchedule", "NoExecute"})
CORDON = Taint(key="node.kubernetes.io/unschedulable")
"""Taint of a cordoned node."""
UNREADY = Taint(key="node.kubernetes.io/not-ready")
"""Taint of a node that is not ready."""


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Tell whether any toleration matches the taint. One with an unknown operator matches none."""
    return any(
        (not toleration.effect or toleration.effect == taint.effect)
        and (
            (not toleration.key and toleration.operator == "Exists")
            or (toleration.key == taint.key and _compares(toleration, taint))
        )
        for toleration in tolerations
    )


def untolerated_taint(tolerations: tuple[Toleration, ...], taints: Iterable[Taint]) -> Taint | None:
    """Return the first taint that excludes pods and is not tolerated; PreferNoSchedule excludes none."""
    for taint in taints:
        if taint.effect in _REPELLING and not tolerates(tolerations, taint):
            return taint
    return None


def _compares(toleration: Toleration, taint: Taint) -> bool:
    return toleration.operator == "Exists" or (toleration.operator == "Equal" and toleration.value == taint.value)
