"""Pods that fit under their own rules: pod anti-affinity, pod affinity and topology spread constraints.

The scheduler places pod after pod without looking ahead, so its first choice can decide how many follow. The count here
holds for every choice: equal pods, one after another, each on any node that the filters admit.

A rule about other pods is a filter of nodes: equal pods change nothing in it. Of the rules about the pods themselves,
a single constraint has one answer: every domain fills up, or stops `max_skew` above the full domain with the fewest
pods. Of several constraints only the coarsest is counted that way, and a finer one at `max_skew` pods a domain, up to
which it stops no pod. Where domains cross, as racks that span zones, only one pod is certain. Where it is unknown
whether a rule means the pods themselves, both are counted, and the lower number holds.

Affinity and anti-affinity heed pods that are being deleted until they are gone; a spread passes them over. A node has
to pass with and without the pods that it is nominated for (kubernetes 1.36, pkg/scheduler/framework/runtime/
framework.go, .../plugins/interpodaffinity/filtering.go and .../podtopologyspread/common.go).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from reconciler.core.capacity.node import NodeCapacity
from reconciler.core.pods.label_selectors import applies, describe_rules, ports_conflict
from reconciler.core.pods.node_affinity import selects_node
from reconciler.core.pods.taints import CORDON, UNREADY, tolerates, untolerated_taint
from reconciler.model.capacity import ClosedNode, ReplicaShape
from reconciler.model.kubernetes.scheduling import PodOnNode, PodRule, PodRules, TopologySpreadConstraint
from reconciler.text.wording import count

UNKNOWN_PODS = "the pods on its nodes are unknown"
PODS_IN_MOTION = "pods that this is about are on their way, to or from unknown nodes"
AMBIGUOUS_PODS = "pods are there that this may or may not be about"
_MOST_VARIANTS = 16
"""Combinations of rules that may or may not mean the pods themselves, which are counted one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInfo:
    """A node with its pods, as pod rules evaluate it (kube-scheduler's NodeInfo)."""

    name: str
    labels: Mapping[str, str]
    pods: tuple[PodOnNode, ...]
    holds: int = 0
    """Pods of the shape that its free resources hold; 0 for a closed node."""
    meant: bool = True
    """Whether node selector and node affinity select it."""
    tolerated: bool = True
    """Whether its taints are tolerated."""
    closed: bool = False
    """Whether it takes no pods."""
    tempting: bool = False
    """Whether the scheduler may choose it although nothing is counted there."""

    def has(self, rules: Iterable[PodRule]) -> bool:
        """Return whether the node is in a domain of each rule."""
        return all(rule.key in self.labels for rule in rules)


class _Pods:
    """The pods on the nodes by rule; equal pods, which are one object, are compared once."""

    def __init__(self, rules: PodRules) -> None:
        self._rules = rules
        self._known: dict[tuple[int, int], bool | None] = {}

    def met_by(self, rule: PodRule, pod: PodOnNode) -> bool | None:
        """Return whether a rule applies to a pod; None where that is unknown."""
        key = id(rule), id(pod)
        if key not in self._known:
            self._known[key] = applies(rule, self._rules, pod)
        return self._known[key]

    def may_be_met(self, rule: PodRule, pod: PodOnNode) -> bool:
        """Return whether a rule applies to a pod, or may."""
        return self.met_by(rule, pod) is not False

    def concern(self, pod: PodOnNode) -> bool:
        """Return whether any rule, or a host port, may concern a pod."""
        return any(self.may_be_met(rule, pod) for rule in self._rules.all) or ports_conflict(
            self._rules.ports, pod.ports
        )


