"""Parts of GPUs that only a scheduler or an extender of one can count: a pod with one is never a pod without a GPU.

Such a pod asks for a fraction, the memory or the cores of a GPU. Nodes tell a sum at most, and no label or resource
says what is left of each GPU, so that a replica of it fits nowhere. Slices that a device plugin gives out as a
resource, and kube-scheduler counts (MIG, time slices, MPS, partitions), are none of these: see
`reconciler.text.wording.is_gpu`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from reconciler.model.capacity import ReplicaShape
from reconciler.model.workload import Json
from reconciler.text.wording import is_gpu, sanitize


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSharer:
    """A component that hands out parts of GPUs, and by what pods ask it for them."""

    name: str
    source: str
    """Where its names stand: repository, version, file."""
    resources: tuple[str, ...] = ()
    """Resources of containers; `*` stands for any text, once in a name."""
    annotations: tuple[str, ...] = ()
    """Annotations of pods, likewise."""
    labels: tuple[str, ...] = ()
    """Labels of pods, likewise."""

    def hands_out(self, field: str, name: str) -> bool:
        """Return whether a name of a field is one by which pods ask for parts."""
        names: tuple[str, ...] = getattr(self, field)
        return any(_matches(pattern, name) for pattern in names)


SHARERS = (
    GpuSharer(
        name="KAI or Run:ai",
        source="kai-scheduler/KAI-Scheduler 00cf2ba and its later versions, pkg/common/constants/constants.go",
        annotations=(
            "gpu-fraction", "gpu-fraction.limit", "gpu-fraction-num-devices", "gpu-fraction-container-name",
            "gpu-memory", "gpu-memory.limit", "gpu-sm-cores", "gpu-sm-percentage",
            "run.ai/gpu-*", "runai/gpu-*", "kai.scheduler/gpu-*",
            "nvidia.com/container.*.request", "nvidia.com/container.*.limit", "nvidia.com/container.*.mode",
            "kai.scheduler/container.*.limit",
        ),
    ),
    GpuSharer(
        name="HAMi",
        source="Project-HAMi/HAMi 00160eb, charts/hami/templates/scheduler/device-configmap.yaml; pkg/device/nvidia",
        resources=(
            "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores",
            "amd.com/gpumem", "amd.com/gpucores", "mthreads.com/vgpu", "mthreads.com/sgpu-*",
            "metax-tech.com/sgpu", "metax-tech.com/vcore", "metax-tech.com/vmemory",
            "iluvatar.ai/*vgpu", "iluvatar.ai/*.vMem", "iluvatar.ai/*.vCore", "iluvatar.ai/vcuda-*",
        ),
        annotations=(
            "nvidia.com/use-gputype", "nvidia.com/nouse-gputype", "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid",
            "nvidia.com/vgpu-mode",
        ),
    ),
    GpuSharer(
        name="Volcano's vGPU plugin",
        source="Project-HAMi/volcano-vgpu-device-plugin 4224186, doc/config; volcano-sh/devices, pkg/plugin/nvidia",
        resources=("volcano.sh/vgpu-*", "volcano.sh/gpu-memory", "volcano.sh/gpu-number"),
    ),
    GpuSharer(
        name="Alibaba Cloud's gpushare",
        source="kubeflow/arena 4890f5b, pkg/apis/types/gpunode.go",
        resources=("aliyun.com/gpu-mem", "aliyun.com/gpu-core.*", "aliyun.com/gpu-count"),
    ),
    GpuSharer(
        name="Koordinator",
        source="koordinator-sh/koordinator 0cbedd6, apis/extension/device_share.go",
        resources=("koordinator.sh/gpu*",),
    ),
    GpuSharer(
        name="Tencent's GPU manager or qGPU",
        source="tkestack/gpu-manager b0770c7, pkg/types/types.go; TKE's documentation of qGPU",
        resources=("tencent.com/vcuda-*", "tke.cloud.tencent.com/qgpu-*"),
    ),
    GpuSharer(
        name="Intel's GPU Aware Scheduling",
        source="intel/platform-aware-scheduling 152d777, the usage page of gpu-aware-scheduling",
        resources=("gpu.intel.com/millicores", "gpu.intel.com/memory.max", "gpu.intel.com/tiles"),
    ),
    GpuSharer(
        name="TensorFusion",
        source="NexusGPU/tensor-fusion 01b4669, pkg/constants/constants.go",
        annotations=(
            "tensor-fusion.ai/vram-*", "tensor-fusion.ai/tflops-*", "tensor-fusion.ai/workload-profile",
            "tensor-fusion.ai/gpu-count",
        ),
        labels=("tensor-fusion.ai/enabled",),
    ),
)  # fmt: skip # lists of words, filled line by line
"""The components; the first that a name is of holds."""

_AMOUNT = re.compile(r"(?:gpu|cuda)[-_.]?(?:mem|vram|core|percent|ratio|frac|share|tflops|milli)")
"""A part of the names by which resources of yet another scheduler state an amount of a GPU."""

_ASKS_FOR_PART = "asks for a part of a GPU"

WHOLE_GPUS_REMEDY = (
    "ask for whole GPUs, or for slices that are resources of nodes (MIG, time slices); the gprDetails of a request"
    " count in place of its pods"
)
"""The way out for such a pod."""


def gpu_part_obstacle(requests: Iterable[str], metadata: Json = None) -> str:
    """Return why a pod that asks for a part of a GPU cannot be counted; empty for any other.

    `requests` are the names of the resources that it requests, `metadata` has its annotations and labels.
    """
    for name in requests:
        if "/" in name and not is_gpu(name):
            sharer = _sharer("resources", name) or ("another scheduler" if _AMOUNT.search(name) else "")
            if sharer:
                return _obstacle(name, sharer)
    for field in ("annotations", "labels"):
        entries: Json = (metadata or {}).get(field)
        for name, value in entries.items() if isinstance(entries, Mapping) else ():
            sharer = _sharer(field, name)
            if sharer and value != "false":
                return _obstacle(name, sharer)
    return ""


def shares_gpu(shape: ReplicaShape) -> bool:
    """Return whether pods of a shape ask for a part of a GPU that only another scheduler counts."""
    return shape.obstacle.startswith(_ASKS_FOR_PART)


@lru_cache(maxsize=4096)
def _sharer(field: str, name: str) -> str:
    """Name the component that a pod asks by this name; empty for none. Thousands of pods have the same names."""
    return next((sharer.name for sharer in SHARERS if sharer.hands_out(field, name)), "")


def _matches(pattern: str, name: str) -> bool:
    head, star, tail = pattern.partition("*")
    if not star:
        return name == pattern
    return name.startswith(head) and name.endswith(tail) and len(name) >= len(head) + len(tail)


def _obstacle(name: str, sharer: str) -> str:
    return f"{_ASKS_FOR_PART} ({sanitize(name, 80)}), which only {sharer} can count"
