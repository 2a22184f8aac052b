"""NodePools of Karpenter: what bounds the nodes that are launched for them, and what these nodes are like."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from reconciler.core.pods.pod_requests import parse_amounts
from reconciler.model.capacity import NodePool
from reconciler.model.kubernetes.requirements import Requirement, allowed_values
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.units import Quantity, Resources
from reconciler.model.workload import Json
from reconciler.text.wording import as_clause, engine_message


def read_node_pool(raw: Json) -> NodePool:
    """Read a NodePool (karpenter.sh/v1): what bounds the nodes that are launched for it, and what they are like."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    template = spec.get("template") or {}
    node = template.get("spec") or {}
    return NodePool(
        limits=_amounts(spec.get("limits")),
        used=_amounts(status.get("resources")),
        obstacle=_obstacle(raw),
        taints=tuple(
            Taint(key=item["key"], value=item.get("value") or "", effect=item.get("effect") or "NoSchedule")
            for item in node.get("taints") or ()
        ),
        labels=dict(sorted(((template.get("metadata") or {}).get("labels") or {}).items())),
        requirements=allowed_values(_requirements(node.get("requirements") or ())),
    )


def _requirements(raw: Json) -> Iterator[Requirement]:
    """Read the requirements of a NodePool. Labels that providers add have unknown values."""
    for item in raw:
        values = tuple(map(str, item.get("values") or ()))
        yield Requirement(key=item["key"], operator=item.get("operator") or "", values=values)


def _obstacle(raw: Json) -> str:
    """Say why Karpenter passes a NodePool over.

    1. It is being deleted. 2. It is static: it has so many nodes, whatever pods wait. 3. Its condition Ready is not
    True. So `Provisioner.NewScheduler` of
    https://github.com/kubernetes-sigs/karpenter/blob/v1.8.0/pkg/controllers/provisioning/provisioner.go does.
    """
    if "deletionTimestamp" in raw["metadata"]:
        return "is being deleted"
    if (raw.get("spec") or {}).get("replicas") is not None:
        return "has a fixed number of nodes (spec.replicas)"
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
