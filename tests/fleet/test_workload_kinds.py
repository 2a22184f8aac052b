"""Kinds that a fleet repository declares: by a WorkloadKind, or by what Kruise is told of."""

from __future__ import annotations

import json
import time

import pytest

from reconciler.core.capacity.pod_requirements import pods_of_request
from reconciler.model.policy import Desired
from reconciler.model.workload import Json
from tests.builders.fleet_files import FLEET, errors, load, warnings
from tests.builders.requests import manifests, request
from tests.builders.workload_kinds import GAME_SERVERS, asked, game_servers, lws, template, workload

SET = (
    GAME_SERVERS
    + """\
  versions: [v1]
  replicasPaths: [spec.size]
  podTemplates:
    - path: spec.roles.*.template
      counts: [{path: spec.size}, {path: spec.roles.*.number, default: 2, less: 1}]
    - {path: spec.proxy, optional: true}
  groups: {called: room, counts: [{path: spec.size}], minimumPath: spec.atLeast}
"""
)
SERVERS = game_servers(
    3, atLeast=2, roles={"map": {"number": 3, "template": template(1)}, "bot": {"template": template(2)}}
)


def pods(desired: Desired, *objects: Json) -> dict[int, int]:
    parts = pods_of_request(request(spec=manifests(*objects)), desired.kinds).parts
    return {sum(part.shape.requests.amounts.values()) // 10**9: part.replicas for part in parts}


def kruise(*entries: Json) -> str:
    """Write the ConfigMap that Kruise reads."""
    return configuration(json.dumps({"workloads": [*entries]}))


def configuration(text: str) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kruise-configuration", "namespace": "kruise-system"},
            "data": {"WorkloadSpread_Watch_Custom_Workload_WhiteList": text},
        }
    )


def entry(way: str = "spec.size", kind: str = "GameServerSet", version: str = "v1") -> Json:
    return {"Group": "game.example.com", "Version": version, "Kind": kind, "replicasPath": way}


def test_the_pods_of_a_declared_kind_are_counted():
    desired = load({**FLEET, "kinds.yaml": SET})
    assert errors(desired) == []
    assert pods(desired, SERVERS) == {1: 6, 2: 3}
    (gang,) = pods_of_request(request(spec=manifests(SERVERS)), desired.kinds).gangs
    assert (gang.called, gang.groups, gang.size, gang.least) == ("room", 3, 3, 2)


def test_a_kind_that_nobody_declares_makes_no_pods_that_anybody_knows_of():
    assert pods(load(FLEET), SERVERS) == {}


def test_what_is_declared_of_a_built_in_kind_goes_before_and_the_rest_stays():
    declared = SET.replace("game.example.com", "leaderworkerset.x-k8s.io").replace("GameServerSet", "LeaderWorkerSet")
    head, _, _ = declared.partition("  replicasPaths")
    template_of_leaders = (
        "  podTemplates: [{path: spec.leaderWorkerTemplate.workerTemplate, counts: [{path: spec.replicas}]}]\n"
    )
    desired = load({**FLEET, "kinds.yaml": head + template_of_leaders})
    assert errors(desired) == []
    assert pods(desired, lws(3, 4)) == {8: 3}
    assert desired.kinds["leaderworkerset.x-k8s.io/LeaderWorkerSet"].replicas == (("spec", "replicas"),)


