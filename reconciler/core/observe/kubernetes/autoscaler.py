"""HorizontalPodAutoscalers that are limited by their maximum, and the replicas that they lack.

The status tells only that an autoscaler wants more than its maximum, and not how many. The number is computed by the
controller's own rule (kubernetes/pkg/controller/podautoscaler) from the metrics in the status.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from math import ceil

from reconciler.core.observe.kubernetes.resources import SIGNAL_KINDS, Owner, Resource, owner_of
from reconciler.model.capacity import ReplicaShape
from reconciler.model.signal import ReplicaRequest
from reconciler.model.units import ONE, Quantity, parse_quantity
from reconciler.model.workload import Json
from reconciler.text.timestamps import read_moment

_TOLERANCE = Fraction(1, 10)
"""The tolerance of a metric above its target; a cluster may have another default, which it does not publish."""
_SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Wish:
    """The demand of one metric: a multiple of the ready replicas, or a number of replicas."""

    times: Fraction
    replicas: int | None
    cause: str

    def counted(self, ready: int) -> int:
        return min(_MOST, ceil(self.times * ready) if self.replicas is None else self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerRecord:
    """The record of an autoscaler at its maximum (a `replica_asks.AskRecord`)."""

    owner: Owner
    signal: str
    maximum: int
    current: int
    since: datetime
    wishes: tuple[_Wish, ...]
    shape: ReplicaShape | None = None
    owner_uid: str = ""

    def ask(self, pods: int, ready: int) -> ReplicaRequest:
        """Ask for the replicas of the largest metric beyond the maximum.

        Most metrics are averages over ready replicas, and so a multiple of *those*: pods that wait for a node, or load
        a model, are not measured, and of a gang its leader alone is. Without a larger metric the number is one replica,
        since the controller reports the limit.
        """
        measured = ready if pods else self.current
        most = max(self.wishes, key=lambda wish: wish.counted(measured), default=None)
        beyond = most.counted(measured) - self.maximum if most is not None else 0
        detail = f", {most.cause}" if most is not None and beyond > 0 else ""
        return ReplicaRequest(
            signal=self.signal,
            replicas=max(1, beyond),
            since=self.since,
            cause=f"stands at its maximum of {self.maximum}{detail}",
            beyond=True,
        )


def read_autoscaler(raw: Json) -> AutoscalerRecord | None:
    """Read an autoscaler at its maximum; None for any other.

    Replicas within the maximum exist as pods, and wait as pods if no node fits them.
    """
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    conditions: dict[str, Json] = {condition["type"]: condition for condition in status.get("conditions") or ()}
    limited = conditions.get("ScalingLimited", {})
    # The controller leaves ScalingLimited unchanged if it cannot scale at all.
    stale = any(conditions.get(type_, {}).get("status") == "False" for type_ in ("ScalingActive", "AbleToScale"))
    if stale or limited.get("status") != "True" or limited.get("reason") != "TooManyReplicas":
        return None
    # One that may not scale up states the same reason at its maximum, as where KEDA's ``paused-scale-out`` forbids it.
    if "deletionTimestamp" in metadata or _scale_up(spec).get("selectPolicy") == "Disabled":
        return None
    maximum: int = spec["maxReplicas"]
    if status.get("desiredReplicas") != maximum:  # changed since the last sync
        return None
    target = spec["scaleTargetRef"]
    # The transition may be older: a limit turns from the minimum into the maximum without one, but not without scaling.
    times = (limited.get("lastTransitionTime"), status.get("lastScaleTime"), metadata["creationTimestamp"])
    return AutoscalerRecord(
        owner=owner_of(target["kind"], metadata["namespace"], target["name"], target.get("apiVersion") or ""),
        signal=f"{SIGNAL_KINDS[Resource.AUTOSCALERS]} {metadata['namespace']}/{metadata['name']}",
        maximum=maximum,
        current=status.get("currentReplicas") or 0,
        since=max(read_moment(time) for time in times if time),
        wishes=_largest(_wishes(spec, status)),
    )


def _largest(wishes: Iterator[_Wish]) -> tuple[_Wish, ...]:
    """Keep the largest wish of either sort; the pods decide which of the two is larger."""
    largest: dict[bool, _Wish] = {}
    for wish in wishes:
        sort = wish.replicas is None
        if sort not in largest or (wish.replicas or wish.times) > (largest[sort].replicas or largest[sort].times):
            largest[sort] = wish
    return tuple(largest.values())


def _wishes(spec: Json, status: Json) -> Iterator[_Wish]:
    """Yield the wish of each metric above its target; unmeasured metrics are skipped.

    The status has an entry for each metric in the same order, an empty one without a value.
    """
    up = _scale_up(spec)
    tolerance = _TOLERANCE if up.get("tolerance") is None else Fraction(parse_quantity(str(up["tolerance"])), ONE)
    for metric, seen in zip(spec.get("metrics") or (), status.get("currentMetrics") or (), strict=False):
        source = _SOURCES.get(metric.get("type"), "")
        asked, status_of_metric = metric.get(source) or {}, seen.get(source) or {}
        if _name(asked) != _name(status_of_metric):
            continue
        target, current = asked.get("target") or {}, status_of_metric.get("current") or {}
        for field in ("averageUtilization", "averageValue", "value"):
            wanted, have = _number(target.get(field)), _number(current.get(field))
            if wanted and have is not None and Fraction(have, wanted) > 1 + tolerance:
                per_replica = field == "averageValue" and metric["type"] in {"Object", "External"}
                total = have * (status.get("currentReplicas") or 0)
                unit = "%" if field == "averageUtilization" else ""
                yield _Wish(
                    times=Fraction(have, wanted),
                    replicas=-(-total // wanted) if per_replica else None,
                    cause=f"{_name(asked)} at {current[field]}{unit} of {target[field]}{unit}",
                )


def _scale_up(spec: Json) -> Json:
    """Return the rules for scaling up."""
    return (spec.get("behavior") or {}).get("scaleUp") or {}


def _name(source: Json) -> str:
    """Name a metric."""
    name = source.get("name") or (source.get("metric") or {}).get("name") or ""
    return f"{name} of {source['container']}" if source.get("container") else str(name)


def _number(value: Json) -> Quantity | None:
    """Read a percentage or a quantity; None if it is absent or negative."""
    try:
        return None if value is None else parse_quantity(str(value))
    except ValueError:
        return None
