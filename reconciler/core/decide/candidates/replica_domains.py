"""Topology domains of workloads whose replicas go whole to one cluster and are no gang: of a Job, of a StatefulSet.

Other replicas that need a domain together are those of a gang (`gang_placement`).
"""

from __future__ import annotations

from reconciler.core.capacity.gangs import whole_domains
from reconciler.core.capacity.shared_topology import DomainShortage, SharedDomain
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import WorkloadId


def replica_domains(
    inputs: PassInput, workload: WorkloadId, shape: ReplicaShape, replicas: int
) -> tuple[SharedDomain, ...] | DomainShortage:
    """Return the domains that the replicas of a workload share, or what of them cannot be counted.

    They are none where it asks for none, or has left the fleet repository. A policy asks for one of what runs once: the
    pods of other workloads without groups are scheduled one by one.
    """
    desired = inputs.desired
    template = desired.templates.get(workload)
    if template is None:
        return ()
    policy = desired.policies.get(workload) if template.runs_once else None
    domain = policy.required_domain if policy is not None else ""
    if not template.shares_domain and not domain:
        return ()
    return whole_domains(template.spec, shape, replicas, desired.kinds, domain)


def countable_domains(
    inputs: PassInput, workload: WorkloadId, shape: ReplicaShape, replicas: int
) -> tuple[SharedDomain, ...]:
    """Return the domains that the replicas of a workload share; none where some of them cannot be counted."""
    domains = replica_domains(inputs, workload, shape, replicas)
    return () if isinstance(domains, DomainShortage) else domains
