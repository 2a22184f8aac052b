"""How many replicas OpenKruise's WorkloadSpread and UnitedDeployment have in each subset, as far as the same is meant.

All replicas burst: the primary runs none. A case's steps are whole passes, until nothing changes. Which pod of a
cluster goes is for its own controllers to say, so that of deletion costs it is compared how many go first and from
where. How the total is read is run with the kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.core.decide.distribution import ClusterShare, divide
from reconciler.core.decide.distribution.subsets import Layer, give_back, share_out
from reconciler.core.observe.kubernetes.pods import read_pod
from reconciler.core.spread.subset_selection import selects_pods
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.kubernetes.workload_spread import Subset
from reconciler.model.placement import Restraint, RestraintKind
from reconciler.model.policy import Distribution, StrategyName
from tests.builders.inputs import NOW, VLLM
from tests.builders.subsets import named, subset
from tests.conformance.cases import Case, applying, ids, not_applicable, there
from tests.conformance.passes import HOUR, ROOM, World, over, working_plan

SUITE, LISTED = "workloadspread", "workloadspread_counts"
pytestmark = there(SUITE)


def subsets(given: Sequence[Mapping[str, Any]]) -> list[Subset]:
    return [
        subset(one["name"], named(one["name"]), most=one["maxReplicas"], least=one.get("least", 0)) for one in given
    ]


def counted(pods: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Leave out the pods that are none any more."""
    made = {
        pod["name"]: {
            "metadata": {
                "name": pod["name"],
                "namespace": "demo",
                **({"deletionTimestamp": "2026-11-20T10:00:00Z"} if pod["deleting"] else {}),
            },
            "spec": {"nodeName": pod["nodeName"], "containers": []},
            "status": {"phase": pod["phase"]},
        }
        for pod in pods
    }
    read = {name: read_pod(raw) for name, raw in made.items()}
    return [pod for pod in pods if (one := read[pod["name"]]) is not None and not one.leaving]


def costs(expected: Mapping[str, str | None], pods: Sequence[Mapping[str, Any]]) -> int:
    """Count the pods that go before all that are within the maximum of their subset."""
    return sum(int(expected[pod["name"]] or 0) < 0 for pod in pods)


def layer(has: int, most: int | None, least: int = 0, room: int = 0) -> Layer:
    target = ClusterShare(cluster=ClusterName("worker-2"), rank=1, most=has + room, capacity=has + room, keeps=0)
    return Layer(shares=(target,), most=most, least=least)


@pytest.mark.parametrize("case", applying(SUITE, LISTED, "scale_in_order"))
def test_replicas_come_home_in_the_order_of_their_costs(case: Case) -> None:
    given, costs_of = case["input"], case["expected"]["deletion_cost"]
    layers = [layer(given["active_pods"][one["name"]], one["maxReplicas"]) for one in given["subsets"]]
    order = sorted((int(cost), name, pods) for name, parts in costs_of.items() for pods, cost in parts.values())
    left = dict(given["active_pods"])
    for _, name, pods in order:
        left[name] -= pods
        stays = give_back(sum(left.values()), layers, Distribution())
        assert [sum(row) for row in stays] == [left[one["name"]] for one in given["subsets"]]


@pytest.mark.parametrize("case", applying(SUITE, LISTED, "deletion_cost"))
def test_as_many_go_first_as_are_above_the_maximum(case: Case) -> None:
    given, pods = case["input"], counted(case["input"]["pods"])
    assert {pod["name"] for pod in pods} == {name for name, cost in case["expected"]["deletion_cost"].items() if cost}
    world = World(there=working_plan({"subset": len(pods)}))
    kept = world.settle(over(subset("subset", named("subset"), most=given["maxReplicas"])), len(pods))
    assert len(pods) - kept["subset"] == costs(case["expected"]["deletion_cost"], pods)


