"""Every sample of EGS's two pages on placements loads unchanged, and means what it says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.api.routes.placements import read_create, read_update
from reconciler.core.fleet.admission import admit
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.model.ids import WorkloadId
from reconciler.model.request import Request
from reconciler.model.workload import Command, DeletionPolicy, HelmFlags, Step, StepType, WorkloadRef
from tests.builders.egs_samples import body, open_fleet, sample
from tests.builders.fleet_files import errors, lines, warnings

ABC = "abc"
JOBS = f"commandJobs: {{image: registry.example.com/kubectl@sha256:{'1' * 64}}}"
ANY = "names no cluster: it goes to the first one of its workspace that has room (try spec.clusterName)"
NOWHERE = f"policies/0.yaml:5: spec: {ANY}"
FOREVER = "policies/0.yaml:5: spec: says nothing about how long: it ends after 7d (try burstDuration: 1h)"


@pytest.mark.parametrize("name", ["workload-template.yaml", "workload-template-exported.yaml"])
def test_the_template_loads_as_it_is_written_and_as_kubectl_prints_it(name):
    desired = open_fleet(sample(name))
    assert errors(desired) == []
    template = desired.templates[WorkloadId(ABC, "vllm-workload-template")]
    assert (template.namespace, template.ref) == (
        "kubeslice-avesha",
        WorkloadRef(namespace="vllm-demo", name="vllm", release=True),
    )
    assert template.spec.burst_duration == timedelta(minutes=10)
    assert template.spec.deletion_policy is DeletionPolicy.DELETE
    assert template.spec.steps == (
        Step(name="get-namespace", type=StepType.COMMAND),
        Step(name="vllm-app", type=StepType.HELM),
    )
    (chart,) = template.spec.helm
    (model,) = chart.values["servingEngineSpec"]["modelSpec"]
    assert (model["requestGPU"], model["vllmConfig"]["maxModelLen"]) == (1, 4096)
    assert chart.values["routerSpec"]["resources"]["limits"] == {"cpu": "8", "memory": "32G"}


def test_the_template_with_a_token_in_its_values_is_refused_where_the_token_is():
    token = "hf_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 2
    desired = open_fleet(sample("workload-template.yaml").replace("<your-huggingface-token>", token))
    (found,) = errors(desired)
    assert "spec.helmConfig[0].values.servingEngineSpec.modelSpec[0]" in found
    assert "token" in found
    assert token not in found


def test_the_service_account_and_its_rights_are_not_ours_to_read():
    desired = open_fleet(sample("service-account.yaml"))
    assert desired.problems == ()


def test_the_placement_of_a_manifest_becomes_a_request():
    desired = open_fleet(sample("placement-manifest.yaml"))
    assert lines(desired.problems) == [NOWHERE, FOREVER]
    request = desired.requests[WorkloadId(ABC, "workload-placement-example", request=True)]
    assert (request.clusters, request.placements, request.path, request.line) == ((), 1, "policies/0.yaml", 1)
    (resource,) = request.spec.manifests
    assert resource.manifest["data"]["ui.properties"] == "color=purple\ntheme=dark\nlanguage=en\n"
    assert request.spec.steps == (Step(name="sample-configmap", type=StepType.MANIFEST),)


def test_the_placement_of_charts_becomes_a_request_where_charts_may_be_unpinned():
    desired = open_fleet(sample("placement-helm.yaml"))
    assert errors(desired) == []
    request = desired.requests[WorkloadId(ABC, "workload-placement-helm-example", request=True)]
    flags = HelmFlags(create_namespace=True, wait=True, timeout=timedelta(minutes=5))
    assert [(chart.release_name, chart.version, chart.flags) for chart in request.spec.helm] == [
        ("gpu-operator", "1.0.0", flags),
        ("ahoy", "", flags),
    ]


def test_the_placement_of_charts_is_refused_elsewhere_at_the_one_without_a_version():
    strict = open_fleet(sample("placement-helm.yaml"), namespaces="[xyz]")
    assert [line.split(" (")[0] for line in errors(strict)] == [
        "policies/0.yaml:12: spec.helmConfig[0].releaseNamespace: 'gpu-operator' is no namespace of workspace abc"
    ]


def test_the_placement_of_commands_needs_jobs_for_what_is_no_object():
    """R13: the dry run does nothing, and no namespace holds a node."""
    desired = open_fleet(sample("placement-command.yaml"))
    assert [line.partition(": ")[2].split(":")[0] for line in errors(desired)] == ["spec.cmdExec[1].cmd"]
    assert not desired.requests
    assert desired.incomplete


def test_the_placement_of_commands_becomes_a_request_where_commands_may_be_jobs():
    account = sample("placement-command.yaml").replace("spec:\n", "spec:\n  serviceAccount: labels\n")
    desired = open_fleet(account, jobs=JOBS)
    assert errors(desired) == []
    request = desired.requests[WorkloadId(ABC, "workload-placement-cmd-example", request=True)]
    assert request.spec.commands[1] == Command(name="label-nodes", cmd="kubectl label node worker-node1 gpu=true")
    assert request.spec.service_account == "labels"


def test_the_body_of_a_post_is_admitted_with_charts_known_by_their_releases():
    """R5, R6, R7, R14: the step cuda finds the chart that has no name, and the object stands beside its name."""
    request = admitted(body("create.json"))
    assert (request.name, request.workspace) == ("bookinfo-workload-template-worker-4-0", ABC)
    assert (request.clusters, request.placements) == (("worker-1",), None)
    assert request.spec.burst_duration == timedelta(minutes=15)
    (chart,) = request.spec.helm
    assert (chart.name, chart.secret_ref, chart.values) == ("cuda", "vaidio-secret", {"replicaCount": 2})
    (resource,) = request.spec.manifests
    assert resource.manifest["metadata"] == {"name": "sample-configmap", "namespace": "bookinfo"}
    assert [step.name for step in request.spec.steps] == ["create-namespace", "cuda", "sample-configmap"]


@pytest.mark.parametrize("name", ["listed.json", "got.json"])
def test_what_an_answer_says_can_be_posted_again(name):
    assert admitted(body(name)).workload == WorkloadId(ABC, "bookinfo-workload-template-worker-4-0", request=True)


def test_the_body_of_a_put_names_what_is_to_change_and_its_namespace_is_passed_over():
    """R20."""
    draft = read_update(body("update-waiting.json"))
    assert isinstance(draft, RequestDraft)
    assert draft.fields_set == {
        "clusters", "burstDuration", "deletionPolicy", "helmConfigs", "manifestResources", "cmdExec", "steps",
    }  # fmt: skip # a list of words, filled line by line
    assert draft.clusters == ("worker-1", "worker-2")
    assert draft.spec.helm[0].values == {"replicaCount": 3}


def test_the_body_of_a_put_for_what_runs_names_two_fields():
    draft = read_update(body("update-running.json"))
    assert isinstance(draft, RequestDraft)
    assert draft.fields_set == {"burstDuration", "deletionPolicy"}
    assert draft.spec.burst_duration == timedelta(minutes=30)
    assert draft.spec.deletion_policy is DeletionPolicy.RETAIN


def test_no_sample_has_a_warning_that_its_reader_did_not_earn():
    desired = open_fleet(sample("workload-template-exported.yaml"))
    assert [line.partition(": ")[2].partition(":")[0] for line in warnings(desired)] == [
        "metadata.name",
        "spec",
        "spec.cmdExec[0].cmd",
        "spec.helmConfig[0].helmFlags",
    ]


def admitted(value) -> Request:
    draft = read_create(value)
    assert isinstance(draft, RequestDraft), draft
    request = admit(draft, open_fleet())
    assert isinstance(request, Request), request
    return request
