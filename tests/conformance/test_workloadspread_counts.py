"""How many replicas OpenKruise's WorkloadSpread and UnitedDeployment have in each subset, as far as the same is meant.

Each subset is a cluster of its name here, and all replicas are lent: the primary runs none. A case's steps are whole
passes, one after the other until nothing changes, an hour apart. Which pod of a cluster goes is for its own controllers
to say, so that of deletion costs it is compared how many go first and from where. How the total is read is run with
the kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.core.decide import decide
from reconciler.core.distribution import Target
from reconciler.core.distribution.subsets import Layer, give_back, share_out
from reconciler.core.kubernetes.pods import read_pod
from reconciler.core.quotas import quotas
from reconciler.model.capacity import ClusterObservation, Homeless
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.placement import Placement, Restraint, RestraintKind
from reconciler.model.plan import Move, Place, Resize, Revert
from reconciler.model.policy import Desired
from reconciler.model.workloadspread import Subset
from tests.conformance.cases import Case, applying, ids, not_applicable, there
from tests.situations import NOW, VLLM, cluster, free, ledger, shape, short, situation
from tests.subsets import fleet, named, stands, subset, wanted_before

SUITE, LISTED = "workloadspread", "workloadspread_counts"
ROOM = 100
HOUR = timedelta(hours=1)
pytestmark = there(SUITE)


def subsets(given: Sequence[Mapping[str, Any]]) -> list[Subset]:
    return [
        subset(one["name"], named(one["name"]), most=one["maxReplicas"], least=one.get("least", 0)) for one in given
    ]


@dataclass
class World:
    """What stands, pass after pass; `stuck` are the replicas in a subset that find no node there."""

    there: list[Placement] = field(default_factory=list)
    restraints: tuple[Restraint, ...] = ()
    stuck: Mapping[str, int] = field(default_factory=dict)

    def settle(self, wanted: Desired, total: int, *, missing: int | None = None) -> dict[str, int]:
        """Let passes follow each other until nothing changes, and say what each subset has in the end."""
        for _ in range(10):
            made = self._pass(wanted, total, total if missing is None else missing)
            if not made:
                break
        else:
            pytest.fail("it never settles")
        spread = wanted.policies[VLLM].spread
        return {
            one.name: sum(other.replicas for other in self.there if other.subset == one.name) for one in spread.subsets
        }

    def missing(self, wanted: Desired, total: int) -> dict[str, int]:
        """Say what each subset lacks of its maximum, as Kruise's status does."""
        spread, placed = wanted.policies[VLLM].spread, sum(one.replicas for one in self.there)
        seen = situation(short(total, running=0), wanted=wanted)
        lacks = {}
        for quota in quotas(seen, VLLM, spread, placed):
            has = sum(one.replicas for one in self.there if one.subset == quota.subset.name)
            lacks[quota.subset.name] = -1 if quota.most is None else max(0, quota.most - has)
        return lacks

    def _pass(self, wanted: Desired, total: int, missing: int) -> bool:
        primary = short(missing, running=0)
        (workload,) = primary.workloads
        primary = replace(primary, workloads=(replace(workload, wanted=total),))
        seen = [self._seen(name) for name in wanted.clusters if name != "worker-1"]
        stands_now = ledger(*self.there, restraints={VLLM: self.restraints} if self.restraints else {})
        made = decide(situation(primary, *seen, wanted=wanted, there=stands_now, history=wanted_before(missing)))
        for change in made.changes:
            match change:
                case Place(placement=placement):
                    self.there.append(placement)
                case Resize(before=before, after=after) | Move(before=before, after=after):
                    self.there = [one for one in self.there if one.path not in (before.path, after.path)] + [after]
                    self._goes(before)
                case Revert(placement=placement):
                    self.there = [one for one in self.there if one.path != placement.path]
                    self._goes(placement)
        return bool(made.changes)

    def _goes(self, placement: Placement) -> None:
        """Let what was taken away be what had found no node."""
        self.stuck = {name: pods for name, pods in self.stuck.items() if name != placement.subset}

    def _seen(self, name: ClusterName) -> ClusterObservation:
        here = [one for one in self.there if one.cluster == name]
        homeless = {
            one.name: Homeless(replicas=self.stuck[one.subset], shape=shape(), since=NOW - HOUR)
            for one in here
            if self.stuck.get(one.subset)
        }
        bound = {one.name: one.replicas - self.stuck.get(one.subset, 0) for one in here}
        return free(name, ROOM, bound=bound, homeless=homeless)


