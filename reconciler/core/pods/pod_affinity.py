"""Rules of a pod about the pods beside it, as far as they can be counted beforehand.

Rules of the scheduler's InterPodAffinity, PodTopologySpread, NodePorts and NodeName plugins. Preferred rules exclude a
pod from no node and are skipped. Rules about pods of other kinds depend on the current pods of a cluster: they are an
obstacle, and so are unknown rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from reconciler.model.kubernetes.requirements import Requirement, all_met, equals
from reconciler.model.kubernetes.scheduling import (
    AntiAffinityTerm,
    HostPort,
    Labels,
    PodIdentity,
    PodOnNode,
    PodRule,
    PodRules,
    TopologySpreadConstraint,
)
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.workload import Json

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_RULE_FIELDS = ("affinity", "topologySpreadConstraints", "hostNetwork", "nodeName")
_UNCOUNTABLE = "only the scheduler can count that"
_PER_POD = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "controller-revision-hash",
        "controller-uid",
        "leaderworkerset.sigs.k8s.io/worker-index",
        PLACEMENT_LABEL,
        "pod-template-hash",
        "statefulset.kubernetes.io/pod-name",
    }
)
"""Labels that differ from pod to pod or from cluster to cluster for one template."""


class _ObstacleError(Exception):
    """A rule that only the scheduler can evaluate."""


def pod_rules(spec: Json, metadata: Json = None) -> tuple[PodRules | None, str]:
    """Read the rules of a pod or of a pod template, None without any; and the obstacle to counting them.

    `metadata` are the pod's, with its labels and namespace as far as they are known.
    """
    if not any(spec.get(field) for field in _RULE_FIELDS) and not any(map(_has_ports, _containers(spec))):
        return None, ""
    try:
        return _rules(spec, metadata or {}), ""
    except _ObstacleError as error:
        return None, f"{error}: {_UNCOUNTABLE}"


def pod_identities(metadata: Json) -> tuple[PodIdentity, ...]:
    """Read the identity of a pod for rules of other pods, without labels set in its cluster; empty where unknown."""
    if metadata is None:
        return ()
    own_labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key not in _PER_POD}
    return (PodIdentity(labels=tuple(sorted(own_labels.items())), namespace=metadata.get("namespace") or ""),)


def pod_on_node(spec: Json, metadata: Json, *, expected: bool = False) -> PodOnNode:
    """Read the identity of a pod with a node for the rules of other pods; the same object for pods of one template.

    An `expected` pod is nominated for the node: it may not be there yet, as one that is being deleted may not be.
    """
    namespace = metadata.get("namespace") or ""
    return _on_node(
        namespace,
        tuple(sorted((metadata.get("labels") or {}).items())),
        tuple(_ports(spec)),
        tuple(
            anti_affinity_terms(
                ((spec.get("affinity") or {}).get("podAntiAffinity") or {}).get(_REQUIRED) or (), namespace
            )
        ),
        leaving=expected or "deletionTimestamp" in metadata,
    )


@lru_cache(maxsize=8192)
def _on_node(
    namespace: str, labels: Labels, ports: tuple[HostPort, ...], keeps: tuple[AntiAffinityTerm, ...], *, leaving: bool
) -> PodOnNode:
    return PodOnNode(namespace=namespace, labels=labels, ports=ports, leaving=leaving, keeps=keeps)


def anti_affinity_terms(terms: Iterable[Json], namespace: str) -> Iterator[AntiAffinityTerm]:
    """Read the required anti-affinity terms of a pod of a namespace.

    A namespaceSelector may match any namespace, and a term without labelSelector matches no pod. The API server has
    written the keys of `matchLabelKeys` into the selectors of pods.
    """
    for term in terms:
        if term.get("labelSelector") is None:
            continue
        own = term.get("namespaces") or [namespace]
        spaces = () if term.get("namespaceSelector") is not None else tuple(sorted(own))
        yield AntiAffinityTerm(
            key=term["topologyKey"], selector=tuple(_requirements(term["labelSelector"])), namespaces=spaces
        )


def _requirements(selector: Json) -> Iterator[Requirement]:
    for key, value in sorted((selector.get("matchLabels") or {}).items()):
        yield equals(key, value)
    for expression in selector.get("matchExpressions") or ():
        yield Requirement(
            key=expression["key"], operator=expression["operator"], values=tuple(expression.get("values") or ())
        )


def _rules(spec: Json, metadata: Json) -> PodRules | None:
    if spec.get("nodeName"):
        raise _ObstacleError(f"is pinned to the node {spec['nodeName']} past the scheduler")
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key not in _PER_POD}
    affinity = spec.get("affinity") or {}
    rules = PodRules(
        labels=tuple(sorted(labels.items())),
        namespace=metadata.get("namespace") or "",
        apart=tuple(_terms(affinity.get("podAntiAffinity"), labels, "anti-affinity")),
        together=tuple(_terms(affinity.get("podAffinity"), labels, "affinity")),
        evenly=tuple(_spread_constraints(spec, labels)),
        ports=tuple(dict.fromkeys(_ports(spec))),
    )
    return rules if rules.all or rules.ports else None


def _terms(affinity: Json, labels: Mapping[str, str], called: str) -> Iterator[PodRule]:
    for term in (affinity or {}).get(_REQUIRED) or ():
        key = term["topologyKey"]
        what = f"requires pod {called} by {key}"
        if term.get("namespaceSelector") is not None:
            raise _ObstacleError(f"{what} with a namespaceSelector")
        selector, wide = _selector(term, labels, what)
        yield PodRule(key=key, selector=selector, namespaces=tuple(sorted(term.get("namespaces") or ())), wide=wide)


def _spread_constraints(spec: Json, labels: Mapping[str, str]) -> Iterator[TopologySpreadConstraint]:
    for constraint in spec.get("topologySpreadConstraints") or ():
        if constraint.get("whenUnsatisfiable") == "ScheduleAnyway":
            continue
        key = constraint["topologyKey"]
        selector, wide = _selector(constraint, labels, f"requires an even spread by {key}")
        yield TopologySpreadConstraint(
            key=key,
            selector=selector,
            wide=wide,
            max_skew=int(constraint.get("maxSkew") or 1),
            min_domains=int(constraint.get("minDomains") or 1),
            heeds_affinity=constraint.get("nodeAffinityPolicy") != "Ignore",
            heeds_taints=constraint.get("nodeTaintsPolicy") == "Honor",
        )


def _selector(term: Json, labels: Mapping[str, str], what: str) -> tuple[tuple[Requirement, ...], bool]:
    """Read the selector of a rule, and whether it may match fewer pods; it has to match the pod itself.

    Keys of `matchLabelKeys` add the pod's own value, which the API server writes into the selectors of pods. A value
    that pods of a template get only later, or that differs between clusters, is left out.
    """
    raw = term.get("labelSelector")
    if raw is None:
        raise _ObstacleError(f"{what} to no pods at all")
    requirements = [*_requirements(raw)]
    keys = term.get("matchLabelKeys") or ()
    requirements += [equals(key, labels[key]) for key in keys if key in labels]
    requirements = [
        requirement for requirement in requirements if requirement.key not in keys or requirement.key in labels
    ]
    if term.get("mismatchLabelKeys"):
        raise _ObstacleError(f"{what} to pods that differ in a label")
    if not all_met(requirements, labels):
        raise _ObstacleError(f"{what} to other pods than its own kind")
    return tuple(dict.fromkeys(requirements)), any(key not in labels for key in keys)


def _containers(spec: Json) -> Iterator[Json]:
    """List the containers whose ports count: all that run on, sidecars included."""
    yield from spec.get("containers") or ()
    yield from (
        container for container in spec.get("initContainers") or () if container.get("restartPolicy") == "Always"
    )


def _has_ports(container: Json) -> bool:
    return any(port.get("hostPort") for port in container.get("ports") or ())


def _ports(spec: Json) -> Iterator[HostPort]:
    """List the host ports of a pod; all its ports with hostNetwork."""
    whole = bool(spec.get("hostNetwork"))
    for container in _containers(spec):
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port.get("containerPort") if whole else None)
            if number:
                yield HostPort(
                    port=int(number),
                    protocol=port.get("protocol") or "TCP",
                    address=port.get("hostIP") or HostPort(port=0).address,
                )
