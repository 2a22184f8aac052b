"""Admission defaults of pods in a cluster, by RuntimeClass, LimitRange and PriorityClass.

Rules of the API server's RuntimeClass, LimitRanger and Priority admission plugins.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from reconciler.core.pods.pod_requests import parse_amounts
from reconciler.core.pods.pod_shape import tolerations
from reconciler.core.workloads.watch import namespace_of_key
from reconciler.model.kubernetes.admission import LimitRangeItem
from reconciler.model.kubernetes.scheduling import RuntimeClass
from reconciler.model.units import Quantity, Resources
from reconciler.model.workload import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRange:
    """The record of a LimitRange."""

    defaults: Resources = field(default_factory=Resources)
    """Default requests of a container."""
    items: tuple[LimitRangeItem, ...] = ()
    """Its default limits and its bounds."""


def read_default_priority_class(raw: Json) -> str | None:
    """Return the name of a PriorityClass that pods have which name none; None of any other."""
    return str(raw["metadata"]["name"]) if raw.get("globalDefault") is True else None


def read_runtime_class(raw: Json) -> RuntimeClass:
    """Read a RuntimeClass, all but its handler."""
    scheduling = raw.get("scheduling") or {}
    return RuntimeClass(
        overhead=Resources(amounts=parse_amounts((raw.get("overhead") or {}).get("podFixed"))),
        node_selector=dict(sorted((scheduling.get("nodeSelector") or {}).items())),
        tolerations=tuple(tolerations(scheduling)),
    )


def read_limit_range(raw: Json) -> LimitRange | None:
    """Read the default requests of containers from a LimitRange, and its bounds; None without any.

    The API server has filled in `defaultRequest` from `default`, `max` and `min`. It accepts amounts there that it
    refuses in pods, such as negative ones: these are skipped.
    """
    defaults: dict[str, Quantity] = {}
    items: list[LimitRangeItem] = []
    for limit in (raw.get("spec") or {}).get("limits") or ():
        if limit.get("type") not in ("Container", "Pod", "PersistentVolumeClaim"):
            continue
        of_pod, of_claim = limit["type"] == "Pod", limit["type"] == "PersistentVolumeClaim"
        if not of_pod and not of_claim:
            defaults |= _readable(limit.get("defaultRequest"))
        fields = ("default", "min", "max", "maxLimitRequestRatio")
        given, least, most, ratio = (tuple(sorted(_readable(limit.get(field)).items())) for field in fields)
        if given or least or most or ratio:
            name = str(raw["metadata"]["name"])
            item = LimitRangeItem(limit_range=name, default=given, least=least, most=most, ratio=ratio)
            items.append(replace(item, of_pod=of_pod, of_claim=of_claim))
    return LimitRange(defaults=Resources(amounts=defaults), items=tuple(items)) if defaults or items else None


def by_namespace(limit_ranges: Iterable[tuple[str, Resources]]) -> dict[str, Resources]:
    """Merge the default requests of LimitRanges, named ``namespace/name``, by namespace.

    The order of several LimitRanges is undefined; the largest default of a resource is taken.
    """
    largest: dict[str, dict[str, Quantity]] = {}
    for key, given in limit_ranges:
        if not given.amounts:
            continue
        namespace_defaults = largest.setdefault(namespace_of_key(key), {})
        for name, amount in given.amounts.items():
            namespace_defaults[name] = max(namespace_defaults.get(name, Quantity(0)), amount)
    return {namespace: Resources(amounts=given) for namespace, given in sorted(largest.items())}


def bounds_by_namespace(limit_ranges: Iterable[tuple[str, LimitRange]]) -> dict[str, tuple[LimitRangeItem, ...]]:
    """Group the bounds of LimitRanges, named ``namespace/name``, by namespace."""
    grouped: dict[str, list[LimitRangeItem]] = {}
    for key, limit_range in sorted(limit_ranges, key=lambda item: item[0]):
        if limit_range.items:
            grouped.setdefault(namespace_of_key(key), []).extend(limit_range.items)
    return {namespace: tuple(items) for namespace, items in grouped.items()}


def _readable(raw: Json) -> dict[str, Quantity]:
    """Parse the amounts that pods may have."""
    amounts: dict[str, Quantity] = {}
    for name, amount in (raw or {}).items():
        with suppress(ValueError):
            amounts |= parse_amounts({name: amount})
    return amounts
