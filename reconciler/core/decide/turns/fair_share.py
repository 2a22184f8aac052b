"""Shares of room: what each workload has of what it needs, and each workspace of the fleet.

Room goes to who has least of its share. Between workspaces that is weighted dominant resource fairness: the greatest
part of any resource that a workspace takes, by its weight (A. Ghodsi et al.: Dominant Resource Fairness, NSDI 2011).
Within a workspace a workload's weight is what it needs by the weight of its policy, so that its share is the part of
its missing replicas that is placed, and one that asks for more takes no more of the others' part than it lacks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reconciler.core.capacity.devices import requests_with_devices
from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.decide.candidates.gpr_terms import priority
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.plan import NeedShare


class Share(NamedTuple):
    """What a workload has, comparable: the least goes first."""

    workspace: float
    """The dominant share of its workspace beyond its quota."""
    workload: float
    """The part of its need that is placed."""


NOTHING = Share(0.0, 0.0)


_PARTS = 8


class FairShares:
    """The shares of workloads and workspaces as the working plan stands."""

    def __init__(self, inputs: PassInput, working_plan: WorkingPlan) -> None:
        """Count nothing before it is asked for."""
        self._inputs, self._working_plan = inputs, working_plan
        self._expected: Counter[WorkloadId] = Counter()
        self._ending: list[Placement] = []
        self._needs: dict[WorkloadId, int] = {}
        """What each workload needs, by the weight of its policy; 0 where it has all that it is missing."""
        self._fair: dict[int, float] = {}
        self._usage: dict[WorkspaceName, Counter[str]] | None = None
        self._position = 0
        self._capacity: Counter[str] = Counter()
        described = inputs.desired.workspaces.values()
        self._named = frozenset(name for workspace in described for name in workspace.quota.amounts)
        self.has_rivals = len(described) > 1
        """Whether there are several workspaces, so that what others of its own take is part of a workload's share."""

    def expect(self, workload: WorkloadId, replicas: int) -> None:
        """Count replicas of a workload that are about to have room."""
        self._expected[workload] += replicas

    def expect_end(self, placement: Placement) -> None:
        """Count a placement that is about to end, whether or not its workload has a demand."""
        self._ending.append(placement)

    def forget(self) -> None:
        """Expect nothing any more."""
        self._expected.clear()
        self._ending.clear()

    def of(self, workload: WorkloadId, more: int = 0) -> Share:
        """Return the share that a burst has, with `more` replicas than are placed and expected."""
        return Share(self._of_workspace(workload, more), self.of_workload(workload, more))

    def of_workload(self, workload: WorkloadId, more: int = 0) -> float:
        """Return the part of its need that a burst has."""
        has = self._working_plan.replicas(workload) + self._expected.get(workload, 0) + more
        need = self._needs.get(workload)
        if need is None:
            need = self._needs[workload] = 0 if self._is_spare(workload) else self._need(workload)
        return has / need if need else 1.0 + has

    def part(self, workload: WorkloadId, unit: int) -> int:
        """Return the replicas that a burst is given at a time: an eighth of its need, or what can be placed alone.

        Who needs many does not wait for a last one in each pass, nor gives it back, so that all have the very same.
        """
        return max(1, self._missing(workload) // (_PARTS * unit)) * unit

    def margin(self, workload: WorkloadId, unit: int) -> int:
        """Return the replicas by which a burst has to have more than its share for that to be unfair."""
        part = self.part(workload, unit)
        return part if part == unit else 2 * part

    def size(self, workload: WorkloadId) -> int:
        """Return the GPUs of a replica of a burst; 1 where it has none."""
        demand = self._inputs.demands.get(workload)
        return _size(demand.shape) if isinstance(demand, Demand) else 1

    def is_poorer(self, workload: WorkloadId, than: WorkloadId, less: int) -> bool:
        """Tell whether a workload has less of its share than another one would have with `less` replicas.

        Within a workspace that goes by need. Between workspaces it goes by what each has beyond its quota; one that
        stays within its quota with one replica more is poorer than any that has borrowed.
        """
        if workload.workspace == than.workspace:
            return self.of_workload(workload) < self.of_workload(than, -less)
        if self.reclaims(workload, than, less):
            return True
        return self._of_workspace(workload, 0) < self._of_workspace(than, -less)

    def reclaims(self, workload: WorkloadId, borrower: WorkloadId, less: int = 1) -> bool:
        """Tell whether a workload is owed a replica within the quota of its workspace, which the other has borrowed."""
        if workload.workspace == borrower.workspace or not self._quota(workload.workspace):
            return False
        within = not self._of_workspace(workload, 1)
        return within and self._of_workspace(borrower, 1 - less) > 0

    def _quota(self, workspace: WorkspaceName) -> Mapping[str, int]:
        described = self._inputs.desired.workspaces.get(workspace)
        return {} if described is None else described.quota.amounts

    def _of_workspace(self, workload: WorkloadId, more: int) -> float:
        """Return the dominant share of a workload's workspace beyond its quota, by its weight."""
        described = self._inputs.desired.workspaces.get(workload.workspace)
        if described is None or not self.has_rivals:
            return 0.0
        used, quota = self._used(workload.workspace), described.quota.amounts
        demand = self._inputs.demands.get(workload)
        extra = _amounts(demand.shape, more) if more and isinstance(demand, Demand) and demand.shape else {}
        names = self._named or used.keys() | extra.keys()  # what no quota bounds is no part of it
        beyond = (
            max(0, used[name] + extra.get(name, 0) - quota.get(name, 0)) / self._capacity[name]
            for name in names
            if self._capacity[name]
        )
        return max(beyond, default=0.0) / described.weight

    def _used(self, workspace: WorkspaceName) -> Counter[str]:
        """Return what the placements of a workspace request, with what is expected."""
        if self._usage is None:
            self._usage, self._position = {}, self._working_plan.position
            for cluster in self._inputs.desired.clusters:
                for placement in self._working_plan.on(cluster):
                    self._add(placement, placement.replicas)
            self._capacity.update(_capacity(self._inputs.observed.clusters.values()))
        for change in self._working_plan.changes[self._position :]:
            if change.action in (Action.PLACE, Action.RESIZE, Action.REVERT):
                self._add(change.placement, change.growth)
        self._position = self._working_plan.position
        used = Counter(self._usage.get(workspace, {}))
        for workload, replicas in self._expected.items():
            demand = self._inputs.demands.get(workload)
            if workload.workspace == workspace and isinstance(demand, Demand) and demand.shape is not None:
                used.update(_amounts(demand.shape, replicas))
        for placement in self._ending:
            if placement.workload.workspace == workspace:
                used.subtract(_amounts(placement.shape, placement.replicas))
        return used

    def _add(self, placement: Placement, replicas: int) -> None:
        if self._usage is not None:
            usage = self._usage.setdefault(placement.workload.workspace, Counter())
            usage.update(_amounts(placement.shape, replicas))

    def fair(self, workload: WorkloadId) -> float:
        """Return the part of its need that each workload of this one's priority would have, if all had the same."""
        level = priority(workload, self._inputs)
        if level not in self._fair:
            has = needs = 0.0
            for demand in self._inputs.demands.values():
                if isinstance(demand, Demand) and demand.missing and priority(demand.workload, self._inputs) == level:
                    size = _size(demand.shape)
                    has += self._working_plan.replicas(demand.workload) * size
                    needs += self._need(demand.workload) * size
            self._fair[level] = has / needs if needs else 1.0
        return self._fair[level]

    def where_short(self, workload: WorkloadId) -> NeedShare | None:
        """Return the share of a burst that is missing replicas, as far as others of its priority wait for room."""
        demand, inputs = self._inputs.demands.get(workload), self._inputs
        if not isinstance(demand, Demand) or not demand.needed or workload not in inputs.desired.policies:
            return None
        level = priority(workload, inputs)
        if not any(other != workload and priority(other, inputs) == level for other in self._working_plan.short):
            return None
        return NeedShare(has=self.of_workload(workload), fair=self.fair(workload))

    def _need(self, workload: WorkloadId) -> int:
        """Return the replicas that a workload is missing and may have, by the weight of its policy."""
        return self._missing(workload) * self._inputs.desired.policies[workload].weight

    def _is_spare(self, workload: WorkloadId) -> bool:
        """Tell whether all replicas that a workload asks for are wanted beforehand: what is missing, it has."""
        demand = self._inputs.demands.get(workload)
        return isinstance(demand, Demand) and demand.missing > 0 and not demand.needed

    def _missing(self, workload: WorkloadId) -> int:
        """Return the replicas that a workload is missing and may have, at least one.

        What is wanted beforehand is no need: it makes more than its share, and comes after all that is missing.
        """
        demand, policy = self._inputs.demands.get(workload), self._inputs.desired.policies[workload]
        missing = demand.needed if isinstance(demand, Demand) else 0
        return max(1, policy.capped(missing))


def _size(shape: ReplicaShape | None) -> int:
    """Return the GPUs of a replica; 1 where it has none."""
    return max(1, gpus_of_pod(shape) * shape.group_size) if shape is not None else 1


def _amounts(shape: ReplicaShape, replicas: int) -> dict[str, int]:
    """Return what so many replicas request."""
    pods = replicas * shape.group_size
    return {name: amount * pods for name, amount in requests_with_devices(shape).amounts.items()}


def _capacity(clusters: Iterable[ClusterObservation]) -> Counter[str]:
    """Add up the allocatable resources of all nodes, or what is free where they are unknown."""
    capacity: Counter[str] = Counter()
    for seen in clusters:
        for pool in seen.pools:
            for node in pool.nodes:
                capacity.update((node.allocatable if node.allocatable.amounts else node.free).amounts)
    return capacity
