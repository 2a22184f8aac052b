"""The capacity axis of requests, bursts and GPRs: EGS's provisioningStatus (docs/background/concepts.md).

Successful means that every replica has a node, wherever it is told. EGS has two axes that are never mixed: this one and
the phase of the workload.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.workloads import replica_count
from reconciler.model.placement import Placement
from reconciler.model.request import Provisioning, RequestRecord


def is_provisioned(placement: Placement, inputs: PassInput) -> bool:
    """Return whether all replicas of a placement have a node, or had one by its engine's word and no queue took it."""
    seen = inputs.observed.clusters.get(placement.cluster)
    evicted = seen is not None and placement.name in seen.unadmitted
    return (inputs.rollouts.has_arrived(placement) and not evicted) or (
        seen is not None and replica_count.bound_replicas(placement, seen) >= placement.replicas
    )


def provisioning_of_burst(placement: Placement, inputs: PassInput) -> Provisioning:
    """Return the provisioning of a burst: Pending until all of its replicas have a node."""
    return Provisioning.SUCCESSFUL if is_provisioned(placement, inputs) else Provisioning.PENDING


def provisioning_of_request(
    record: RequestRecord, placements: Sequence[Placement], inputs: PassInput, *, wanted: int, held: bool
) -> Provisioning:
    """Return the provisioning of a request that wants so many placements; `held` says that a pass holds some back."""
    # 1. The request has ended.
    if record.ended is not None:
        return record.ended.status
    # 2. A reservation has its GPUs.
    if record.cluster is not None:
        return Provisioning.SUCCESSFUL
    # 3. All of its placements stand, and all of their replicas have a node.
    complete = bool(placements) and len(placements) >= wanted
    if complete and all(is_provisioned(placement, inputs) for placement in placements):
        return Provisioning.SUCCESSFUL
    # 4. Some of it waits for room, or for a GPR.
    if held and not complete:
        return Provisioning.QUEUED
    # 5. Its pass, or its nodes, are still to come.
    return Provisioning.PENDING
