"""EGS's templates load unchanged, in every spelling of its documents, and what cannot work is told."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import islice, permutations

import pytest
import yaml

from reconciler.core.fleet.template import template_draft
from reconciler.core.schema.egs.template import WorkloadTemplateFile
from reconciler.model.ids import WorkloadId
from reconciler.model.workload import DeletionPolicy, HelmFlags, Step, StepType, WorkloadRef
from tests.builders.egs_samples import sample
from tests.builders.fleet_files import FLEET, TEMPLATE, errors, load, text, warnings, with_template, workspace

VLLM = WorkloadId("llm", "vllm")

SAMPLE = sample("workload-template.yaml")
"""The sample of EGS's placement guide for 1.15.0, with its indentation restored."""

EXPORTED = text("""
    apiVersion: gpr.kubeslice.io/v1alpha1
    kind: WorkloadTemplate
    metadata:
      annotations:
        kubectl.kubernetes.io/last-applied-configuration: |
          {"apiVersion":"gpr.kubeslice.io/v1alpha1","kind":"WorkloadTemplate","metadata":{"annotations":{},"name":"x"}}
      creationTimestamp: "2025-11-04T09:25:26Z"
      generation: 8
      managedFields:
      - apiVersion: gpr.kubeslice.io/v1alpha1
        fieldsType: FieldsV1
        fieldsV1: {f:spec: {f:steps: {}}}
        manager: kubectl
        operation: Update
        time: "2025-11-04T09:25:26Z"
      name: vllm-workload-template
      namespace: kubeslice-avesha
      resourceVersion: "1762286904037935011"
      uid: 06c04428-a041-4424-86c5-af6d4c490892
    spec:
      burstDuration: 10m
      cmdExec:
      - cmd: kubectl get pods -n vllm-demo
        name: get-namespace
      deletionPolicy: Delete
      helmConfig:
      - chart: vllm/vllm-stack
        helmFlags: --debug
        name: vllm-app
        releaseName: vllm-burst
        releaseNamespace: vllm-demo
        repoName: vllm
        repoURL: https://vllm-project.github.io/production-stack
        values:
          servingEngineSpec:
            modelSpec:
            - name: llama3
              replicaCount: 1
              vllmConfig: null
      steps:
      - name: get-namespace
        type: command
      - name: vllm-app
        type: helm
    status:
      workloadSelector:
        name: vllm
        namespace: vllm-demo
    """)
"""What `kubectl get -o yaml` prints for it."""


def in_open_workspace(template: str):
    """Load a template where charts need no version and the namespace is vllm-demo."""
    open_workspace = workspace(more="allowUnpinnedCharts: true").replace("llm-demo", "vllm-demo")
    return load({**FLEET, "workspaces/llm.yaml": open_workspace, "templates/vllm.yaml": template})


def spec_of(lines: str, *, kind: str = "helmConfig"):
    """Load the template with one list of parts in place of its own."""
    body = "".join(f"  {line}\n" for line in text(lines).splitlines())
    head = TEMPLATE[: TEMPLATE.index("  manifestResources:")]
    return with_template(f"{head}  {kind}:\n{body}")


def test_the_sample_of_the_guide_loads_where_charts_may_be_unpinned():
    desired = in_open_workspace(SAMPLE)
    assert errors(desired) == []
    template = desired.templates[WorkloadId("llm", "vllm-workload-template")]
    assert template.ref == WorkloadRef(namespace="vllm-demo", name="vllm", release=True)
    assert template.spec.service_account == "vllm-sa"
    assert template.spec.burst_duration == timedelta(minutes=10)
    assert [step.name for step in template.spec.steps] == ["get-namespace", "vllm-app"]
    (chart,) = template.spec.helm
    assert chart.values["servingEngineSpec"]["modelSpec"][0]["requestMemory"] == "8Gi"
    assert [line.partition(": ")[2] for line in warnings(desired)] == [
        (
            "spec: nothing says where its replicas are written: each placement is one copy of 1 replica, and a cluster"
            " gets one at most (try the annotation overspill.dev/replicas:"
            " vllm-app:servingEngineSpec.modelSpec.0.replicaCount, or overspill.dev/replicas: fixed if that is meant)"
        ),
        "spec.helmConfig[0].helmFlags: --debug has no effect",
        (
            "spec.cmdExec[0].cmd: step get-namespace does not run, and the steps after it do not wait for it: it only "
            "reads, and the workspace has no command Jobs (set commandJobs in the Workspace if it is a gate, or leave "
            "its step out)"
        ),
    ]


