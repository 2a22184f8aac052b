"""repo-layout/ and policies/ are what we tell people to write, so they are read by the real reader."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from reconciler.core.fleet.read_file import assemble, is_read, parse_file
from reconciler.core.observe import observation_file
from reconciler.core.schema import KINDS, json_schema
from reconciler.core.schema.yaml import parse
from reconciler.model.ids import CommitId, WorkloadId

TOP = Path(__file__).resolve().parents[2]
LAYOUT = TOP / "repo-layout"
POLICIES = sorted((TOP / "policies").glob("*.yaml"))
WRITTEN = [
    path
    for folder in ("", "clusters", "workspaces", "policies", "templates", "observations")
    for path in sorted((LAYOUT / folder).glob("*.yaml"))
]


def layout() -> dict[str, bytes]:
    paths = [path.relative_to(LAYOUT).as_posix() for path in LAYOUT.rglob("*") if path.is_file()]
    return {path: (LAYOUT / path).read_bytes() for path in paths if is_read(path)}


def load(files: dict[str, bytes]):
    return assemble(CommitId("c" * 40), {path: parse_file(data) for path, data in files.items()})


def test_the_layout_is_complete_and_has_no_problems():
    desired = load(layout())
    assert desired.problems == ()
    assert not desired.incomplete
    assert set(desired.clusters) == {"worker-1", "worker-2", "worker-3"}
    assert desired.workspaces["llm"].primary == "worker-1"
    assert set(desired.policies) == {WorkloadId("llm", "vllm"), WorkloadId("llm", "vllm-helm")}
    assert all(template.uses_replicas and template.ref for template in desired.templates.values())


def test_every_cluster_has_an_observation_and_the_primary_is_short_of_gpus():
    seen = {
        one.cluster: one
        for path in sorted((LAYOUT / "observations").glob("*.yaml"))
        for one in observation_file.read(path.read_bytes(), path.name)
    }
    desired = load(layout())
    assert set(seen) == set(desired.clusters)
    workload, _ = seen["worker-1"].workloads
    assert workload.ref == desired.templates[WorkloadId("llm", "vllm")].ref
    assert workload.wanted - workload.running == sum(waiting.replicas for waiting in workload.waiting) > 0
    assert all(node.free.holds(workload.shape.requests) == 0 for pool in seen["worker-1"].pools for node in pool.nodes)
    assert all(seen[name].pools[0].nodes[0].free.holds(workload.shape.requests) for name in ("worker-2", "worker-3"))


@pytest.mark.parametrize("kind", KINDS)
def test_published_schemas_are_those_of_the_code(kind):
    written = json.loads((LAYOUT / "schemas" / f"{kind}.json").read_text())
    assert written == json_schema(kind), "run make schemas"
    jsonschema.Draft202012Validator.check_schema(written)


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_every_file_names_a_schema_that_it_fits(path):
    first = path.read_text().splitlines()[0]
    named = first.removeprefix("# yaml-language-server: $schema=")
    assert named != first
    schema = json.loads((path.parent / named).read_text())
    for document in parse(path.read_bytes(), path.name):
        jsonschema.Draft202012Validator(schema).validate(document.value)
        assert Path(named).name == f"{document.value['kind']}.json"


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_every_ready_made_policy_can_be_added_to_the_layout(path):
    desired = load({**layout(), f"policies/{path.name}": path.read_bytes()})
    assert desired.problems == ()
    alone = {name: data for name, data in layout().items() if not name.startswith("policies/")}
    desired = load({**alone, f"policies/{path.name}": path.read_bytes()})
    assert desired.problems == ()
    assert {policy.name for policy in desired.policies.values()} == {path.stem}


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_every_ready_made_policy_says_when_to_use_it(path):
    text = path.read_text()
    assert text.startswith("# When to use it: ")
    assert "\n# yaml-language-server: $schema=../schemas/BurstPolicy.json\n" in text


def test_the_readme_names_what_is_there():
    readme = (LAYOUT / "README.md").read_text()
    for path in WRITTEN:
        name = path.relative_to(LAYOUT).as_posix()
        assert f"`{name}`" in readme or f"`{Path(name).parent}/*.yaml`" in readme
