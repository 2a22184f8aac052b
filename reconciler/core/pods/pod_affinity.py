"""Rules of a pod about the pods beside it, its own kind and others.

Rules of the scheduler's InterPodAffinity, PodTopologySpread, NodePorts and NodeName plugins, and of the API server,
which writes the values of `matchLabelKeys` and `mismatchLabelKeys` into the selectors of pods that it creates
(kubernetes 1.36, pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, .../podtopologyspread/common.go and
pkg/registry/core/pod/strategy.go). Preferred rules exclude a pod from no node and are skipped. A selector or namespace
that an expression gives is an obstacle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.pods.namespaces import in_namespaces
from reconciler.model.kubernetes.requirements import NOTHING, Requirement, equals, may_meet
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
_ADDED = _PER_POD | {"batch.kubernetes.io/job-name", "job-name"}
"""Labels that Kubernetes' own controllers add to the pods of their templates."""


class _ObstacleError(Exception):
    """A rule that cannot be counted, or that no node meets."""


class _OwnPod:
    """The pod that has the rules, as far as it is known."""

    def __init__(self, metadata: Json, *, whole: bool) -> None:
        """Take its labels and namespace; `whole` says that nothing but `_ADDED` adds labels."""
        self.is_known = metadata is not None
        metadata = metadata or {}
        self.labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key not in _PER_POD}
        self.namespace: str = metadata.get("namespace") or ""
        self._whole = whole

    def may_have(self, key: str) -> bool:
        """Return whether it may get a label that it does not have yet."""
        return key not in self.labels and (not self._whole or key in _ADDED)

    def meets(self, selector: Iterable[Requirement]) -> bool | None:
        """Return whether it meets a selector; None where that depends on labels that it may get."""
        return may_meet(selector, self.labels, self.may_have)


def pod_rules(spec: Json, metadata: Json = None, *, whole: bool = True) -> tuple[PodRules | None, str]:
    """Read the rules of a pod or of a pod template, None without any; and the obstacle to counting them.

    `metadata` are the pod's, with its labels and namespace as far as they are known. `whole` says that no other labels
    are added, as by an operator, but those of Kubernetes' own controllers.
    """
    if not any(spec.get(field) for field in _RULE_FIELDS) and not any(map(_has_ports, _containers(spec))):
        return None, ""
    try:
        return _rules(spec, _OwnPod(metadata, whole=whole)), ""
    except _ObstacleError as error:
        return None, str(error)


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
        expected=expected,
    )


@lru_cache(maxsize=8192)
def _on_node(
    namespace: str,
    labels: Labels,
    ports: tuple[HostPort, ...],
    keeps: tuple[AntiAffinityTerm, ...],
    *,
    leaving: bool,
    expected: bool,
) -> PodOnNode:
    return PodOnNode(namespace=namespace, labels=labels, ports=ports, leaving=leaving, keeps=keeps, expected=expected)


def anti_affinity_terms(terms: Iterable[Json], namespace: str) -> Iterator[AntiAffinityTerm]:
    """Read the required anti-affinity terms of a pod of a namespace.

    A term without labelSelector matches no pod. The API server has written the keys of `matchLabelKeys` into the
    selectors of pods.
    """
    for term in terms:
        if term.get("labelSelector") is None:
            continue
        namespaces, selector = _namespaces(term)
        yield AntiAffinityTerm(
            key=term["topologyKey"],
            selector=tuple(selector_requirements(term["labelSelector"])),
            namespaces=namespaces or ((namespace,) if selector is None else ()),
            namespace_selector=selector,
        )


def _namespaces(term: Json) -> tuple[tuple[str, ...], tuple[Requirement, ...] | None]:
    """Read the namespaces of a term by name and by labels: with neither they are the pod's own."""
    selector = term.get("namespaceSelector")
    required = None if selector is None else tuple(selector_requirements(selector))
    return tuple(sorted(term.get("namespaces") or ())), required


def selector_requirements(selector: Json) -> Iterator[Requirement]:
    """Read a LabelSelector of Kubernetes."""
    for key, value in sorted((selector.get("matchLabels") or {}).items()):
        yield equals(key, value)
    for expression in selector.get("matchExpressions") or ():
        yield Requirement(
            key=expression["key"], operator=expression["operator"], values=tuple(expression.get("values") or ())
        )


