"""Topology: clusters that hold a group of pods in one topology domain come before those that would divide it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from reconciler.core.capacity.shared_topology import SharedDomain, largest_domain, shared_domains
from reconciler.core.decide.candidates.scorers.scorer import ALIKE, Points, Subject
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.model.candidate import Candidate
from reconciler.model.demand import Demand
from reconciler.model.score import BEST
from reconciler.text.wording import count, sanitize


class Topology:
    """Scores a cluster by the part of a group that its largest domain holds, by the node label of the policy.

    All clusters score alike for pods that are no group, and for a group whose pods are unknown.
    """

    follows_plan = True
    weighs_delay = False

    def points(self, subject: Subject, candidates: Sequence[Candidate]) -> Sequence[Points]:
        """Score candidates by their free capacity, less what this pass has handed out."""
        capacity, group = subject.capacity, _group(subject)
        if capacity is None or group is None:
            return [ALIKE] * len(candidates)
        points = []
        for candidate in candidates:
            seen = candidate.cluster in subject.inputs.observed.clusters
            room = capacity.room(candidate.cluster, subject.workload.workspace) if seen else None
            largest = None if room is None else largest_domain(room, group)
            if largest is None:
                points.append(Points(0.0))
                continue
            domain, holds, _ = largest
            part = f"{holds} of {count(group.size, 'pod')} in one domain of {sanitize(group.key)}, {sanitize(domain)}"
            points.append(Points(BEST * holds / group.size, part))
        return points

    def key(self, subject: Subject) -> Hashable:
        """Score workloads alike that have the same group, until room is handed out."""
        group = _group(subject)
        if subject.capacity is None or group is None:
            return None
        moment = subject.working_plan.position, subject.capacity.changes, subject.capacity.is_grown
        return group.likeness, subject.workload.workspace, moment


def _group(subject: Subject) -> SharedDomain | None:
    """Return the largest group of the missing replicas; None where they are scheduled one by one, or unknown."""
    inputs, workload = subject.inputs, subject.workload
    topology = inputs.desired.policies[workload].topology
    demand = inputs.demands.get(workload)
    missing = max(1, demand.missing) if isinstance(demand, Demand) else 1
    if topology is None:
        return None
    unit = unit_of_workload(inputs, workload)
    if unit.gang is not None:
        groups = () if unit.gang.unknown else tuple(gang.pods for gang in unit.gang.gangs(missing))
    else:
        groups = (((subject.shape, missing),),) if unit.once and subject.shape is not None else ()
    domains = [domain for pods in groups for domain in shared_domains(topology.key, pods, 1)]
    return max(domains, key=lambda domain: domain.size, default=None)
