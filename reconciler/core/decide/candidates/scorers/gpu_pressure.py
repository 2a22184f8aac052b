"""Which GPUs each workload of the fleet can use, and how much those with less choice press on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.core.capacity.cluster_cache import ClusterCache
from reconciler.core.capacity.gpu_models import gpus_of_node, gpus_of_pod
from reconciler.core.capacity.gpu_slices import holds_when_empty, placement_key
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.pods.taints import untolerated_taint
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.policy import BurstPolicy, Cluster

GpuPlace = tuple[ClusterName, str]
"""The GPUs of one model on one cluster; the model is as the vendor writes it, empty where it is unknown."""

_MAX_SHAPES = 1000
"""Shapes whose GPUs on one cluster are kept."""
_GPUS = ClusterCache[dict[Hashable, Mapping[str, int]]](lambda _: {})
"""GPUs by model that a shape can use on a cluster, free or not, for as long as its nodes are the same objects."""


@dataclass(frozen=True, slots=True)
class GpuChoice:
    """The GPUs that a workload can use, free or not."""

    gpus: Mapping[GpuPlace, int]
    places: frozenset[GpuPlace]
    total: int


class GpuPressure:
    """The choice of GPUs that each workload has, worked out when a workload is first scored by it."""

    def __init__(self, inputs: PassInput, working_plan: WorkingPlan) -> None:
        """Look at nothing yet."""
        self._inputs = inputs
        self._working_plan = working_plan
        self._choices: dict[Hashable, GpuChoice] = {}
        self._others: Mapping[frozenset[GpuPlace], tuple[GpuChoice, int]] | None = None
        self._pressures: dict[frozenset[GpuPlace], Mapping[ClusterName, float]] = {}

    def places(self, workload: WorkloadId, shape: ReplicaShape) -> frozenset[GpuPlace]:
        """Return the GPUs that a workload can use."""
        return self._choice(workload, shape).places

    def on_clusters(self, workload: WorkloadId, shape: ReplicaShape) -> Mapping[ClusterName, float]:
        """Return the pressure on the GPUs that a workload would take, by cluster: their mean there."""
        choice = self._choice(workload, shape)
        if choice.places not in self._pressures:
            self._pressures[choice.places] = self._pressure(choice)
        return self._pressures[choice.places]

    def _pressure(self, choice: GpuChoice) -> Mapping[ClusterName, float]:
        on_places = Counter[GpuPlace]()
        for other, workloads in self._other_choices().values():
            if choice.places <= other.places:
                continue  # it can go wherever this one can, this one included
            for place in sorted(choice.places & other.places):
                on_places[place] += workloads / other.total  # type: ignore[assignment] # a Counter of parts
        pressed, gpus = dict[ClusterName, float](), Counter[ClusterName]()
        for place, number in choice.gpus.items():
            cluster, _ = place
            gpus[cluster] += number
            pressed[cluster] = pressed.get(cluster, 0.0) + number * on_places[place]
        return {cluster: pressure / gpus[cluster] for cluster, pressure in pressed.items()}

    def _other_choices(self) -> Mapping[frozenset[GpuPlace], tuple[GpuChoice, int]]:
        """Return the choices of all workloads of the fleet that use GPUs, and how many workloads have each."""
        if self._others is None:
            choices: dict[frozenset[GpuPlace], tuple[GpuChoice, int]] = {}
            for workload, shape in self._workloads():
                choice = self._choice(workload, shape)
                if choice.places:
                    _, number = choices.get(choice.places, (choice, 0))
                    choices[choice.places] = choice, number + 1
            self._others = choices
        return self._others

    def _workloads(self) -> Iterator[tuple[WorkloadId, ReplicaShape]]:
        """Yield the workloads that may burst, and the requests that wait, with the pods of theirs that have GPUs."""
        for workload, demand in self._inputs.demands.items():
            if isinstance(demand, Demand) and demand.shape is not None and gpus_of_pod(demand.shape):
                yield workload, demand.shape
        for workload, entry in self._inputs.enrolment.entries.items():
            if not self._working_plan.replicas(workload):
                shape = next((part.shape for part in entry.needs.parts if gpus_of_pod(part.shape)), None)
                if shape is not None:
                    yield workload, shape

    def _choice(self, workload: WorkloadId, shape: ReplicaShape) -> GpuChoice:
        policy, order = self._inputs.desired.policies[workload], self._inputs.reach.order(workload)
        key = id(order), policy.tolerations, tuple(policy.require_labels.items()), placement_key(shape)
        choice = self._choices.get(key)
        if choice is None:
            gpus: dict[GpuPlace, int] = {}
            for name in dict.fromkeys(candidate.cluster for candidate in order if candidate.limit != 0):
                described, seen = self._inputs.desired.clusters.get(name), self._inputs.observed.clusters.get(name)
                if described is not None and seen is not None and _admits(described, policy, shape):
                    gpus.update({(name, model): number for model, number in _gpus_on(seen, shape).items()})
            choice = GpuChoice(gpus, frozenset(gpus), sum(gpus.values()))
            self._choices[key] = choice
        return choice


def _admits(cluster: Cluster, policy: BurstPolicy, shape: ReplicaShape) -> bool:
    """Tell whether labels and taints of a cluster let a policy's workload in."""
    return (
        policy.require_labels.items() <= cluster.labels.items()
        and untolerated_taint(policy.tolerations + shape.tolerations, cluster.taints) is None
    )


def _gpus_on(seen: ClusterObservation, shape: ReplicaShape) -> Mapping[str, int]:
    """Count by model the GPUs of a cluster's nodes that a shape can use when they are free."""
    cache, key = _GPUS.of(seen), placement_key(shape)
    if key not in cache:
        if len(cache) >= _MAX_SHAPES:
            cache.clear()
        models = Counter[str]()
        wanted = {*shape.requests.amounts}
        wanted |= {seen.extended_resources[name] for name in wanted & seen.extended_resources.keys()}
        for pool in seen.pools:
            for node in pool.nodes:
                if holds_when_empty(node, pool, shape):
                    for gpus in gpus_of_node(node, pool):
                        if shape.devices or gpus.resource in wanted:
                            models[gpus.model] += gpus.count or gpus.free
        cache[key] = {model: number for model, number in sorted(models.items()) if number}
    return cache[key]