def _rules(spec: Json, pod: _OwnPod) -> PodRules | None:
    if spec.get("nodeName"):
        raise _ObstacleError(
            f"is pinned to the node {spec['nodeName']} past the scheduler: only the scheduler can count that"
        )
    affinity = spec.get("affinity") or {}
    rules = PodRules(
        labels=tuple(sorted(pod.labels.items())),
        namespace=pod.namespace,
        apart=tuple(_terms(affinity.get("podAntiAffinity"), pod, "anti-affinity")),
        together=tuple(_terms(affinity.get("podAffinity"), pod, "affinity")),
        evenly=tuple(_spread_constraints(spec, pod)),
        ports=tuple(dict.fromkeys(_ports(spec))),
    )
    return rules if rules.all or rules.ports else None


def _terms(affinity: Json, pod: _OwnPod, called: str) -> Iterator[PodRule]:
    """Read required terms. One without labelSelector means no pod: anti-affinity to none is no rule."""
    for term in (affinity or {}).get(_REQUIRED) or ():
        key = term["topologyKey"]
        what = f"requires pod {called} by {key}"
        if term.get("labelSelector") is None:
            if called == "affinity":
                raise _ObstacleError(f"{what} to no pods at all, as a term without a labelSelector: no node meets that")
            continue
        selector, wide, is_meant = _selector(term, pod, what)
        namespaces, namespace_selector = _namespaces(term)
        of_its_own = not namespaces and namespace_selector is None
        within = of_its_own or in_namespaces(namespaces, namespace_selector, pod.namespace, pod.namespace)
        yield PodRule(
            key=key,
            selector=selector,
            namespaces=namespaces,
            namespace_selector=namespace_selector,
            wide=wide,
            itself=False if False in (is_meant, within) else None if None in (is_meant, within) else True,
        )


def _spread_constraints(spec: Json, pod: _OwnPod) -> Iterator[TopologySpreadConstraint]:
    for constraint in spec.get("topologySpreadConstraints") or ():
        if constraint.get("whenUnsatisfiable") == "ScheduleAnyway":
            continue
        key = constraint["topologyKey"]
        selector, wide, itself = _selector(constraint, pod, f"requires an even spread by {key}")
        # The scheduler counts no pods of an empty selector, and none of one that is missing (countPodsMatchSelector).
        if not selector:
            selector, itself = (selector, None) if wide else (NOTHING, False)
        yield TopologySpreadConstraint(
            key=key,
            selector=selector,
            wide=wide,
            itself=itself,
            max_skew=int(constraint.get("maxSkew") or 1),
            min_domains=int(constraint.get("minDomains") or 1),
            heeds_affinity=constraint.get("nodeAffinityPolicy") != "Ignore",
            heeds_taints=constraint.get("nodeTaintsPolicy") == "Honor",
        )


def _selector(term: Json, pod: _OwnPod, what: str) -> tuple[tuple[Requirement, ...], bool, bool | None]:
    """Read the selector of a rule, whether it may match fewer pods, and whether it matches the pod itself.

    Keys of `matchLabelKeys` add the pod's own value, those of `mismatchLabelKeys` any other; a key without a value adds
    nothing. A value that pods of a template get only later, or that differs between clusters, is left out.
    """
    raw = term.get("labelSelector")
    if raw is None:
        return NOTHING, False, False
    if not pod.is_known:
        raise _ObstacleError(f"{what} by labels that are not known: only the scheduler can count that")
    if any(has_expression(text) for text in _texts(term)):
        raise _ObstacleError(f"{what} by a label that an expression gives: only the scheduler can count that")
    matching, mismatching = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    requirements = [*selector_requirements(raw)]
    requirements += [equals(key, pod.labels[key]) for key in matching if key in pod.labels]
    requirements += [
        Requirement(key=key, operator="NotIn", values=(pod.labels[key],)) for key in mismatching if key in pod.labels
    ]
    requirements = [
        requirement
        for requirement in requirements
        if not pod.may_have(requirement.key)
        or not (requirement.key in matching or (requirement.key in mismatching and requirement.operator == "NotIn"))
    ]
    is_meant = pod.meets(requirements)
    if is_meant and any(map(pod.may_have, mismatching)):
        is_meant = None
    return tuple(dict.fromkeys(requirements)), any(map(pod.may_have, (*matching, *mismatching))), is_meant


def _texts(term: Json) -> Iterator[str]:
    """List what a term names: pods by label and value, namespaces and the topology key."""
    yield term["topologyKey"]
    yield from term.get("namespaces") or ()
    for selector in (term.get("labelSelector"), term.get("namespaceSelector")):
        for requirement in selector_requirements(selector or {}):
            yield from (requirement.key, *requirement.values)


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
