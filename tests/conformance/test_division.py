"""How Karmada, KubeAdmiral, OpenKruise and OCM divide replicas, as far as Overspill means the same.

Each case goes through the functions that a pass goes through: `cluster_order` for weights and limits, `share_out` for
more replicas, `give_back` for fewer; `anew` is what `overspill rebalance` goes by. Where peers fail, Overspill places
what it may and tells what is left over; where they let replicas wait in a cluster beyond its capacity ("overflow"), it
places none, and only their plan is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from reconciler.core.decide.distribution import ClusterShare, Layer, choose, give_back, ordered, share_out
from reconciler.core.decide.distribution.webster import Claim, apportion
from reconciler.core.fleet.cluster_order import ordered_candidates
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.model.policy import BurstPolicy, ClusterPreference, Distribution, StrategyName, Workspace
from tests.builders.cluster_shares import stays
from tests.builders.inputs import cluster, desired, free, ledger, ordering, placement, plan, short
from tests.builders.plans import begun
from tests.conformance.cases import Case, cases, fnv, not_applicable, there
from tests.conformance.given import given

ALL = 10**6
"""Room without end."""

SUITE = "division"
CASES = cases(SUITE)
LISTED = not_applicable(SUITE)
STRATEGIES = {
    "binpack": StrategyName.ORDERED,
    "weighted": StrategyName.WEIGHTED,
    "DynamicWeight": StrategyName.BALANCED,
    "Aggregated": StrategyName.AGGREGATED,
}

Counts = Mapping[str, int]


def some(counts: Counts) -> dict[str, int]:
    """Leave out who has none: a placement of no replicas is none."""
    return {name: replicas for name, replicas in counts.items() if replicas}


def target(name: str, rank: int, *, keeps: int = 0, room: int = ALL, weight: int = 1) -> ClusterShare:
    """Make the target that a case tells of; `room` counts what it keeps."""
    return ClusterShare(cluster=ClusterName(name), rank=rank, keeps=keeps, most=room, capacity=room, weight=weight)


def divided(total: int, targets: Iterable[ClusterShare], strategy: StrategyName) -> dict[str, int]:
    """Bring a workload to a total as a pass does: more is shared out, and less is given back."""
    targets, distribution = list(targets), Distribution(strategy=strategy)
    if total >= sum(target.keeps for target in targets):
        return some(share_out(total, targets, distribution).counts)
    there = [
        ClusterShare(
            cluster=target.cluster,
            rank=target.rank,
            most=target.keeps,
            capacity=target.capacity,
            least=target.least,
            weight=target.weight,
        )
        for target in targets
    ]
    return some(stays(total, there, distribution))


def outcome(counts: Counts, total: int) -> dict[str, Any]:
    """Say what came of it as the cases do: an error where some are left over."""
    left = total - sum(counts.values())
    return {"error": True} if left else {"error": False, "assignment": counts}


def expected(case: Case) -> list[dict[str, Any]]:
    """List the outcomes that a case allows."""
    said = case["expected"]
    if said["error"]:
        return [{"error": True}]
    ways = said.get("any_of") or [said["assignment"]]
    return [{"error": False, "assignment": some(way)} for way in ways]


def webster(case: Case) -> None:
    given = case["input"]
    names = sorted({*given["votes"], *given["initial_seats"]})
    claims = [
        Claim(
            weight=(given.get("votes") or {}).get(name, 0),
            seats=(given.get("initial_seats") or {}).get(name, 0),
            most=ALL,
            rank=rank,
        )
        for rank, name in enumerate(names, start=1)
    ]
    seats = dict(zip(names, apportion(given["new_seats"], claims), strict=True))
    assert seats == (case["expected"]["seats"] or {})


def weighted_dispense(case: Case) -> None:
    given = case["input"]
    backwards = bool(given["uid"]) and fnv(given["uid"], last=True) % 2 == 1
    ranked = sorted(given["clusters"], key=lambda one: one["name"], reverse=backwards)
    targets = [
        target(one["name"], rank, weight=one["weight"], keeps=(given.get("initial") or {}).get(one["name"], 0))
        for rank, one in enumerate(ranked, start=1)
    ]
    total = given["new_replicas"] + sum((given.get("initial") or {}).values())
    assert outcome(divided(total, targets, StrategyName.WEIGHTED), total) in expected(case)


def static_weight(case: Case) -> None:
    given = case["input"]
    rules = given["weight_rules"]
    candidates = [
        ClusterPreference(name=ClusterName(name), weight=rule["weight"])
        for rule in rules or ()
        for name in rule["clusters"]
    ]
    space = Workspace(
        name=WorkspaceName("llm"),
        primary=ClusterName("home"),
        clusters=tuple(ClusterName(name) for name in given["clusters"]),
    )
    there = {ClusterName(name): cluster(name) for name in given["clusters"]}
    candidates = ordered_candidates(BurstPolicy(name="gpu", candidates=tuple(candidates)), space, there)
    targets = [
        target(
            candidate.cluster,
            candidate.rank,
            weight=candidate.weight,
            keeps=(given.get("previous") or {}).get(candidate.cluster, 0),
        )
        for candidate in candidates
    ]
    total = given["desired"]
    assert outcome(divided(total, targets, StrategyName.WEIGHTED), total) in expected(case)


def fresh(targets: list[ClusterShare]) -> list[ClusterShare]:
    """Keep nothing on any cluster, as a rebalance does."""
    return [share._replace(keeps=0) for share in targets]


def dynamic_division(case: Case) -> None:
    given = case["input"]
    previous = given["previous"]
    targets = [
        target(
            one["name"],
            rank,
            keeps=previous.get(one["name"], 0),
            room=previous.get(one["name"], 0) + one["available"],
        )
        for rank, one in enumerate(sorted(given["clusters"], key=lambda one: one["name"]), start=1)
    ]
    total, strategy = given["desired"], STRATEGIES[given["strategy"]]
    divide = {
        "Steady": lambda: divided(total, targets, strategy),
        "Fresh": lambda: divided(total, fresh(targets), strategy),
    }
    assert outcome(divide[given["mode"]](), total) in expected(case)


def overflow_tiers(case: Case) -> None:
    given = case["input"]
    targets = [
        target(
            one["name"],
            rank,
            keeps=(given.get("previous") or {}).get(one["name"], 0),
            room=one["available_incl_assigned"],
        )
        for rank, one in enumerate(sorted(given["clusters"], key=lambda one: one["tier"]), start=1)
    ]
    total = given["desired"]
    assert outcome(divided(total, targets, StrategyName.ORDERED), total) in expected(case)


def binpack(case: Case) -> None:
    given, total = case["input"], case["input"]["desired"]
    targets = [
        ClusterShare(
            cluster=one["cluster"],
            rank=rank,
            least=one["min"],
            most=(most := _least(one["max"], (given.get("estimated_capacity") or {}).get(one["cluster"]))),
            capacity=most,
        )
        for rank, one in enumerate(given["ordered_clusters"], start=1)
    ]
    assert divided(total, targets, StrategyName.ORDERED) == some(case["expected"]["plan"])
    assert case["expected"]["overflow"] == {}


def converged(case: Case) -> None:
    """Compare with what KubeAdmiral comes to where it avoids disruption, as a pass does, and where not, as `rebalance`.

    What a cluster has beyond what it holds counts as not there, as pods without a node; one without a preference is no
    candidate.
    """
    given, total = case["input"], case["input"]["desired"]
    strategy = STRATEGIES[given["algorithm"]]
    anybody = (given.get("preferences") or {}).get("*", {} if strategy is StrategyName.ORDERED else None)
    likings = {name: (given.get("preferences") or {}).get(name, anybody) for name in given["clusters"]}
    liked = [(name, liking) for name, liking in likings.items() if liking is not None]
    if strategy is StrategyName.WEIGHTED:  # the heaviest first there, and by a hash of the name among these
        liked.sort(key=lambda one: (-one[1].get("weight", 0), fnv(one[0], last=False)))
    targets = []
    for rank, (name, liking) in enumerate(liked, start=1):
        most = _least(
            liking.get("max"),
            (given.get("actual_capacity") or {}).get(name),
            (given.get("limited_capacity") or {}).get(name),
        )
        targets.append(
            ClusterShare(
                cluster=name,
                rank=rank,
                keeps=min(most, (given.get("existing") or {}).get(name, 0)),
                most=most,
                capacity=most,
                least=liking.get("min", 0),
                weight=liking.get("weight", 1),
            )
        )
    plans = {"steady": divided(total, targets, strategy), "fresh": divided(total, fresh(targets), strategy)}
    for variant in case["expected"]:
        way = "steady" if variant["avoid_disruption"] else "fresh"
        if f"{case['id']}/{way}" not in LISTED:
            assert plans[way] == some(variant["plan"])


def _least(*bounds: int | None) -> int:
    return min((bound for bound in bounds if bound is not None), default=ALL)


def select_clusters(case: Case) -> None:
    given = case["input"]
    targets = [
        ClusterShare(cluster=one["name"], rank=rank, most=one["available"], capacity=one["available"])
        for rank, one in enumerate(given["clusters"], start=1)
    ]
    bounds = Distribution(min_clusters=given["min_clusters"], max_clusters=given["max_clusters"])
    chosen = choose(given["need_replicas"], targets, bounds, ordered.precedence)
    assert [target.cluster for target in chosen] == case["expected"]["selected"]


def drain_order(case: Case) -> None:
    """Give back one after the other, and note who gives back when; of subsets, of which each is a cluster here."""
    given = case["input"]
    layers = [
        Layer(shares=(target(one["name"], 1, room=given["pods"][one["name"]]),), most=one["max"])
        for one in given["subsets_in_order"]
    ]
    gone, before = [], dict(given["pods"])
    for total in reversed(range(sum((given.get("pods") or {}).values()))):
        rows = give_back(total, layers, Distribution())
        now = {layer.shares[0].cluster: row[0] for layer, row in zip(layers, rows, strict=True)}
        gone += [name for name in before if now[name] < before[name]]
        before = dict(now)
    assert list(dict.fromkeys(gone)) == case["expected"]["deletion_order"]


def ocm_taint_filter(case: Case) -> None:
    """Offer each cluster a replica, or let it keep the one that it has.

    NoSelectIfNew is what NoSchedule means for a cluster here: it keeps what is new away.
    """
    effects = {"NoSelect": "NoExecute", "NoSelectIfNew": "NoSchedule", "PreferNoSelect": "PreferNoSchedule"}
    given = case["input"]
    tolerations = tuple(
        Toleration(
            key=one["key"], operator=one["operator"], value=one["value"], effect=effects.get(one.get("effect"), "")
        )
        for one in (given.get("placement") or {}).get("tolerations", ())
    )
    has = {name for one in given["existing_decisions"] for name in one["clusters"]}
    selected = []
    for one in given["clusters"]:
        taints = tuple(Taint(key=it["key"], value=it["value"], effect=effects[it["effect"]]) for it in one["taints"])
        name = one["name"]
        wanted = desired(
            ordering(name, tolerations=tolerations),
            clusters=(cluster("worker-1"), cluster(name, taints=taints)),
        )
        working_plan = [placement(name, 1)] if name in has else []
        made = plan(short(1), free(name, 8), wanted=wanted, there=ledger(*working_plan))
        if working_plan:
            selected += [] if made.changes else [name]
        else:
            selected += [placement.cluster for placement in begun(made)]
    assert selected == case["expected"]["clusters"]


KINDS: Mapping[str, Callable[[Case], None]] = {
    "webster": webster,
    "weighted_dispense": weighted_dispense,
    "static_weight": static_weight,
    "dynamic_division": dynamic_division,
    "overflow_tiers": overflow_tiers,
    "kubeadmiral_binpack_plan": binpack,
    "kubeadmiral_plan_converged": converged,
    "select_clusters": select_clusters,
    "drain_order": drain_order,
    "ocm_taint_filter": ocm_taint_filter,
}
RUN = [case | {"input": given(case["input"])} for case in CASES if case["id"] not in LISTED]


@there(SUITE)
@pytest.mark.parametrize("case", RUN, ids=lambda case: f"{case['kind']}-{case['id']}")
def test_a_peers_case_comes_out_the_same(case: Case) -> None:
    KINDS[case["kind"]](case)


@there(SUITE)
def test_every_case_is_either_run_or_listed_with_its_reason() -> None:
    ids = {case["id"] for case in CASES}
    whole = {name for name in LISTED if "/" not in name}
    parts = {name.partition("/")[0] for name in LISTED} - whole
    assert whole <= ids
    assert parts <= ids - whole
    assert all(reason.strip() for reason in LISTED.values())
    assert {case["kind"] for case in RUN} <= {*KINDS}
