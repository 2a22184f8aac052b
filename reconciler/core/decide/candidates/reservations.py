"""Reservations: the room that they keep free in a cluster until their own workspace uses it.

All placements of the workspace there count as users, on whatever nodes. Pods that the workspace runs there without
Overspill cannot be told from those of others, and do not count.

Also counts the topology domains that gangs in flight may still take: a bound pod shows its group and domain by labels,
a pod without a node may go to any domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.exclusive_topology import TopologyDomains
from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.capacity.gpu_requests import gpu_shapes
from reconciler.core.capacity.pod_requirements import PodRequirements
from reconciler.core.decide.state.enrolment import request_end
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.model.capacity import ClusterObservation
from reconciler.model.gpr import GpuAsk
from reconciler.model.ids import ClusterName, PlacementName, WorkspaceName
from reconciler.model.placement import PLACEMENT_LABEL, Placement
from reconciler.model.request import RequestRecord


def bound_pods_by_group(seen: ClusterObservation, wanted: TopologyDomains) -> Mapping[PlacementName, Counter[str]]:
    """Count the pods with a node that have the mark of some domains: of each placement, by their groups."""
    groups: dict[PlacementName, Counter[str]] = {}
    nodes = [node.pods for pool in seen.pools for node in pool.nodes] + [node.pods for node in seen.closed]
    for pod in (pod for pods in nodes for pod in pods or () if not pod.leaving):
        labels = dict(pod.labels)
        if wanted.mark in labels and PLACEMENT_LABEL in labels:
            groups.setdefault(PlacementName(labels[PLACEMENT_LABEL]), Counter())[labels[wanted.mark]] += 1
    return groups


def pending_domains(needed: PodRequirements, wanted: TopologyDomains, seen: Counter[str]) -> int:
    """Count the domains at the most that a placement may take with the pods that are not seen to have a node."""
    loose = needed.marked.get(wanted.mark, 0)
    alike = [domains for domains in needed.domains if domains.mark == wanted.mark]
    pods = sum(_pods(domains) for domains in alike) + loose
    most = sum(len(domains.units) if domains.key == wanted.key else _pods(domains) for domains in alike) + loose
    return max(0, min(pods - seen.total(), most - len(seen)))


def _pods(domains: TopologyDomains) -> int:
    return sum(number for unit in domains.units for _, number in unit.pods)


def active_reservations(inputs: PassInput, working_plan: WorkingPlan) -> Iterator[RequestRecord]:
    """Yield the reservations that have their GPUs and are not over, by name."""
    for workload in inputs.enrolment.reservations:
        record = working_plan.requests.get(workload)
        if record is None or record.cluster is None or record.ended is not None:
            continue
        end = request_end(record, inputs.desired)
        if end is None or end > inputs.now:
            yield record


class Reservations:
    """The reservations that have their GPUs, by cluster and by workspace."""

    def __init__(self, records: Iterable[RequestRecord]) -> None:
        """Sort the reservations."""
        self.on: dict[ClusterName | None, list[RequestRecord]] = {}
        self.of: dict[WorkspaceName, list[RequestRecord]] = {}
        for record in records:
            self.on.setdefault(record.cluster, []).append(record)
            self.of.setdefault(record.request.workspace, []).append(record)


def subtract_reservations(
    room: ClusterCapacity, records: Iterable[RequestRecord], placements: Iterable[Placement], seen: ClusterObservation
) -> None:
    """Take the unused part of reservations off the capacity of their cluster; `placements` are all placements there."""
    for record, used in gpus_used(records, placements):
        ask = record.request.ask
        for part in _left(ask, ask.gpus * ask.nodes - used) if ask is not None else ():
            _take(room, part, seen, dedicated=record.request.terms.dedicated)


def gpus_used(records: Iterable[RequestRecord], placements: Iterable[Placement]) -> Iterator[tuple[RequestRecord, int]]:
    """Pair reservations with the GPUs that their workspaces use of them, the youngest first.

    What was there before a reservation has room of its own and uses none of it.
    """
    left = [
        (placement, placement.replicas * placement.shape.group_size * gpus_of_pod(placement.shape))
        for placement in placements
    ]
    for record in sorted(records, key=lambda record: record.began_at or record.received_at, reverse=True):
        most, used = 0 if record.request.ask is None else record.request.ask.gpus * record.request.ask.nodes, 0
        for index, (placement, gpus) in enumerate(left):
            if gpus and _may_use(placement, record):
                taken = min(gpus, most - used)
                left[index], used = (placement, gpus - taken), used + taken
        yield record, used


def _may_use(placement: Placement, record: RequestRecord) -> bool:
    return (
        (placement.cluster, placement.workload.workspace) == (record.cluster, record.request.workspace)
        and record.began_at is not None
        and record.began_at < placement.created_at
    )


def _left(ask: GpuAsk, gpus: int) -> Iterator[GpuAsk]:
    """Divide GPUs that are left of an ask into whole nodes of it and a rest."""
    nodes, rest = divmod(gpus, ask.gpus)
    if nodes:
        yield replace(ask, nodes=nodes)
    if rest:
        yield replace(ask, gpus=rest, nodes=1)


def _take(room: ClusterCapacity, ask: GpuAsk, seen: ClusterObservation, *, dedicated: bool) -> None:
    """Take the room of an ask, as much of it as there is: nodes may have been lost since."""
    options = gpu_shapes(ask, seen, dedicated=dedicated)
    fitting = (option for option in options if room.count(option, 1))
    best = next(fitting, options[0] if options else None)
    if best is not None:
        room.reserve(best, 1)
