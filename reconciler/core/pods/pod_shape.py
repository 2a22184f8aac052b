"""The shape of one replica, from a pod or from the pod template of its workload."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.pods.gpu_parts import gpu_part_obstacle
from reconciler.core.pods.pod_admission import pod_admission
from reconciler.core.pods.pod_affinity import pod_identities, pod_rules
from reconciler.core.pods.pod_requests import pod_requests, unstated_requests
from reconciler.core.pods.taints import scheduling_toleration
from reconciler.model.capacity import ReplicaShape
from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.scheduling import Toleration
from reconciler.model.workload import Json


def replica_shape(spec: Json, metadata: Json = None, *, whole: bool = True) -> ReplicaShape:
    """Read the requirements of one pod; `resource_claims` adds the devices that it claims.

    `metadata` are the pod's or its template's, as far as they are known: rules match its labels and namespace, and
    annotations ask for parts of GPUs. `whole` is as in `pod_rules`. Required node affinity becomes part of the node
    selector where that can express it.
    """
    selector = dict(spec.get("nodeSelector") or {})
    terms = node_terms(_required_affinity(spec))
    if terms is not None and len(terms) == 1:
        terms = _merge_term(terms[0], selector)
    rules, obstacle = pod_rules(spec, metadata, whole=whole)
    requests = pod_requests(spec)
    return ReplicaShape(
        requests=requests,
        node_selector=dict(sorted(selector.items())),
        node_terms=terms or (),
        tolerations=tuple(tolerations(spec)),
        rules=rules,
        obstacle=obstacle or gpu_part_obstacle(requests.amounts, metadata),
        who=pod_identities(metadata),
        unstated=unstated_requests(spec, metadata),
        admission=(pod_admission(spec, metadata),),
    )


def node_terms(selector: Json) -> tuple[Requirements, ...] | None:
    """Read a NodeSelector; None without one."""
    if not selector:
        return None
    return tuple(
        Requirements(
            labels=tuple(_requirements(term.get("matchExpressions"))),
            fields=tuple(_requirements(term.get("matchFields"))),
        )
        for term in selector.get("nodeSelectorTerms") or ()
    )


def _required_affinity(spec: Json) -> Json:
    affinity: Json = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return affinity.get("requiredDuringSchedulingIgnoredDuringExecution")


def _requirements(expressions: Json) -> Iterator[Requirement]:
    for raw in expressions or ():
        yield Requirement(key=raw["key"], operator=raw["operator"], values=tuple(raw.get("values") or ()))


def _merge_term(term: Requirements, selector: dict[str, str]) -> tuple[Requirements, ...]:
    """Move requirements of a term into the selector where it can express them; return the rest of the term.

    Requirements that contradict the selector stay in the term.
    """
    left: list[Requirement] = []
    for label in term.labels:
        value = label.single
        if value is not None and selector.get(label.key, value) == value:
            selector[label.key] = value
        else:
            left.append(label)
    if term.labels and not left and not term.fields:
        return ()
    return (Requirements(labels=tuple(left), fields=term.fields),)


def tolerations(spec: Json) -> Iterator[Toleration]:
    """Read the tolerations of a pod spec that the scheduler's filters heed."""
    for raw in spec.get("tolerations") or ():
        toleration = scheduling_toleration(
            Toleration(
                key=raw.get("key") or "",
                operator=raw.get("operator") or "Equal",
                value=raw.get("value") or "",
                effect=raw.get("effect") or "",
                seconds=raw.get("tolerationSeconds"),
            )
        )
        if toleration is not None:
            yield toleration
