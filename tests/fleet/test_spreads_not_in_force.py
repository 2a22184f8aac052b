"""A WorkloadSpread that is not in force places nothing, and one that cannot divide replicas still bounds clusters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.core.fleet.file import AbsentSpread
from reconciler.core.fleet.read_file import parse_file
from reconciler.daemon.source import SourceReader
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation
from reconciler.model.kubernetes.workload_spread import Subset
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import BurstPolicy, Desired, Distribution, StrategyName
from reconciler.model.workload import Json
from tests.builders.fleet_files import FLEET, errors, load
from tests.builders.group_bursts import SET, fleet, lacks, roomy
from tests.builders.inputs import cluster, desired, free, ordering, plan, short
from tests.builders.remote import Remote
from tests.builders.spread_files import HEAD, fleet_for, spread
from tests.builders.spread_files import VLLM as FILED
from tests.builders.subsets import spreading, subset, term

SUBSETS = "subsets: [{name: all}]"
BROKEN = {
    "a limit below nothing": spread("subsets: [{name: all, maxReplicas: -1}]"),
    "no subsets": spread("subsets: []"),
    "an unknown field": spread("subsets: [{name: all, nodeSelektor: {}}]"),
    "an unknown type": spread("subsets: {name: all}"),
    "no target": HEAD.replace("targetRef:", "targtRef:") + f"  {SUBSETS}\n",
    "a kind that is not permitted": spread(
        SUBSETS, head=HEAD.replace("apps/v1, kind: Deployment", "x.example.com/v1, kind: Any")
    ),
    "no YAML": spread(SUBSETS) + "  ]\n",
    "a workspace that nobody describes": spread(SUBSETS).replace(
        "  name: vllm\n", "  name: vllm\n  annotations: {overspill.dev/workspace: nobody}\n", 1
    ),
}


@pytest.mark.parametrize("source", BROKEN.values(), ids=BROKEN)
def test_nothing_new_is_placed_for_the_target_of_a_spread_without_a_good_version(source: str) -> None:
    made = load({**FLEET, "s.yaml": source})
    assert errors(made)
    assert made.policies[FILED].stalled


def test_the_reader_of_a_repository_places_nothing_either_until_the_file_is_mended(
    remote: Remote, repository: GitRepository
) -> None:
    reader = SourceReader(repository)
    broken = remote.commit("main", {**FLEET, "s.yaml": BROKEN["a kind that is not permitted"]})
    repository.fetch()
    assert reader.desired(broken).policies[FILED].stalled
    mended = remote.commit("main", {"s.yaml": spread()})
    repository.fetch()
    policy = reader.desired(mended).policies[FILED]
    assert (policy.stalled, policy.spread is not None) == ("", True)


def test_a_spread_of_another_namespace_stalls_nothing() -> None:
    elsewhere = BROKEN["no subsets"].replace("llm-demo", "chat-demo")
    assert load({**FLEET, "s.yaml": elsewhere}).policies[FILED].stalled == ""


def test_the_targets_of_a_file_that_is_no_yaml_are_its_names_in_its_namespaces() -> None:
    absent = parse_file(BROKEN["no YAML"].encode()).spreads
    assert AbsentSpread(namespace="llm-demo", name="vllm") in absent
    assert {spread.namespace for spread in absent} == {"llm-demo"}


def placed(decided: Plan) -> list[str]:
    return [change.placement.cluster for change in decided.changes if change.action is Action.PLACE]


def test_a_stalled_workload_says_why_and_how_to_go_on() -> None:
    wanted = desired(replace(ordering("worker-2"), stalled="its spread is broken"))
    decided = plan(short(2), free("worker-2", 8), wanted=wanted)
    assert placed(decided) == []
    (held,) = decided.suppressed
    assert held.reason is Reason.SPREAD_NOT_IN_FORCE
    assert held.message == "its spread is broken (mend its file: `overspill check` tells the problem)"


ZONES = (
    cluster("worker-1", labels={"zone": "home"}),
    cluster("worker-2", labels={"zone": "a"}),
    cluster("worker-3", labels={"zone": "b"}),
)


def bounded(policy: BurstPolicy, only: Subset) -> BurstPolicy:
    return replace(policy, bounds=spreading(only).spread)


def gang(policy: BurstPolicy, *made: Json) -> Desired:
    return fleet(*(made or (SET,)), policy=policy, clusters=ZONES)


def room() -> tuple[ClusterObservation, ...]:
    return roomy("worker-2", 8, 8, 8, 8), roomy("worker-3", 8, 8, 8, 8)


def test_a_set_in_groups_keeps_to_the_clusters_that_its_spread_allows() -> None:
    policy = ordering("worker-2", "worker-3")
    assert placed(plan(lacks(4), *room(), wanted=gang(policy))) == ["worker-2"]
    inside = bounded(policy, subset("b", term(zone="b")))
    assert placed(plan(lacks(4), *room(), wanted=gang(inside))) == ["worker-3"]


@pytest.mark.parametrize(
    "only",
    [subset("c", term(zone="c")), subset("b", term(zone="b"), most=0), subset("pool", term(zone="b", pool="fast"))],
    ids=["no cluster is of it", "it may have none", "it allows some nodes of a cluster only"],
)
def test_a_set_that_no_cluster_may_have_as_a_whole_waits_with_the_reason(only: Subset) -> None:
    decided = plan(lacks(4), *room(), wanted=gang(bounded(ordering("worker-2", "worker-3"), only)))
    assert placed(decided) == []
    (held,) = decided.suppressed
    assert {refusal.reason for refusal in held.refusals} == {Reason.NOT_IN_POLICY}
    assert "in no subset of WorkloadSpread demo/pools as a whole" in held.refusals[0].message


def test_a_policy_with_a_distribution_keeps_to_them_as_well() -> None:
    shared = replace(ordering("worker-2", "worker-3"), distribution=Distribution(strategy=StrategyName.BALANCED))
    wanted = desired(bounded(shared, subset("b", term(zone="b"))), clusters=ZONES)
    assert placed(plan(short(2), free("worker-2", 8), free("worker-3", 8), wanted=wanted)) == ["worker-3"]


def test_the_spread_of_a_set_in_a_file_bounds_its_clusters() -> None:
    files = fleet_for("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", "vllm", "llm-demo")
    note = "  name: vllm\n  annotations: {overspill.dev/workload: LeaderWorkerSet/llm-demo/vllm}\n"
    files["templates/vllm.yaml"] = files["templates/vllm.yaml"].replace("  name: vllm\n", note, 1)
    head = HEAD.replace("apps/v1, kind: Deployment", "leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet")
    policy = load({**files, "s.yaml": spread(SUBSETS, head=head)}).policies[FILED]
    assert (policy.spread, policy.bounds is not None, policy.stalled) == (None, True, "")


def test_a_spread_beside_what_keeps_its_file_out_of_force_stalls_its_target(
    remote: Remote, repository: GitRepository
) -> None:
    twice = FLEET["policies/gpu.yaml"]
    commit = remote.commit("main", {**FLEET, "policies/two.yaml": f"{spread()}---\n{twice}"})
    repository.fetch()
    assert SourceReader(repository).desired(commit).policies[FILED].stalled


def test_a_file_that_may_hold_no_spread_stalls_nothing() -> None:
    kept = "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\n"
    files = {**FLEET, "fleet.yaml": f"{kept}spec: {{paths: {{WorkloadSpread: ['spreads/**']}}}}\n"}
    assert load({**files, "s.yaml": BROKEN["no subsets"]}).policies[FILED].stalled == ""
    assert load({**files, "spreads/s.yaml": BROKEN["no subsets"]}).policies[FILED].stalled
