"""Bodies of EGS's REST interface: read with the field in every complaint, merged into a request, and written."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.api.routes.placements import read_create, read_update
from reconciler.core.fleet.admission import admit
from reconciler.core.schema.egs.request import RequestDraft, merge_update
from reconciler.core.schema.egs.resource import rest_document
from reconciler.model.gpr import GpuAsk
from reconciler.model.request import Request
from reconciler.model.workload import DeletionPolicy, Json
from tests.builders.egs_samples import body, egs, open_fleet
from tests.builders.fleet_files import TEMPLATE


def posted(**changes: Json) -> Json:
    """Take the sample of a POST; None takes a field away."""
    whole = {**body("create.json"), **changes}
    return {name: value for name, value in whole.items() if value is not None}


def complaints(found: object) -> list[str]:
    """Write findings as an answer would tell them."""
    assert isinstance(found, tuple), found
    return [str(finding.problem(path="", line=0)).removeprefix(": ") for finding in found]


def request(value: Json) -> Request:
    draft = read_create(value)
    assert isinstance(draft, RequestDraft), draft
    made = admit(draft, open_fleet())
    assert isinstance(made, Request), made
    return made


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": None}, "name: is required"),
        ({"name": "Book Info"}, "name: 'Book Info' is not a name of lower-case letters"),
        ({"clusters": None}, "clusters: is required (try clusters: [...], or autoSelectCluster: true)"),
        ({"clusters": "worker-1"}, "clusters: must be a list, not the text 'worker-1' (try [worker-1])"),
        ({"burstDuration": "15 minutes"}, "burstDuration: '15 minutes' is not a duration (try '15m')"),
        ({"deletionPolicy": "Keep"}, "deletionPolicy: 'Keep' is not one of Delete, Retain (try 'Delete')"),
        ({"cmdExe": []}, "cmdExe: unknown field (try 'cmdExec')"),
        ({"helmConfigs": [{"releaseName": "a", "releaseNamespace": "b"}]}, "helmConfigs[0].chart: is required"),
        ({"steps": []}, "steps: is required: only what a step names is applied"),
        ({"helmConfigs": []}, "steps[1].name: step cuda references helm config cuda that doesn't exist"),
        ({"gprDetails": {"numberOfGPUs": "2"}}, "gprDetails.numberOfGPUs: must be a whole number"),
    ],
)
def test_what_is_wrong_with_a_body_is_told_by_its_own_fields(change, complaint):
    assert any(line.startswith(complaint) for line in complaints(read_create(posted(**change))))


@pytest.mark.parametrize("value", [None, 3, "text", [], [{}]])
def test_what_is_no_object_is_refused(value):
    (found,) = complaints(read_create(value))
    assert found.startswith("must be a mapping")
    assert complaints(read_update(value)) == [found]


def test_r11_arrays_may_be_left_out_but_for_one_and_the_steps():
    only = posted(helmConfigs=None, manifestResources=None, steps=[{"name": "create-namespace", "type": "command"}])
    assert [command.name for command in request(only).spec.commands] == ["create-namespace"]
    assert "deploys nothing (list something under helmConfig, manifestResources or cmdExec)" in complaints(
        read_create(posted(helmConfigs=None, manifestResources=None, cmdExec=None))
    )


def test_what_the_safety_rules_refuse_is_told_where_it_stands_in_a_flattened_object():
    draft = read_create(posted(manifestResources=[{**body("create.json")["manifestResources"][0], "namespace": "no"}]))
    assert isinstance(draft, RequestDraft)
    found = admit(draft, open_fleet(namespaces="[bookinfo]"))
    assert complaints(found) == [
        "manifestResources[0].namespace: 'no' is no namespace of workspace abc (it has bookinfo)"
    ]


def test_a_workspace_that_does_not_exist_is_told():
    draft = read_create(posted(workspaceName="abd"))
    assert isinstance(draft, RequestDraft)
    assert complaints(admit(draft, open_fleet())) == ["workspaceName: no file describes Workspace abd (try 'abc')"]


def test_a_workspace_that_a_caller_may_not_see_is_not_there_for_them():
    named, unnamed = (read_create(posted(workspaceName=name)) for name in ("abc", None))
    assert isinstance(named, RequestDraft)
    assert isinstance(unnamed, RequestDraft)
    assert isinstance(admit(named, open_fleet(), within={"abc"}), Request)
    hidden = complaints(admit(named, open_fleet(), within=set()))
    assert hidden == ["workspaceName: no file describes Workspace abc (add a Workspace of this name)"]
    assert "abc" not in str(admit(unnamed, open_fleet(), within=set()))


def test_the_fields_of_the_python_client_are_read():
    template = TEMPLATE.replace("workspaceName: llm", "workspaceName: abc").replace("llm-demo", "bookinfo")
    draft = read_create(
        {
            "name": "from-client",
            "workspaceName": "abc",
            "clusterNames": ["worker-1", "worker-2"],
            "numPlacements": 1,
            "workloadTemplateName": "vllm",
            "serviceAccountName": "runner",
            "enableBurst": False,
            "enableEGS": True,
            "gprDetails": {"numberOfGPUs": 4, "memoryPerGpu": 40, "priority": 210},
        }
    )
    assert isinstance(draft, RequestDraft)
    made = admit(draft, open_fleet(template))
    assert isinstance(made, Request)
    assert (made.template, made.placements, made.clusters) == ("vllm", 1, ("worker-1", "worker-2"))
    assert (made.spec.service_account, made.ask) == ("runner", GpuAsk(gpus=4, memory=40))
    assert [resource.name for resource in made.spec.manifests] == ["server"]


def test_the_policy_of_a_body_goes_before_the_one_of_its_template():
    kept = TEMPLATE.replace("workspaceName: llm", "workspaceName: abc\n  deletionPolicy: Retain")
    fleet = open_fleet(kept)
    said = {"name": "a", "workspaceName": "abc", "clusters": ["worker-1"], "workloadTemplateName": "vllm"}
    for more, policy in (({}, DeletionPolicy.RETAIN), ({"deletionPolicy": "Delete"}, DeletionPolicy.DELETE)):
        draft = read_create({**said, **more})
        assert isinstance(draft, RequestDraft)
        made = admit(draft, fleet)
        assert isinstance(made, Request)
        assert made.spec.deletion_policy is policy


def test_r20_a_put_tells_that_it_names_what_may_not_change():
    draft = read_update({"name": "other", "workspaceName": "xyz", "namespace": "kubeslice-avesha"})
    assert isinstance(draft, RequestDraft)
    assert (draft.name, draft.workspace, draft.fields_set) == ("other", "xyz", {"name", "workspaceName"})


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("clusterNames", ["worker-1"], "clusters"),
        ("clusterName", "worker-1", "clusters"),
        ("helmConfig", [], "helmConfigs"),
        ("duration", "5m", "burstDuration"),
        ("serviceAccount", "runner", "serviceAccountName"),
        ("gprDetails", {}, "gprDetails"),
    ],
)
def test_a_put_names_a_field_by_its_one_name_however_it_is_spelt(field, value, said):
    draft = read_update({field: value})
    assert isinstance(draft, RequestDraft)
    assert draft.fields_set == {said}


def test_r20_an_unknown_field_of_a_put_is_refused():
    (found,) = complaints(read_update({"replicas": 3}))
    assert found.startswith("replicas: unknown field")


def test_an_update_changes_what_it_names_and_nothing_else():
    before = request(body("create.json"))
    change = read_update({"burstDuration": "30m", "clusters": ["worker-2"]})
    assert isinstance(change, RequestDraft)
    draft, found = merge_update(before, change)
    assert found == ()
    after = admit(draft, open_fleet())
    assert isinstance(after, Request)
    assert after.spec.burst_duration == timedelta(minutes=30)
    assert after.clusters == ("worker-2",)
    assert rest_document(after) == {**rest_document(before), "burstDuration": "30m", "clusters": ["worker-2"]}


@pytest.mark.parametrize(
    ("change", "clusters", "placements"),
    [
        ({"numPlacements": 1}, ("worker-1", "worker-2"), 1),
        ({"enableBurst": False}, ("worker-1", "worker-2"), None),
        ({"autoSelectCluster": True}, (), 1),
        ({"clusterNames": ["worker-2"], "enableBurst": False}, ("worker-2",), None),
    ],
)
def test_an_update_says_anew_where_a_request_goes_or_leaves_it(change, clusters, placements):
    before = request(posted(clusters=["worker-1", "worker-2"]))
    draft = read_update(change)
    assert isinstance(draft, RequestDraft)
    after, found = merge_update(before, draft)
    assert found == ()
    assert (after.clusters, after.placements) == (clusters, placements)


def test_an_update_that_breaks_what_stays_is_refused_with_the_field():
    change = read_update({"helmConfigs": []})
    assert isinstance(change, RequestDraft)
    _, found = merge_update(request(body("create.json")), change)
    assert complaints(found) == ["steps[1].name: step cuda references helm config cuda that doesn't exist"]


def test_an_update_of_nothing_changes_nothing():
    before = request(posted(gprDetails={"numberOfGPUs": 2, "requeueOnFailure": True}))
    change = read_update({})
    assert isinstance(change, RequestDraft)
    draft, _ = merge_update(before, change)
    assert admit(draft, open_fleet()) == before


def test_an_answer_has_the_fields_and_the_order_of_egs():
    got = body("got.json")
    told = {name: value for name, value in got.items() if name not in ("status", "createdAt", "updatedAt")}
    answer = rest_document(request(got))
    assert answer == told
    assert [*answer] == [*told]
    assert [*answer["helmConfigs"][0]] == [*got["helmConfigs"][0]]
    assert rest_document(request(body("create.json"))) == body("create.json")


def test_an_object_that_would_lose_something_is_told_wrapped():
    wrapped = {"name": "step", "manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}}
    labelled = {
        "name": "labelled",
        "manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "labelled", "labels": {"a": "b"}}},
    }
    steps = [{"name": "step", "type": "manifest"}, {"name": "labelled", "type": "manifest"}]
    value = posted(manifestResources=[wrapped, labelled], steps=steps, helmConfigs=None, cmdExec=None)
    assert rest_document(request(value))["manifestResources"] == [wrapped, labelled]


def test_a_chart_has_a_name_in_an_answer_only_where_it_is_not_its_releases():
    chart = body("create.json")["helmConfigs"][0]
    steps = [{"name": "gpu", "type": "helm"}]
    value = posted(helmConfigs=[{"name": "gpu", **chart}], steps=steps, manifestResources=None, cmdExec=None)
    assert rest_document(request(value))["helmConfigs"] == [{"name": "gpu", **chart}]


def test_a_reservation_of_a_file_is_kept_on_one_of_its_clusters():
    gpr = egs(
        "GPUProvisioningRequest", "{sliceName: abc, preferredClusters: [worker-2], numberOfGPUNodes: 1}", name="tuning"
    )
    (made,) = open_fleet(gpr).requests.values()
    assert (made.reserves, made.placements, made.clusters) == (True, 1, ("worker-2",))
