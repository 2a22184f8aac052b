"""Label selectors of pods, as apimachinery's labels package reads them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import partial

from reconciler.core.pods.namespaces import in_namespaces
from reconciler.model.capacity import ReplicaShape
from reconciler.model.kubernetes.requirements import NOTHING, Requirement, all_met, may_meet
from reconciler.model.kubernetes.scheduling import HostPort, PodIdentity, PodOnNode, PodRule, PodRules
from reconciler.text.wording import join_names

_ANY = HostPort(port=0).address
_MIXED = "wants {} among pods of several kinds, which cannot be counted together"


def applies(rule: PodRule, rules: PodRules, pod: PodOnNode) -> bool | None:
    """Return whether a rule applies to a pod; None where a label or a namespace that is unknown decides that."""
    within = in_namespaces(rule.namespaces, rule.namespace_selector, rules.namespace, pod.namespace)
    met = meets(rule.selector, pod) if within is not False else False
    if met is False:
        return False
    return None if rule.wide or met is None else within


def meets(selector: Iterable[Requirement], pod: PodIdentity | PodOnNode) -> bool | None:
    """Return whether a pod meets a selector; None where that depends on labels that its controllers may add."""
    if not pod.added:
        return all_met(selector, dict(pod.labels))
    return may_meet(selector, dict(pod.labels), partial(_may_be_added, pod.added))


def _may_be_added(added: Iterable[str], key: str) -> bool:
    """Return whether a key is one of those that controllers add, or of a domain of theirs."""
    domain = key.rpartition("/")[0]
    for each in added:
        own, is_domain = each.removesuffix("/"), each.endswith("/") and "." in domain
        if key == each or (is_domain and (f".{domain}".endswith(f".{own}") or own.endswith(f".{domain}"))):
            return True
    return False


def ports_conflict(mine: Iterable[HostPort], theirs: Iterable[HostPort]) -> bool:
    """Return whether two pods bind a port of the same node."""
    taken = list(theirs)
    return any(
        (host_port.port, host_port.protocol) == (other.port, other.protocol)
        and (host_port.address == other.address or _ANY in (host_port.address, other.address))
        for host_port in mine
        for other in taken
    )


def reject_mixed_rules(shape: ReplicaShape, pods: Iterable[tuple[Hashable, PodOnNode]]) -> ReplicaShape:
    """Add an obstacle to a shape whose rules also match pods of other shapes: these are not counted together.

    Each of the `pods` beside it comes with the likeness of its own shape.
    """
    rules = shape.rules
    if rules is None:
        return shape
    others = (pod for likeness, pod in pods if likeness != shape.likeness)
    if not any(
        ports_conflict(rules.ports, pod.ports) or any(applies(rule, rules, pod) is not False for rule in rules.all)
        for pod in others
    ):
        return shape
    return replace(shape, obstacle=_MIXED.format(describe_rules(rules)))


def describe_rules(rules: PodRules) -> str:
    """Describe rules between pods: ``one pod in each zone, host port 80/TCP to itself``."""
    demands = [
        f"one pod in each {rule.key}" if rule.itself else f"no pod {_with_labels(rule)} in its {rule.key}"
        for rule in rules.apart
    ]
    demands += [
        f"all pods in one {rule.key}" if rule.itself else f"a pod {_with_labels(rule)} in its {rule.key}"
        for rule in rules.together
    ]
    demands += [f"a node with the label {rule.key}" for rule in rules.evenly if rule.selector == NOTHING]
    demands += [
        f"at most {rule.max_skew} more {'' if rule.itself else f'pods {_with_labels(rule)} '}in one {rule.key}"
        " than in another"
        for rule in rules.evenly
        if rule.selector != NOTHING
    ]
    demands += [f"host port {port.port}/{port.protocol} to itself" for port in rules.ports]
    return join_names(demands)


def _with_labels(rule: PodRule) -> str:
    """Describe the pods that a rule means: ``with app=db``."""
    labels = ", ".join(map(str, rule.selector)) or "of any labels"
    return f"with {labels}" if rule.selector else labels
