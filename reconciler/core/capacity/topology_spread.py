"""How many pods fit beside one another under their own rules: pod anti-affinity, pod affinity and topology spread.

The scheduler seats pod after pod and never looks ahead, so the node that it takes first can decide how many follow. The
number counted here fits whichever node it takes: alike pods, one after another, each on any node that filters leave.

One topology spread has one answer: every domain stops when it is full, or `max_skew` above the domain that is full with
the fewest pods. Of several, only the coarsest is counted that way, and a finer one at `max_skew` pods a domain: up to
there it stops no pod. Where domains cross, as racks that span zones, one pod is certain and no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from reconciler.core.capacity.node import NodeCapacity
from reconciler.core.workloads.label_selectors import applies_for_certain, describe_rules, may_apply, ports_conflict
from reconciler.core.workloads.node_affinity import selects_node
from reconciler.core.workloads.taints import CORDON, UNREADY, tolerates, untolerated_taint
from reconciler.model.capacity import ClosedNode, ReplicaShape
from reconciler.model.scheduling import PodOnNode, PodRule, PodRules, TopologySpreadConstraint
from reconciler.text.wording import count

UNKNOWN_PODS = "nobody says which pods are on its nodes"
PODS_IN_MOTION = "pods that this is about are on their way, and nobody knows to or from which nodes"
AMBIGUOUS_PODS = "pods are there that this may or may not be about"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInfo:
    """A node as rules see it: `holds` is how many pods of a shape its resources are enough for, none if it is closed.

    It is `meant` if selector and affinity admit it, `tolerated` if its taints do. One that is `tempting` may be taken
    by the scheduler though nothing is counted there.
    """

    labels: Mapping[str, str]
    pods: tuple[PodOnNode, ...]
    holds: int = 0
    meant: bool = True
    tolerated: bool = True
    closed: bool = False
    tempting: bool = False

    def has(self, rules: Iterable[PodRule]) -> bool:
        """Tell whether it is in some domain of each rule."""
        return all(rule.key in self.labels for rule in rules)


def uncountable_rules(rules: PodRules, seats: Iterable[NodeInfo], moving: Iterable[PodRules]) -> str:
    """Say why nobody can tell what the rules leave; empty where they can be counted.

    `moving` are the rules of pods that come to the cluster or leave it, wherever there.
    """
    for other in moving:
        pod = PodOnNode(namespace=other.namespace or rules.namespace, labels=other.labels)
        if any(may_apply(rule, rules, pod) for rule in rules.all) or ports_conflict(rules.ports, other.ports):
            return PODS_IN_MOTION
    counted = (*rules.together, *rules.evenly)
    vague = [rule for rule in counted if not applies_for_certain(rule, rules)]
    for seat in seats:
        for pod in seat.pods:
            doubted = counted if pod.leaving else vague
            if any(may_apply(rule, rules, pod) for rule in doubted):
                return AMBIGUOUS_PODS
            if seat.closed and any(rule.heeds_taints and may_apply(rule, rules, pod) for rule in rules.evenly):
                return AMBIGUOUS_PODS  # nobody says which taints it has
    return ""


def schedulable_pods(rules: PodRules, seats: Sequence[NodeInfo]) -> int:
    """Count the pods that find a node one after the other, whichever nodes the scheduler takes."""
    spreads = [_SpreadDomains.of(rule, rules, seats) for rule in rules.evenly]
    left = _admitting_nodes(rules, seats)
    if not rules.together:
        return _count_upwards(rules, spreads, left, seats)
    homes = _affinity_domains(rules, seats)
    if any(homes.values()):
        near = [seat for seat in left if all(seat.labels.get(key) in home for key, home in homes.items())]
        return _count_upwards(rules, spreads, near, seats)
    groups: dict[tuple[str, ...], list[NodeInfo]] = {}
    for seat in left:
        if seat.has(rules.together):
            groups.setdefault(tuple(seat.labels[key] for key in homes), []).append(seat)
    # Whichever domain the first pod is taken to, all others have to follow it there.
    chosen = (group for group in groups.values() if any(_takes_first_pod(seat, spreads) for seat in group))
    return min((_count_upwards(rules, spreads, group, seats) for group in chosen), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SpreadDomains:
    """An even spread, how many of the pods each domain has, and the fewest that count; `few` says that zero does."""

    rule: TopologySpreadConstraint
    there: Counter[str]
    least: int
    few: bool

    @classmethod
    def of(cls, rule: TopologySpreadConstraint, rules: PodRules, seats: Iterable[NodeInfo]) -> _SpreadDomains:
        """Count the domains of all nodes that the scheduler counts, those that take no pods too."""
        pods_by_domain, open_ = Counter[str](), set[str]()
        for seat in seats:
            if not seat.has(rules.evenly) or (rule.heeds_affinity and not seat.meant):
                continue
            if rule.heeds_taints and not seat.tolerated:
                continue
            domain = seat.labels[rule.key]
            pods_by_domain[domain] += sum(may_apply(rule, rules, pod) for pod in seat.pods)
            if not (seat.closed and rule.heeds_taints):
                open_.add(domain)
        few = len(open_) < rule.min_domains
        return cls(
            rule=rule, there=pods_by_domain, least=0 if few else min(pods_by_domain.values(), default=0), few=few
        )

    def spare(self, domain: str) -> int:
        """Count the pods that a domain takes before any other has got one."""
        return max(0, self.rule.max_skew + self.least - self.there[domain])

    def filled(self, holds: Mapping[str, int]) -> int:
        """Count the pods that domains take in the end, of which each has room for so many."""
        fewest = (
            0
            if self.few
            else min((have + holds.get(domain_value, 0) for domain_value, have in self.there.items()), default=0)
        )
        top = fewest + self.rule.max_skew
        return sum(min(room, max(0, top - self.there[domain])) for domain, room in holds.items())


def _admitting_nodes(rules: PodRules, seats: Iterable[NodeInfo]) -> list[NodeInfo]:
    """Leave what ports and the pods that are there leave of each node."""
    taken = [
        {seat.labels.get(rule.key) for seat in seats if any(may_apply(rule, rules, pod) for pod in seat.pods)} - {None}
        for rule in rules.apart
    ]
    left: list[NodeInfo] = []
    for seat in seats:
        shut = any(seat.labels.get(rule.key) in domains for rule, domains in zip(rules.apart, taken, strict=True))
        if shut or any(ports_conflict(rules.ports, pod.ports) for pod in seat.pods):
            continue
        left.append(replace(seat, holds=min(seat.holds, 1)) if rules.ports else seat)
    return left


def _affinity_domains(rules: PodRules, seats: Iterable[NodeInfo]) -> dict[str, set[str]]:
    """Find the domains that pods have to join, by key: those of pods that all the rules are about."""
    homes: dict[str, set[str]] = {rule.key: set() for rule in rules.together}
    for seat in seats:
        if any(all(may_apply(rule, rules, pod) for rule in rules.together) for pod in seat.pods):
            for key in homes.keys() & seat.labels.keys():
                homes[key].add(seat.labels[key])
    return homes


def _takes_first_pod(seat: NodeInfo, spreads: Iterable[_SpreadDomains]) -> bool:
    """Tell whether the first pod may be taken to a node, be it a foolish choice."""
    if not seat.holds and not seat.tempting:
        return False
    return all(spread.rule.key in seat.labels and spread.spare(seat.labels[spread.rule.key]) for spread in spreads)


def _count_upwards(
    rules: PodRules, spreads: Sequence[_SpreadDomains], left: Iterable[NodeInfo], seats: Iterable[NodeInfo]
) -> int:
    """Count from the finest domains up what each takes at the least before its rule stops it."""
    usable = [seat for seat in left if seat.holds and seat.has(rules.all)]
    by_key = {spread.rule: spread for spread in spreads}
    ordered = _fine_to_coarse((*rules.apart, *rules.evenly), seats)
    if ordered is None:
        return int(any(_takes_first_pod(seat, spreads) for seat in usable))
    rooms = [(seat.labels, seat.holds) for seat in usable]
    for rule in ordered:
        holds, stands = Counter[str](), dict[str, Mapping[str, str]]()
        for labels, room in rooms:
            holds[labels[rule.key]] += room
            stands[labels[rule.key]] = labels
        spread = by_key.get(rule) if isinstance(rule, TopologySpreadConstraint) else None
        if spread is None:
            rooms = [(stands[domain], min(1, room)) for domain, room in holds.items()]
        elif rule is ordered[-1] and not rules.together:
            return spread.filled(holds)
        else:
            rooms = [(stands[domain], min(spread.spare(domain), room)) for domain, room in holds.items()]
    return sum(room for _, room in rooms)


def _fine_to_coarse(rules: Iterable[PodRule], seats: Iterable[NodeInfo]) -> list[PodRule] | None:
    """Sort rules from fine to coarse; None where a domain of one is not within one of a coarser."""
    whole = list(seats)
    values = {key: {seat.labels.get(key) for seat in whole} for key in {rule.key for rule in rules}}
    ordered = sorted(
        rules, key=lambda rule: (-len(values[rule.key]), rule.key, isinstance(rule, TopologySpreadConstraint))
    )
    for fine, coarse in combinations(ordered, 2):
        within: dict[str, str] = {}
        for seat in whole:
            if seat.has((fine, coarse)):
                domain = seat.labels[coarse.key]
                if within.setdefault(seat.labels[fine.key], domain) != domain:
                    return None
    return ordered


def node_infos(
    shape: ReplicaShape, nodes: Iterable[NodeCapacity], closed: Iterable[ClosedNode], holds: Mapping[str, int]
) -> list[NodeInfo] | None:
    """Seat a shape: `holds` is how many of its pods each node has room for, by name; None where nobody knows the pods.

    Room of which nobody knows on which of several nodes it is counts as none.
    """
    node_seats: list[NodeInfo] = []
    for node in nodes:
        if node.one_of:
            continue
        if node.pods is None:
            return None
        room, meant = holds.get(node.name, 0), selects_node(shape, node.labels, node.name)
        tolerated = untolerated_taint(shape.tolerations, node.taints) is None
        node_seats.append(
            NodeInfo(
                labels=node.labels,
                pods=node.pods,
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
        node_seats.append(NodeInfo(labels=shut.labels, pods=shut.pods, meant=meant, closed=True, tempting=tempting))
    return node_seats


def pods_by_rules(rules: PodRules, places: list[NodeInfo] | None, moving: Iterable[PodRules]) -> int:
    """Count the pods that find a place by their rules; none where nobody can tell."""
    return 0 if places is None or uncountable_rules(rules, places, moving) else schedulable_pods(rules, places)


def rules_obstacle(
    shape: ReplicaShape, rules: PodRules, places: list[NodeInfo] | None, moving: Iterable[PodRules]
) -> str:
    """Say what in the rules keeps a shape from nodes that it has room on; empty where it is not the rules."""
    wants = f"wants {describe_rules(rules)}"
    why = UNKNOWN_PODS if places is None else uncountable_rules(rules, places, moving)
    if places is None or why:
        return f"{wants}, and {why}"
    roomy = [seat for seat in places if seat.holds]
    if not roomy:
        return ""
    for rule in rules.all:
        if not any(rule.key in seat.labels for seat in roomy):
            return f"{wants}, and no node that has room has the label {rule.key}"
    able = schedulable_pods(rules, places)
    if able >= shape.group_size:
        return ""
    if not able:
        return f"{wants}, which leaves none of {count(len(roomy), 'node')} that has room"
    return f"{wants}, which leaves a place for {able} of {count(shape.group_size, 'pod')} of a group"