@pytest.mark.parametrize("case", applying(SUITE, LISTED, "reconcile_status"))
def test_a_subset_has_and_lacks_what_its_status_says(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    selector = given.get("targetFilter", {}).get("selector", {})
    wanted = over(*subsets(given["subsets"]), selector=selector.get("matchLabels", {}))
    spread = wanted.policies[VLLM].spread
    pods = [pod for pod in counted(given["pods"]) if selects_pods(spread, pod.get("labels", {}))]
    has = {one["name"]: sum(pod["subset"] == one["name"] for pod in pods) for one in given["subsets"]}
    lacks = World(there=working_plan(has)).missing(wanted, given["workload"].get("replicas") or 0)
    for one in expected["subsetStatuses"]:
        name, listed = one["name"], f"{case['id']}/{one['name']}" in not_applicable(LISTED)
        assert listed or (has[name], lacks[name]) == (one["replicas"], one["missingReplicas"])
    above = sum(
        max(0, has[one["name"]] - one["maxReplicas"]) for one in given["subsets"] if isinstance(one["maxReplicas"], int)
    )
    assert above == costs(expected["deletion_cost"], pods)


@pytest.mark.parametrize("case", applying(SUITE, LISTED, "initial_status"))
def test_a_subset_without_replicas_lacks_all_of_its_maximum(case: Case) -> None:
    given = case["input"]
    lacks = World().missing(over(*subsets(given["subsets"])), given["workload_replicas"] or 0)
    assert lacks == case["expected"]["missingReplicas"]


@pytest.mark.parametrize("case", applying(SUITE, LISTED, "scenario"))
def test_a_story_of_sizes_and_maximums_ends_each_step_with_the_same_replicas(case: Case) -> None:
    """Compare each step that is not listed; what was there before the spread is in no subset."""
    steps, listed, known = case["input"]["steps"], not_applicable(LISTED), []
    before = case["expected"]["steps"][0]["pods"] if "already" in steps[0].get("action", "") else {}
    world = World(there=[replace(one, subset="") for one in working_plan(before)])
    for number, (step, expected) in enumerate(zip(steps, case["expected"]["steps"], strict=True), start=1):
        known = step.get("subsets", known)
        if "object" in step:
            roles = step["object"]["spec"]["tfReplicaSpecs"]
            total, missing = roles["Worker"]["replicas"], step["pods_created"]["worker"]
        else:
            total, missing = step["replicas"], None
        wanted = over(*subsets(known))
        has = world.settle(wanted, total, missing=missing)
        assert f"{case['id']}/step-{number}" in listed or has == (expected.get("pods") or expected["replicas"])
        if "missingReplicas" in expected:
            assert world.missing(wanted, total) == expected["missingReplicas"]


@pytest.mark.parametrize("case", applying(SUITE, LISTED, "adaptive_reschedule"))
def test_a_subset_takes_replicas_unless_it_is_unschedulable(case: Case) -> None:
    given = case["input"]
    strategy = given["scheduleStrategy"]
    after = strategy["adaptive"]["rescheduleCriticalSeconds"] if strategy["type"] == "Adaptive" else None
    wanted = over(*subsets(given["subsets"]), reschedule=timedelta(seconds=after) if after else None)
    recovery = wanted.policies[VLLM].spread.recovery
    held = tuple(
        Restraint(
            kind=RestraintKind.UNSCHEDULABLE,
            cluster=ClusterName(name),
            subset=name,
            since=(since := NOW - timedelta(seconds=prior["age_seconds"])),
            until=since + recovery,
            reason="no node",
            placement=PlacementName("vllm-gone"),
        )
        for name, prior in given["prior_conditions"].items()
        if prior is not None and prior["status"] == "False"
    )
    has = World(restraints=held).settle(wanted, given["workload"]["replicas"])
    assert "False" not in case["expected"]["schedulable_condition"].values()
    assert has == {"subset-a": 5, "subset-b": 5}


@pytest.mark.parametrize("case", applying(SUITE, LISTED, "ud_min_max_allocator"))
def test_minimums_are_met_in_order_before_anything_else(case: Case) -> None:
    given = case["input"]
    bounds = zip(given["minReplicas"], given["maxReplicas"], strict=True)
    layers = [layer(0, most, least, ROOM) for least, most in bounds]
    assert [sum(row) for row in share_out(given["replicas"], layers, StrategyName.ORDERED)] == case["expected"][
        "allocation"
    ]


@pytest.mark.parametrize("case", applying(SUITE, LISTED, "ud_specific_allocator"))
def test_what_has_no_count_of_its_own_is_shared_out_evenly(case: Case) -> None:
    """Share out by Weighted, where a count of its own is a minimum and a maximum; a total below 0 is none that is said.

    UnitedDeployment serves those first that say how many they have; what is left over goes to those that have most.
    """
    given = case["input"]
    has, told = given["current"], given["specified"]
    ranked = sorted(has, key=lambda name: (name not in told, 0 if name in told else -has[name]))
    bounds = {name: (told.get(name, 0), told.get(name, ROOM)) for name in ranked}
    targets = [
        ClusterShare(cluster=ClusterName(name), rank=rank, least=bounds[name][0], most=bounds[name][1], capacity=ROOM)
        for rank, name in enumerate(ranked, start=1)
    ]
    total = given["total"] if given["total"] >= 0 else sum(told.values())
    counts = divide.share_out(total, targets, Distribution(strategy=StrategyName.WEIGHTED)).counts
    assert {name: counts.get(name, 0) for name in has} == case["expected"]["allocation"]


@pytest.mark.parametrize("case", applying(SUITE, LISTED, "ud_adaptive_allocator"))
def test_what_finds_no_node_goes_to_the_others(case: Case) -> None:
    given = case["input"]
    names = [f"subset-{number}" for number in range(len(given["current_pods"]))]
    bounds = zip(names, given["minReplicas"], given["maxReplicas"], strict=True)
    spread = [subset(name, named(name), most=most, least=least or 0) for name, least, most in bounds]
    world = World(
        there=working_plan(dict(zip(names, given["current_pods"], strict=True))),
        stuck=dict(zip(names, given["pending_pods"], strict=True)),
        restraints=tuple(
            Restraint(
                kind=RestraintKind.UNSCHEDULABLE,
                cluster=ClusterName(name),
                subset=name,
                since=NOW,
                until=NOW + HOUR,
                reason="no node",
                placement=PlacementName("vllm-gone"),
            )
            for name, closed in zip(names, given["unschedulable"], strict=True)
            if closed
        ),
    )
    has = world.settle(over(*spread, reschedule=timedelta(seconds=30)), given["replicas"])
    assert [*has.values()] == case["expected"]["allocation"]


def test_each_case_that_does_not_apply_is_there_and_says_why() -> None:
    listed = not_applicable(LISTED)
    assert {name.partition("/")[0] for name in listed} <= ids(LISTED)
    assert all(why.strip() for why in listed.values())
