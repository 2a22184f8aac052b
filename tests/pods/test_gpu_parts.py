"""Parts of GPUs that only another scheduler counts: such a pod fits nowhere, and never counts as one without a GPU."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.pod_requirements import pods_of_request
from reconciler.core.observe import observation_file
from reconciler.core.pods.gpu_parts import WHOLE_GPUS_REMEDY, gpu_part_obstacle, shares_gpu
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.core.workloads.pods import pod_labels_path, pod_template_sites
from reconciler.model.capacity import ClusterObservation, Node, Pool
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_kind import Path
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import Json
from reconciler.text.wording import is_gpu
from tests.builders.inputs import NOW, free
from tests.builders.platform_objects import deployment
from tests.builders.requests import manifests, request
from tests.stories.test_replicas_agree import SAMPLES

ANNOTATED = {
    "KAI or Run:ai": (
        "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices", "gpu-fraction.limit", "gpu-memory.limit",
        "gpu-sm-percentage", "gpu-sm-cores", "run.ai/gpu-fraction", "runai/gpu-memory",
        "nvidia.com/container.server.gpu-memory.request", "kai.scheduler/container.server.gpu-memory.portion.limit",
    ),
    "HAMi": ("nvidia.com/use-gputype", "nvidia.com/nouse-gputype", "nvidia.com/use-gpuuuid", "nvidia.com/vgpu-mode"),
    "TensorFusion": ("tensor-fusion.ai/vram-request", "tensor-fusion.ai/tflops-limit"),
}  # fmt: skip # a list of words, filled line by line
REQUESTED = {
    "HAMi": (
        "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores", "amd.com/gpumem",
        "mthreads.com/sgpu-memory", "metax-tech.com/sgpu", "iluvatar.ai/BI-V150.vMem", "iluvatar.ai/MR-V100-vgpu",
    ),
    "Volcano's vGPU plugin": (
        "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage",
        "volcano.sh/vgpu-cores", "volcano.sh/gpu-memory",
    ),
    "Alibaba Cloud's gpushare": ("aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "aliyun.com/gpu-count"),
    "Koordinator": (
        "koordinator.sh/gpu", "koordinator.sh/gpu.shared", "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory",
        "koordinator.sh/gpu-memory-ratio",
    ),
    "Tencent's GPU manager or qGPU": ("tencent.com/vcuda-core", "tke.cloud.tencent.com/qgpu-memory"),
    "Intel's GPU Aware Scheduling": ("gpu.intel.com/millicores", "gpu.intel.com/memory.max", "gpu.intel.com/tiles"),
    "another scheduler": ("vke.volcengine.com/mgpu-core", "elasticgpu.io/gpu-memory", "example.com/gpu-share"),
}  # fmt: skip # a list of words, filled line by line
ANNOTATIONS = [(sharer, name) for sharer, names in ANNOTATED.items() for name in names]
RESOURCES = [(sharer, name) for sharer, names in REQUESTED.items() for name in names]
NO_PARTS = (
    "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "amd.com/gpu", "amd.com/cpx_nps4",
    "gpu.intel.com/i915", "gpu.intel.com/xe", "gpu.intel.com/xe_monitoring", "cpu", "memory", "ephemeral-storage",
    "rdma/hca_shared_devices_a", "nvidia.com/rdma_rail_0", "google.com/tpu", "aws.amazon.com/neuroncore",
)  # fmt: skip # a list of words, filled line by line


def pod(**resources: str) -> Json:
    return {"containers": [{"name": "server", "resources": {"limits": resources}}]}


def having(resource: str, amount: int) -> ClusterObservation:
    """Observe a cluster with one node that has as much of a resource free, and 8 GPUs."""
    amounts = {resource: Quantity(amount * ONE), "nvidia.com/gpu": Quantity(8 * ONE)}
    pool = Pool(name="gpu", nodes=(Node(name="node-0", free=Resources(amounts=amounts)),))
    return ClusterObservation(cluster=ClusterName("worker-2"), observed_at=NOW, pools=(pool,))


def words(name: str, sharer: str) -> str:
    return f"asks for a part of a GPU ({name}), which only {sharer} can count"


@pytest.mark.parametrize(("sharer", "name"), ANNOTATIONS)
def test_a_pod_annotated_with_a_part_of_a_gpu_fits_nowhere(sharer: str, name: str) -> None:
    shape = replica_shape(pod(cpu="1"), {"annotations": {"a": "b", name: "0.5"}, "namespace": "llm"})
    room = ClusterCapacity(free("worker-2", 8))
    assert (room.count(shape, 1), room.shortfall(shape), room.remedy(shape)) == (
        0,
        words(name, sharer),
        WHOLE_GPUS_REMEDY,
    )


@pytest.mark.parametrize(("sharer", "name"), RESOURCES)
def test_a_pod_that_requests_a_part_of_a_gpu_fits_nowhere(sharer: str, name: str) -> None:
    whole = {"nvidia.com/gpu": "1"} if sharer == "HAMi" else {}
    shape = replica_shape(pod(**whole, **{name: "2"}))
    room = ClusterCapacity(having(name, 800))
    assert (room.count(shape, 1), room.shortfall(shape)) == (0, words(name, sharer))
    assert not is_gpu(name), "not to be counted as GPUs in inventory and cost"


def test_a_label_asks_for_a_part_unless_it_is_false() -> None:
    for value, told in (("true", words("tensor-fusion.ai/enabled", "TensorFusion")), ("false", "")):
        assert gpu_part_obstacle((), {"labels": {"tensor-fusion.ai/enabled": value}}) == told


@pytest.mark.parametrize("name", NO_PARTS)
def test_what_a_device_plugin_gives_out_is_no_such_part(name: str) -> None:
    assert gpu_part_obstacle([name], {"annotations": {"vllm.ai/gpu-memory-utilization": "0.9"}, "labels": None}) == ""


def labels_paths(kind: str) -> list[Path]:
    manifest = SAMPLES[kind]
    return list(filter(None, (pod_labels_path(manifest, site) for site in pod_template_sites(manifest))))


TEMPLATED = sorted(name for name, kind in BUILT_IN.items() if kind.counted and labels_paths(name))


@pytest.mark.parametrize("kind", TEMPLATED)
def test_the_pod_templates_of_every_kind_are_read_for_parts(kind: str) -> None:
    """Annotate each template of an object in turn, where its kind has the metadata of its pods."""
    for *place, _ in labels_paths(kind):
        made: Any = deepcopy(SAMPLES[kind])
        for role in made["spec"].get("roles", ()) if kind.endswith("DisaggregatedSet") else ():
            role["spec"]["leaderWorkerTemplate"]["size"] = 2  # so that its second template makes pods
        holder = made
        for step in place:
            holder = holder[int(step)] if isinstance(holder, list) else holder.setdefault(step, {})
        holder.setdefault("annotations", {})["gpu-fraction"] = "0.5"
        parts = pods_of_request(request(spec=manifests(made))).parts
        assert any(shares_gpu(part.shape) for part in parts), place


def test_the_annotation_of_an_object_counts_for_its_pods() -> None:
    made = deployment(replicas=1, metadata={"annotations": {"gpu-fraction": "0.5"}})
    (part,) = pods_of_request(request(spec=manifests(made))).parts
    assert part.shape.obstacle == words("gpu-fraction", "KAI or Run:ai")


def test_an_observation_file_states_parts_as_well() -> None:
    text = """
    {"apiVersion": "overspill.dev/v1alpha1", "kind": "Observation", "cluster": "worker-1",
     "observedAt": "2026-11-20T10:00:00Z", "healthy": true, "workloads": [
       {"kind": "Deployment", "namespace": "llm", "name": "vllm", "wanted": 2, "running": 0,
        "replica": {"requests": {"cpu": 1, "volcano.sh/vgpu-memory": 3000}}}]}
    """
    (seen,) = observation_file.read(text.encode(), "worker-1.json")
    assert seen.cluster == ClusterName("worker-1")
    assert seen.workloads[0].shape.obstacle == words("volcano.sh/vgpu-memory", "Volcano's vGPU plugin")
