"""What the objects of a placement use of quotas such as ``count/deployments.apps``, ``services`` or ``configmaps``.

Rules of ``pkg/quota/v1/evaluator/core`` (registry.go, services.go, persistent_volume_claims.go) of Kubernetes 1.36.
Pods, and claims that are made for pods, are room, and counted there (`capacity.pod_quotas`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping

from reconciler.core.capacity.admitted_pod import concerns_pods, volume_usage
from reconciler.core.capacity.pod_requirements import MALFORMED
from reconciler.core.engines.deployment import target_namespace
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.observe.kubernetes.resources import plural_of
from reconciler.core.pods.pod_admission import volume_claim
from reconciler.core.pods.pod_references import as_mapping
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.paths import at
from reconciler.model.kubernetes.admission import ResourceQuota, VolumeClaim
from reconciler.model.policy import Workspace
from reconciler.model.units import ONE
from reconciler.model.workload import DeploySpec, Json, StepType

_ALIASES = frozenset({"configmaps", "replicationcontrollers", "resourcequotas", "secrets", "services"})
"""Kinds of the core group that quotas also have by their plain names."""
_MADE = {"apps/Deployment": "count/replicasets.apps"}
"""What the controller of a kind makes for each of its objects, beside pods."""
_CLAIM, _SERVICE = "/PersistentVolumeClaim", "/Service"
_MARKER: Mapping[str, Json] = {"apiVersion": "v1", "kind": "ConfigMap"}
"""The ConfigMap that marks a placement."""
_NOTHING: Mapping[str, int] = {}


def bounds_objects(quota: ResourceQuota) -> bool:
    """Return whether a quota is for other objects than pods."""
    return not all(map(concerns_pods, quota.hard.amounts))


def object_usage(manifest: Mapping[str, Json], quota: ResourceQuota) -> Mapping[str, int]:
    """Return what an object that is no pod uses of a quota, in the units of a Quantity."""
    kind = group_kind(manifest)
    if kind == _CLAIM:
        return volume_usage(_claim(manifest), quota)
    if quota.scopes:
        return _NOTHING
    group, _, name = kind.partition("/")
    plural = plural_of(name)
    usage = Counter({f"count/{plural}.{group}" if group else f"count/{plural}": 1})
    if not group and plural in _ALIASES:
        usage[plural] = 1
    if kind in _MADE:
        usage[_MADE[kind]] = 1
    if kind == _SERVICE and at(manifest, ("spec", "type")) in ("LoadBalancer", "NodePort"):
        ports = at(manifest, ("spec", "ports"))
        usage["services.nodeports"] = len(ports) if isinstance(ports, list) else 1
        usage["services.loadbalancers"] = int(at(manifest, ("spec", "type")) == "LoadBalancer")
    return {name: number * ONE for name, number in usage.items() if number and name in quota.hard.amounts}


def _claim(manifest: Mapping[str, Json]) -> VolumeClaim:
    """Read a PersistentVolumeClaim; one that nobody can read may be of any StorageClass."""
    try:
        return volume_claim(as_mapping(at(manifest, ("spec",))))
    except MALFORMED:
        return VolumeClaim()


class DeployedObjects:
    """The objects that a placement of one template makes, by namespace, with what they use of quotas."""

    def __init__(self, spec: DeploySpec, workspace: Workspace) -> None:
        """List the manifests that steps deploy, and the ConfigMap that marks the placement."""
        named = {step.name for step in spec.steps if step.type is StepType.MANIFEST}
        around = target_namespace(spec, workspace)
        self._manifests: dict[str, list[Mapping[str, Json]]] = {around: [_MARKER]}
        for resource in spec.manifests:
            if resource.name in named:
                own = at(resource.manifest, ("metadata", "namespace"))
                stated = isinstance(own, str) and own and not has_expression(own)
                self._manifests.setdefault(own if stated else around, []).append(resource.manifest)
        self._usages: dict[Hashable, Mapping[str, int]] = {}

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of the objects."""
        return tuple(self._manifests)

    def usage(self, namespace: str, quota: ResourceQuota, counted: Hashable) -> Mapping[str, int]:
        """Return what they use of a quota of a namespace; `counted` is equal for quotas there that count the same."""
        if counted not in self._usages:
            usage = Counter[str]()
            for manifest in self._manifests.get(namespace, ()):
                usage.update(object_usage(manifest, quota))
            self._usages[counted] = dict(sorted(usage.items())) if usage else _NOTHING
        return self._usages[counted]