class _ConcernedPods:
    """The pods that the rules of a shape may concern: of a hundred thousand in a cluster these are few."""

    def __init__(self, rules: PodRules | None) -> None:
        self._pods = None if rules is None else _Pods(rules)
        self._known: dict[int, bool] = {}

    def of(self, pods: tuple[PodOnNode, ...]) -> tuple[PodOnNode, ...]:
        """Return those among the pods of a node."""
        if self._pods is None:
            return pods
        known = self._known
        for pod in pods:
            if id(pod) not in known:
                known[id(pod)] = self._pods.concern(pod)
        return tuple([pod for pod in pods if known[id(pod)]])


def uncountable_rules(rules: PodRules, nodes: Sequence[NodeInfo], moving: Iterable[PodOnNode | None]) -> str:
    """Return why the effect of rules is unknown; empty where it can be counted.

    `moving` are pods that are on their way to the cluster or leaving it, on unknown nodes; None is a pod that nobody
    knows, which counts as none of the pod's own kind.
    """
    for pod in moving:
        if pod is None and not all(rule.itself for rule in rules.all):
            return PODS_IN_MOTION
        if pod is not None and (
            any(applies(rule, rules, pod) is not False for rule in rules.all) or ports_conflict(rules.ports, pod.ports)
        ):
            return PODS_IN_MOTION
    pods = _Pods(rules)
    if 2 ** sum(rule.itself is None for rule in rules.all) > _MOST_VARIANTS or _depends_on_leaving(rules, nodes, pods):
        return AMBIGUOUS_PODS
    # A pod that anti-affinity may or may not mean bars its domain, but for those that others have to follow to one.
    counted = (*rules.together, *rules.evenly, *(rules.apart if rules.together else ()))
    for node in nodes:
        for pod in node.pods:
            if any(pods.met_by(rule, pod) is None for rule in counted):
                return AMBIGUOUS_PODS
            if (pod.expected or node.closed) and any(
                (pod.expected or rule.heeds_taints) and pods.may_be_met(rule, pod) for rule in rules.evenly
            ):
                return AMBIGUOUS_PODS  # the scheduler counts it both ways, or the taints of its node are unknown
    return ""


def _depends_on_leaving(rules: PodRules, nodes: Iterable[NodeInfo], pods: _Pods) -> bool:
    """Return whether pods that are being deleted decide where affinity lets pods go.

    Beside others that stay they only add domains, which takes nothing from anti-affinity, but moves a spread.
    """
    if not rules.together:
        return False
    leaving = staying = barring = False
    for node in nodes:
        for pod in node.pods:
            if all(pods.may_be_met(rule, pod) for rule in rules.together):
                leaving, staying = leaving or pod.leaving, staying or not pod.leaving
            barring = barring or (pod.leaving and any(pods.may_be_met(rule, pod) for rule in rules.apart))
    is_first = not staying and all(rule.itself is not False for rule in rules.together)
    return (leaving and (bool(rules.evenly) or is_first)) or (barring and is_first)


def schedulable_pods(rules: PodRules, nodes: Sequence[NodeInfo]) -> int:
    """Count the pods that find a node one after another, whichever nodes the scheduler chooses."""
    return min(_schedulable(variant, nodes) for variant in _variants(rules))


def _variants(rules: PodRules) -> Iterator[PodRules]:
    """Yield the rules with every rule that may mean the pods themselves read both ways."""
    if all(rule.itself is not None for rule in rules.all):
        yield rules
        return
    ways = [(rule.itself,) if rule.itself is not None else (True, False) for rule in rules.all]
    first, second = len(rules.apart), len(rules.apart) + len(rules.together)
    for way in product(*ways):
        yield replace(
            rules,
            apart=tuple(replace(rule, itself=is_own) for rule, is_own in zip(rules.apart, way, strict=False)),
            together=tuple(
                replace(rule, itself=is_own) for rule, is_own in zip(rules.together, way[first:], strict=False)
            ),
            evenly=tuple(replace(rule, itself=is_own) for rule, is_own in zip(rules.evenly, way[second:], strict=True)),
        )


