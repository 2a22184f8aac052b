"""Kueue's MultiKueue with LeaderWorkerSet, and LeaderWorkerSet's own rules, as far as Overspill means the same.

What MultiKueue calls a worker is a cluster that a set may go to, its admission check Ready is a placement that stands,
and Retry after a lost worker is a move. The sizes of groups are in `test_kinds`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.capacity.exclusive_topology import subgroup_of
from reconciler.core.capacity.pod_requirements import pods_of_request
from reconciler.core.commits.templates import render_templates
from reconciler.core.decide.decide import decide
from reconciler.core.fleet.cluster_order import ordered_candidates
from reconciler.core.validation.admission.table import check_admission
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.model.action import Action
from reconciler.model.capacity import Node, Pool
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Plan
from reconciler.model.policy import Desired, Fleet
from reconciler.model.workload import Json
from tests.builders.group_bursts import SET, burst, fleet, lacks
from tests.builders.inputs import NOW, SOURCE, VLLM, cluster, free, gpus, inputs, ledger, ordering, plan, seconds
from tests.builders.requests import holds, manifests, record, request, wants
from tests.builders.workload_kinds import template, workload
from tests.capacity.test_exclusive_topology import EXCLUSIVE
from tests.conformance.cases import Case, applying, ids, not_applicable, there

LISTED = not_applicable("groups")
ROOM = [8] * 8
HOURS = timedelta(hours=2)
pytestmark = there("lws")

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "replicas": ("replicas",),
    "startupPolicy": ("startupPolicy",),
    "size": ("leaderWorkerTemplate", "size"),
    "restartPolicy": ("leaderWorkerTemplate", "restartPolicy"),
    "subGroupSize": ("leaderWorkerTemplate", "subGroupPolicy", "subGroupSize"),
    "subGroupType": ("leaderWorkerTemplate", "subGroupPolicy", "subGroupPolicyType"),
    "subdomainPolicy": ("networkConfig", "subdomainPolicy"),
    "maxUnavailable": ("rolloutStrategy", "rollingUpdateConfiguration", "maxUnavailable"),
    "maxSurge": ("rolloutStrategy", "rollingUpdateConfiguration", "maxSurge"),
    "partition": ("rolloutStrategy", "rollingUpdateConfiguration", "partition"),
    **dict.fromkeys(
        ("rolloutStrategy.type", "rolloutStrategyType", "rolloutType", "type"), ("rolloutStrategy", "type")
    ),
    "networkConfig": ("networkConfig",),
    "subGroupPolicy": ("leaderWorkerTemplate", "subGroupPolicy"),
    "rolloutStrategy": ("rolloutStrategy",),
    "rollingUpdateConfiguration": ("rolloutStrategy", "rollingUpdateConfiguration"),
}
_TEMPLATES = {"leaderTemplate", "workerTemplate"}
"""Fields for which the cases have words in place of a pod template, as ``leader pod spec``."""


def lws(fields: Mapping[str, Json]) -> Json:
    """Make a LeaderWorkerSet of the flat fields of a case; those that are null are not written.

    A field that is not known here is a KeyError: nothing is dropped before the set is judged.
    """
    spec: dict[str, Json] = {"leaderWorkerTemplate": {"workerTemplate": template(8)}}
    metadata: dict[str, Json] = {}
    for name, value in fields.items():
        if name in ("name", "annotations", "labels", "namespace"):
            metadata |= {} if value is None else {name: value}
            continue
        if name == "status" or (name in _TEMPLATES and (value is None or isinstance(value, str))):
            continue  # a controller writes the status
        *parents, last = ("leaderWorkerTemplate", name) if name in _TEMPLATES else _FIELDS[name]
        if value is None:
            continue
        inner = spec
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = value
    return workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec, **metadata)


def field_of(made: Json, name: str) -> Json:
    value = made["spec"]
    for part in _FIELDS[name]:
        value = value[part]
    return value


def wrong(fields: Mapping[str, Json]) -> bool:
    return bool([*check_admission(lws(fields), (), NO_KINDS, rendered=False)])


@pytest.mark.parametrize("case", applying("lws", "groups", "lws_validation"))
def test_a_set_is_refused_where_its_webhook_refuses_it(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    created = given["base"] | given["create"]
    assert wrong(created) is expected["create_fails"]
    if expected["update_fails"] is not None:
        assert wrong(created | given["update"]) is expected["update_fails"]


@pytest.mark.parametrize("case", applying("lws", "groups", "lws_defaulting"))
def test_what_is_not_written_is_counted_by_its_default_and_what_is_written_stays(case: Case) -> None:
    given, expected = case["input"], case["expected"]["fields"]
    made = lws(given["base"] | given["changes"])
    if any(value is None for value in given["changes"].values()):
        (gang,) = pods_of_request(request(spec=manifests(made))).gangs
        counted = {"replicas": gang.groups, "size": gang.size}
        assert {name: counted[name] for name in given["changes"]} == {name: expected[name] for name in given["changes"]}
        return
    wanted = fleet(made, reads_replicas=False)
    (rendered,) = render_templates(plan(lacks(1), free("worker-2", *ROOM), wanted=wanted), wanted).values()
    assert rendered.spec is not None
    assert {name: field_of(rendered.spec.manifests[0].manifest, name) for name in expected} == expected


@pytest.mark.parametrize("case", applying("lws", "groups", "lws_subgroup_index"))
def test_a_pod_is_in_the_subgroup_that_leaderworkerset_puts_it_in(case: Case) -> None:
    given = case["input"]
    found = subgroup_of(given["size"], given["subGroupSize"], given["worker_index"])
    assert str(found) == case["expected"]["subgroup_index"]


@pytest.mark.parametrize("case", applying("lws", "groups", "mk_adapter"))
def test_a_set_is_made_deleted_and_refused_as_the_adapter_does(case: Case) -> None:
    given = case["input"]
    match given["operation"]:
        case "SyncJob":
            (change,) = plan(lacks(8), free("worker-2", *ROOM), wanted=fleet(SET)).changes
            assert change.action is Action.PLACE
            assert len(case["expected"]["worker"]) == 1
        case "DeleteRemoteObject":
            assert removed(gone(fleet(SET)))
            assert case["expected"]["worker"] == []
        case _:
            (made,) = given.get("manager") or [given["lws"]]
            assert wrong(made)
            assert case["expected"]["error"]


@pytest.mark.parametrize("case", applying("lws", "groups", "incremental_nominate"))
def test_clusters_are_asked_in_the_order_in_which_they_are_configured(case: Case) -> None:
    given = case["input"]
    names = [name.lower() for name in given["clusters_in_config_order"]]
    clusters = [cluster("worker-1"), *(cluster(name) for name in names)]
    wanted = fleet(SET, policy=ordering(*names or ["worker-1"]), clusters=clusters)
    if not names:
        assert plan(lacks(8), wanted=wanted).changes == ()
        assert case["expected"]["error"]
        return
    nominated = [name.lower() for name in case["expected"]["nominated"]]
    assert asked(wanted)[: len(nominated)] == nominated
    last = None if case["expected"]["error"] else nominated[-1]
    made = plan(lacks(8), *(free(name, *(ROOM if name == last else [])) for name in names), wanted=wanted)
    if last is None:  # all have been asked, and none has room
        (waiting,) = made.suppressed
        assert (made.changes, [refusal.cluster for refusal in waiting.refusals]) == ((), nominated)
        return
    (change,) = made.changes
    assert change.action is Action.PLACE
    assert change.placement.cluster == last
    assert [refusal.cluster for refusal in change.refused] == nominated[:-1]


def asked(wanted: Desired) -> list[str]:
    """List the clusters that are asked, the first of them first."""
    return [
        candidate.cluster
        for candidate in ordered_candidates(wanted.policies[VLLM], wanted.workspaces[VLLM.workspace], wanted.clusters)
    ]


@pytest.mark.parametrize("case", applying("lws", "groups", "dispatch_modes"))
def test_a_set_goes_to_clusters_that_are_named_and_stays_when_they_are_named_in_another_order(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    has = [name for name, there_ in given["remotes_having_workload"].items() if there_]
    clusters = [cluster(name) for name in ("worker-1", *given["remotes_having_workload"])]
    wanted = fleet(SET, policy=ordering(*given["nominated"]), clusters=clusters)
    if not has:
        assert asked(wanted) == expected["created_on"]
        return
    before = burst(has[0], 2, lasting=HOURS)
    assert given["nominated"][0] != has[0]
    seen = (free(name, *ROOM, bound={before.name: 8} if name == has[0] else {}) for name in has)
    assert plan(lacks(8), *seen, wanted=wanted, there=ledger(before)).changes == ()
    assert expected["created_on"] == []


@pytest.mark.parametrize("case", applying("lws", "groups", "group_workloads"))
def test_groups_that_surge_in_a_rolling_update_are_not_taken_for_too_many(case: Case) -> None:
    given = case["input"]
    written = given["lws"]
    replicas, size = (1 if written.get(name) is None else written[name] for name in ("replicas", "size"))
    indexes = case["expected"].get("workload_indexes")
    groups = replicas if indexes is None else len(indexes)
    made = lws({**written, "replicas": "{{ replicas }}"})
    before = burst(groups=replicas, size=size, lasting=HOURS)
    seen = free("worker-2", *ROOM, bound={before.name: groups}, ready={before.name: groups})
    assert groups >= replicas
    assert plan(lacks(replicas * size), seen, wanted=fleet(made), there=ledger(before)).changes == ()


@pytest.mark.parametrize("case", applying("lws", "groups", "lws_exclusive_topology"))
def test_a_group_has_the_domain_that_its_affinities_come_to(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    made = workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", SET["spec"] | {"replicas": 2})
    made["metadata"]["annotations"] = {EXCLUSIVE: given["topology_key"]}
    (domains,) = pods_of_request(request(spec=manifests(made))).domains
    terms = [term for name in ("podAffinity", "podAntiAffinity") for term in expected.get(name) or ()]
    assert {term["topologyKey"] for term in terms} == {domains.key}
    assert {one["key"] for term in terms for one in term["matchExpressions"]} == {domains.mark}
    asked_for = request("worker-2", spec=manifests(made))
    for racks_, fit in ((["a", "b"], True), (["a", "a"], False), (["a", "b", "c", "d"], False)):
        nodes = [
            Node(name=f"{number}", free=gpus(8), pods=(), labels={given["topology_key"]: rack})
            for number, rack in enumerate(rack for rack in racks_ for _ in range(8 // len(racks_)))
        ]
        seen = replace(free("worker-2"), pools=(Pool(name="gpu", nodes=tuple(nodes)),))
        there_ = holds(record(asked_for))
        assert bool(plan(seen, wanted=wants(asked_for), there=there_).changes) is fit


def gone(wanted: Desired) -> Plan:
    """Decide on a set that stands and that nobody needs any more."""
    before = burst(groups=2, lasting=HOURS)
    seen = lacks(0, running=0, deficit_since=NOW - seconds(900))
    return plan(seen, free("worker-2", bound={before.name: 8}), wanted=wanted, there=ledger(before))


def removed(of: Plan) -> bool:
    (change,) = of.changes
    return change.action is Action.REVERT


def lost(case: Case, **groups: int) -> Plan:
    """Decide on a set on worker-2 that has been lost for as long as the case says; worker-3 has room."""
    given = case["input"]
    wanted = replace(fleet(SET), fleet=Fleet(worker_lost_timeout=seconds(given["worker_lost_timeout_seconds"])))
    there_ = ledger(burst(groups=2, lasting=HOURS))
    made = inputs(lacks(8), free("worker-3", *ROOM), wanted=wanted, there=there_)
    since = NOW - seconds(given["workers"]["worker1"]["disconnected_seconds_ago"])
    return decide(replace(made, lost={ClusterName("worker-2"): since}))


@pytest.mark.parametrize("case", applying("lws", "groups", "workload_state_machine"))
def test_a_set_stands_moves_and_ends_when_multikueue_has_it_so(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    local, worker = given["local"], given["workers"]["worker1"]
    if not worker["connected"]:  # a lost worker: Ready within its time, Retry beyond it
        (*changes,) = lost(case).changes
        assert [change.action for change in changes] == (
            [Action.MOVE] if expected["admission_check"] == "Retry" else []
        )
    elif local.get("deleted"):  # what is no longer asked for is removed, wherever there is any of it
        nobody = Desired(commit=SOURCE, clusters=fleet(SET).clusters, workspaces=fleet(SET).workspaces)
        assert removed(gone(nobody)) if worker["workload"] else plan(lacks(8), wanted=nobody).changes == ()
    elif local["admission_check"] is None:  # no check is ours: no policy lets it burst
        assert plan(lacks(8), free("worker-2", *ROOM), wanted=replace(fleet(SET), policies={})).changes == ()
    elif expected.get("worker1") == {"workload": False, "job": False} and not local.get("finished"):
        before = burst("worker-3", 2, lasting=HOURS)  # it has moved, and the lost worker is back
        seen = free("worker-3", bound={before.name: 8}, ready={before.name: 8})
        assert plan(lacks(8), free("worker-2", *ROOM), seen, wanted=fleet(SET), there=ledger(before)).changes == ()
    else:
        assert removed(gone(fleet(SET)))
        assert expected["worker1"]["workload"] is False


def test_each_case_is_run_or_says_why_it_is_not() -> None:
    run = (
        *("lws_validation", "lws_defaulting", "lws_subgroup_index", "lws_exclusive_topology", "mk_adapter"),
        *("incremental_nominate", "dispatch_modes", "group_workloads", "workload_state_machine"),
    )
    ours = {one.values[0]["id"] for one in applying("lws", "groups", *run)}
    assert ids("groups") == ours | LISTED.keys()
    assert all(why.strip() for why in LISTED.values())