PATHS = "8: spec.replicasPaths"
OTHERS = "'spec.others.*.number' counts the items of another list than 'spec.roles.*.template'"
IMPOSSIBLE = {
    "a dot": ("[spec.size]", "['.spec.size']", f"{PATHS}[0]: '.spec.size' is no path (try 'spec.size')"),
    "a list": ("[spec.size]", "['spec.a[].b']", f"{PATHS}[0]: 'spec.a[].b' is no path (try 'spec.a.*.b')"),
    "two items": ("[spec.size]", "[spec.*.a.*]", f"{PATHS}[0]: 'spec.*.a.*' has more than one '*' (try the index"),
    "a status": ("[spec.size]", "[status.size]", f"{PATHS}[0]: 'status.size' is what a controller writes (try a path"),
    "twice": ("[spec.size]", "[spec.size, spec.size]", f"{PATHS}: 'spec.size' is listed twice (try listing it once)"),
    "another list": ("spec.roles.*.number", "spec.others.*.number", f"10: spec.podTemplates[0]: {OTHERS} (try 'spec."),
    "several places": ("spec.atLeast", "spec.*.least", "13: spec.groups: 'spec.*.least' leads to several places"),
    "a kind": ("kind: GameServerSet", "kind: gameServers", "6: spec.kind: 'gameServers' is no kind (try 'Game"),
    "a group": ("game.example.com", "game.example.com/v1", "5: spec.group: 'game.example.com/v1' is no API group;"),
    "a field": ("replicasPaths", "replicaPaths", "8: spec.replicaPaths: unknown field (try 'replicasPaths')"),
}


@pytest.mark.parametrize(("before", "after", "told"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_path_that_cannot_be_is_told_at_its_line(before: str, after: str, told: str):
    (found,) = errors(load({**FLEET, "kinds.yaml": SET.replace(before, after)}))
    assert found.startswith(f"kinds.yaml:{told}")


def test_a_kind_that_says_nothing_is_refused():
    head, _, _ = SET.partition("  replicasPaths")
    (found,) = errors(load({**FLEET, "kinds.yaml": head}))
    assert found == (
        "kinds.yaml:4: spec: has neither replicasPaths nor podTemplates (try replicasPaths: [spec.replicas])"
    )


def test_a_kind_is_declared_once():
    again = SET.replace("game-servers", "servers")
    (found,) = errors(load({**FLEET, "kinds/a.yaml": SET, "kinds/b.yaml": again}))
    assert found == (
        "kinds/b.yaml:6: spec.kind: game.example.com/GameServerSet is already declared in kinds/a.yaml:1 "
        "(put both into one WorkloadKind)"
    )


def test_kruises_whitelist_is_read_as_the_same_thing():
    desired = load({**FLEET, "kinds/kruise.json": kruise(entry(), entry(version="v2"), entry("", "Plain"))})
    assert desired.problems == load(FLEET).problems
    found = pods_of_request(request(spec=manifests(SERVERS)), desired.kinds)
    assert found.strange == ("part-0 (3 replicas)",)
    assert desired.kinds["game.example.com/GameServerSet"].versions == ("v1", "v2")
    assert desired.kinds["game.example.com/Plain"].replicas == ()


def test_a_whitelist_of_many_kinds_is_read_in_linear_time():
    began = time.process_time()
    desired = load({**FLEET, "kinds/kruise.json": kruise(*(entry(kind=f"Set{number}") for number in range(8000)))})
    assert desired.kinds["game.example.com/Set7999"].replicas == (("spec", "size"),)
    assert time.process_time() - began < 6  # 25 s where each entry is compared with all others


def test_a_workload_kind_goes_before_kruises_whitelist_and_that_is_told():
    desired = load({**FLEET, "kinds.yaml": SET, "kinds/kruise.json": kruise(entry("spec.other"))})
    assert pods(desired, SERVERS) == {1: 6, 2: 3}
    (told,) = (line for line in warnings(desired) if "kruise" in line)
    assert told.startswith(
        "kinds/kruise.json:1: game.example.com/GameServerSet is declared in kinds.yaml:1, which holds ("
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"workloads": [{"Kind": "A",}]}', "is no JSON"),
        ("[]", "has no list of workloads"),
        ('{"workloads": [{"Group": "a"}]}', "workloads[0].Kind is required"),
        ('{"workloads": ["A"]}', "workloads[0] is no object"),
        ('{"workloads": [{"Kind": 3}]}', "workloads[0].Kind: 3 is no text"),
        ('{"workloads": [{"Kind": "A", "replicasPath": "spec[0]"}]}', "workloads[0].replicasPath: 'spec[0]' is"),
        ("[" * 100_000, "is nested too deeply"),
        (r'{"workloads": [{"Kind": "A\n"}]}', "workloads[0].Kind: 'A"),
    ],
    ids=["a comma", "no workloads", "no kind", "no object", "no text", "no path", "no end", "a line end"],
)
def test_a_broken_whitelist_is_told_at_its_key(text: str, told: str):
    (found,) = errors(load({**FLEET, "kinds/kruise.json": configuration(text)}))
    assert found.startswith(f"kinds/kruise.json:1: data.WorkloadSpread_Watch_Custom_Workload_WhiteList: {told}")


