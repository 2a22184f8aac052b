"""Objects that a placement would make where they stand already: its end would delete them for whoever they belong to.

They stand there since

1. another placement has made them;
2. the cluster is the primary of a template, of any workspace, that counts or makes them: they are what it runs itself;
3. the cluster is seen to run them without the label of a placement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.fleet.object_owners import ObjectId, describe_object, means_object
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.plan import BELONGS, TAKEN_REMEDY, Reason, Refusal
from reconciler.model.workload import WorkloadRef


class ObjectConflicts:
    """Finds who makes an object on a cluster, as the working plan stands.

    Bursts conflict as requests do: no engine has one object of two placements. That their templates share it on their
    primary changes nothing about that.
    """

    def __init__(self, inputs: PassInput, working_plan: WorkingPlan) -> None:
        """Look at nothing yet."""
        self._workspaces = inputs.desired.workspaces
        self._makers = inputs.reach.makers
        self._observed = inputs.observed
        self._working_plan = working_plan
        self._owners: dict[ObjectId, tuple[int, tuple[WorkloadId, ...]]] = {}
        self._holders: dict[tuple[ClusterName, ObjectId], tuple[int, tuple[WorkloadId, ...]]] = {}

    def refusal(self, workload: WorkloadId, cluster: ClusterName) -> Refusal | None:
        """Refuse a cluster that has an object of a workload already, made by another one; None where it has none."""
        for object_id in self._makers.objects_of(workload):
            whose = self._whose(workload, cluster, object_id)
            if whose:
                return Refusal(
                    cluster=cluster,
                    reason=Reason.TAKEN,
                    message=f"{describe_object(object_id)} {BELONGS} {whose}",
                    remedy=TAKEN_REMEDY,
                )
        return None

    def possible(self, workload: WorkloadId) -> bool:
        """Return whether any object of a workload is also another one's, or seen, on whatever cluster."""
        return any(
            self._makers.is_standing(object_id, but=workload)
            or any(name != workload for name in self._workloads_with(object_id))
            or self._is_seen(object_id)
            for object_id in self._makers.objects_of(workload)
        )

    def may_refuse_burst(self, workload: WorkloadId) -> bool:
        """Return whether an object of a burst is also another template's or a placed request's, or seen elsewhere."""
        return any(
            self._makers.is_standing(object_id, but=workload)
            or any(name != workload for name in self._makers.of(object_id) if self._working_plan.group(name).clusters)
            for object_id in self._makers.objects_of(workload)
        ) or self.is_seen_elsewhere(workload)

    def is_seen_elsewhere(self, workload: WorkloadId) -> bool:
        """Return whether a cluster beside the primary is seen to run an object of a workload by itself."""
        primary = self._workspaces[workload.workspace].primary
        return bool(self._seen) and any(
            self._is_seen(object_id, but=primary) for object_id in self._makers.objects_of(workload)
        )

    def _workloads_with(self, object_id: ObjectId) -> tuple[WorkloadId, ...]:
        """List the workloads with placements that make an object; cached until the plan changes."""
        position = self._working_plan.position
        entry = self._owners.get(object_id)
        if entry is None or entry[0] != position:
            owners = tuple(name for name in self._makers.of(object_id) if self._working_plan.group(name).clusters)
            entry = self._owners[object_id] = position, owners
        return entry[1]

    def _whose(self, workload: WorkloadId, cluster: ClusterName, object_id: ObjectId) -> str:
        """Say whose an object on a cluster is, without the names of other workspaces; empty where it is nobody's."""
        # 1. A template, whose primary the cluster is, runs it there.
        standing = self._makers.standing(object_id).get(cluster, ())
        own = next((name for name in standing if name != workload), None)
        if own is not None and own.workspace == workload.workspace:
            return f"what workspace {own.workspace} runs there itself"
        if own is not None:
            return "what another workspace runs there itself"
        # 2. Another placement has made it.
        holder = next((name for name in self._on_cluster(cluster, object_id) if name != workload), None)
        if holder is not None:
            return str(holder) if holder.workspace == workload.workspace else "another workspace"
        # 3. It is seen there, and no placement has made it.
        if any(place == cluster and means_object(ref, object_id) for place, ref in self._seen.get(object_id[1:], ())):
            return f"what {cluster} runs itself"
        return ""

    @cached_property
    def _seen(self) -> Mapping[tuple[str, str], Sequence[tuple[ClusterName, WorkloadRef]]]:
        """What clusters are seen to run by themselves, by namespace and name."""
        seen: dict[tuple[str, str], list[tuple[ClusterName, WorkloadRef]]] = {}
        for cluster, observation in self._observed.clusters.items():
            for ref in observation.unplaced:
                seen.setdefault((ref.namespace, ref.name), []).append((cluster, ref))
        return seen

    def _is_seen(self, object_id: ObjectId, but: ClusterName | None = None) -> bool:
        named = self._seen.get(object_id[1:], ())
        return any(cluster != but and means_object(ref, object_id) for cluster, ref in named)

    def _on_cluster(self, cluster: ClusterName, object_id: ObjectId) -> tuple[WorkloadId, ...]:
        """List the workloads whose placements on a cluster make an object; cached until the plan changes."""
        key, position = (cluster, object_id), self._working_plan.position
        entry = self._holders.get(key)
        if entry is None or entry[0] != position:
            owners = self._makers.of(object_id)
            holders = tuple(name for name in owners if cluster in self._working_plan.group(name).clusters)
            entry = self._holders[key] = position, holders
        return entry[1]
