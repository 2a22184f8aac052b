"""Objects that a placement would make where they stand already: its end would delete them for whoever they belong to.

Another placement has made them, or the cluster runs them itself (`own_objects`).
"""

from __future__ import annotations

from reconciler.core.decide.candidates.own_objects import OwnObjects
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.fleet.object_owners import ObjectId, describe_object
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.plan import BELONGS, TAKEN_REMEDY, Reason, Refusal


class ObjectConflicts:
    """Finds who makes an object on a cluster, as the working plan stands.

    Bursts conflict as requests do: no engine has one object of two placements. That their templates share it on their
    primary changes nothing about that.
    """

    def __init__(self, inputs: PassInput, working_plan: WorkingPlan) -> None:
        """Look at nothing yet."""
        self._workspaces = inputs.desired.workspaces
        self._makers = inputs.reach.makers
        self._own = OwnObjects(inputs)
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
            or self._own.is_seen(object_id)
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
        return self._own.are_seen and any(
            self._own.is_seen(object_id, but=primary) for object_id in self._makers.objects_of(workload)
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
        if own := self._own.of_template(workload, cluster, object_id):
            return own
        holder = next((name for name in self._on_cluster(cluster, object_id) if name != workload), None)
        if holder is not None:
            return str(holder) if holder.workspace == workload.workspace else "another workspace"
        return self._own.seen(cluster, object_id)

    def _on_cluster(self, cluster: ClusterName, object_id: ObjectId) -> tuple[WorkloadId, ...]:
        """List the workloads whose placements on a cluster make an object; cached until the plan changes."""
        key, position = (cluster, object_id), self._working_plan.position
        entry = self._holders.get(key)
        if entry is None or entry[0] != position:
            owners = self._makers.of(object_id)
            holders = tuple(name for name in owners if cluster in self._working_plan.group(name).clusters)
            entry = self._holders[key] = position, holders
        return entry[1]
