"""Short ways to say which GPU nodes a cluster has."""

from __future__ import annotations

from datetime import datetime

from reconciler.model.capacity import ClusterObservation, Node, Pool
from reconciler.model.ids import ClusterName
from tests.builders.inputs import NOW, gpus

H100 = "NVIDIA-H100-80GB-HBM3"
L40S = "NVIDIA-L40S"


def h100(**more: str) -> dict[str, str]:
    return {"nvidia.com/gpu.product": H100, "nvidia.com/gpu.memory": "81559", **more}


def nodes(*free: int, of: int = 8, labels: dict[str, str] | None = None, prefix: str = "gpu") -> Pool:
    """Make a pool of nodes that have so many GPUs each, and so many of them free."""
    made = (Node(name=f"{prefix}-{index}", free=gpus(left), allocatable=gpus(of)) for index, left in enumerate(free))
    return Pool(name=prefix, nodes=tuple(made), labels=h100() if labels is None else labels)


def cluster_of(*pools: Pool, name: str = "worker-2", at: datetime = NOW, **fields: object) -> ClusterObservation:
    return ClusterObservation(cluster=ClusterName(name), observed_at=at, pools=pools, **fields)
