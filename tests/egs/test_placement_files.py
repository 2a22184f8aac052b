"""Placements in files, in all the ways in which EGS's documents contradict each other (R1 to R16)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.gpr import GprTerms, GpuAsk
from reconciler.model.ids import WorkloadId
from reconciler.model.request import Request
from tests.builders.egs_samples import egs, fleet, placement
from tests.builders.fleet_files import FLEET, TEMPLATE, errors, load, warnings, workspace

SETTINGS = WorkloadId("llm", "settings", request=True)


def read(file: str) -> Request:
    desired = fleet(file)
    assert errors(desired) == []
    return desired.requests[SETTINGS]


def wrong(file: str) -> list[str]:
    """Load one file, and list what is wrong with it, without its place."""
    desired = fleet(file)
    assert SETTINGS not in desired.requests
    assert desired.incomplete
    return [line.partition(": ")[2] for line in errors(desired)]


def warned(file: str) -> list[str]:
    desired = fleet(file)
    assert errors(desired) == []
    return [line.partition(": ")[2] for line in warnings(desired)]


@pytest.mark.parametrize("group", ["gpr", "worker", "aiops"])
def test_r1_all_three_groups_become_one_request(group):
    assert read(placement(group=group)) == read(placement())


@pytest.mark.parametrize("group", ["worker", "aiops"])
def test_r1_a_placement_of_a_group_for_one_cluster_names_one(group):
    assert wrong(placement(group=group, where="clusterNames: [worker-1, worker-2]")) == [
        (
            f"spec.clusterNames: names 2 clusters, and a placement of {group}.kubeslice.io is for one "
            "(try apiVersion: gpr.kubeslice.io/v1alpha1)"
        )
    ]


def test_r1_a_group_that_has_no_placements_is_an_error_with_the_one_to_write():
    (found,) = wrong(placement(group="controller"))
    assert found.startswith("apiVersion: WorkloadPlacement is not in controller.kubeslice.io (try 'gpr.kubeslice.io")


@pytest.mark.parametrize(
    "where",
    [
        "clusterName: worker-2",
        "ClusterName: worker-2",
        "clusters: [worker-2]",
        "clusterNames: [worker-2]",
        "clusterName: worker-2\nclusterNames: [worker-2]",
    ],
)
def test_r2_every_name_for_the_clusters_is_read(where):
    assert read(placement(where=where)).clusters == ("worker-2",)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (
            "clusterName: worker-1\nclusterNames: [worker-2]",
            "has both clusterNames and clusterName, and they differ (try keeping clusterNames)",
        ),
        (
            "clusters: [worker-1]\nclusterNames: [worker-2]",
            "has both clusterNames and clusters, and they differ (try keeping clusterNames)",
        ),
        (
            "clusterName: worker-1\nClusterName: worker-2",
            "has both ClusterName and clusterName, and they differ (try keeping clusterName)",
        ),
    ],
)
def test_r2_two_names_that_disagree_are_an_error(where, message):
    assert wrong(placement(where=where)) == [f"spec: {message}"]


def test_r2_no_cluster_is_an_error_with_the_two_ways_out():
    assert wrong(placement(where="")) == [
        "spec.clusterNames: is required (try clusterNames: [...], or autoSelectCluster: true)"
    ]


@pytest.mark.parametrize(
    ("where", "clusters", "placements"),
    [
        ("clusterNames: [worker-2, worker-1]", ("worker-2", "worker-1"), None),
        ("clusterNames: [worker-2, worker-1]\nnumPlacements: 1", ("worker-2", "worker-1"), 1),
        ("clusterNames: [worker-2, worker-1]\nautoSelectCluster: true", ("worker-2", "worker-1"), 1),
        ("autoSelectCluster: true", (), 1),
        ("autoSelectCluster: true\nnumPlacements: 2", (), 2),
        ("enableBurst: true", (), 1),
    ],
)
def test_r2_where_it_goes_and_on_how_many_clusters(where, clusters, placements):
    request = read(placement(where=where))
    assert (request.clusters, request.placements) == (clusters, placements)


def test_r2_a_cluster_named_twice_counts_once_and_is_told():
    file = placement(where="clusterNames: [worker-2, worker-2]")
    assert read(file).clusters == ("worker-2",)
    assert warned(file) == ["spec.clusterNames: names worker-2 more than once"]


def test_a_burst_to_every_cluster_is_told_to_pass_over_those_that_are_named():
    file = placement("enableBurst: true")
    assert (read(file).clusters, read(file).placements) == ((), 1)
    assert warned(file) == [
        (
            "spec.clusterNames: enableBurst opens every cluster of the workspace, so clusterNames does not bind it "
            "(try enableBurst: false to stay on the clusters of clusterNames)"
        )
    ]


def test_r3_charts_are_read_under_either_name_and_refused_where_both_differ():
    chart = "[{name: app, chart: a/b, version: 1.2.3, releaseName: app, releaseNamespace: llm-demo}]"
    step = "- {name: settings, type: manifest}\n  - {name: app, type: helm}"
    file = placement(f"helmConfigs: {chart}").replace("- {name: settings, type: manifest}", step)
    assert [one.release_name for one in read(file).spec.helm] == ["app"]
    assert read(file.replace("helmConfigs", "helmConfig")).spec == read(file).spec
    both = file.replace("spec:\n", f"spec:\n  helmConfig: {chart.replace('1.2.3', '1.2.4')}\n")
    assert wrong(both) == ["spec: has both helmConfig and helmConfigs, and they differ (try keeping helmConfig)"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("cmdExe: []", "spec.cmdExe: unknown field (try 'cmdExec')"),  # R4
        ("clusterNam: worker-2", "spec.clusterNam: unknown field (try 'clusterName')"),
        ("WorkspaceName: llm", "spec.WorkspaceName: unknown field (try 'workspaceName')"),  # R7
        ("ServiceAccount: runner", "spec.ServiceAccount: unknown field (try 'serviceAccount')"),
        ("helmConfig: [{SecretRef: a}]", "spec.helmConfig[0].SecretRef: unknown field (try 'secretRef')"),
        ("gprDetails: {priorty: 5}", "spec.gprDetails.priorty: unknown field (try 'priority')"),
        ("numPlacements: 0", "spec.numPlacements: 0 is less than 1"),
        ("deletionPolicy: Keep", "spec.deletionPolicy: 'Keep' is not one of Delete, Retain (try 'Delete')"),
    ],
)
def test_what_no_document_knows_is_an_error_with_the_nearest_name(spec, message):
    assert message in wrong(placement(spec))


def test_r8_a_service_account_is_read_under_either_name():
    assert read(placement("serviceAccount: runner")) == read(placement("serviceAccountName: runner"))


@pytest.mark.parametrize("ref", ["secretRef: login", "secretRef: {name: login}"])
def test_r7_the_secret_of_a_repository_is_a_name_or_an_object(ref):
    chart = f"[{{name: app, chart: a/b, version: 1.2.3, releaseName: app, releaseNamespace: llm-demo, {ref}}}]"
    (made,) = read(placement(f"helmConfig: {chart}")).spec.helm
    assert made.secret_ref == "login"


def test_r8_two_service_accounts_are_an_error():
    assert wrong(placement("serviceAccount: a\nserviceAccountName: b")) == [
        "spec: has both serviceAccount and serviceAccountName, and they differ (try keeping one)"
    ]


@pytest.mark.parametrize("name", ["serviceAccount", "serviceAccountName"])
def test_r8_an_account_is_for_commands_and_is_told_to_do_nothing_without_one(name):
    file = placement(f"{name}: runner")
    assert warned(file) == [
        (
            f"spec.{name}: has no effect: it is for commands, and no step is one "
            "(overspill bootstrap says what the engine may do)"
        )
    ]
    look = "  cmdExec: [{name: look, cmd: kubectl get pods -n llm-demo}]\n"
    (told,) = warned(f"{file}  - {{name: look, type: command}}\n{look}")
    assert told.startswith("spec.cmdExec[0].cmd: step look does not run")


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("45s", timedelta(seconds=45)),
        ("15m", timedelta(minutes=15)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("2d", timedelta(days=2)),
        ("0d0h30m", timedelta(minutes=30)),
        ("1.5h", timedelta(minutes=90)),
    ],
)
def test_r9_durations_have_days_hours_minutes_and_seconds_under_either_name(text, duration):
    assert read(placement(f"burstDuration: {text}")).spec.burst_duration == duration
    assert read(placement(f"duration: {text}", group="aiops")).spec.burst_duration == duration


@pytest.mark.parametrize("text", ["0s", "0d0h0m", "500ms", "5us", "5µs", "9ns", "15"])
def test_r9_nothing_and_what_is_below_a_second_is_refused(text):
    (found,) = wrong(placement(f"burstDuration: '{text}'"))
    assert found.startswith("spec.burstDuration: ")
    assert "'" in found


def test_r9_two_durations_are_an_error():
    assert wrong(placement("duration: 1h\nburstDuration: 2h")) == [
        "spec: has both burstDuration and duration, and they differ (try keeping burstDuration)"
    ]


def test_r11_something_to_deploy_and_a_step_are_required():
    file = placement().replace("    manifest: ", "    manifes: ")
    assert "spec.manifestResources[0].manifest: is required" in wrong(file)
    head = placement()[: placement().index("  manifestResources")]
    assert wrong(head) == ["spec: deploys nothing (list something under helmConfig, manifestResources or cmdExec)"]
    without_steps = placement()[: placement().index("  steps")]
    (found,) = wrong(without_steps)
    assert found.startswith("spec.steps: is required: only what a step names is applied")


def test_r11_an_entry_that_no_step_applies_is_a_warning():
    assert warned(placement("cmdExec: [{name: look, cmd: kubectl get pods -n llm-demo}]")) == [
        "spec.cmdExec[0]: no step applies command look (try a step {name: look, type: command})"
    ]


def test_r6_a_step_that_names_nothing_is_told_as_egs_does():
    assert wrong(placement().replace("type: manifest", "type: helm")) == [
        "spec.steps[0].name: step settings references helm config settings that doesn't exist (try type: manifest)"
    ]


def test_r12_the_steps_decide_the_order_whatever_is_listed_first():
    file = placement("cmdExec: [{name: look, cmd: kubectl get pods -n llm-demo}]")
    steps = read(file + "  - {name: look, type: command}\n").spec.steps
    assert [step.name for step in steps] == ["settings", "look"]


def test_r13_a_command_that_is_no_object_needs_jobs():
    file = placement("cmdExec: [{name: go, cmd: kubectl delete pod x -n llm-demo}]") + "  - {name: go, type: command}\n"
    (found,) = wrong(file)
    assert found.startswith("spec.cmdExec[0].cmd: ")


def test_r23_no_account_is_given_by_default_and_no_token_passes():
    assert read(placement()).spec.service_account == ""
    (found,) = wrong(placement().replace("{a: b}", "{hf: hf_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" + "}"))
    assert "which may not lie in git" in found


def test_r14_a_flattened_object_keeps_all_that_it_has():
    flat = "manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: llm-demo}, data: {a: b}}"
    beside = "namespace: llm-demo\n    apiVersion: v1\n    kind: ConfigMap\n    data: {a: b}"
    assert read(placement().replace(flat, beside)).spec == read(placement()).spec


def test_r15_a_namespace_that_is_not_the_workspaces_is_an_error():
    assert wrong(placement().replace("llm-demo", "kube-system")) == [
        (
            "spec.manifestResources[0].manifest.metadata.namespace: 'kube-system' is no namespace of workspace llm "
            "(it has llm-demo)"
        )
    ]


def test_r16_a_placement_of_a_template_deploys_what_that_does_and_remembers_it():
    head = placement("workloadTemplateName: vllm\nduration: 5m", name="settings")
    file = head[: head.index("  manifestResources")]
    request = read(file)
    assert request.template == "vllm"
    assert request.spec.manifests == load().templates[WorkloadId("llm", "vllm")].spec.manifests
    assert request.spec.burst_duration == timedelta(minutes=5)
    assert read(file.replace("  duration: 5m\n", "")).spec.burst_duration == timedelta(minutes=10)


def test_r16_a_template_that_is_not_there_is_an_error_only_where_it_is_needed():
    head = placement("workloadTemplateName: vlm")
    told = "spec.workloadTemplateName: no file describes WorkloadTemplate vlm of workspace llm (try 'vllm')"
    assert wrong(head[: head.index("  manifestResources")]) == [told]
    assert warned(head) == [told]
    assert read(head).template == "vlm"


def test_expressions_are_read_and_checked_as_in_templates():
    assert read(placement().replace("{a: b}", '{a: "{{ cluster.name }}"}')).spec.manifests
    assert wrong(placement().replace("{a: b}", '{a: "{{ clster.name }}"}')) == [
        "spec.manifestResources[0].manifest.data.a: no template knows the name 'clster' (try 'cluster')"
    ]


def test_a_step_of_the_worker_kind_may_have_egs_misspelt_field_without_effect():
    file = placement(group="worker").replace("type: manifest}", "type: manifest, preodicCheckTime: 30}")
    assert warned(file) == [
        "spec.steps[0].preodicCheckTime: has no effect here (helmFlags.timeout says how long a chart may take)"
    ]


def test_what_egs_and_kubectl_add_is_passed_over():
    exported = placement().replace(
        "  name: settings\nspec:",
        "  name: settings\n  namespace: kubeslice-avesha\n  uid: 06c04428\n  generation: 8\n"
        '  resourceVersion: "17"\n  creationTimestamp: "2025-11-04T09:25:26Z"\n  managedFields: [{manager: kubectl}]\n'
        '  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: "{}"\nspec:',
    )
    request = read(exported + "status:\n  placementStatus: Running\n  clusterPlacementDecisions: [{phase: Running}]\n")
    assert request.namespace == "kubeslice-avesha"
    assert fleet(exported + "status: {phase: Failed}\n").problems == ()


def test_gpr_details_become_what_is_asked_for_and_the_terms():
    request = read(
        placement("""
        gprDetails:
          numberOfGPUs: 2
          numberOfGPUNodes: 2
          memoryPerGPU: 80
          gpuShape: NVIDIA-H100
          instanceType: p5.48xlarge
          priority: 250
          exitDuration: 15m
          enableEviction: true
          requeueOnFailure: true
          idleTimeOutDuration: 5m
        """)
    )
    assert request.ask == GpuAsk(gpus=2, nodes=2, memory=80, shape="NVIDIA-H100", instance_type="p5.48xlarge")
    assert request.terms == GprTerms(
        priority=250,
        exit_duration=timedelta(minutes=15),
        idle=timedelta(minutes=5),
        enforce_idle=True,
        evictable=True,
        requeue=True,
    )


def test_gpr_details_without_any_size_leave_it_to_the_objects_what_is_asked_for():
    request = read(placement("gprDetails: {priority: 7}"))
    assert (request.ask, request.terms.priority) == (None, 7)
    assert read(placement()).terms == GprTerms(priority=101)


@pytest.mark.parametrize(
    ("details", "message"),
    [
        (
            "gpuShape: H100",
            ": has gpuShape without instanceType (try both, or enableAutoGpuSelection: true and neither)",
        ),
        (
            "instanceType: p5",
            ": has instanceType without gpuShape (try both, or enableAutoGpuSelection: true and neither)",
        ),
        (
            "gpuShape: H100, instanceType: p5, enableAutoGpuSelection: true",
            ": has a gpuShape, and enableAutoGpuSelection that lets any do (try leaving one of the two out)",
        ),
        (
            "enableAutoGpuSelection: false",
            (
                ": has neither gpuShape nor instanceType, and enableAutoGpuSelection is false "
                "(try naming both, or enableAutoGpuSelection: true)"
            ),
        ),
        ("numberOfGPUs: 0", ".numberOfGPUs: 0 is less than 1"),
        ("numberOfGPUNodes: 0", ".numberOfGPUNodes: 0 is less than 1"),
        ("memoryPerGpu: 0", ".memoryPerGpu: 0 is less than 1"),
        ("memoryPerGpu: 80, memoryPerGPU: 40", ": has both memoryPerGPU and memoryPerGpu, and they differ"),
        ("priority: 0", ".priority: 0 is less than 1"),
        ("priority: 301", ".priority: 301 is more than 300"),
        ("exitDuration: 0s", ".exitDuration: '0s' is not longer than nothing"),
        ("enforceIdleTimeOut: true", ": enforces an idle time without idleTimeOutDuration"),
    ],
)
def test_gpr_details_that_cannot_be_are_errors(details, message):
    (found,) = wrong(placement(f"gprDetails: {{{details}}}"))
    assert found.startswith(f"spec.gprDetails{message}")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "enableEGS: true",
            (
                "spec.enableEGS: has no effect here "
                "(spec.gprDetails says which GPUs it asks for, and its objects do otherwise)"
            ),
        ),
        (
            "gprDetails: {runPrecheck: true}",
            "spec.gprDetails.runPrecheck: has no effect here (nodes that are not ready are passed over anyway)",
        ),
        (
            "enableRedistribute: false",
            "spec.enableRedistribute: has no effect here (clusterNames say where it may go, now and later)",
        ),
        (
            "gprDetails: {priority: 300}",
            "spec.gprDetails.priority: is the highest there is, and EGS itself ends at 299 (try 299)",
        ),
        (
            "gprDetails: {exitDuration: 1h}",
            (
                "spec.gprDetails.exitDuration: has no effect: burstDuration says that it lasts 15m "
                "(try one duration for both)"
            ),
        ),
    ],
)
def test_what_a_field_does_not_do_here_is_told_with_the_way_out(spec, message):
    assert warned(placement(f"burstDuration: 15m\n{spec}")) == [message]


def test_what_says_no_to_what_is_not_done_here_is_not_told():
    assert warned(placement("enableEGS: false\ngprDetails: {runPrecheck: false}")) == []


def test_a_placement_finds_its_workspace_by_its_namespaces():
    files = {**FLEET, "workspaces/chat.yaml": workspace("chat"), "0.yaml": placement().replace("llm-demo", "chat-demo")}
    assert {*load(files).requests} == {WorkloadId("chat", "settings", request=True)}


def test_a_placement_of_an_unknown_workspace_is_an_error():
    assert wrong(placement("workspaceName: lim")) == ["spec.workspaceName: no file describes Workspace lim (try 'llm')"]


def test_a_placement_and_a_template_of_one_name_are_two_workloads():
    desired = fleet(placement(name="vllm"))
    assert desired.problems == ()
    assert {*desired.templates, *desired.requests} == {
        WorkloadId("llm", "vllm"),
        WorkloadId("llm", "vllm", request=True),
    }
    assert TEMPLATE in FLEET.values()


def test_two_requests_of_one_name_are_an_error_at_the_second_whatever_kinds_they_are():
    gpr = egs(
        "GPUProvisioningRequest",
        "{sliceName: llm, clusterName: worker-2, numberOfGPUNodes: 1, exitDuration: 1h}",
        name="settings",
    )
    desired = fleet(placement(), gpr)
    assert [line.split(" (")[0] for line in errors(desired)] == [
        "policies/1.yaml:4: metadata.name: GPUProvisioningRequest llm/settings is already in policies/0.yaml:1"
    ]
    assert not desired.requests[SETTINGS].reserves
