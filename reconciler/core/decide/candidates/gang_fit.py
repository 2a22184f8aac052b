"""Whether a cluster has room for all pods of a gang at once, with the topology domains that they need."""

from __future__ import annotations

from reconciler.core.capacity import exclusive_topology, remedies
from reconciler.core.capacity.best_fit import tightest_first
from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.gangs import GangWorkload
from reconciler.core.capacity.pod_requirements import PodRequirements
from reconciler.core.capacity.shared_topology import DomainShortage, assign_shared_domains
from reconciler.core.capacity.shortfall import ADD_NODES
from reconciler.core.decide.candidates.free_capacity import FleetCapacity
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.model.candidate import Candidate
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.plan import Reason, Refusal
from reconciler.text.wording import amounts, count, join_names

_MOST = 10**6
"""More pods than any cluster holds."""
_MANY = 1024
"""Pods that a taint is tried with, to see whether it keeps some from any domain."""


def count_gang_replicas(
    inputs: PassInput,
    capacity: FleetCapacity,
    workspace: WorkspaceName,
    candidate: Candidate,
    gang: GangWorkload,
    *,
    here: int,
) -> int | Refusal:
    """Count how many more replicas of a gang a cluster has room for beside those `here`, or say why it has none.

    Every replica has to fit with all of its pods. The count is exact where more replicas never fit better than fewer.
    """
    room = capacity.room(candidate.cluster, workspace)

    def refusal(more: int) -> Refusal | None:
        needed = gang.more(here, more)
        pods = room.count(needed.main.shape, needed.main.replicas) if needed.main.replicas else 0
        return gang_refusal(inputs, capacity, workspace, candidate._replace(room=pods), needed)

    first = refusal(1)
    if first is not None:
        return first
    main = gang.more(here, 1).main
    fits, beyond = 1, room.count(main.shape, _MOST) // max(1, main.replicas) + 1
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        fits, beyond = (fits, middle) if refusal(middle) is not None else (middle, beyond)
    return fits


def gang_refusal(
    inputs: PassInput, capacity: FleetCapacity, workspace: WorkspaceName, candidate: Candidate, need: PodRequirements
) -> Refusal | None:
    """Say why a cluster that has room for some pods of a gang has none for all of them; None where it has.

    The `room` of the candidate are the main pods that it would take, at most as many as the gang has.
    """
    name, main = candidate.cluster, need.main
    room, seen = capacity.room(name, workspace), inputs.observed.clusters[name]
    if candidate.room < main.replicas:
        each = join_names(amounts(main.shape.requests)) or "nothing"
        message = f"needs {each} for each of {count(main.replicas, 'pod')}, has room for {candidate.room}"
        refused = room.refused_pods(main.shape, main.replicas)
        message += "" if candidate.room else f": {room.shortfall(main.shape)}"
        message += f"; {refused.message}" if refused is not None and candidate.room else ""
        message += "" if refused is not None else capacity.describe_held(name, main.shape)
        remedy = remedies.remedy(room, seen, main.shape, main.replicas)
    else:
        parts = tightest_first(room, need.parts, lambda part: part.room[0])
        fitting = room.fitting_in_order(part.room for part in parts)
        if fitting == len(parts):
            return _without_domains(inputs, capacity, name, room, need) or _without_shared_domains(name, room, need)
        part, left = parts[fitting], room.copy()
        for before in parts[:fitting]:
            left.take(*before.room)
        pods = f"{count(part.replicas, 'pod')} with {join_names(amounts(part.shape.requests))}"
        message = room.shortfall(part.room[0]) if part.apart else f"has no room for {pods} beside the rest of it"
        refused = left.refused_pods(*part.room)
        message += f"; {refused.message}" if refused is not None else capacity.describe_held(name, part.room[0])
        remedy = refused.remedy if refused is not None else remedies.remedy(room, seen, *part.room)
    return Refusal(cluster=name, reason=Reason.NO_CAPACITY, message=message, remedy=remedy)


def _without_domains(
    inputs: PassInput, capacity: FleetCapacity, cluster: ClusterName, room: ClusterCapacity, need: PodRequirements
) -> Refusal | None:
    """Say why there are no topology domains for groups that want their own, beside the pods that want none."""
    if not need.domains:
        return None
    seen, left, message, remedy = inputs.observed.clusters[cluster], room, "", ADD_NODES
    nodes, taken = exclusive_topology.TOPOLOGY_NODES.of(seen), dict[str, list[tuple[str, str]]]()
    for wanted in need.domains:
        used, others = capacity.domains(cluster, wanted), need.marked.get(wanted.mark, 0)
        besides = taken.setdefault(wanted.mark, [])
        domains = exclusive_topology.assign_domains(left, nodes, wanted, used=used, loose=others, besides=besides)
        if isinstance(domains, str):
            message = domains
            remedy = remedies.remedy(left, seen, wanted.units[0].pods[0][0], _MANY) if wanted.units[0].pods else remedy
            break
        left = room.copy() if left is room else left  # answers about the room itself stay cached until then
        exclusive_topology.take_domains(left, domains, wanted.key)
        besides += [(wanted.key, value) for _, value in domains]
    loose = [
        (exclusive_topology.exclude_domains(part.shape, taken) if need.marked else part.shape, part.replicas)
        for part in need.loose
    ]
    if not message and left.fitting_in_order(loose) < len(loose):
        message = "has no room for the other pods beside the groups that want domains of their own"
    return Refusal(cluster=cluster, reason=Reason.NO_CAPACITY, message=message, remedy=remedy) if message else None


def _without_shared_domains(cluster: ClusterName, room: ClusterCapacity, need: PodRequirements) -> Refusal | None:
    """Say why there is no topology domain for pods that have to share one."""
    if not need.shared:
        return None
    if need.domains:
        message = (
            f"wants domains of {need.domains[0].key} for each {need.domains[0].called} alone, and one of"
            f" {need.shared[0].key} to share: both together cannot be counted"
        )
        return Refusal(cluster=cluster, reason=Reason.NO_CAPACITY, message=message, remedy="ask for one of them")
    answer = assign_shared_domains(room, need.shared, [part.room for part in need.parts])
    if not isinstance(answer, DomainShortage):
        return None
    return Refusal(cluster=cluster, reason=Reason.NO_CAPACITY, message=answer.message, remedy=answer.remedy)
