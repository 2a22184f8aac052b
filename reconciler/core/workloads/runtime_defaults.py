"""Admission defaults of pods in a cluster, by RuntimeClass and by LimitRange.

Rules of the API server's RuntimeClass and LimitRanger admission plugins.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from reconciler.core.pods.pod_requests import parse_amounts
from reconciler.core.pods.pod_shape import tolerations
from reconciler.core.workloads.watch import namespace_of_key
from reconciler.model.kubernetes.scheduling import RuntimeClass
from reconciler.model.units import Quantity, Resources
from reconciler.model.workload import Json


def read_runtime_class(raw: Json) -> RuntimeClass:
    """Read a RuntimeClass, all but its handler."""
    scheduling = raw.get("scheduling") or {}
    return RuntimeClass(
        overhead=Resources(amounts=parse_amounts((raw.get("overhead") or {}).get("podFixed"))),
        node_selector=dict(sorted((scheduling.get("nodeSelector") or {}).items())),
        tolerations=tuple(tolerations(scheduling)),
    )


def read_limit_range(raw: Json) -> Resources | None:
    """Read the default requests of containers from a LimitRange; None without any.

    The API server has filled in `defaultRequest` from `default`, `max` and `min`. It accepts amounts there that it
    refuses in pods, such as negative ones: these are skipped.
    """
    defaults: dict[str, Quantity] = {}
    for limit in (raw.get("spec") or {}).get("limits") or ():
        if limit.get("type") == "Container":
            for name, amount in (limit.get("defaultRequest") or {}).items():
                with suppress(ValueError):
                    defaults |= parse_amounts({name: amount})
    return Resources(amounts=defaults) if defaults else None


def by_namespace(limit_ranges: Iterable[tuple[str, Resources]]) -> dict[str, Resources]:
    """Merge the defaults of LimitRanges, named ``namespace/name``, by namespace.

    The order of several LimitRanges is undefined; the largest default of a resource is taken.
    """
    largest: dict[str, dict[str, Quantity]] = {}
    for key, given in limit_ranges:
        namespace_defaults = largest.setdefault(namespace_of_key(key), {})
        for name, amount in given.amounts.items():
            namespace_defaults[name] = max(namespace_defaults.get(name, Quantity(0)), amount)
    return {namespace: Resources(amounts=given) for namespace, given in sorted(largest.items())}
