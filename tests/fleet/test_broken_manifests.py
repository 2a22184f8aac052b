"""What Kubernetes could not read of the pods of a template is an error at its field; the rest of the fleet goes on."""

from __future__ import annotations

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.daemon.source import SourceReader
from reconciler.model.ids import WorkloadId
from tests.builders.fleet_files import FLEET, PODS, TEMPLATE, errors, load, policy, warnings
from tests.builders.remote import Remote
from tests.builders.spread_files import spread

VLLM, CHAT = WorkloadId("llm", "vllm"), WorkloadId("llm", "chat")
LINE = TEMPLATE.splitlines().index(PODS.rstrip()) + 1
MANIFEST = "spec.manifestResources[0].manifest"


def with_pods(pods: str) -> str:
    """Write the fleet's template with this spec of its pods, in flow style."""
    return TEMPLATE.replace(PODS, f"        template: {{metadata: {{labels: {{app: vllm}}}}, spec: {pods}}}\n")


def limited(amount: str) -> str:
    """Write it with this limit of GPUs."""
    return with_pods(
        f"{{containers: [{{name: main, image: main:1, resources: {{limits: {{nvidia.com/gpu: {amount}}}}}}}]}}"
    )


LIMIT = "spec.template.spec.containers[0].resources.limits"
BROKEN = {
    "a word": (limited("eight"), LIMIT, "'eight' is not a quantity (try 8)"),
    "a unit that is none": (limited("8GiB"), LIMIT, "'8GiB' is not a quantity (try 8Gi)"),
    "less than nothing": (limited("-1"), LIMIT, "'-1' is negative (try 1, 500m or 8Gi)"),
    "a list": (limited("[1]"), LIMIT, "'[1]' is not a quantity (try 1, 500m or 8Gi)"),
    "an operator of a toleration": (
        with_pods("{containers: [{name: main, image: main:1}], tolerations: [{key: gpu, operator: Foo}]}"),
        "spec.template.spec.tolerations[0].operator",
        "'Foo' is nothing that Kubernetes knows here (one of Equal, Exists, Gt, Lt)",
    ),
    "an effect of a toleration": (
        with_pods("{containers: [{name: main, image: main:1}], tolerations: [{operator: Exists, effect: noschedule}]}"),
        "spec.template.spec.tolerations[0].effect",
        "'noschedule' is nothing that Kubernetes knows here (one of NoSchedule, PreferNoSchedule, NoExecute)",
    ),
    "a selector that is no text": (
        with_pods("{containers: [{name: main, image: main:1}], nodeSelector: {gpu: true}}"),
        "spec.template.spec.nodeSelector.gpu",
        "Kubernetes takes a text here, not 'True' (quote it)",
    ),
}


@pytest.mark.parametrize(("template", "field", "told"), BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_read_of_pods_is_one_error_at_its_field(template: str, field: str, told: str) -> None:
    desired = load({**FLEET, "templates/vllm.yaml": template, "templates/chat.yaml": another()})
    (error,) = errors(desired)
    assert error.startswith(f"templates/vllm.yaml:{LINE}: {MANIFEST}.{field}")
    assert error.endswith(told)
    assert [*desired.templates] == [CHAT]


def another() -> str:
    """Write a second template, which has no error."""
    return TEMPLATE.replace("name: vllm", "name: chat")


def test_values_that_hold_an_expression_are_passed_over_and_no_others() -> None:
    expression = '"{{ replicas }}"'
    assert errors(load({**FLEET, "templates/vllm.yaml": limited(expression)})) == []
    (error,) = errors(load({**FLEET, "templates/vllm.yaml": limited(f"{expression}, cpu: lots")}))
    assert "limits.cpu: 'lots' is not a quantity" in error


@pytest.mark.parametrize("limits", ['"{{ replicas }}"', '"{{ cluster.labels }}"'])
def test_template_stays_in_force_with_an_expression_in_place_of_all_limits(limits: str) -> None:
    desired = load(
        {
            **FLEET,
            "templates/vllm.yaml": with_pods(
                f"{{containers: [{{name: main, image: main:1, resources: {{limits: {limits}}}}}]}}"
            ),
        }
    )
    assert errors(desired) == []
    (container,) = desired.templates[VLLM].containers
    assert container.resources is None


def test_the_last_good_version_of_the_template_stays_in_force(remote: Remote, repository: GitRepository) -> None:
    remote.commit("main", {**FLEET, "templates/vllm.yaml": limited("8"), "templates/chat.yaml": another()})
    commit = remote.commit("main", {"templates/vllm.yaml": limited("eight")})
    repository.fetch()
    desired = SourceReader(repository).desired(commit)
    (error,) = errors(desired)
    assert "'eight' is not a quantity" in error
    assert any("its last good version" in line for line in warnings(desired))
    assert {*desired.templates} == {VLLM, CHAT}
    (resource,) = desired.templates[VLLM].spec.manifests
    (container,) = resource.manifest["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}


NAMED = {**FLEET, "policies/gpu.yaml": policy(spec="{templates: [vllm]}"), "s.yaml": spread()}
LEFT_OUT = {
    "a limit that cannot be read": limited("eight"),
    "a number of replicas that is none": TEMPLATE.replace('"{{ replicas }}"', "four"),
    "a workspace that is not there": TEMPLATE.replace("workspaceName: llm", "workspaceName: lmm"),
}


@pytest.mark.parametrize("template", LEFT_OUT.values(), ids=LEFT_OUT)
def test_no_spread_and_no_policy_misses_a_template_that_has_an_error(
    template: str, remote: Remote, repository: GitRepository
) -> None:
    files = {**NAMED, "templates/vllm.yaml": template}
    commit = remote.commit("main", files)
    repository.fetch()
    for desired in (load(files), SourceReader(repository).desired(commit)):
        assert all(line.startswith("templates/vllm.yaml") for line in (*errors(desired), *warnings(desired)))
        assert VLLM not in desired.templates


def test_a_spread_and_a_policy_miss_a_template_that_no_file_describes() -> None:
    files = {path: source for path, source in NAMED.items() if path != "templates/vllm.yaml"}
    told = warnings(load(files))
    assert [line.partition(":")[0] for line in told] == ["policies/gpu.yaml", "s.yaml"]
    assert "no template bursts replicas of Deployment/llm-demo/vllm" in told[1]
