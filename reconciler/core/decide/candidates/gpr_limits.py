"""The GPUs of one GPR, and their limits on a cluster by the policy of its workspace: GPUs, the memory of each, models.

Files and calls are checked when they are admitted, as far as they name GPUs and clusters. This is the check of
placements that are about to begin: of bursts, and of requests on clusters that they do not name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.capacity.gpu_requests import may_have_gpus, missing_gpus
from reconciler.core.capacity.pod_requirements import (
    ManifestPods,
    PodRequirements,
    pods_of_request,
    request_requirements,
)
from reconciler.core.decide.candidates.gpr_terms import gpr_template, request_of, stated_gpus
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import gang_of
from reconciler.core.fleet.admission import check_gpu_ask
from reconciler.core.pods.node_affinity import required_labels
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.gpr import GpuAsk, GpuLimits
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.plan import Reason, Refusal
from reconciler.model.request import Request
from reconciler.text.wording import models_in_selector

_FIELDS = {"numberOfGPUs": "maxGPUPerGpr", "memoryPerGpu": "maxMemoryPerGpr", "gpuShape": "gpuShapes"}
"""The limit of a WorkspacePolicy that bounds each field of a GPR."""


def beyond_limits(
    inputs: PassInput, workload: WorkloadId, cluster: ClusterName, shape: ReplicaShape | None, replicas: int
) -> Refusal | None:
    """Refuse a cluster without the GPUs of the GPRTemplate, or where one GPR may not have so many replicas."""
    other_gpus = _other_gpus(inputs, workload, cluster, shape)
    if other_gpus is not None:
        return other_gpus
    if workload.workspace not in inputs.desired.limits:
        return None
    ask = gpr_needs(inputs, workload, cluster, shape, replicas)
    for limits, where, field in _limits(inputs, workload, cluster):
        for finding in check_gpu_ask(ask, limits, where):
            named = _FIELDS[str(finding.loc[0])]
            change = f"add it to {named}" if named == "gpuShapes" else f"raise {named}"
            return Refusal(
                cluster=cluster,
                reason=Reason.GPR_LIMIT,
                message=finding.message,
                remedy=f"{change} in spec.{field} of its WorkspacePolicy",
            )
    return None


def _other_gpus(
    inputs: PassInput, workload: WorkloadId, cluster: ClusterName, shape: ReplicaShape | None
) -> Refusal | None:
    """Refuse a cluster of which the labels of all GPU nodes contradict the GPRTemplate of a workload there."""
    seen, stated = inputs.observed.clusters.get(cluster), stated_gpus(workload, inputs)
    if seen is None or shape is None or not gpus_of_pod(shape) or stated is not None:
        return None
    template = gpr_template(workload, cluster, inputs)
    if template is None or may_have_gpus(template.ask, seen):
        return None
    return Refusal(
        cluster=cluster,
        reason=Reason.LABELS,
        message=f"GPRTemplate {template.name}: {missing_gpus(template.ask, seen)}",
        remedy="correct gpuShape, instanceType and memoryPerGpu of the GPRTemplate, or add such nodes there",
    )


def within_limits(inputs: PassInput, workload: WorkloadId, candidate: Candidate, shape: ReplicaShape) -> Candidate:
    """Lower the limit of a candidate to the replicas that one GPR may have there, of a workload that may have part."""
    if workload.workspace not in inputs.desired.limits:
        return candidate
    gpus = gpus_of_pod(shape) * shape.group_size
    if not gpus:
        return candidate
    allowed = [limits.gpus // gpus for limits, _, _ in _limits(inputs, workload, candidate.cluster) if limits.gpus]
    own = [] if candidate.limit is None else [candidate.limit]
    return candidate._replace(limit=min([*own, *allowed], default=None))


def _limits(inputs: PassInput, workload: WorkloadId, cluster: ClusterName) -> Iterator[tuple[GpuLimits, str, str]]:
    """Yield the limits of a workload on a cluster, each with its scope in words and its WorkspacePolicy field."""
    limits = inputs.desired.limits.get(workload.workspace)
    if limits is None:
        return
    where = f"in workspace {limits.workspace}"
    yield limits.limits, where, "globalGPUConstraints"
    if cluster in limits.by_cluster:
        yield limits.by_cluster[cluster], f"on {cluster} {where}", "clusterGPUConstraints"


def gpr_needs(
    inputs: PassInput, workload: WorkloadId, cluster: ClusterName | None, shape: ReplicaShape | None, replicas: int
) -> GpuAsk:
    """Return the GPUs that one GPR takes for replicas of a shape; each pod counts as a node.

    Without a shape, as before the first placement, a request takes the GPUs of its manifests, and a burst none.
    Where its pods need different numbers of GPUs, as a leader and its workers may, it is so many nodes with the most of
    them as hold all.
    """
    request, stated = request_of(workload, inputs), stated_gpus(workload, inputs)
    if stated is not None:
        return stated
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
    entry = inputs.enrolment.entries.get(request.workload)
    return entry.pods if entry is not None else pods_of_request(request, inputs.desired.kinds)