def test_a_chart_without_a_version_is_an_error_elsewhere():
    desired = load(
        {**FLEET, "workspaces/llm.yaml": workspace().replace("llm-demo", "vllm-demo"), "templates/vllm.yaml": SAMPLE}
    )
    assert errors(desired) == [
        (
            "templates/vllm.yaml:11: spec.helmConfig[0].version: the chart has no version "
            "(write it out, as in 0.1.7, or set allowUnpinnedCharts)"
        )
    ]
    assert desired.incomplete


@pytest.mark.parametrize(
    "address",
    [
        "http://charts.example.com",
        "charts.example.com",
        "http://[::1",
    ],
)
def test_a_chart_from_the_open_is_an_error(address):
    desired = in_open_workspace(SAMPLE.replace("https://vllm-project.github.io/production-stack", address))
    assert errors(desired) == [
        (
            "templates/vllm.yaml:16: spec.helmConfig[0].repoURL: must begin with https:// or oci:// "
            "(plain http is for localhost only)"
        )
    ]


@pytest.mark.parametrize("address", ["http://127.0.0.1:8879", "http://[::1]/charts", "http://localhost", "oci://a/b"])
def test_a_chart_from_this_machine_or_a_registry_passes(address):
    desired = in_open_workspace(SAMPLE.replace("https://vllm-project.github.io/production-stack", address))
    assert errors(desired) == []


def test_what_kubectl_exports_loads_unchanged_and_its_selector_is_the_workload():
    desired = in_open_workspace(EXPORTED)
    assert errors(desired) == []
    template = desired.templates[WorkloadId("llm", "vllm-workload-template")]
    assert template.ref == WorkloadRef(namespace="vllm-demo", name="vllm", release=True)
    assert template.namespace == "kubeslice-avesha"


def test_a_chart_without_a_name_is_known_by_its_release():
    nameless = SAMPLE.replace('- name: "vllm-app"\n      chart:', "- chart:").replace(
        '- name: "vllm-app"', "- name: vllm"
    )
    desired = in_open_workspace(nameless)
    assert errors(desired) == []
    (template,) = desired.templates.values()
    assert template.spec.helm[0].name == "vllm"
    assert (
        "templates/vllm.yaml:11: spec.helmConfig[0]: has no name; steps know it as vllm, its releaseName "
        "(try name: vllm)" in warnings(desired)
    )


CHART = """
    - name: app
      chart: repo/app
      version: 1.2.3
      releaseName: vllm
      releaseNamespace: llm-demo
      values:
        count: "{{ replicas }}"
"""
STEPS = "steps:\n- name: app\n  type: helm\n"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (
            '"--create-namespace --wait --timeout 5m"',
            HelmFlags(create_namespace=True, wait=True, timeout=timedelta(minutes=5)),
        ),
        (
            "--atomic --cleanup-on-fail --skip-crds --timeout=90s",
            HelmFlags(atomic=True, cleanup_on_fail=True, skip_crds=True, timeout=timedelta(seconds=90)),
        ),
        ("--wait=false", HelmFlags()),
        (
            "{atomic: true, cleanupOnFail: true, skipCRDs: true, timeout: 5m}",
            HelmFlags(atomic=True, cleanup_on_fail=True, skip_crds=True, timeout=timedelta(minutes=5)),
        ),
        ("{createNamespace: true, wait: true}", HelmFlags(create_namespace=True, wait=True)),
    ],
)
def test_helm_flags_are_read_as_text_and_as_an_object(flags, expected):
    desired = spec_of(f"{CHART}      helmFlags: {flags}\n{STEPS}")
    assert errors(desired) == []
    assert desired.templates[VLLM].spec.helm[0].flags == expected


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--version 1.2.3", "--version is not read here (write it as version:)"),
        ("--set a=b --set-string=c=d", "--set is not read here (write it under values:)"),
        ("-f values.yaml", "-f is not read here (write them under values:)"),
        (
            "--kubeconfig x",
            (
                "--kubeconfig is not read here (--atomic, --cleanup-on-fail, --create-namespace, "
                "--skip-crds, --timeout and --wait are read)"
            ),
        ),
        ("--timeout soon", "--timeout: 'soon' is not a duration (try '10m' or '1h30m')"),
        ("--timeout", "--timeout: '' is not a duration (try '10m' or '1h30m')"),
        ("{wiat: true}", "wiat: unknown field (try 'wait')"),
        ("[--wait]", "must be text, not a list"),
        ("'\"'", "'\"' is no list of options: No closing quotation"),
    ],
)
def test_other_helm_flags_are_refused_with_the_place_for_what_they_say(flags, message):
    found = errors(spec_of(f"{CHART}      helmFlags: {flags}\n{STEPS}"))
    assert found
    assert all(line.startswith("templates/vllm.yaml:17: spec.helmConfig[0].helmFlags") for line in found)
    assert found[0].endswith(message)


