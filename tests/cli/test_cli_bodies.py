"""Files of placements become bodies, and what a daemon finds wrong with one is placed in its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.cli.actions.bodies import read_bodies
from reconciler.client import Refused
from reconciler.errors import InvalidInput, Problem

HELM = """\
apiVersion: {group}.kubeslice.io/v1alpha1
kind: WorkloadPlacement
metadata:
  name: hello
spec:
  {where}
  helmConfig:
    - name: hello-world
      chart: examples/hello-world
      releaseName: ahoy
  steps:
    - name: hello-world
      type: helm
"""


def written(path: Path, text: str) -> str:
    file = path / "asked.yaml"
    file.write_text(text)
    return str(file)


@pytest.mark.parametrize(
    ("group", "where", "given"),
    [
        ("gpr", "clusterNames: [worker-1, worker-2]", {"clusterNames": ["worker-1", "worker-2"]}),
        ("worker", "clusterName: worker-1", {"clusterName": "worker-1"}),
        ("aiops", "duration: 15m", {"duration": "15m", "autoSelectCluster": True}),
    ],
)
def test_file_of_any_group_is_a_body_of_its_name_and_spec(tmp_path: Path, group: str, where: str, given: dict) -> None:
    (asked,) = read_bodies((written(tmp_path, HELM.format(group=group, where=where)),))
    assert asked.body == {
        "name": "hello",
        **given,
        "helmConfig": [{"name": "hello-world", "chart": "examples/hello-world", "releaseName": "ahoy"}],
        "steps": [{"name": "hello-world", "type": "helm"}],
    }


def test_several_documents_lists_and_files_are_read_in_their_order(tmp_path: Path) -> None:
    one, two = ({"kind": "WorkloadPlacement", "metadata": {"name": name}, "spec": {}} for name in ("a", "b"))
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [one, two]}))
    several = written(tmp_path, "name: c\n---\nname: d\n")
    assert [asked.name for asked in read_bodies((str(listed), several))] == ["a", "b", "c", "d"]


def test_what_was_read_from_a_daemon_may_be_sent_back(tmp_path: Path) -> None:
    told = {"name": "a", "steps": [], "status": {}, "createdAt": "", "updatedAt": "", "origin": "burst"}
    (asked,) = read_bodies((written(tmp_path, json.dumps(told)),))
    assert asked.body == {"name": "a", "steps": []}


def test_what_is_no_placement_is_refused_by_line_before_anything_is_asked_for(tmp_path: Path) -> None:
    text = "name: a\n---\napiVersion: v1\nkind: Secret\n---\n- b\n---\nkind: WorkloadPlacement\nmetadata: {name: c}\n"
    file = written(tmp_path, text)
    with pytest.raises(InvalidInput) as caught:
        read_bodies((file,))
    assert [(problem.line, problem.field) for problem in caught.value.problems] == [(4, "kind"), (6, ""), (8, "spec")]
    assert "a pull request" in str(caught.value)


@pytest.mark.parametrize(("content", "why"), [("", "holds nothing"), ("a: [", "is not YAML"), (None, "No such file")])
def test_file_that_cannot_be_read_is_told(tmp_path: Path, content: str | None, why: str) -> None:
    file = str(tmp_path / "missing.yaml") if content is None else written(tmp_path, content)
    with pytest.raises(InvalidInput, match=why):
        read_bodies((file,))


def test_what_a_daemon_finds_wrong_is_told_by_line(tmp_path: Path) -> None:
    file = written(tmp_path, "name: other\n---\n" + HELM.format(group="gpr", where="burstDuration: 4 hours"))
    _, asked = read_bodies((file,))
    found = (
        Problem(path="request", field="helmConfig[0].chart", message="is no chart", hint="try vllm/vllm-stack"),
        Problem(path="request", field="burstDuration", message="is not a duration"),
        Problem(path="request", field="workspaceName", message="is required"),
    )
    assert [str(one) for one in asked.problems(Refused("3 problems", status=400, problems=found))] == [
        f"{file}:11: spec.helmConfig[0].chart: is no chart (try vllm/vllm-stack)",
        f"{file}:8: spec.burstDuration: is not a duration",
        f"{file}:7: spec.workspaceName: is required (try --workspace)",
    ]


def test_refusal_without_fields_is_about_the_placement(tmp_path: Path) -> None:
    (asked,) = read_bodies((written(tmp_path, "\n\nname: a\n"),))
    assert [str(one) for one in asked.problems(Refused("Already Exists", status=409))] == [
        f"{tmp_path}/asked.yaml:3: a: Already Exists"
    ]


@pytest.mark.parametrize(
    ("group", "spec", "expected"),
    [("aiops", {}, True), ("aiops", {"clusterName": "worker-2"}, None), ("gpr", {}, None)],
    ids=["aiops without a cluster", "aiops with one", "gpr"],
)
def test_a_placement_of_aiops_without_a_cluster_goes_to_any_as_its_file_does(
    tmp_path: Path, group: str, spec: dict, expected: bool | None
) -> None:
    path = tmp_path / "placement.yaml"
    path.write_text(
        f"apiVersion: {group}.kubeslice.io/v1alpha1\nkind: WorkloadPlacement\n"
        f"metadata: {{name: settings}}\nspec: {json.dumps(spec)}\n"
    )
    (body,) = read_bodies((str(path),))
    assert body.body.get("autoSelectCluster") is expected
