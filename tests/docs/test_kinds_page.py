"""docs/reference/kinds.md: its tables are the program's, its picture is of a set that is counted, its examples load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.core.capacity.pod_requirements import Gang, ManifestPods, pods_of_request
from reconciler.core.expressions import render
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.schema import yaml
from reconciler.model.action import Action
from reconciler.model.ids import CommitId
from reconciler.model.units import ONE
from reconciler.model.workload import Json
from tests.builders.deploy_specs import context
from tests.builders.gangs import torch
from tests.builders.group_bursts import fleet, lacks
from tests.builders.inputs import GPU, cluster, free, ordering, plan
from tests.builders.requests import manifests, request
from tests.builders.workload_kinds import lws
from tests.docs.kind_tables import kind_table
from tests.e2e.published_kinds import PROJECTS

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "reference" / "kinds.md").read_text()
LAYOUT = CHECKOUT / "repo-layout"
SET = lws(2, 4, leader=1, worker=8)
ELASTIC = torch(4, elastic=2)


@pytest.mark.parametrize("name", ["built in", "numbers", "minimums", "labels", "webhooks"])
def test_what_the_page_says_of_kinds_is_what_is_built_in(name: str) -> None:
    assert f"<!-- kinds {name} -->\n{kind_table(name)}<!-- end -->\n" in PAGE, "run `make reference`"


def test_the_page_names_the_versions_that_judge_the_kinds() -> None:
    readme = (CHECKOUT / "tests" / "e2e" / "README.md").read_text()
    for project in PROJECTS:
        module, _, version = project.pinned.partition("@v")
        assert f"| {project.name} | `{module}` | {version} |" in readme
        assert not project.objects or f"{project.name} {version} |" in PAGE or project.tool == "mcs-api"


def test_the_picture_is_of_a_set_that_is_counted() -> None:
    (shown,) = re.findall(r"^```text\n(LeaderWorkerSet.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown == picture(SET, pods_of_request(request(spec=manifests(SET))))


def test_what_goes_where_is_what_came_of_the_stories() -> None:
    shown = re.findall(r"^```text\n((?:\S+ models/).*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    stories = CHECKOUT / "tests" / "golden" / "kinds"
    expected = [(stories / f"{name}.txt").read_text() for name in ("inferenceservice", "pytorchjob")]
    assert shown == [text.partition("\n# ")[0] for text in expected]


def test_the_examples_are_in_force_and_count_what_the_page_says() -> None:
    _, declared, configuration, counted = examples()
    files = {"kinds/a.yaml": declared, "kinds/b.yaml": configuration}
    desired = assemble(CommitId(""), {path: parse_file(text.encode()) for path, text in files.items()})
    assert desired.problems == ()
    (document,) = yaml.parse(counted.encode(), "c.yaml")
    (part,) = pods_of_request(request(spec=manifests(document.value)), desired.kinds).parts
    gpus = part.shape.requests.amounts[GPU] // ONE
    assert f"This one counts as {part.replicas} pods of {gpus} GPUs" in PAGE
    assert [*desired.kinds] == ["game.example.com/GameServerSet", "batch.example.com/Sweep"]


def test_the_chart_it_shows_has_its_share_where_the_annotation_says() -> None:
    layout = {
        path.relative_to(LAYOUT).as_posix(): path.read_bytes()
        for path in LAYOUT.rglob("*.yaml")
        if path.parent.name != "bootstrap"
    }
    files = layout | {"templates/vllm-helm.yaml": examples()[0].encode()}
    desired = assemble(CommitId(""), {path: parse_file(data) for path, data in files.items()})
    assert desired.problems == ()
    (shown,) = (one.spec for workload, one in desired.templates.items() if workload.name == "vllm-helm")
    (model,) = render.render(shown, context(shown)).helm[0].values["servingEngineSpec"]["modelSpec"]
    assert model == {"name": "llama3", "replicaCount": 3, "requestGPU": 1}


def test_the_picture_of_a_minimum_is_of_what_is_decided() -> None:
    (shown,) = re.findall(r"^```text\n(PyTorchJob model:.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    spec = manifests(ELASTIC)
    (part,) = pods_of_request(request(spec=spec)).parts
    gpus = part.shape.requests.amounts[GPU] // ONE
    head = f"PyTorchJob model: {part.replicas} pods of {gpus} GPUs, of which {part.start} are enough"
    rows = ["north  east   south", *map(started, ((2, 4, 3), (2, 4, 5), (2, 2, 1)))]
    assert shown == "\n".join([head, "", *rows, ""])


def started(nodes: tuple[int, ...]) -> str:
    """Write how many GPUs are free on nodes of eight in each cluster, and where a job goes."""
    names = ("north", "east", "south")
    wanted = fleet(ELASTIC, policy=ordering(*names), clusters=map(cluster, ("worker-1", *names)), reads_replicas=False)
    seen = [free(name, *[8] * number) for name, number in zip(names, nodes, strict=True)]
    made = plan(lacks(5, running=0), *seen, wanted=wanted)
    if made.changes:
        (change,) = made.changes
        assert change.action is Action.PLACE
        where = f"{change.placement.cluster}: {change.choice.because or 'all of it'}"
    else:
        where = made.suppressed[0].message.partition(";")[0]
    return f"{''.join(f'{number * 8:<7}' for number in nodes)}{where}"


def examples() -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def picture(made: Json, found: ManifestPods) -> str:
    """Draw what a set of groups counts as."""
    (gang,) = found.gangs
    leader, worker = found.parts
    named = f"LeaderWorkerSet {made['metadata']['name']}: {made['spec']['replicas']} groups of {gang.size}"
    lines = [named, *(group(number, gang, found) for number in range(gang.groups))]
    counted = [f"{part.replicas} x {gpus(part.shape.requests.amounts[GPU])}" for part in (leader, worker)]
    together = gpus(gang.requests.amounts[GPU] * gang.groups)
    return "\n".join([*lines, f"counted:  {' + '.join(counted)} = {together}, in one cluster or in none", ""])


def group(number: int, gang: Gang, found: ManifestPods) -> str:
    boxes = " ".join(f"[{role} {gpus(amount)}]" for role, amount in members(gang, found))
    return f"group {number}:  {boxes} = {gpus(gang.requests.amounts[GPU])}"


def members(gang: Gang, found: ManifestPods) -> Iterator[tuple[str, int]]:
    """Yield the pods of one group."""
    for role, part in zip(("leader", "worker"), found.parts, strict=True):
        for _ in range(part.replicas // gang.groups):
            yield role, part.shape.requests.amounts[GPU]


def gpus(amount: int) -> str:
    number = amount // ONE
    return f"{number} GPU{'s' if number > 1 else ''}"
