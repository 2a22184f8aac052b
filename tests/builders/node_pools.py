"""NodePools of Karpenter: as values, and as its API server has them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from reconciler.model.capacity import NodePool
from reconciler.model.cluster import NODE_POOL_LABEL, ScalableNodes
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.units import Resources, parse_quantity
from tests.builders.inputs import GPU

READY = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}


def amounts(**named: str) -> Resources:
    """Make amounts; ``gpu`` is the resource of GPUs."""
    return Resources(amounts={GPU if name == "gpu" else name: parse_quantity(text) for name, text in named.items()})


def pool(limits: Resources | None = None, used: Resources | None = None, **fields: Any) -> NodePool:
    return NodePool(limits=limits or Resources(), used=used or Resources(), **fields)


def declared(
    name: str = "gpu",
    most: int = 10,
    *,
    delay: int = 5,
    each: Resources | None = None,
    taints: tuple[Taint, ...] = (),
    **labels: str,
) -> ScalableNodes:
    """Declare nodes of a NodePool, of one GPU each."""
    return ScalableNodes(
        labels={NODE_POOL_LABEL: name, **labels},
        taints=taints,
        allocatable=each or amounts(gpu="1"),
        most=most,
        delay=timedelta(minutes=delay),
    )


def node_pool(
    name: str = "gpu",
    *,
    limits: Mapping[str, str] | None = None,
    resources: Mapping[str, str] | None = None,
    conditions: tuple[Mapping[str, str], ...] = (READY,),
    template: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """Make a NodePool as an API server has it."""
    spec = {"template": template or {"spec": {}}, **({"limits": dict(limits)} if limits is not None else {})}
    status = {"resources": dict(resources or {}), "conditions": [dict(each) for each in conditions]}
    return {"metadata": {"name": name, **metadata}, "spec": spec, "status": status}