@pytest.mark.parametrize("ref", ["repo-login", "{name: repo-login}"])
def test_a_secret_is_referred_to_by_name_or_by_object(ref):
    desired = spec_of(f"{CHART}      secretRef: {ref}\n{STEPS}")
    assert desired.templates[VLLM].spec.helm[0].secret_ref == "repo-login"


@pytest.mark.parametrize("name", ["placements-read", "placements-hook"])
def test_secret_of_our_own_is_not_sent_to_the_repository_of_a_chart(name):
    found = errors(spec_of(f"{CHART}      secretRef: {name}\n{STEPS}"))
    told = f"{name} is a Secret of Overspill's own (try a Secret with the login of this repository)"
    assert found == [f"templates/vllm.yaml:17: spec.helmConfig[0].secretRef.name: {told}"]


def test_charts_may_stand_under_the_name_of_the_rest_interface():
    desired = spec_of(f"{CHART}{STEPS}", kind="helmConfigs")
    assert desired.templates[VLLM].spec.helm[0].name == "app"
    broken = spec_of(CHART.replace("1.2.3", "'*'") + STEPS, kind="helmConfigs")
    assert errors(broken)[0].startswith("templates/vllm.yaml:12: spec.helmConfigs[0].version: '*' is not one version")


def test_a_version_that_yaml_takes_for_a_number_wants_quotes():
    assert errors(spec_of(CHART.replace("1.2.3", "1.0") + STEPS)) == [
        "templates/vllm.yaml:12: spec.helmConfig[0].version: must be text, not 1.0 (try '1.0' in quotes)"
    ]


FLAT = """
    - name: settings
      namespace: llm-demo
      apiVersion: v1
      kind: ConfigMap
      data: {theme: dark}
    - name: server
      apiVersion: apps/v1
      kind: Deployment
      metadata: {namespace: llm-demo, labels: {app: vllm}}
      spec:
        selector: {matchLabels: {app: vllm}}
        template: {metadata: {labels: {app: vllm}}, spec: {containers: [{name: server, image: vllm:1}]}}
        replicas: "{{ replicas }}"
    steps:
    - {name: settings, type: manifest}
    - {name: server, type: manifest}
"""


def test_flattened_manifests_keep_every_field_of_the_object():
    desired = spec_of(FLAT, kind="manifestResources")
    settings, server = desired.templates[VLLM].spec.manifests
    assert settings.manifest == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "llm-demo"},
        "data": {"theme": "dark"},
    }
    assert server.manifest["metadata"] == {"name": "server", "namespace": "llm-demo", "labels": {"app": "vllm"}}
    assert server.manifest["spec"]["replicas"] == "{{ replicas }}"
    assert desired.templates[VLLM].ref == WorkloadRef(namespace="llm-demo", name="server", kind="Deployment")


