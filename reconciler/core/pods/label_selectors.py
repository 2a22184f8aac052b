"""Label selectors of pods, as apimachinery's labels package reads them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from reconciler.model.capacity import ReplicaShape
from reconciler.model.kubernetes.requirements import all_met
from reconciler.model.kubernetes.scheduling import HostPort, PodOnNode, PodRule, PodRules
from reconciler.text.wording import join_names

_ANY = HostPort(port=0).address
_MIXED = "wants {} among pods of several kinds, which cannot be counted together"


def may_apply(rule: PodRule, rules: PodRules, pod: PodOnNode) -> bool:
    """Return whether a rule applies to a pod, or may where its namespace is unknown."""
    if rule.namespaces:
        return pod.namespace in rule.namespaces and all_met(rule.selector, dict(pod.labels))
    return (not rules.namespace or pod.namespace == rules.namespace) and all_met(rule.selector, dict(pod.labels))


def applies_for_certain(rule: PodRule, rules: PodRules) -> bool:
    """Return whether a rule applies to every pod for which `may_apply` is true."""
    return not rule.wide and bool(rule.namespaces or rules.namespace)


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
        ports_conflict(rules.ports, pod.ports) or any(may_apply(rule, rules, pod) for rule in rules.all)
        for pod in others
    ):
        return shape
    return replace(shape, obstacle=_MIXED.format(describe_rules(rules)))


def describe_rules(rules: PodRules) -> str:
    """Describe rules between pods: ``one pod in each zone, host port 80/TCP to itself``."""
    demands = [f"one pod in each {rule.key}" for rule in rules.apart]
    demands += [f"all pods in one {rule.key}" for rule in rules.together]
    demands += [f"at most {rule.max_skew} more in one {rule.key} than in another" for rule in rules.evenly]
    demands += [f"host port {port.port}/{port.protocol} to itself" for port in rules.ports]
    return join_names(demands)