def _schedulable(rules: PodRules, nodes: Sequence[NodeInfo]) -> int:
    pods = _Pods(rules)
    spreads = [_SpreadDomains.of(rule, rules, nodes, pods) for rule in rules.evenly]
    own = _OwnRules(rules, spreads)
    open_nodes = _admitting_nodes(rules, spreads, nodes, pods)
    if not rules.together:
        return own.count_upwards(open_nodes, nodes)
    domains = _affinity_domains(rules, nodes, pods)
    if any(domains.values()) or not all(rule.itself for rule in rules.together):
        return own.count_upwards(
            [node for node in open_nodes if all(node.labels.get(key) in domains[key] for key in domains)], nodes
        )
    groups: dict[tuple[str, ...], list[NodeInfo]] = {}
    for node in open_nodes:
        if node.has(rules.together):
            groups.setdefault(tuple(node.labels[key] for key in domains), []).append(node)
    # Whichever domain the first pod is taken to, all others have to follow it there.
    chosen = (group for group in groups.values() if any(own.takes_first_pod(node) for node in group))
    return min((own.count_upwards(group, nodes, alone=True) for group in chosen), default=0)


def placeable_nodes(rules: PodRules, nodes: Sequence[NodeInfo]) -> frozenset[str]:
    """Name the nodes that one more pod may go to by the pods that are there; those it may go to for certain or not."""
    names: set[str] = set()
    for variant in _variants(rules):
        pods = _Pods(variant)
        spreads = [_SpreadDomains.of(rule, variant, nodes, pods) for rule in variant.evenly]
        open_nodes = _admitting_nodes(variant, spreads, nodes, pods)
        domains = _affinity_domains(variant, nodes, pods)
        if any(domains.values()):
            open_nodes = [node for node in open_nodes if all(node.labels.get(key) in domains[key] for key in domains)]
        names.update(node.name for node in open_nodes)
    return frozenset(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SpreadDomains:
    """The domains of one topology spread constraint."""

    rule: TopologySpreadConstraint
    matching: Counter[str]
    """Matching pods in each domain."""
    least: int
    """The global minimum of pods in a domain."""
    few: bool
    """Whether there are fewer domains than minDomains, so that the global minimum is 0."""

    @classmethod
    def of(
        cls, rule: TopologySpreadConstraint, rules: PodRules, nodes: Iterable[NodeInfo], pods: _Pods
    ) -> _SpreadDomains:
        """Count matching pods in the domains of all nodes that the scheduler considers, closed nodes included."""
        pods_by_domain, open_ = Counter[str](), set[str]()
        for node in nodes:
            if not node.has(rules.evenly) or (rule.heeds_affinity and not node.meant):
                continue
            if rule.heeds_taints and not node.tolerated:
                continue
            domain = node.labels[rule.key]
            pods_by_domain[domain] += sum(not pod.leaving and pods.may_be_met(rule, pod) for pod in node.pods)
            if not (node.closed and rule.heeds_taints):
                open_.add(domain)
        few = len(open_) < rule.min_domains
        return cls(
            rule=rule, matching=pods_by_domain, least=0 if few else min(pods_by_domain.values(), default=0), few=few
        )

    def admits(self, node: NodeInfo) -> bool:
        """Return whether a constraint about other pods admits a node."""
        domain = node.labels.get(self.rule.key)
        return domain is not None and self.matching[domain] - self.least <= self.rule.max_skew

    def spare(self, domain: str) -> int:
        """Count the pods that a domain takes before any other domain gets one."""
        return max(0, self.rule.max_skew + self.least - self.matching[domain])

    def filled(self, holds: Mapping[str, int]) -> int:
        """Count the pods that all domains take together; each domain has room for its entry of `holds`."""
        fewest = (
            0
            if self.few
            else min((have + holds.get(domain_value, 0) for domain_value, have in self.matching.items()), default=0)
        )
        top = fewest + self.rule.max_skew
        return sum(min(room, max(0, top - self.matching[domain])) for domain, room in holds.items())


def _admitting_nodes(
    rules: PodRules, spreads: Iterable[_SpreadDomains], nodes: Iterable[NodeInfo], pods: _Pods
) -> list[NodeInfo]:
    """Leave out the nodes that host ports, anti-affinity to existing pods, and spreads of other pods exclude."""
    of_others = [spread for spread in spreads if not spread.rule.itself]
    taken = [
        {node.labels.get(rule.key) for node in nodes if any(pods.may_be_met(rule, pod) for pod in node.pods)} - {None}
        for rule in rules.apart
    ]
    open_nodes: list[NodeInfo] = []
    for node in nodes:
        shut = any(node.labels.get(rule.key) in domains for rule, domains in zip(rules.apart, taken, strict=True))
        if shut or not all(spread.admits(node) for spread in of_others):
            continue
        if rules.ports and any(ports_conflict(rules.ports, pod.ports) for pod in node.pods):
            continue
        open_nodes.append(replace(node, holds=min(node.holds, 1)) if rules.ports else node)
    return open_nodes


def _affinity_domains(rules: PodRules, nodes: Iterable[NodeInfo], pods: _Pods) -> dict[str, set[str]]:
    """Return by key the domains that pods have to join: those of pods that stay and match all affinity terms."""
    domains: dict[str, set[str]] = {rule.key: set() for rule in rules.together}
    for node in nodes if domains else ():
        if any(not pod.leaving and all(pods.may_be_met(rule, pod) for rule in rules.together) for pod in node.pods):
            for key in domains.keys() & node.labels.keys():
                domains[key].add(node.labels[key])
    return domains


class _OwnRules:
    """The anti-affinity and the spreads that mean the pods themselves: each pod leaves less for the next."""

    def __init__(self, rules: PodRules, spreads: Iterable[_SpreadDomains]) -> None:
        self._apart = [rule for rule in rules.apart if rule.itself]
        self._spreads = {spread.rule: spread for spread in spreads if spread.rule.itself}
        self._labelled = (*rules.together, *rules.evenly)

    def takes_first_pod(self, node: NodeInfo) -> bool:
        """Return whether the scheduler may place the first pod on a node, however bad the choice."""
        if not node.holds and not node.tempting:
            return False
        return all(
            rule.key in node.labels and spread.spare(node.labels[rule.key]) for rule, spread in self._spreads.items()
        )

    def count_upwards(self, left: Iterable[NodeInfo], nodes: Iterable[NodeInfo], *, alone: bool = False) -> int:
        """Count from the finest domains up the fewest pods that each takes before its rule stops it.

        `left` are the nodes that the pods may go to, `alone` says that the first pod has chosen them.
        """
        reachable = [node for node in left if node.holds and node.has(self._labelled)]
        usable = [node for node in reachable if node.has(self._apart)]
        # Anti-affinity means nothing on a node without its label.
        unbound = [node for node in reachable if not any(rule.key in node.labels for rule in self._apart)]
        free = sum(node.holds for node in unbound) if self._apart and not self._spreads else 0
        ordered = _fine_to_coarse((*self._apart, *self._spreads), nodes)
        if ordered is None:
            return free + int(any(map(self.takes_first_pod, usable)))
        pods_by_labels = [(node.labels, node.holds) for node in usable]
        for rule in ordered:
            holds, domain_labels = Counter[str](), dict[str, Mapping[str, str]]()
            for labels, pods in pods_by_labels:
                holds[labels[rule.key]] += pods
                domain_labels[labels[rule.key]] = labels
            spread = self._spreads.get(rule) if isinstance(rule, TopologySpreadConstraint) else None
            if spread is None:
                pods_by_labels = [(domain_labels[domain], min(1, pods)) for domain, pods in holds.items()]
            elif rule is ordered[-1] and not alone:
                return spread.filled(holds)
            else:
                pods_by_labels = [
                    (domain_labels[domain], min(spread.spare(domain), pods)) for domain, pods in holds.items()
                ]
        return free + sum(pods for _, pods in pods_by_labels)


def _fine_to_coarse(rules: Iterable[PodRule], infos: Iterable[NodeInfo]) -> list[PodRule] | None:
    """Sort rules from fine to coarse; None where a domain of one crosses a domain of another."""
    nodes = list(infos)
    values = {key: {node.labels.get(key) for node in nodes} for key in {rule.key for rule in rules}}
    ordered = sorted(
        rules, key=lambda rule: (-len(values[rule.key]), rule.key, isinstance(rule, TopologySpreadConstraint))
    )
    for fine, coarse in combinations(ordered, 2):
        within: dict[str, str] = {}
        for node in nodes:
            if node.has((fine, coarse)):
                domain = node.labels[coarse.key]
                if within.setdefault(node.labels[fine.key], domain) != domain:
                    return None
    return ordered


def node_infos(
    shape: ReplicaShape, nodes: Iterable[NodeCapacity], closed: Iterable[ClosedNode], holds: Mapping[str, int]
) -> list[NodeInfo] | None:
    """Evaluate the nodes for a shape, with the pods that its rules may concern; None where those of a node are unknown.

    `holds` is how many of its pods each node has room for, by name. Capacity on an unknown one of several nodes counts
    as none.
    """
    node_seats: list[NodeInfo] = []
    concerned = _ConcernedPods(shape.rules)
    for node in nodes:
        if node.one_of:
            continue
        if node.pods is None:
            return None
        room, meant = holds.get(node.name, 0), selects_node(shape, node.labels, node.name)
        tolerated = untolerated_taint(shape.tolerations, node.taints) is None
        node_seats.append(
            NodeInfo(
                name=node.name,
                labels=node.labels,
                pods=concerned.of(node.pods),
                holds=min(room, 1) if shape.apart else room,
                meant=meant,
                tolerated=tolerated,
                # Of devices that are claimed the scheduler may find some where none could be counted.
                tempting=meant and tolerated and bool(shape.devices and node.devices),
            )
        )
    for shut in closed:
        if shut.pods is None:
            return None
        meant = selects_node(shape, shut.labels, shut.name)
        # The scheduler keeps pods off it by a taint only, and some tolerate that.
        tempting = meant and tolerates(shape.tolerations, CORDON if shut.ready else UNREADY)
        node_seats.append(
            NodeInfo(
                name=shut.name,
                labels=shut.labels,
                pods=concerned.of(shut.pods),
                meant=meant,
                closed=True,
                tempting=tempting,
            )
        )
    return node_seats


def pods_by_rules(rules: PodRules, nodes: list[NodeInfo] | None, moving: Iterable[PodOnNode | None]) -> int:
    """Count the pods that find a node by their rules; none where that is unknown."""
    return 0 if nodes is None or uncountable_rules(rules, nodes, moving) else schedulable_pods(rules, nodes)


def rules_obstacle(
    shape: ReplicaShape, rules: PodRules, nodes: list[NodeInfo] | None, moving: Iterable[PodOnNode | None]
) -> str:
    """Return the rule that keeps a shape from nodes with room; empty where no rule does."""
    demand = f"wants {describe_rules(rules)}"
    reason = UNKNOWN_PODS if nodes is None else uncountable_rules(rules, nodes, moving)
    if nodes is None or reason:
        return f"{demand}, and {reason}"
    with_room = [node for node in nodes if node.holds]
    if not with_room:
        return ""
    for rule in (*rules.together, *rules.evenly):
        if not any(rule.key in node.labels for node in with_room):
            return f"{demand}, and no node that has room has the label {rule.key}"
    schedulable = schedulable_pods(rules, nodes)
    if schedulable >= shape.group_size:
        return ""
    if not schedulable:
        return f"{demand}, which leaves none of {count(len(with_room), 'node')} that has room"
    return f"{demand}, which leaves a place for {schedulable} of {count(shape.group_size, 'pod')} of a group"