def test_cmd_exe_is_an_error_with_its_right_name():
    assert errors(with_template(TEMPLATE + "  cmdExe: []\n")) == [
        "templates/vllm.yaml:22: spec.cmdExe: unknown field (try 'cmdExec')"
    ]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("{name: cuda, type: helm}", "step cuda references helm config cuda that doesn't exist"),
        ("{name: cuda, type: manifest}", "step cuda references manifest cuda that doesn't exist"),
        ("{name: cuda, type: command}", "step cuda references command cuda that doesn't exist"),
        ("{name: servr, type: manifest}", "step servr references manifest servr that doesn't exist (try 'server')"),
        (
            "{name: server, type: helm}",
            "step server references helm config server that doesn't exist (try type: manifest)",
        ),
    ],
)
def test_a_step_that_names_no_config_is_an_error(step, message):
    assert errors(with_template(TEMPLATE + f"  - {step}\n")) == [
        f"templates/vllm.yaml:22: spec.steps[1].name: {message}"
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("  - name: server\n    type: manifest\n", "  - name: server\n    type: manifets\n"),
            "21: spec.steps[0].type: 'manifets' is not one of helm, manifest, command (try 'manifest')",
        ),
        (
            ("  steps:\n  - name: server\n    type: manifest\n", ""),
            (
                "6: spec.steps: is required: only what a step names is applied (try steps: [{name: "
                "server, type: manifest}])"
            ),
        ),
        (
            ("burstDuration: 10m", "burstDuration: 500ms"),
            "8: spec.burstDuration: '500ms' is not a duration (try '10m' or '1h30m')",
        ),
        (("burstDuration: 10m", "burstDuration: 0m"), "8: spec.burstDuration: '0m' is not longer than nothing"),
        (
            ("burstDuration: 10m", "deletionPolicy: delete"),
            "8: spec.deletionPolicy: 'delete' is not one of Delete, Retain (try 'Delete')",
        ),
        (("burstDuration: 10m", "WorkspaceName: llm"), "8: spec.WorkspaceName: unknown field (try 'workspaceName')"),
        (
            ("- name: server\n    manifest", "- name: ../server\n    manifest"),
            (
                "10: spec.manifestResources[0].name: '../server' is not a name of letters, digits, '-', '_' and '.' "
                "(63 at most)"
            ),
        ),
        (
            ("kind: Deployment", "kind: {apps: Deployment}"),
            (
                "11: spec.manifestResources[0].manifest: the manifest is no Kubernetes object "
                "(it needs apiVersion and kind)"
            ),
        ),
        (
            ('replicas: "{{ replicas }}"', 'replicas: "{{ replica }}"'),
            (
                "18: spec.manifestResources[0].manifest.spec.replicas: no template knows the name "
                "'replica' (try 'replicas')"
            ),
        ),
        (
            ("kubeslice-acme\n", "kubeslice-acme\n  annotations:\n    overspill.dev/workload: vllm\n"),
            (
                "7: metadata.annotations[\"overspill.dev/workload\"]: 'vllm' names no object "
                "(try 'Deployment/namespace/name')"
            ),
        ),
        (
            ("kubeslice-acme\n", "kubeslice-acme\n  annotations:\n    overspill.dev/workload: Job/train\n"),
            (
                "7: metadata.annotations[\"overspill.dev/workload\"]: 'Job/train' names no namespace "
                "(try '<Kind>/<namespace>/<name>')"
            ),
        ),
    ],
)
def test_what_cannot_work_in_a_template_is_an_error(change, message):
    assert change[0] in TEMPLATE
    found = errors(with_template(TEMPLATE.replace(*change)))
    assert f"templates/vllm.yaml:{message}" in found


def test_steps_that_name_nothing_are_told_without_looking_through_ten_thousand_other_names():
    names = ["".join(letters) for letters in islice(permutations("abcdefghijkl"), 10_000)]
    spec = {
        "cmdExec": [{"name": name, "cmd": "kubectl get pods"} for name in names],
        "steps": [{"name": f"x{name}", "type": "command"} for name in names],
    }
    file = {"apiVersion": "gpr.kubeslice.io/v1alpha1", "kind": "WorkloadTemplate", "metadata": {"name": "t"}}
    read = WorkloadTemplateFile.model_validate({**file, "spec": spec})
    _, found = template_draft(read)
    missing = [finding for finding in found if "references command" in finding.message]
    assert len(missing) == 100
    assert {finding.hint for finding in missing} == {""}


def test_two_parts_of_one_name_and_a_step_written_twice_are_errors():
    start, end = TEMPLATE.index("  - name: server\n    manifest"), TEMPLATE.index("  steps:")
    doubled = TEMPLATE[:end] + TEMPLATE[start:end] + TEMPLATE[end:] + "  - name: server\n    type: manifest\n"
    assert [line.partition(" ")[2] for line in errors(with_template(doubled))] == [
        "spec.manifestResources[1].name: another manifest is called server",
        "spec.steps[1]: manifest server is already an earlier step (try removing one)",
    ]


def test_a_part_that_no_step_applies_is_a_warning():
    more = TEMPLATE.replace("  steps:", "  cmdExec:\n  - name: look\n    cmd: kubectl get pods -n llm-demo\n  steps:")
    assert warnings(with_template(more)) == [
        "templates/vllm.yaml:20: spec.cmdExec[0]: no step applies command look (try a step {name: look, type: command})"
    ]


def test_a_misspelt_step_is_one_problem():
    misspelt = TEMPLATE.replace("  - name: server\n    type: manifest\n", "  - name: servr\n    type: manifest\n")
    assert misspelt != TEMPLATE
    desired = with_template(misspelt)
    assert [line.rpartition(": ")[2] for line in errors(desired)] == [
        "step servr references manifest servr that doesn't exist (try 'server')"
    ]
    assert warnings(desired) == []


