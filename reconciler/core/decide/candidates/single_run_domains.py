"""Topology domains of workloads that run once: their replicas go whole to one cluster, as the pods of a Job.

Other replicas that need a domain together are those of a gang (`gang_placement`).
"""

from __future__ import annotations

from reconciler.core.capacity.gangs import whole_domains
from reconciler.core.capacity.shared_topology import DomainShortage, SharedDomain
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import WorkloadId


def single_run_domains(
    inputs: PassInput, workload: WorkloadId, shape: ReplicaShape, replicas: int
) -> tuple[SharedDomain, ...] | DomainShortage:
    """Return the domains that the replicas of a workload share, or what of them cannot be counted.

    They are none where it asks for none, may run more than once, or has left the fleet repository.
    """
    desired, known = inputs.desired, inputs.reach.has_topology
    template = desired.templates.get(workload)
    if template is None or not template.runs_once:
        return ()
    domain = policy.required_domain if (policy := desired.policies.get(workload)) is not None else ""
    if (workload, replicas) not in known:
        known[workload, replicas] = whole_domains(template.spec, shape, replicas, desired.kinds) != ()
    if not known[workload, replicas] and not domain:
        return ()
    return whole_domains(template.spec, shape, replicas, desired.kinds, domain)


def countable_domains(
    inputs: PassInput, workload: WorkloadId, shape: ReplicaShape, replicas: int
) -> tuple[SharedDomain, ...]:
    """Return the domains that the replicas of a workload share; none where some of them cannot be counted."""
    domains = single_run_domains(inputs, workload, shape, replicas)
    return () if isinstance(domains, DomainShortage) else domains
