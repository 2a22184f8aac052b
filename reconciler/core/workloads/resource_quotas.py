"""ResourceQuotas as the API server enforces them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from reconciler.core.pods.pod_requests import parse_amounts
from reconciler.core.workloads.watch import namespace_of_key
from reconciler.model.kubernetes.admission import ResourceQuota
from reconciler.model.kubernetes.requirements import Requirement
from reconciler.model.units import Quantity, Resources
from reconciler.model.workload import Json
from reconciler.text.timestamps import read_moment


def read_resource_quota(raw: Json) -> ResourceQuota:
    """Read a ResourceQuota.

    The API server checks `status.hard` (``CheckRequest`` of k8s.io/apiserver 0.36, admission/plugin/resourcequota),
    which the quota controller soon makes equal to `spec.hard`: the lower one counts.
    """
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    wanted, enforced = (_amounts(part.get("hard")) for part in (spec, status))
    hard = {
        name: min(wanted.get(name, amount), enforced.get(name, amount))
        for name, amount in sorted({**wanted, **enforced}.items())
        if not wanted or name in wanted
    }
    return ResourceQuota(
        name=str(metadata["name"]),
        hard=Resources(amounts=hard),
        used=Resources(amounts=dict(sorted(_amounts(status.get("used")).items()))),
        scopes=tuple(_scopes(spec)),
        since=max(map(read_moment, _changes(metadata)), default=None),
    )


def quotas_by_namespace(quotas: Iterable[tuple[str, ResourceQuota]]) -> dict[str, tuple[ResourceQuota, ...]]:
    """Group quotas, named ``namespace/name``, by namespace, sorted by name."""
    grouped: dict[str, list[ResourceQuota]] = {}
    for key, quota in sorted(quotas, key=lambda item: item[0]):
        grouped.setdefault(namespace_of_key(key), []).append(quota)
    return {namespace: tuple(listed) for namespace, listed in grouped.items()}


def read_scopes(scopes: Iterable[str], expressions: Iterable[Json]) -> Iterator[Requirement]:
    """Read the scopes of a quota, and the expressions of its scope selector."""
    for name in scopes:
        yield Requirement(key=name, operator="Exists")
    for expression in expressions:
        yield Requirement(
            key=expression["scopeName"],
            operator=expression["operator"],
            values=tuple(expression.get("values") or ()),
        )


def _scopes(spec: Json) -> Iterator[Requirement]:
    yield from read_scopes(spec.get("scopes") or (), (spec.get("scopeSelector") or {}).get("matchExpressions") or ())


def _amounts(raw: Json) -> dict[str, Quantity]:
    """Parse amounts. What is negative, as a use that was counted wrongly, is zero."""
    amounts: dict[str, Quantity] = {}
    for name, text in (raw or {}).items():
        amounts[name] = Quantity(0)
        with suppress(ValueError):
            amounts |= parse_amounts({name: text})
    return amounts


def _changes(metadata: Json) -> Iterator[str]:
    """Yield when the quota was created, and when its status was last written."""
    if metadata.get("creationTimestamp"):
        yield metadata["creationTimestamp"]
    for entry in metadata.get("managedFields") or ():
        if entry.get("subresource") == "status" and entry.get("time"):
            yield entry["time"]
