"""Quotas of a cluster on the objects that a new placement makes: ``count/deployments.apps``, ``services`` and the like.

Rules of ``pkg/quota/v1/evaluator/core`` (registry.go, services.go, persistent_volume_claims.go) of Kubernetes 1.36.
Pods, and claims that are made for pods, are room, and counted there (`capacity.pod_quotas`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property

from reconciler.core.capacity.admitted_pod import volume_usage
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.engines.deployment import target_namespace
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.observe.kubernetes.resources import plural_of
from reconciler.core.pods.pod_admission import volume_claim
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.paths import at
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.kubernetes.admission import ResourceQuota
from reconciler.model.plan import Reason, Refusal
from reconciler.model.units import ONE, Quantity, format_quantity
from reconciler.model.workload import Json
from reconciler.text.wording import sanitize

_ALIASES = frozenset({"configmaps", "replicationcontrollers", "resourcequotas", "secrets", "services"})
"""Kinds of the core group that quotas also have by their plain names."""
_MADE = {"apps/Deployment": "count/replicasets.apps"}
"""What the controller of a kind makes for each of its objects, beside pods."""
_CLAIM, _SERVICE = "/PersistentVolumeClaim", "/Service"

_Object = tuple[str, Mapping[str, Json]]
"""An object that a placement makes, with its namespace."""


def object_usage(manifest: Mapping[str, Json], quota: ResourceQuota) -> Mapping[str, int]:
    """Return what an object that is no pod uses of a quota, in the units of a Quantity."""
    kind = group_kind(manifest)
    if kind == _CLAIM:
        return volume_usage(volume_claim(at(manifest, ("spec",)) or {}), quota)
    if quota.scopes:
        return {}
    group, _, name = kind.partition("/")
    plural = plural_of(name)
    usage = Counter({f"count/{plural}.{group}" if group else f"count/{plural}": 1})
    if not group and plural in _ALIASES:
        usage[plural] = 1
    if kind in _MADE:
        usage[_MADE[kind]] = 1
    if kind == _SERVICE and at(manifest, ("spec", "type")) in ("LoadBalancer", "NodePort"):
        usage["services.nodeports"] = len(at(manifest, ("spec", "ports")) or ())
        usage["services.loadbalancers"] = int(at(manifest, ("spec", "type")) == "LoadBalancer")
    return {name: number * ONE for name, number in usage.items() if number and name in quota.hard.amounts}


class ObjectQuotas:
    """Refuses clusters whose quotas have too little left for the objects of a new placement."""

    def __init__(self, inputs: PassInput, working_plan: WorkingPlan) -> None:
        """Look at nothing yet."""
        self._inputs = inputs
        self._working_plan = working_plan
        self._objects: dict[WorkloadId, tuple[_Object, ...]] = {}
        self._likenesses: dict[WorkloadId, Hashable] = {}

    @cached_property
    def _clusters(self) -> Mapping[ClusterName, ClusterObservation]:
        """The clusters with quotas."""
        return {name: seen for name, seen in self._inputs.observed.clusters.items() if seen.quotas}

    def refusal(self, workload: WorkloadId, cluster: ClusterName) -> Refusal | None:
        """Refuse a cluster that does not let in all objects of a new placement; None where it does."""
        seen = self._clusters.get(cluster)
        if seen is None:
            return None
        for namespace, quota in self._concerned(workload, seen):
            needed = self._usage(workload, namespace, quota)
            coming = Counter[str]()
            for other in self._unmade(cluster, seen) if needed else ():
                coming.update(self._usage(other, namespace, quota))
            for name, amount in sorted(needed.items()):
                hard, used = quota.hard.amounts[name], quota.used.amounts.get(name)
                if used is None or used + coming[name] + amount > hard:
                    title = f"quota {sanitize(quota.name)} of {sanitize(namespace)}"
                    known = "an unknown number" if used is None else format_quantity(Quantity(used + coming[name]))
                    takes = f"and its objects take {format_quantity(Quantity(amount))}"
                    return Refusal(
                        cluster=cluster,
                        reason=Reason.NO_CAPACITY,
                        message=f"{title}: {known} of {format_quantity(hard)} {sanitize(name)} used, {takes}",
                        remedy=f"raise quota {sanitize(quota.name)} of namespace {sanitize(namespace)} there",
                    )
        return None

    def likeness(self, workload: WorkloadId) -> Hashable:
        """Return what the quotas of all clusters look at in the objects of a workload; None if they look at nothing."""
        if workload not in self._likenesses:
            used = {
                (namespace, quota.name, *sorted(usage.items()))
                for seen in self._clusters.values()
                for namespace, quota in self._concerned(workload, seen)
                if (usage := self._usage(workload, namespace, quota))
            }
            self._likenesses[workload] = frozenset(used) or None
        return self._likenesses[workload]

    def _concerned(self, workload: WorkloadId, seen: ClusterObservation) -> Iterable[tuple[str, ResourceQuota]]:
        """Yield the quotas of the namespaces that the objects of a workload go to."""
        for namespace in sorted({namespace for namespace, _ in self._objects_of(workload)}):
            for quota in (seen.quotas or {}).get(namespace, ()):
                yield namespace, quota

    def _usage(self, workload: WorkloadId, namespace: str, quota: ResourceQuota) -> Counter[str]:
        usage = Counter[str]()
        for around, manifest in self._objects_of(workload):
            if around == namespace:
                usage.update(object_usage(manifest, quota))
        return usage

    def _unmade(self, cluster: ClusterName, seen: ClusterObservation) -> Iterable[WorkloadId]:
        """Yield the workloads of placements whose objects may not exist yet."""
        for placement in self._working_plan.on(cluster):
            pods = seen.bound.get(placement.name) or seen.pending_pods.get(placement.name)
            if not pods and not self._inputs.rollouts.has_arrived(placement):
                yield placement.workload

    def _objects_of(self, workload: WorkloadId) -> tuple[_Object, ...]:
        """Return the objects of a placement: those of its manifests, and the ConfigMap that marks it."""
        if workload not in self._objects:
            entry, desired = self._inputs.enrolment.entries.get(workload), self._inputs.desired
            template = entry.template if entry is not None else desired.templates.get(workload)
            workspace = entry.workspace if entry is not None else desired.workspaces.get(workload.workspace)
            objects: list[_Object] = []
            if template is not None and workspace is not None:
                around = target_namespace(template.spec, workspace)
                objects.append((around, {"apiVersion": "v1", "kind": "ConfigMap"}))
                for resource in template.spec.manifests:
                    own = at(resource.manifest, ("metadata", "namespace"))
                    named = isinstance(own, str) and own and not has_expression(own)
                    objects.append((str(own) if named else around, resource.manifest))
            self._objects[workload] = tuple(objects)
        return self._objects[workload]
