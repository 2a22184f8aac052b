"""Short ways to say that a set of groups is short of pods on its primary."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from reconciler.core.capacity.gangs import shares_domain
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.model.capacity import ClusterObservation, Node, Pool, ReplicaShape
from reconciler.model.placement import Placement
from reconciler.model.policy import BurstPolicy, Desired
from reconciler.model.units import ONE, Quantity, Resources, total
from reconciler.model.workload import Json, ManifestResource, WorkloadTemplate
from tests.builders.inputs import NOW, VLLM, desired, free, gpus, ordering, placement, seconds, shape, short, template
from tests.builders.workload_kinds import lws

SET = lws("{{ replicas }}", 4)
"""A LeaderWorkerSet of as many groups as a placement has replicas, each of four pods with eight GPUs."""


def grouped(*objects: Json, reads_replicas: bool = True) -> WorkloadTemplate:
    """Make a template of objects that go whole."""
    made = template()
    resources = tuple(ManifestResource(name=f"part-{index}", manifest=one) for index, one in enumerate(objects))
    step = made.spec.steps[0]
    steps = tuple(replace(step, name=one.name) for one in resources)
    spec = replace(made.spec, manifests=resources, steps=steps)
    made = replace(made, spec=spec, uses_replicas=reads_replicas)
    return replace(made, shares_domain=shares_domain(made, NO_KINDS))


def fleet(*objects: Json, policy: BurstPolicy | None = None, reads_replicas: bool = True, **fields: object) -> Desired:
    made = desired(policy or ordering("worker-2", "worker-3"), **fields)
    return replace(made, templates={VLLM: grouped(*objects, reads_replicas=reads_replicas)})


def lacks(pods: int, *, running: int = 8, at: datetime = NOW, **fields: object) -> ClusterObservation:
    """Observe the full primary, where so many pods of the set find no node."""
    return short(pods, running=running, replica=shape(8), at=at, **fields)


def roomy(name: str, *nodes: int, **fields: object) -> ClusterObservation:
    """Observe a cluster whose nodes have so many free GPUs each, and CPUs."""
    made = tuple(
        Node(name=f"node-{index}", free=total([gpus(count), Resources(amounts={"cpu": Quantity(64 * ONE)})]))
        for index, count in enumerate(nodes)
    )
    return replace(free(name, **fields), pools=(Pool(name="gpu", nodes=made),))


def group(size: int = 4, each: int = 8) -> ReplicaShape:
    return shape(each, group_size=size)


def burst(name: str = "worker-2", groups: int = 1, *, size: int = 4, each: int = 8, **fields: object) -> Placement:
    return placement(name, groups, shape=group(size, each), created=NOW - seconds(300), **fields)
