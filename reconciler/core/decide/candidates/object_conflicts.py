"""Objects that two workloads would both make on one cluster: the end of one would take the other's away."""

from __future__ import annotations

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.fleet.object_owners import Thing, describe_object
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.plan import Reason, Refusal


class ObjectConflicts:
    """What is on each cluster already, while a pass is being decided.

    Two bursts are none of each other's: what they share, their templates share on the primary as well.
    """

    def __init__(self, inputs: PassInput, working_plan: WorkingPlan) -> None:
        """Look at nothing yet."""
        self._workspaces = inputs.desired.workspaces
        self._makers = inputs.reach.makers
        self._working_plan = working_plan
        self._owners: dict[Thing, tuple[int, tuple[WorkloadId, ...]]] = {}
        self._holders: dict[tuple[ClusterName, Thing, bool], tuple[int, WorkloadId | None]] = {}

    def refusal(self, workload: WorkloadId, cluster: ClusterName) -> Refusal | None:
        """Say what of a workload is on a cluster already and is another's; None where nothing is known to be."""
        for thing in self._makers.things(workload):
            whose = self._whose(workload, cluster, thing)
            if whose:
                return Refusal(
                    cluster=cluster,
                    reason=Reason.TAKEN,
                    message=f"{describe_object(thing)} is there already, and belongs to {whose}",
                    remedy="use another name, another namespace or another cluster",
                )
        return None

    def possible(self, workload: WorkloadId) -> bool:
        """Tell whether something of what a workload makes is anybody else's already, on whatever cluster."""
        return any(
            self._makers.counts(workload.workspace, thing) or any(one != workload for one in self._placed(thing))
            for thing in self._makers.things(workload)
        )

    def _placed(self, thing: Thing) -> tuple[WorkloadId, ...]:
        """List who makes something and has a placement; what was found stays so until the plan changes."""
        position = self._working_plan.position
        known = self._owners.get(thing)
        if known is None or known[0] != position:
            found = tuple(one for one in self._makers.of(thing) if self._working_plan.lent(one).clusters)
            known = self._owners[thing] = position, found
        return known[1]

    def _whose(self, workload: WorkloadId, cluster: ClusterName, thing: Thing) -> str:
        """Name whom something on a cluster belongs to; other workspaces are not told by name."""
        workspace = self._workspaces[workload.workspace]
        if workload.request and cluster == workspace.primary and self._makers.counts(workspace.name, thing):
            return f"what workspace {workspace.name} runs there itself"
        holder = self._holder(cluster, thing, any_burst=workload.request)
        if holder is None:
            return ""
        return str(holder) if holder.workspace == workload.workspace else "another workspace"

    def _holder(self, cluster: ClusterName, thing: Thing, *, any_burst: bool) -> WorkloadId | None:
        """Find whose placement on a cluster makes something; what was found stays so until the plan changes."""
        key, position = (cluster, thing, any_burst), self._working_plan.position
        known = self._holders.get(key)
        if known is None or known[0] != position:
            found = (one for one in self._makers.of(thing) if any_burst or one.request)
            holder = next((one for one in found if cluster in self._working_plan.lent(one).clusters), None)
            known = self._holders[key] = position, holder
        return known[1]
