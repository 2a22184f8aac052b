"""A template that parts from what its primary runs is told, by container; what nobody can compare is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.core.observe.kubernetes.controllers import read_controller
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.observe.observation_file import read
from reconciler.core.observe.template_differences import with_template_differences
from reconciler.core.workloads.containers import container_summaries
from reconciler.model.capacity import ClusterObservation, Observed, WorkloadObservation
from reconciler.model.ids import ClusterName
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.fleet_files import FLEET, TEMPLATE, errors, load
from tests.builders.inputs import NOW
from tests.cli.conftest import Terminal

OWN = (
    "{containers: [{name: server, image: vllm:1, args: [--port, '80'], "
    "resources: {limits: {nvidia.com/gpu: 4}, requests: {cpu: 500m}}}]}"
)
SERVER: Json = {
    "name": "server",
    "image": "vllm:1",
    "args": ["--port", "80"],
    "resources": {"requests": {"cpu": "0.5", "nvidia.com/gpu": "4"}},
}
REF = WorkloadRef(namespace="llm-demo", name="vllm", kind="Deployment")


def fleet(pod: str = OWN) -> dict[str, str]:
    return {**FLEET, "templates/vllm.yaml": TEMPLATE.replace("{containers: [{name: server, image: vllm:1}]}", pod)}


def differences(*containers: Json, pod: str = OWN) -> list[str]:
    """Say in what the template of this pod parts from these containers on the primary."""
    desired = load(fleet(pod))
    assert errors(desired) == []
    seen = WorkloadObservation(
        ref=REF, wanted=1, running=1, containers=container_summaries({"containers": [*containers]})
    )
    primary = ClusterObservation(cluster=ClusterName("worker-1"), observed_at=NOW, workloads=(seen,))
    observed = with_template_differences(Observed(clusters={primary.cluster: primary}), desired)
    return [str(problem) for problem in observed.problems]


HEAD = "templates/vllm.yaml:1: spec: TemplateDiffers: bursts of Deployment vllm would not be what the primary runs: "
TAIL = " (bring the template up to date; running placements follow the next time they are written)"
DIFFERENCES = {
    "an image": ({**SERVER, "image": "vllm:2"}, "server runs vllm:2 there and vllm:1 here"),
    "a command": ({**SERVER, "args": ["--port", "81"]}, "server has another command there"),
    "a size": (
        {**SERVER, "resources": {"limits": {"nvidia.com/gpu": 8, "cpu": 1}}},
        "server requests cpu 1, nvidia.com/gpu 8 there and cpu 500m, nvidia.com/gpu 4 here",
    ),
    "a name": (
        {**SERVER, "name": "main"},
        "the primary has no container server and the primary has a container main as well",
    ),
}


@pytest.mark.parametrize(("container", "what"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_what_a_template_parts_in_is_told_with_both(container: Json, what: str) -> None:
    assert differences(container) == [f"{HEAD}{what}{TAIL}"]


def test_what_is_written_otherwise_and_means_the_same_is_no_difference() -> None:
    assert differences(SERVER) == []
    assert differences({**SERVER, "env": [{"name": "A", "value": "b"}], "ports": []}) == []


def test_what_is_not_known_is_no_difference() -> None:
    assert differences() == []
    expressions = '{containers: [{name: server, image: "vllm:{{ cluster.name }}", args: ["{{ replicas }}"]}]}'
    assert differences({"name": "server", "image": "vllm:7", "args": ["7"]}, pod=expressions) == []


def test_an_object_of_the_primary_is_read_with_its_containers() -> None:
    raw = {"metadata": {"name": "a", "namespace": "b"}, "spec": {"template": {"spec": {"containers": [SERVER]}}}}
    (summary,) = read_controller(Resource.DEPLOYMENTS, raw).containers
    assert (summary.name, summary.image, summary.resources) == ("server", "vllm:1", "cpu 500m, nvidia.com/gpu 4")
    assert read_controller(Resource.REPLICA_SETS, raw).containers == ()


OBSERVATION = """\
apiVersion: overspill.dev/v1alpha1
kind: Observation
cluster: worker-1
observedAt: 2026-11-20T10:00:00Z
workloads:
- kind: Deployment
  namespace: llm-demo
  name: vllm
  wanted: 1
  running: 1
  containers:
  - {name: server, image: 'vllm:1', args: [--port, '80'], requests: {cpu: 500m, nvidia.com/gpu: 4}}
"""


def test_an_observation_file_carries_containers() -> None:
    (observation,) = read(OBSERVATION.encode(), "worker-1.yaml")
    (seen,) = observation.workloads
    assert seen.containers == container_summaries({"containers": [SERVER]})
    (bare,) = read(
        OBSERVATION.replace(", args: [--port, '80'], requests: {cpu: 500m, nvidia.com/gpu: 4}", "").encode(), ""
    )
    (summary,) = bare.workloads[0].containers
    assert (summary.image, summary.command, summary.resources) == ("vllm:1", None, None)


def test_check_compares_templates_with_observations(tmp_path: Path) -> None:
    for path, text in fleet().items():
        (tmp_path / "fleet" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fleet" / path).write_text(text)
    seen = tmp_path / "seen.yaml"
    terminal = Terminal(env={})
    for image, warnings in (("vllm:1", 0), ("vllm:2", 1)):
        seen.write_text(OBSERVATION.replace("vllm:1", image))
        printed = terminal.done("check", str(tmp_path / "fleet"), "--observations", str(seen))
        assert printed.count("TemplateDiffers") == warnings
