"""What the objects that come with pods change of their admission: a cluster as it will be when the pods are made.

A template may bring LimitRanges, ResourceQuotas, PriorityClasses and Namespaces, where its workspace allows these.
Engines apply them before pods. They count beside what a cluster has, whichever leaves less room. A RuntimeClass adds
the same to a pod everywhere, and is part of its shape (`admission_defaults.with_included_runtime_class`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from reconciler.core.capacity.cluster_cache import ClusterCache
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.resource_quotas import read_resource_quota
from reconciler.core.workloads.runtime_defaults import read_default_priority_class, read_limit_range
from reconciler.model.capacity import ClusterObservation
from reconciler.model.kubernetes.admission import IncludedAdmission, PodAdmission, ResourceQuota
from reconciler.model.units import Quantity, Resources
from reconciler.model.workload import Json
from reconciler.text.wording import sanitize

_KINDS = frozenset({"/LimitRange", "/ResourceQuota", "/Namespace", "scheduling.k8s.io/PriorityClass"})
T = TypeVar("T")
_MALFORMED = (AttributeError, LookupError, TypeError, ValueError)


def included_admission(manifests: Iterable[Mapping[str, Json]]) -> IncludedAdmission | None:
    """Return what manifests change of the admission of the pods that they are deployed with; None for nothing."""
    objects = [manifest for manifest in manifests if group_kind(manifest) in _KINDS]
    if not objects:
        return None
    likeness = json.dumps(objects, sort_keys=True, default=str)
    for manifest in objects:
        if has_expression(json.dumps(manifest.get("spec"), default=str)):
            return IncludedAdmission(likeness=likeness, unreadable=f"an expression gives values of {_title(manifest)}")
    included = IncludedAdmission(likeness=likeness)
    for manifest in objects:
        try:
            included = _with_object(included, manifest)
        except _MALFORMED:
            return IncludedAdmission(likeness=likeness, unreadable=f"{_title(manifest)} cannot be read")
    return included


def _title(manifest: Mapping[str, Json]) -> str:
    return f"the {sanitize(str(manifest.get('kind')))} that comes with it"


def _with_object(included: IncludedAdmission, manifest: Mapping[str, Json]) -> IncludedAdmission:
    kind, metadata = group_kind(manifest), manifest["metadata"]
    name, around = str(metadata["name"]), str(metadata.get("namespace") or "")
    match kind:
        case "/LimitRange":
            limit_range = read_limit_range(_with_api_defaults(manifest))
            if limit_range is None:
                return included
            defaults = _largest((included.defaults.get(around, Resources()), limit_range.defaults))
            bounds = (*included.bounds.get(around, ()), *limit_range.items)
            return replace(
                included,
                defaults={**included.defaults, around: defaults},
                bounds={**included.bounds, around: bounds},
            )
        case "/ResourceQuota":
            quotas = (*included.quotas.get(around, ()), read_resource_quota(manifest))
            return replace(included, quotas={**included.quotas, around: quotas})
        case "/Namespace":
            labels = {str(key): str(value) for key, value in sorted((metadata.get("labels") or {}).items())}
            return replace(included, namespaces={**included.namespaces, name: labels})
        case _:
            is_default = read_default_priority_class(manifest) is not None
            return replace(included, has_default_class=included.has_default_class or is_default)


def brings_bounds(admission: Iterable[PodAdmission]) -> bool:
    """Return whether anything comes with pods that changes their admission."""
    return any(stated.included is not None for stated in admission)


def with_included(seen: ClusterObservation, admission: Sequence[PodAdmission]) -> ClusterObservation:
    """Return a cluster with what comes with pods; the same object where nothing does."""
    for stated in admission:
        if stated.included is not None:
            seen = _with_included(seen, stated.namespace, stated.included)
    return seen


def namespace_labels(
    labels: Mapping[str, Mapping[str, str]] | None, admission: Iterable[PodAdmission]
) -> Mapping[str, Mapping[str, str]] | None:
    """Return the labels of namespaces with those that come with pods; None where they are unknown."""
    for stated in admission:
        if labels is not None and stated.included is not None:
            included = stated.included.namespaces.items()
            labels = {**labels, **{name: {**labels.get(name, {}), **own} for name, own in included}}
    return labels


def _with_included(seen: ClusterObservation, namespace: str, included: IncludedAdmission) -> ClusterObservation:
    ranges, bounds, quotas = seen.limit_ranges, {**seen.limit_range_items}, seen.quotas
    if ranges is not None and (own := _of(included.defaults, namespace)):
        ranges = {**ranges, namespace: _largest((ranges.get(namespace, Resources()), *own))}
    for items in _of(included.bounds, namespace):
        bounds[namespace] = (*bounds.get(namespace, ()), *items)
    if quotas is not None and (brought := [quota for each in _of(included.quotas, namespace) for quota in each]):
        there, is_empty = quotas.get(namespace, ()), _is_empty(seen, namespace)
        quotas = {**quotas, namespace: tuple(_merged(there, brought, is_empty=is_empty))}
    return replace(
        seen,
        limit_ranges=ranges,
        limit_range_items=bounds,
        quotas=quotas,
        priority_class=None if included.has_default_class else seen.priority_class,
        namespaces=namespace_labels(seen.namespaces, (PodAdmission(namespace, included=included),)),
    )


def _of(by_namespace: Mapping[str, T], namespace: str) -> list[T]:
    """List what is in a namespace; what names none may be, and so is all of it for pods of an unknown one."""
    return [each for name, each in by_namespace.items() if not namespace or name in ("", namespace)]


def _merged(
    there: Sequence[ResourceQuota], brought: Iterable[ResourceQuota], *, is_empty: bool
) -> Iterator[ResourceQuota]:
    """Yield the quotas of a namespace with those that come along; of two of one name, the lower bounds.

    What is used of a new one is nothing where the namespace `is_empty`, and unknown elsewhere.
    """
    known = {quota.name: quota for quota in there}
    for quota in brought:
        before = known.get(quota.name)
        hard, wanted = dict(before.hard.amounts) if before is not None else {}, quota.hard.amounts
        hard = {**wanted, **{name: min(most, wanted.get(name, most)) for name, most in hard.items()}}
        used = dict.fromkeys(hard, Quantity(0)) if is_empty else {}
        if before is not None:
            used |= before.used.amounts
        scopes = quota.scopes if before is None or before.scopes == quota.scopes else ()
        known[quota.name] = replace(quota, hard=Resources(amounts=hard), used=Resources(amounts=used), scopes=scopes)
    yield from known.values()


def _is_empty(seen: ClusterObservation, namespace: str) -> bool:
    """Return whether a namespace is not there, or no node has a pod of it, as far as these are known."""
    occupied = _OCCUPIED.of(seen)
    is_new = seen.namespaces is not None and namespace not in seen.namespaces
    return bool(namespace) and (is_new or (occupied is not None and namespace not in occupied))


def _occupied(seen: ClusterObservation) -> frozenset[str] | None:
    """Name the namespaces of the pods on the nodes of a cluster; None where some pods are unknown."""
    nodes = (*(node.pods for pool in seen.pools for node in pool.nodes), *(node.pods for node in seen.closed))
    if any(pods is None for pods in nodes):
        return None
    return frozenset(pod.namespace for pods in nodes for pod in pods or ())


_OCCUPIED = ClusterCache(_occupied)
"""The namespaces with pods on nodes, of each cluster as it was last observed."""


def _largest(resources: Iterable[Resources]) -> Resources:
    amounts: dict[str, Quantity] = {}
    for each in resources:
        for name, amount in each.amounts.items():
            amounts[name] = max(amounts.get(name, Quantity(0)), amount)
    return Resources(amounts=amounts)


def _with_api_defaults(manifest: Mapping[str, Json]) -> Json:
    """Fill in what the API server fills in (`SetDefaults_LimitRangeItem` of Kubernetes 1.36, apis/core/v1)."""
    limits = [_with_container_defaults(limit) for limit in manifest["spec"].get("limits") or ()]
    return {**manifest, "spec": {**manifest["spec"], "limits": limits}}


def _with_container_defaults(limit: Json) -> Json:
    if limit.get("type") != "Container":
        return limit
    default = {**(limit.get("max") or {}), **(limit.get("default") or {})}
    request = {**(limit.get("min") or {}), **default, **(limit.get("defaultRequest") or {})}
    return {**limit, "default": default, "defaultRequest": request}
