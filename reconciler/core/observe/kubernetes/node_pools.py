"""NodePools of Karpenter: what bounds the nodes that are launched for them."""

from __future__ import annotations

from contextlib import suppress

from reconciler.core.pods.pod_requests import parse_amounts
from reconciler.model.capacity import NodePool
from reconciler.model.units import Quantity, Resources
from reconciler.model.workload import Json
from reconciler.text.wording import as_clause, engine_message


def read_node_pool(raw: Json) -> NodePool:
    """Read a NodePool (karpenter.sh/v1): its limits, what is used of them, and whether nodes are launched for it."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    return NodePool(
        limits=_amounts(spec.get("limits")), used=_amounts(status.get("resources")), obstacle=_obstacle(raw)
    )


def _obstacle(raw: Json) -> str:
    """Say why Karpenter passes a NodePool over.

    1. It is being deleted. 2. Its condition Ready is not True. So `Provisioner.NewScheduler` of
    https://github.com/kubernetes-sigs/karpenter/blob/v1.6.0/pkg/controllers/provisioning/provisioner.go does.
    """
    if "deletionTimestamp" in raw["metadata"]:
        return "is being deleted"
    conditions = (raw.get("status") or {}).get("conditions") or ()
    ready: Json = next((item for item in conditions if item.get("type") == "Ready"), {})
    if ready.get("status") == "True":
        return ""
    words = [as_clause(engine_message(ready.get(field))) for field in ("reason", "message")]
    return ": ".join(["is not Ready", *dict.fromkeys(filter(None, words))])


def _amounts(amounts: Json) -> Resources:
    """Read amounts; the kind takes any text as an amount, and those that are none are skipped."""
    known: dict[str, Quantity] = {}
    for name, amount in (amounts or {}).items():
        with suppress(ValueError):
            known |= parse_amounts({name: amount})
    return Resources(amounts=known)