def test_a_number_that_a_template_writes_out_is_written_anew_for_each_placement():
    written, literal = with_template(TEMPLATE), with_template(TEMPLATE.replace('"{{ replicas }}"', "1"))
    assert warnings(literal) == []
    assert literal.templates[VLLM].spec == written.templates[VLLM].spec
    assert literal.templates[VLLM].uses_replicas


def test_how_egs_means_it_to_burst_has_no_effect_where_a_policy_says_so():
    more = TEMPLATE + "  autoPlacement: true\n  enableBurst: true\n  clusterNames: [worker-2]\n"
    assert [line.split(" ", 1)[1] for line in warnings(with_template(more))] == [
        "spec.autoPlacement: has no effect: BurstPolicy gpu says when it bursts",
        "spec.enableBurst: has no effect: BurstPolicy gpu says when it bursts",
        "spec.clusterNames: has no effect: BurstPolicy gpu says where to",
    ]


def test_a_gpr_template_that_no_file_describes_is_an_error():
    (found,) = errors(with_template(TEMPLATE + "  gprTemplates: [a100]\n"))
    assert found.endswith("spec.gprTemplates[0]: no file describes GPRTemplate a100 (add a GPRTemplate of this name)")


@pytest.mark.parametrize(
    ("annotation", "ref"),
    [
        ("llm-demo/chat", WorkloadRef(namespace="llm-demo", name="chat")),
        ("StatefulSet/llm-demo/chat", WorkloadRef(namespace="llm-demo", name="chat", kind="StatefulSet")),
    ],
)
def test_the_annotation_goes_before_everything_else(annotation, ref):
    marked = f"kubeslice-acme\n  annotations:\n    overspill.dev/workload: {annotation}\n"
    desired = with_template(TEMPLATE.replace("kubeslice-acme\n", marked))
    assert desired.templates[VLLM].ref == ref


def test_without_any_object_to_count_a_template_is_warned_about():
    desired = with_template(
        TEMPLATE.replace("kind: Deployment", "kind: DaemonSet").replace(
            'replicas: "{{ replicas }}"', 'minReadySeconds: "{{ replicas }}"'
        )
    )
    assert desired.templates[VLLM].ref is None
    assert warnings(desired)[:1] == [
        (
            "templates/vllm.yaml:4: metadata.name: nothing says which object on the primary it counts, so demand "
            'cannot place it (annotate it: overspill.dev/workload: "Deployment/namespace/name")'
        )
    ]


def test_an_object_that_may_be_counted_is_named_in_the_way_out():
    grouped = "leaderWorkerTemplate: {workerTemplate: {spec: {containers: [{name: main, image: 'vllm:1'}]}}}"
    written = json.loads(json.dumps(yaml.safe_load(TEMPLATE)))
    manifest = written["spec"]["manifestResources"][0]["manifest"]
    manifest |= {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    manifest["spec"] = {"replicas": "{{ replicas }}", **yaml.safe_load(grouped)}
    namespace, name = manifest["metadata"].get("namespace", "default"), manifest["metadata"]["name"]
    told = " ".join(warnings(with_template(json.dumps(written))))
    way_out = f'annotate it: overspill.dev/workload: "LeaderWorkerSet/{namespace}/{name}"'
    assert way_out in told
    annotations = {"overspill.dev/workload": f"LeaderWorkerSet/{namespace}/{name}"}
    written["metadata"]["annotations"] = annotations
    desired = with_template(json.dumps(written))
    assert "annotate it" not in " ".join(warnings(desired))
    assert desired.templates[VLLM].ref == WorkloadRef(namespace=namespace, name=name, kind="LeaderWorkerSet")


def test_a_misspelt_annotation_of_ours_is_warned_about():
    marked = "kubeslice-acme\n  annotations:\n    overspill.dev/worklod: llm-demo/chat\n"
    assert warnings(with_template(TEMPLATE.replace("kubeslice-acme\n", marked))) == [
        (
            'templates/vllm.yaml:7: metadata.annotations["overspill.dev/worklod"]: unknown annotation '
            "(try 'overspill.dev/workload')"
        )
    ]


def test_the_whole_of_a_template_becomes_the_model():
    template = load().templates[VLLM]
    assert template.spec.deletion_policy is DeletionPolicy.DELETE
    assert template.spec.steps == (Step(name="server", type=StepType.MANIFEST),)
    assert (template.path, template.line, template.uses_replicas) == ("templates/vllm.yaml", 1, True)
    assert load().problems == ()
