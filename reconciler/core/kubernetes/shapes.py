"""The shape of one replica, from a pod or from the pod template of its workload."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.kubernetes.requests import pod_requests
from reconciler.model.capacity import ReplicaShape, Toleration
from reconciler.model.workload import Json


def replica_shape(spec: Json) -> ReplicaShape:
    """Read what one pod asks of a node.

    Required node affinity counts as far as a node selector can say the same: one term, in which a label has one value.
    """
    return ReplicaShape(
        requests=pod_requests(spec),
        node_selector=dict(sorted({**dict(_affinity(spec)), **(spec.get("nodeSelector") or {})}.items())),
        tolerations=tuple(_tolerations(spec)),
    )


def _affinity(spec: Json) -> Iterator[tuple[str, str]]:
    affinity: Json = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required: Json = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms: list[Json] = list(required.get("nodeSelectorTerms") or ())
    if len(terms) != 1:  # several terms are alternatives
        return
    for expression in terms[0].get("matchExpressions") or ():
        values = expression.get("values") or []
        if expression.get("operator") == "In" and len(values) == 1:
            yield expression["key"], values[0]


def _tolerations(spec: Json) -> Iterator[Toleration]:
    for raw in spec.get("tolerations") or ():
        # Those that the API server adds to each pod (not-ready, unreachable for 300 s) say nothing of the workload.
        if raw.get("effect") == "NoExecute" and raw.get("tolerationSeconds") is not None:
            continue
        yield Toleration(
            key=raw.get("key") or "",
            operator=raw.get("operator") or "Equal",
            value=raw.get("value") or "",
            effect=raw.get("effect") or "",
        )
