"""Quotas of a cluster on the objects that a new placement makes, whatever room there is for its pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from reconciler.bulkhead import Seam, attempt
from reconciler.core.decide.state.object_usage import DeployedObjects, bounds_objects
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.errors import Bug
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName, PlacementName, WorkloadId
from reconciler.model.kubernetes.admission import ResourceQuota
from reconciler.model.plan import Reason, Refusal
from reconciler.model.units import format_quantity
from reconciler.text.wording import sanitize


def _has_left(quota: ResourceQuota, usage: Mapping[str, int]) -> bool:
    hard, used = quota.hard.amounts, quota.used.amounts
    return all(name in used and used[name] + amount <= hard[name] for name, amount in usage.items())


class _ObjectQuota(NamedTuple):
    """A quota on objects of one namespace."""

    namespace: str
    quota: ResourceQuota
    counted: int
    """A number that is equal for quotas of the namespace that count the same objects."""


_Usage = Mapping[str, int]
_Bounds = Mapping[str, tuple[_ObjectQuota, ...]]
"""Quotas on objects by namespace."""


class _Unmade:
    """What the placements of one cluster that may have no objects yet will use of its quotas."""

    def __init__(self, there: frozenset[PlacementName]) -> None:
        """Begin with the placements whose objects are `there`, and so in what is used."""
        self.there = there
        self.moved = -1
        self.placements: dict[PlacementName, WorkloadId] = {}
        self.usage: dict[tuple[str, str], Counter[str]] = {}


class ObjectQuotas:
    """Refuses clusters whose quotas have too little left for the objects of a new placement."""

    def __init__(self, inputs: PassInput, working_plan: WorkingPlan) -> None:
        """Look at nothing yet."""
        self._inputs = inputs
        self._working_plan = working_plan
        self._coming: dict[ClusterName, _Unmade] = {}
        self._likenesses: dict[WorkloadId, Hashable] = {}

    @cached_property
    def _bounds(self) -> Mapping[ClusterName, _Bounds]:
        """The quotas on objects of each cluster that has any."""
        number = self._working_plan.memory.number
        bounds: dict[ClusterName, _Bounds] = {}
        for cluster, seen in self._inputs.observed.clusters.items():
            own: dict[str, tuple[_ObjectQuota, ...]] = {}
            for namespace, quotas in (seen.quotas or {}).items():
                if found := [quota for quota in quotas if bounds_objects(quota)]:
                    own[namespace] = tuple(
                        _ObjectQuota(namespace, quota, number((namespace, quota.scopes, tuple(quota.hard.amounts))))
                        for quota in found
                    )
            if own:
                bounds[cluster] = own
        return bounds

    @cached_property
    def _kinds(self) -> Mapping[str, tuple[_ObjectQuota, ...]]:
        """Of the quotas of each namespace that have one name, and count the same on several clusters, one."""
        kinds: dict[str, dict[tuple[str, int], _ObjectQuota]] = {}
        for own in self._bounds.values():
            for namespace, bounds in own.items():
                for bound in bounds:
                    kinds.setdefault(namespace, {}).setdefault((bound.quota.name, bound.counted), bound)
        return {namespace: tuple(found.values()) for namespace, found in kinds.items()}

    @cached_property
    def _scarce(self) -> frozenset[str]:
        """The namespaces where a quota of some cluster is too small for the objects of all workloads together."""
        usage: dict[tuple[str, int], Counter[str]] = {}
        for workload in self._inputs.desired.templates:
            policy = self._inputs.desired.policies.get(workload)
            placements = max(1, len(policy.subsets)) if policy is not None else 1
            for bound, each in self._needed(workload, self._kinds):
                total = usage.setdefault((bound.quota.name, bound.counted), Counter())
                for name, amount in each.items():
                    total[name] += placements * amount
        return frozenset(
            bound.namespace
            for own in self._bounds.values()
            for bounds in own.values()
            for bound in bounds
            if not _has_left(bound.quota, usage.get((bound.quota.name, bound.counted), {}))
        )

    def refusal(self, workload: WorkloadId, cluster: ClusterName) -> Refusal | None:
        """Refuse a cluster that does not let in all objects of a new placement; None where it does."""
        for bound, needed in self._needed(workload, self._bounds.get(cluster)):
            quota, coming = bound.quota, self._coming_to(cluster, bound)
            for name, amount in needed.items():
                hard, used = quota.hard.amounts[name], quota.used.amounts.get(name)
                if used is None or used + coming[name] + amount > hard:
                    title = f"quota {sanitize(quota.name)} of {sanitize(bound.namespace)}"
                    known = "an unknown number" if used is None else format_quantity(used + coming[name])
                    takes = f"and its objects take {format_quantity(amount)}"
                    return Refusal(
                        cluster=cluster,
                        reason=Reason.NO_CAPACITY,
                        message=f"{title}: {known} of {format_quantity(hard)} {sanitize(name)} used, {takes}",
                        remedy=f"raise quota {sanitize(quota.name)} of namespace {sanitize(bound.namespace)} there",
                    )
        return None

    def may_refuse(self, workload: WorkloadId) -> bool:
        """Return whether `refusal` may refuse any cluster to a workload in this pass."""
        if not self._bounds:
            return False
        objects = self._objects(workload)
        return objects is not None and not self._scarce.isdisjoint(objects.namespaces)

    def likeness(self, workload: WorkloadId) -> Hashable:
        """Return what the quotas of all clusters look at in the objects of a workload; None if they look at nothing."""
        if workload not in self._likenesses:
            used = {
                (bound.namespace, bound.quota.name, *usage.items())
                for bound, usage in self._needed(workload, self._kinds)
            }
            self._likenesses[workload] = frozenset(used) or None
        return self._likenesses[workload]

    def _needed(self, workload: WorkloadId, bounds: _Bounds | None) -> Sequence[tuple[_ObjectQuota, _Usage]]:
        """Return what the objects of a workload use of each of these quotas that is about them.

        One with objects that cannot be read uses nothing, and keeps no other from being decided on.
        """
        found = attempt(Seam.OBJECTS, workload, lambda: list(self._used(workload, bounds or {})))
        if not isinstance(found, Bug):
            return found
        self._working_plan.note_bug(found)
        return ()

    def _used(self, workload: WorkloadId, bounds: _Bounds) -> Iterator[tuple[_ObjectQuota, _Usage]]:
        objects = self._objects(workload) if bounds else None
        if objects is None:
            return
        for namespace in objects.namespaces:
            for bound in bounds.get(namespace, ()):
                if usage := objects.usage(namespace, bound.quota, bound.counted):
                    yield bound, usage

    def _coming_to(self, cluster: ClusterName, bound: _ObjectQuota) -> Counter[str]:
        """Return what placements whose objects may not exist yet will use of a quota of a cluster."""
        coming, moved = self._coming.get(cluster), self._working_plan.moved(cluster)
        if coming is None:
            coming = self._coming[cluster] = _Unmade(self._there(self._inputs.observed.clusters[cluster]))
        if coming.moved != moved:
            coming.moved = moved
            placements = {
                placement.name: placement.workload
                for placement in self._working_plan.on(cluster)
                if placement.name not in coming.there
            }
            for name in placements.keys() - coming.placements.keys():
                self._count(coming, cluster, placements[name], 1)
            for name in coming.placements.keys() - placements.keys():
                self._count(coming, cluster, coming.placements[name], -1)
            coming.placements = placements
        return coming.usage.get((bound.namespace, bound.quota.name)) or Counter()

    def _count(self, coming: _Unmade, cluster: ClusterName, workload: WorkloadId, sign: int) -> None:
        for bound, usage in self._needed(workload, self._bounds[cluster]):
            total = coming.usage.setdefault((bound.namespace, bound.quota.name), Counter())
            for name, amount in usage.items():
                total[name] += sign * amount

    def _there(self, seen: ClusterObservation) -> frozenset[PlacementName]:
        """Name the placements of the ledger whose objects exist: they have pods, or have been healthy."""
        return frozenset(
            placement.name
            for placement in self._inputs.ledger.placements.on(seen.cluster).placements
            if seen.bound.get(placement.name)
            or seen.pending_pods.get(placement.name)
            or self._inputs.rollouts.has_arrived(placement)
        )

    def _objects(self, workload: WorkloadId) -> DeployedObjects | None:
        """Return the objects of a placement; None for a workload whose template is gone."""
        entry, desired = self._inputs.enrolment.entries.get(workload), self._inputs.desired
        template = entry.template if entry is not None else desired.templates.get(workload)
        workspace = entry.workspace if entry is not None else desired.workspaces.get(workload.workspace)
        if template is None or workspace is None:
            return None
        return self._working_plan.memory.deployed_objects(template, workspace)