def over(*given: Subset, reschedule: timedelta | None = None) -> Desired:
    """Make a fleet where each subset is a cluster of its name."""
    clusters = (cluster("worker-1"), *(cluster(one.name) for one in given))
    made = fleet(*given, clusters=clusters)
    policy = made.policies[VLLM]
    spread = replace(policy.spread, reschedule=reschedule)
    return replace(made, policies={VLLM: replace(policy, spread=spread)})


def standing(counts: Mapping[str, int]) -> list[Placement]:
    return [
        replace(stands(name, replicas, name, created=NOW - HOUR, lasting=3 * HOUR), name=PlacementName(f"vllm-{name}"))
        for name, replicas in counts.items()
        if replicas
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
    target = Target(cluster=ClusterName("worker-2"), rank=1, most=has + room, capacity=has + room, keeps=0)
    return Layer(targets=(target,), most=most, least=least)


@pytest.mark.parametrize("case", applying(SUITE, LISTED, "scale_in_order"))
def test_replicas_come_home_in_the_order_of_their_costs(case: Case) -> None:
    given, costs_of = case["input"], case["expected"]["deletion_cost"]
    layers = [layer(given["active_pods"][one["name"]], one["maxReplicas"]) for one in given["subsets"]]
    order = sorted((int(cost), name, pods) for name, parts in costs_of.items() for pods, cost in parts.values())
    left = dict(given["active_pods"])
    for _, name, pods in order:
        left[name] -= pods
        stays = give_back(sum(left.values()), layers)
        assert [sum(row) for row in stays] == [left[one["name"]] for one in given["subsets"]]


@pytest.mark.parametrize("case", applying(SUITE, LISTED, "deletion_cost"))
def test_as_many_go_first_as_are_above_the_maximum(case: Case) -> None:
    given, pods = case["input"], counted(case["input"]["pods"])
    assert {pod["name"] for pod in pods} == {name for name, cost in case["expected"]["deletion_cost"].items() if cost}
    world = World(there=standing({"subset": len(pods)}))
    kept = world.settle(over(subset("subset", named("subset"), most=given["maxReplicas"])), len(pods))
    assert len(pods) - kept["subset"] == costs(case["expected"]["deletion_cost"], pods)


@pytest.mark.parametrize("case", applying(SUITE, LISTED, "reconcile_status"))
def test_a_subset_has_and_lacks_what_its_status_says(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    pods = counted(given["pods"])
    has = {one["name"]: sum(pod["subset"] == one["name"] for pod in pods) for one in given["subsets"]}
    lacks = World(there=standing(has)).missing(over(*subsets(given["subsets"])), given["workload"]["replicas"] or 0)
    assert [(one["name"], one["replicas"], one["missingReplicas"]) for one in expected["subsetStatuses"]] == [
        (name, replicas, lacks[name]) for name, replicas in has.items()
    ]
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
    world, known = World(), []
    for step, expected in zip(case["input"]["steps"], case["expected"]["steps"], strict=True):
        known = step.get("subsets", known)
        if "object" in step:
            roles = step["object"]["spec"]["tfReplicaSpecs"]
            total, missing = roles["Worker"]["replicas"], step["pods_created"]["worker"]
        else:
            total, missing = step["replicas"], None
        wanted = over(*subsets(known))
        assert world.settle(wanted, total, missing=missing) == (expected.get("pods") or expected["replicas"])
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
    assert [sum(row) for row in share_out(given["replicas"], layers)] == case["expected"]["allocation"]


@pytest.mark.parametrize("case", applying(SUITE, LISTED, "ud_adaptive_allocator"))
def test_what_finds_no_node_goes_to_the_others(case: Case) -> None:
    given = case["input"]
    names = [f"subset-{number}" for number in range(len(given["current_pods"]))]
    bounds = zip(names, given["minReplicas"], given["maxReplicas"], strict=True)
    spread = [subset(name, named(name), most=most, least=least or 0) for name, least, most in bounds]
    world = World(
        there=standing(dict(zip(names, given["current_pods"], strict=True))),
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
    assert listed.keys() <= ids(LISTED)
    assert all(why.strip() for why in listed.values())
