"""Taints and tolerations, checked as by the API server and evaluated as by the scheduler's TaintToleration plugin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from reconciler.core.pods.label_syntax import is_label_key, is_label_value
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.text.findings import shortened

_REPELLING = frozenset({"NoSchedule", "NoExecute"})
CORDON = Taint(key="node.kubernetes.io/unschedulable")
"""Taint of a cordoned node."""
UNREADY = Taint(key="node.kubernetes.io/not-ready")
"""Taint of a node that is not ready."""
_OF_CONDITIONS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""How the names of taints begin that the node lifecycle controller and cloud controllers set."""


_EFFECTS = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS = ("", "Equal", "Exists", "Gt", "Lt")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,18})")


def toleration_faults(
    *, key: str, operator: str, value: str, effect: str, seconds: int | None = None
) -> Iterator[tuple[str, str, str]]:
    """Yield what Kubernetes refuses of a toleration: the field, the fault, and a remedy.

    An empty operator is Equal, an empty effect stands for all, and an empty key for all taints.
    """
    if key and not is_label_key(key):
        yield "key", f"{shortened(key)!r} cannot be the name of a label", "try one like topology.kubernetes.io/zone"
    elif not key and operator != "Exists":
        yield "operator", "an empty key needs the operator Exists", "try Exists"
    if operator not in _OPERATORS:
        yield "operator", f"{shortened(operator)!r} is no operator", f"one of {', '.join(_OPERATORS[1:])}"
    if effect not in _EFFECTS:
        yield "effect", f"{shortened(effect)!r} is no effect", f"one of {', '.join(_EFFECTS[1:])}"
    if seconds is not None and effect != "NoExecute":
        yield "effect", "tolerationSeconds needs the effect NoExecute", "leave tolerationSeconds out"
    if operator == "Exists" and value:
        yield "value", "Exists takes no value", "leave it out, or try Equal"
    elif operator in ("Gt", "Lt") and not _WHOLE.fullmatch(value):
        yield "value", f"{operator} compares whole numbers, and {shortened(value)!r} is none", "try 1"
    elif operator != "Exists" and operator in _OPERATORS and not is_label_value(value):
        yield "value", f"{shortened(value)!r} cannot be the value of a taint", "try letters, digits, '-', '_' and '.'"


def scheduling_toleration(toleration: Toleration) -> Toleration | None:
    """Return a toleration as the scheduler's TaintToleration filter reads it; None if it only times evictions.

    The filter passes `tolerationSeconds` over: the pod is evicted when that time is over
    (DoNotScheduleTaintsFilterFunc and FindMatchingUntoleratedTaint in kubernetes 1.36
    pkg/scheduler/framework/plugins/helper/taint.go). Nodes that are not ready or unreachable take no pods, so that
    a timed toleration of their taints, as the API server adds to each pod (the DefaultTolerationSeconds plugin,
    300 s), says nothing about where a workload may run.
    """
    if toleration.seconds is None:
        return toleration
    return None if marks_condition_key(toleration.key) else replace(toleration, seconds=None)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Return whether any toleration matches the taint. One with an unknown operator matches none."""
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


def marks_condition(taint: Taint) -> bool:
    """Return whether Kubernetes puts a taint on nodes by their state: cordoned, under pressure, without a network.

    Such a taint goes with the state, and a workload is not meant to tolerate it.
    """
    return marks_condition_key(taint.key)


def marks_condition_key(key: str) -> bool:
    """Return whether taints of this key go with the state of a node."""
    return key.startswith(_OF_CONDITIONS)


def _compares(toleration: Toleration, taint: Taint) -> bool:
    return toleration.operator == "Exists" or (toleration.operator == "Equal" and toleration.value == taint.value)
