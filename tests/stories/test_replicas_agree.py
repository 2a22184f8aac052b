"""The replicas of a placement are one number: in the commit, the record, the status and the objects it deploys.

Every built-in kind goes through every way to state a count. What each kind deploys is read here by rules of this test's
own, from the objects that were written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass

import pytest

from reconciler.core.fleet.replica_paths import REPLICAS
from reconciler.core.observe import observation_file
from reconciler.core.schema import yaml
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, World, observe_and_decide, reconcile_once
from reconciler.daemon.source import SourceReader
from reconciler.daemon.status import status
from reconciler.model.capacity import Observed
from reconciler.model.workload import Json
from reconciler.text.timestamps import format_time
from tests.builders.inputs import NOW
from tests.fakes.memory_repository import OURS, MemoryRepository
from tests.stories.golden import Scene
from tests.stories.kinds import FLEET, STORIES, read

SHARE = "{{ replicas }}"
MISSING = 12
POD = {"containers": [{"name": "main", "image": "registry.example.com/main:1"}]}
WHOLE = frozenset({
    "JobSet", "TFJob", "PyTorchJob", "PaddleJob", "XGBoostJob", "JAXJob", "MPIJob", "TrainJob", "RayCluster", "RayJob",
    "RayService", "LLMInferenceService", "DynamoGraphDeployment", "AppWrapper", "Pod", "DaemonSet", "CronJob",
    "AdvancedCronJob", "BroadcastJob",
})  # fmt: skip # a list of words
"""Kinds of which a placement is one object, whatever numbers it holds."""
FIELDS = {"DisaggregatedSet": "slices", "Job": "parallelism", "InferenceService": "predictor.minReplicas"}
"""Where another kind has its replicas, if not in ``spec.replicas``."""
BARE: Mapping[str, Json] = {
    "/Pod": {"apiVersion": "v1", "kind": "Pod", "spec": POD},
    "/ReplicationController": {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "spec": {"replicas": 1, "template": {"metadata": {"labels": {"app": "main"}}, "spec": POD}},
    },
}
"""Objects of the kinds that no story of `tests.stories.kinds` has."""


UNCOUNTED: Mapping[str, Json] = {
    name: {"apiVersion": f"{kind.group}/{kind.versions[0]}", "kind": kind.kind}
    for name, kind in BUILT_IN.items()
    if not kind.counted
}
"""Objects of which nobody counts pods, as those with one on each node; no template bursts any."""


def samples() -> Iterator[tuple[str, Json]]:
    """Yield one object of each built-in kind, called ``model`` in the namespace ``models``."""
    made = {**UNCOUNTED, **BARE}
    for path in STORIES:
        (document,) = yaml.parse(read(path).template.replace("NUMBER", "1").encode(), path.name)
        for resource in document.value["spec"].get("manifestResources", ()):
            version = resource["manifest"]["apiVersion"]
            group = version.rpartition("/")[0]
            made.setdefault(f"{group}/{resource['manifest']['kind']}", resource["manifest"])
    for name, manifest in made.items():
        if name == "/Service":
            continue
        yield name, {**deepcopy(manifest), "metadata": {"name": "model", "namespace": "models"}}


SAMPLES = dict(samples())


def test_there_is_a_sample_of_every_built_in_kind() -> None:
    assert SAMPLES.keys() == BUILT_IN.keys()


def has_field(name: str) -> bool:
    """Tell whether a kind has one number that is its replicas."""
    return name.partition("/")[2] not in WHOLE and name != "batch.volcano.sh/Job"


def number_of(manifest: Json) -> Json:
    """Read what an object deploys, as its kind counts replicas."""
    group, kind = manifest["apiVersion"].rpartition("/")[0], manifest["kind"]
    if not has_field(f"{group}/{kind}"):
        return 1
    value: Json = manifest["spec"]
    for part in FIELDS.get(kind, "replicas").split("."):
        value = value.get(part, 1)
    return min(value, manifest["spec"].get("completions", value)) if kind == "Job" else value


def stating(manifest: Json, number: Json) -> Json:
    """Write a number where the kind has its replicas; None takes it away."""
    made = deepcopy(manifest)
    *parents, field = FIELDS.get(made["kind"], "replicas").split(".")
    parent = made["spec"]
    for part in parents:
        parent = parent[part]
    parent.pop(field, None)
    if number is not None:
        parent[field] = number
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One placement as git, the status and its engine have it."""

    committed: int
    recorded: int
    shown: int
    deployed: int