def test_what_else_kruise_is_configured_with_is_nobodys_business():
    other = configuration("{}").replace("WorkloadSpread_Watch_Custom_Workload_WhiteList", "SidecarSet_PatchPodMetadata")
    assert load({**FLEET, "kinds/kruise.json": other}).problems == load(FLEET).problems


def test_groups_of_a_request_are_written_out_since_replicas_counts_their_pods():
    made = lws("{{ replicas }}") | {"metadata": {"name": "model"}}
    (found,) = errors(load({**FLEET, "asked.json": asked(made, "worker-2")}))
    assert found == (
        "asked.json:1: spec.manifestResources[0].manifest: in a request replicas counts pods, and a LeaderWorkerSet "
        "makes several for each of its own (write the number out)"
    )


@pytest.mark.parametrize("kind", ["CloneSet", "Rollout"])
def test_a_template_lends_to_what_is_like_a_deployment(kind: str):
    api_version = {"CloneSet": "apps.kruise.io/v1alpha1", "Rollout": "argoproj.io/v1alpha1"}[kind]
    made = workload(api_version, kind, {"replicas": "{{ replicas }}", "template": template(1)}, namespace="llm-demo")
    text = asked(made, "worker-2").replace("WorkloadPlacement", "WorkloadTemplate")
    (found,) = (one for one in load({**FLEET, "a.json": text}).templates.values() if one.name == "model")
    assert found.ref is not None
    assert (found.ref.kind, found.ref.namespace, found.ref.name) == (kind, "llm-demo", "model")


def test_a_declared_kind_says_by_which_labels_its_pods_are_known():
    desired = load({**FLEET, "kinds.yaml": f"{SET}  podLabels: [game.example.com/set]\n"})
    assert errors(desired) == []
    assert [mark.label for mark in desired.kinds["game.example.com/GameServerSet"].marks] == ["game.example.com/set"]


def test_labels_of_a_built_in_kind_stay_where_none_are_declared():
    declared = SET.replace("game.example.com", "leaderworkerset.x-k8s.io").replace("GameServerSet", "LeaderWorkerSet")
    (kind,) = load({**FLEET, "kinds.yaml": declared}).kinds.values()
    assert [mark.label for mark in kind.marks] == ["leaderworkerset.sigs.k8s.io/name"]


@pytest.mark.parametrize("label", ["a b", "/set", "game.example.com/", "-set", "A.B/set"])
def test_what_no_label_can_be_called_is_told(label: str):
    (found,) = errors(load({**FLEET, "kinds.yaml": f"{SET}  podLabels: ['{label}']\n"}))
    assert found == f"kinds.yaml:14: spec.podLabels: {label!r} is no label (try 'game.example.com/set')"


def test_a_label_that_tells_groups_apart_needs_one_that_says_whose_pods_they_are():
    grouped = SET.replace("minimumPath: spec.atLeast", "podLabel: game.example.com/room")
    (found,) = errors(load({**FLEET, "kinds.yaml": grouped}))
    assert "none that says whose pods they are (try podLabels: [game.example.com/set])" in found
    desired = load({**FLEET, "kinds.yaml": f"{grouped}  podLabels: [game.example.com/set]\n"})
    assert errors(desired) == []
    (kind,) = desired.kinds.values()
    assert kind.together is not None
    assert kind.together.label == "game.example.com/room"
