"""The GPUs of a GPR: those of the request, else those of its pods, with the GPRTemplate for unset fields."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.capacity.gpu_requests import may_have_gpus
from reconciler.core.capacity.pod_requirements import (
    ManifestPods,
    PodRequirements,
    pods_of_request,
    request_requirements,
)
from reconciler.core.decide.candidates.gpr_terms import gpr_template, request_of
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import gang_of
from reconciler.core.pods.node_affinity import required_labels
from reconciler.model.capacity import ReplicaShape
from reconciler.model.gpr import GpuAsk
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.request import Request
from reconciler.text.wording import models_in_selector


def gpr_needs(
    inputs: PassInput, workload: WorkloadId, cluster: ClusterName | None, shape: ReplicaShape | None, replicas: int
) -> GpuAsk:
    """Return the GPUs that one GPR takes for replicas of a shape; each pod counts as a node.

    Without a shape, as before the first placement, a request takes the GPUs of its manifests, and a burst none.
    Where its pods need different numbers of GPUs, as a leader and its workers may, it is so many nodes with the most of
    them as hold all.
    """
    request = request_of(workload, inputs)
    if request is not None and request.ask is not None:
        return request.ask
    needed = (
        request_requirements(request, pods=_pods(request, inputs))
        if request is not None
        else _whole(workload, inputs, replicas)
    )
    if needed is not None and (shape is None or request is None):
        shape, replicas = needed.main.shape, needed.main.replicas
    if shape is None:
        return GpuAsk(gpus=0, nodes=0)
    gpus, nodes = gpus_of_pod(shape), replicas * shape.group_size
    beside = [(gpus_of_pod(part.shape), part.replicas) for part in needed.others] if needed is not None else []
    if any(each for each, _ in beside):
        together = gpus * nodes + sum(each * pods for each, pods in beside)
        gpus = max(gpus, *(each for each, _ in beside))
        nodes = -(-together // gpus)
    template = gpr_template(workload, cluster, inputs) if cluster else None
    seen = inputs.observed.clusters.get(cluster) if cluster else None
    usual = template.ask if template else GpuAsk(gpus=gpus)
    if seen is not None and not may_have_gpus(usual, seen):
        usual = GpuAsk(gpus=gpus)  # the labels of the nodes contradict the GPRTemplate
    named = ", ".join(models_in_selector(required_labels(shape)))
    return replace(usual, gpus=gpus, nodes=nodes, shape=named or usual.shape)


def _whole(workload: WorkloadId, inputs: PassInput, replicas: int) -> PodRequirements | None:
    """Return the GPUs of a burst whose replicas are gangs."""
    gang = gang_of(inputs, workload) if replicas else None
    return gang.of(replicas) if gang is not None and not gang.unknown else None


def _pods(request: Request, inputs: PassInput) -> ManifestPods:
    """Return the pods of a request, which its enrolment knows while it is open."""
    entry = inputs.enrolment.entries.get(request.workload) if inputs.enrolment is not None else None
    return entry.pods if entry is not None else pods_of_request(request, inputs.desired.kinds)