def placed(
    manifest: Json | None,
    annotations: Mapping[str, str] | None = None,
    *,
    helm: Json = None,
    policy: str = "",
    more: str = "",
) -> list[Placed]:
    """Run one pass over a fleet whose workload is twelve replicas short, and return what became of it."""
    kind = manifest["kind"] if manifest is not None else "Deployment"
    group = manifest["apiVersion"].rpartition("/")[0] if manifest is not None else "apps"
    called = f"{kind}.{group}" if group == "batch.volcano.sh" else kind
    parts: Json = {"manifestResources": [{"name": "main", "manifest": manifest}]} if manifest is not None else {}
    parts |= {"helmConfig": [helm]} if helm is not None else {}
    steps = [{"name": "main", "type": "manifest"}] if manifest is not None else []
    steps += [{"name": helm["name"], "type": "helm"}] if helm is not None else []
    template = {
        "apiVersion": "gpr.kubeslice.io/v1alpha1",
        "kind": "WorkloadTemplate",
        "metadata": {
            "name": "model",
            "annotations": {"overspill.dev/workload": f"{called}/models/model", **(annotations or {})},
        },
        "spec": {"workspaceName": "ml", "burstDuration": "4h", **parts, "steps": steps},
    }
    fleet = FLEET.read_text().replace("  scaleUp:", f"{policy}  scaleUp:")
    files = {"fleet.yaml": fleet, "templates/model.json.yaml": json.dumps(template)}
    files |= {"more.yaml": more} if more else {}
    return one_pass(files, seen(called.partition(".")[0]))


def asked(manifest: Json) -> list[Placed]:
    """Run one pass over a fleet in which somebody asks for an object, and return what became of it."""
    request = {
        "apiVersion": "gpr.kubeslice.io/v1alpha1",
        "kind": "WorkloadPlacement",
        "metadata": {"name": "model"},
        "spec": {
            "workspaceName": "ml",
            "clusters": ["north"],
            "burstDuration": "4h",
            "manifestResources": [{"name": "main", "manifest": manifest}],
            "steps": [{"name": "main", "type": "manifest"}],
        },
    }
    files = {"fleet.yaml": FLEET.read_text(), "requests/model.yaml": json.dumps(request)}
    return one_pass(files, {**cluster("home"), "pools": []})


def one_pass(files: Mapping[str, str], home: Json) -> list[Placed]:
    """Run one pass over these files, where three clusters have room, and read what was written back."""
    repository = MemoryRepository(files)
    memory = Memory(source=SourceReader(repository), branch=BranchReader(repository))
    text = json.dumps({"items": [home, *(cluster(name) for name in ("north", "east", "south"))]})
    observed = {one.cluster: one for one in observation_file.read(text.encode(), "seen")}
    scene = Scene(moment=NOW, observed=Observed(clusters=observed))
    world = World(repository=repository, clusters=scene, charts=None, clock=scene, author=OURS)
    outcome = reconcile_once(world, memory)
    errors = [str(problem) for problem in outcome.problems if problem.severity == "error"]
    assert errors == []
    shown = {row.placement.name: row.placement.replicas for row in status(observe_and_decide(world, memory)).placements}
    tree = repository.tree(under="clusters")
    result = []
    for subject in repository.subjects():
        match = re.fullmatch(r"(?:burst|request)\(.*\): (\d+) replicas? on ([a-z]+)(?:/[a-z]+)? .*", subject)
        if match is None:
            continue
        (record,) = (
            path for path in tree if path.startswith(f"clusters/{match[2]}/") and path.endswith("placement.yaml")
        )
        (document,) = yaml.parse(tree[record], record)
        objects = [
            yaml.parse(data, path)[0].value
            for path, data in tree.items()
            if path.startswith(record.removesuffix("placement.yaml") + "manifests/") and "/00-" not in path
        ]
        charts = document.value["spec"]["helmConfig"]
        result.append(
            Placed(
                committed=int(match[1]),
                recorded=int(document.value["metadata"]["annotations"]["overspill.dev/replicas"]),
                shown=shown[document.value["metadata"]["name"]],
                deployed=sum(map(number_of, objects)) if not charts else charts[0]["values"].get("replicaCount", 1),
            )
        )
    return result


def seen(kind: str) -> Json:
    """Observe a home that is short of pods of one GPU."""
    return {
        **cluster("home"),
        "pools": [],
        "workloads": [
            {
                "kind": kind,
                "namespace": "models",
                "name": "model",
                "wanted": MISSING,
                "running": 0,
                "held": True,
                "unschedulable": [{"replicas": MISSING, "since": "2026-01-01T00:00:00Z"}],
                "replica": {"requests": {"nvidia.com/gpu": 1}},
            }
        ],
    }


def cluster(name: str) -> Json:
    """Observe a cluster with room for whatever a sample may need."""
    allocatable = {"cpu": 960, "memory": "10Ti", "nvidia.com/gpu": 8}
    nodes = [{"name": f"{name}-{number}", "used": {}} for number in range(24)]
    return {
        "apiVersion": "overspill.dev/v1alpha1",
        "kind": "Observation",
        "cluster": name,
        "observedAt": format_time(NOW),
        "pools": [{"name": "gpus", "allocatable": allocatable, "nodes": nodes}],
    }


