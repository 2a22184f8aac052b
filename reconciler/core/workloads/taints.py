"""Taints that keep a pod away (docs/reference/kubernetes.md, "Filters of the scheduler")."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.scheduling import Taint, Toleration

_REPELLING = frozenset({"NoSchedule", "NoExecute"})
CORDON = Taint(key="node.kubernetes.io/unschedulable")
"""What a node that is cordoned is tainted with."""
UNREADY = Taint(key="node.kubernetes.io/not-ready")
"""What a node that is not ready is tainted with."""


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Tell whether any toleration accepts the taint. An operator that is not known here accepts none."""
    return any(
        (not toleration.effect or toleration.effect == taint.effect)
        and (
            (not toleration.key and toleration.operator == "Exists")
            or (toleration.key == taint.key and _compares(toleration, taint))
        )
        for toleration in tolerations
    )


def untolerated_taint(tolerations: tuple[Toleration, ...], taints: Iterable[Taint]) -> Taint | None:
    """Return the first taint that keeps pods away and is not tolerated. PreferNoSchedule keeps nobody away."""
    for taint in taints:
        if taint.effect in _REPELLING and not tolerates(tolerations, taint):
            return taint
    return None


def _compares(toleration: Toleration, taint: Taint) -> bool:
    return toleration.operator == "Exists" or (toleration.operator == "Equal" and toleration.value == taint.value)
