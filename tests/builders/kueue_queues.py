"""Kueue's queues, as an API server serves them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from reconciler.model.workload import Json

GPU = "nvidia.com/gpu"
Amounts: TypeAlias = Mapping[str, Mapping[str, object]]
"""Amounts by flavor and resource."""


def _kueue(kind: str, metadata: Json, spec: Json, **fields: Json) -> Json:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec, **fields}


def local_queue(
    name: str, cluster: str, namespace: str = "ml", *, inactive: tuple[str, str] | None = None, **spec: Json
) -> Json:
    """Make a LocalQueue; `inactive` is the reason and message of its condition Active, if that is False."""
    metadata = {"name": name, "namespace": namespace}
    return _kueue("LocalQueue", metadata, {"clusterQueue": cluster, **spec}, status=_conditions(inactive))


def cluster_queue(
    name: str,
    quota: Amounts,
    *,
    used: Amounts | None = None,
    cohort: str = "",
    pending: int = 0,
    inactive: tuple[str, str] | None = None,
    **spec: Json,
) -> Json:
    """Make a ClusterQueue with one resource group, that takes all namespaces.

    An amount is a nominal quota, or a mapping of the fields of one.
    """
    named = {"cohortName": cohort} if cohort else {}
    groups = {"resourceGroups": [group(quota)]} if quota else {}
    reserved = [
        {"name": flavor, "resources": [{"name": resource, "total": str(total)} for resource, total in of.items()]}
        for flavor, of in (used or {}).items()
    ]
    status = {"flavorsReservation": reserved, "pendingWorkloads": pending, **_conditions(inactive)}
    return _kueue("ClusterQueue", {"name": name}, {"namespaceSelector": {}, **named, **groups, **spec}, status=status)


def cohort(name: str, quota: Amounts | None = None, *, parent: str = "") -> Json:
    """Make a Cohort."""
    spec = ({"parentName": parent} if parent else {}) | ({"resourceGroups": [group(quota)]} if quota else {})
    return _kueue("Cohort", {"name": name}, spec)


def flavor(name: str, labels: Mapping[str, str] | None = None, **spec: Json) -> Json:
    """Make a ResourceFlavor of the nodes with these labels."""
    return _kueue("ResourceFlavor", {"name": name}, {**({"nodeLabels": labels} if labels else {}), **spec})


def namespace(name: str, **labels: str) -> Json:
    """Make a Namespace with these labels, and the one that each has."""
    metadata = {"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def group(quota: Amounts) -> Json:
    """Make a resource group of these flavors, all of which have a quota of the same resources."""
    flavors = [{"name": flavor, "resources": [_quota(*entry) for entry in of.items()]} for flavor, of in quota.items()]
    return {"coveredResources": list(next(iter(quota.values()))), "flavors": flavors}


def _quota(resource: str, amount: object) -> Json:
    fields = amount if isinstance(amount, Mapping) else {"nominalQuota": amount}
    return {"name": resource, **{field: str(value) for field, value in fields.items()}}


def _conditions(inactive: tuple[str, str] | None) -> Json:
    if inactive is None:
        return {"conditions": [{"type": "Active", "status": "True", "reason": "Ready", "message": ""}]}
    reason, message = inactive
    return {"conditions": [{"type": "Active", "status": "False", "reason": reason, "message": message}]}