def agree(placements: list[Placed]) -> int:
    """Check that all four numbers of each placement are one, and return their sum."""
    for one in placements:
        assert one.committed == one.recorded == one.shown == one.deployed
    return sum(one.deployed for one in placements)


WAYS: Mapping[str, Json] = {"expression": SHARE, "one": 1, "twenty": 20, "absent": None}
COUNTED = sorted(filter(has_field, SAMPLES))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", COUNTED)
def test_a_kind_with_a_field_for_its_replicas_deploys_as_many_as_are_missing(kind: str, way: str) -> None:
    manifest = SAMPLES[kind]
    total = agree(placed(stating(manifest, WAYS[way])))
    pods = manifest["spec"].get("leaderWorkerTemplate", {}).get("size", 1)
    if kind in {"grove.io/PodCliqueSet", "disaggregatedset.x-k8s.io/DisaggregatedSet"}:
        assert total > 1
    else:
        assert total == MISSING // pods


@pytest.mark.parametrize("way", ["expression", "twenty"])
@pytest.mark.parametrize("kind", COUNTED)
def test_the_maximum_of_a_policy_bounds_what_is_deployed(kind: str, way: str) -> None:
    assert agree(placed(stating(SAMPLES[kind], WAYS[way]), policy="  maxReplicas: 2\n")) == 2


@pytest.mark.parametrize("kind", COUNTED)
def test_a_fixed_number_is_deployed_in_copies_of_it_one_to_a_cluster(kind: str) -> None:
    fixed = {REPLICAS: "fixed"}
    placements = placed(stating(SAMPLES[kind], 2), fixed)
    assert agree(placements) >= 2
    assert {one.deployed for one in placements} == {2}
    assert placed(stating(SAMPLES[kind], 20), fixed) == []
    assert placed(stating(SAMPLES[kind], 2), fixed, policy="  maxReplicas: 1\n") == []


@pytest.mark.parametrize("kind", sorted(name for name in SAMPLES.keys() - COUNTED if BUILT_IN[name].counted))
def test_a_kind_without_a_field_for_its_replicas_is_one_in_each_place(kind: str) -> None:
    placements = placed(SAMPLES[kind])
    assert agree(placements) == len(placements) > 0


@pytest.mark.parametrize("way", ["one", "twenty", "absent"])
@pytest.mark.parametrize("kind", [name for name in COUNTED if BUILT_IN[name].together is None])
def test_a_request_deploys_the_number_that_it_says(kind: str, way: str) -> None:
    number = WAYS[way]
    assert agree(asked(stating(SAMPLES[kind], number))) == (number or 1)


CHART = {
    "name": "engine",
    "chart": "stack",
    "repoURL": "https://charts.example.com",
    "version": "0.1.7",
    "releaseName": "model",
    "releaseNamespace": "models",
}


@pytest.mark.parametrize(
    ("annotations", "number", "total"),
    [
        ({}, SHARE, MISSING),
        ({REPLICAS: "engine:replicaCount"}, 1, MISSING),
        ({}, 1, 3),
        ({REPLICAS: "fixed"}, 1, 3),
        ({REPLICAS: "4"}, 4, MISSING),
        ({REPLICAS: "5"}, 5, 10),
        ({REPLICAS: "20"}, 20, 0),
    ],
    ids=["expression", "path", "no path", "fixed", "four", "five", "too many"],
)
def test_a_chart_deploys_what_its_values_say(annotations: Mapping[str, str], number: Json, total: int) -> None:
    assert agree(placed(None, annotations, helm={**CHART, "values": {"replicaCount": number}})) == total


SPREAD = {
    "apiVersion": "apps.kruise.io/v1alpha1",
    "kind": "WorkloadSpread",
    "metadata": {"name": "model", "namespace": "models"},
    "spec": {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "model"},
        "targetFilter": {"replicasPathList": ["spec.replicas"]},
        "subsets": [{"name": "all", "maxReplicas": 5}],
    },
}


@pytest.mark.parametrize(("number", "total"), [(SHARE, 5), (20, 5), (None, 5)], ids=["expression", "twenty", "absent"])
def test_the_subsets_of_a_spread_bound_what_is_deployed(number: Json, total: int) -> None:
    assert agree(placed(stating(SAMPLES["apps/Deployment"], number), more=json.dumps(SPREAD))) == total


def test_copies_fill_a_subset_as_far_as_whole_ones_fit_in_it() -> None:
    placements = placed(stating(SAMPLES["apps/Deployment"], 2), {REPLICAS: "fixed"}, more=json.dumps(SPREAD))
    assert (agree(placements), len(placements)) == (4, 2)
