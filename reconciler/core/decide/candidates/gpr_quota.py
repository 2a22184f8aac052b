"""The number of GPRs that the policy of a workspace allows, and those that it has.

Placements are GPRs. A reservation counts as one until placements use it, and then they do instead.
"""

from __future__ import annotations

from collections.abc import Hashable

from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.decide.candidates.free_capacity import FleetCapacity
from reconciler.core.decide.candidates.reservations import gpus_used
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.plan import Reason, Refusal
from reconciler.model.request import RequestRecord
from reconciler.text.wording import count


class GprQuota:
    """The GPRs of each workspace as the working plan leaves them, against ``maxGPRs`` of its WorkspacePolicy."""

    def __init__(self, inputs: PassInput, working_plan: WorkingPlan, capacity: FleetCapacity) -> None:
        """Count from the plan and from the reservations of `capacity`."""
        self._limits, self._stalled = inputs.desired.limits, inputs.desired.stalled_workspaces
        self._working_plan = working_plan
        self._capacity = capacity
        self._unused: dict[WorkspaceName, tuple[Hashable, list[RequestRecord]]] = {}

    def may_refuse(self, workspace: WorkspaceName) -> bool:
        """Tell whether `refusal` may refuse anything to a workspace."""
        return workspace in self._limits or workspace in self._stalled

    def refusal(
        self, workspace: WorkspaceName, cluster: ClusterName, shape: ReplicaShape | None = None, *, more_gprs: int = 0
    ) -> Refusal | None:
        """Refuse a cluster where a workspace has as many GPRs as it may; None where it may have another one.

        `more_gprs` that are about to begin count. A placement with a `shape` may begin to use a reservation there.
        """
        if workspace in self._stalled:
            return Refusal(
                cluster=cluster,
                reason=Reason.GPR_LIMIT,
                message=f"the WorkspacePolicy of {workspace} is broken, and has never been valid, so its "
                "limits are unknown",
                remedy="mend its file: `overspill check` tells the problem",
            )
        limits = self._limits.get(workspace)
        if limits is None:
            return None
        unused = self._unused_reservations(workspace)
        begins = shape is not None and gpus_of_pod(shape) > 0 and any(record.cluster == cluster for record in unused)
        held = self._working_plan.gprs(workspace) + len(unused) + more_gprs - begins
        if held < limits.most:
            return None
        return Refusal(
            cluster=cluster,
            reason=Reason.GPR_LIMIT,
            message=f"workspace {workspace} has {held} of at most {count(limits.most, 'GPR')}",
            remedy="raise spec.maxGPRs of its WorkspacePolicy, or wait until one ends",
        )

    def state(self, cluster: ClusterName, workspace: WorkspaceName | None) -> Hashable:
        """Return a value that changes whenever `refusal` may; without a workspace nothing is limited."""
        if workspace is None or workspace not in self._limits:
            return 0
        unused = self._unused_reservations(workspace)
        return self._working_plan.gprs(workspace), len(unused), any(record.cluster == cluster for record in unused)

    def _unused_reservations(self, workspace: WorkspaceName) -> list[RequestRecord]:
        """List the reservations of a workspace that no placement uses."""
        own, position = self._capacity.reservations().of.get(workspace, []), self._working_plan.position
        entry = self._unused.get(workspace)
        if entry is None or entry[0] != position:
            clusters = {record.cluster for record in own if record.cluster is not None}
            placements = [placement for cluster in sorted(clusters) for placement in self._working_plan.on(cluster)]
            entry = self._unused[workspace] = (
                position,
                [record for record, used in gpus_used(own, placements) if not used],
            )
        return entry[1]
