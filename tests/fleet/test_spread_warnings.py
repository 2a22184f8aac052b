"""What `check` tells of subsets whose pods cannot be made of what templates deploy, before anything is missing."""

from __future__ import annotations

import pytest

from tests.builders.fleet_files import FLEET, PODS, TEMPLATE, cluster, errors, load, text, workspace
from tests.builders.spread_files import HEAD, doubtful, in_zone, labelled, spread

POD = TEMPLATE.replace(
    PODS,
    "        template:\n"
    "          metadata: {labels: {app: vllm}}\n"
    "          spec: {containers: [{name: server, image: registry.example.com/vllm:1.0}]}\n",
)
PATCHES = {
    "of a container that is not there": (
        "patch: {spec: {containers: [{name: sever, env: [{name: A, value: b}]}]}}",
        "'sever' has no image (there is server)",
    ),
    "of a volume that is not there": (
        "patch: {spec: {containers: [{name: server, volumeMounts: [{name: data, mountPath: /data}]}]}}",
        "there is no volume 'data'",
    ),
}


@pytest.mark.parametrize(("patch", "why"), PATCHES.values(), ids=PATCHES)
def test_a_patch_that_makes_no_pod_is_told_where_it_is_written(patch: str, why: str):
    (told,) = errors(load({**FLEET, "templates/vllm.yaml": POD, "s.yaml": spread(f"subsets: [{{name: a, {patch}}}]")}))
    assert "spec.subsets[0].patch: llm/vllm: " in told
    assert why in told


def test_a_patch_may_add_a_container_with_its_image():
    patch = "patch: {spec: {containers: [{name: log, image: registry.example.com/log:1.0}]}}"
    files = {**FLEET, "templates/vllm.yaml": POD, "s.yaml": spread(f"subsets: [{{name: a, {patch}}}]")}
    assert errors(load(files)) == []


NODES = "requiredNodeSelectorTerm: {matchExpressions: [{key: pool, operator: In, values: [h100]}]}"
TOLERATES = "tolerations: [{key: spot, operator: Exists}]"
LABELS = "patch: {metadata: {labels: {tier: spot}}}"
IN_A_CHART = text("""
    apiVersion: gpr.kubeslice.io/v1alpha1
    kind: WorkloadTemplate
    metadata:
      name: vllm
      namespace: kubeslice-acme
      annotations: {overspill.dev/workload: Deployment/llm-demo/vllm}
    spec:
      workspaceName: llm
      helmConfig:
      - {name: vllm, chart: vllm, repoURL: "https://charts.example.com", version: 1.2.3, releaseName: vllm,
         releaseNamespace: llm-demo, values: {replicas: "{{ replicas }}"}}
      steps: [{name: vllm, type: helm}]
    """)


def of_chart(fields: str, *engines: str) -> list[str]:
    """Return the warnings about a subset of what a chart makes, where workers from 2 on have these engines."""
    named = {f"worker-{number}": engine for number, engine in enumerate(("argocd", *engines), start=1)}
    files = {
        **FLEET,
        **{f"clusters/{name}.yaml": cluster(name, f"{{engine: {engine}}}") for name, engine in named.items()},
        "templates/vllm.yaml": IN_A_CHART,
        "workspaces/llm.yaml": workspace().replace("[worker-1, worker-2]", f"[{', '.join(named)}]"),
    }
    return doubtful(spread(f"subsets: [{{name: spot, {fields}}}]"), files)


def test_what_no_engine_changes_in_a_chart_is_told_before_anything_is_missing() -> None:
    way = "(give the cluster the manifests engine, or use placement.subset in the chart's values)"
    called = "8: spec.subsets[0]: llm/vllm on {}: subset spot of WorkloadSpread llm-demo/vllm: {} " + way
    by_argo = "Argo CD installs the chart itself, and changes nothing in it"
    by_flux = "Flux installs the chart itself, and {} cannot be said of what it makes"
    assert of_chart(LABELS, "argocd", "argocd") == [called.format("worker-2 and worker-3", by_argo)]
    assert of_chart(LABELS, "flux") == []
    assert of_chart(TOLERATES, "argocd", "flux") == [
        called.format("worker-2", by_argo),
        called.format("worker-3", by_flux.format("tolerations")),
    ]
    assert of_chart(NODES, "flux") == [called.format("worker-2", by_flux.format("terms of nodes"))]
    assert of_chart(TOLERATES, "manifests") == []
    assert of_chart("maxReplicas: 3", "argocd") == []
    (beyond,) = of_chart("patch: {spec: {hostNetwork: true}}", "flux")
    assert "llm/vllm on worker-2: subset spot" in beyond
    assert "Deployment vllm: spec.template.spec.hostNetwork: hostNetwork takes a namespace of the node" in beyond


def test_what_a_label_of_its_cluster_decides_is_no_change_in_a_chart() -> None:
    files = {
        **FLEET,
        "clusters/worker-2.yaml": labelled("worker-2", "b"),
        "templates/vllm.yaml": IN_A_CHART,
    }
    assert doubtful(spread(f"subsets: [{{name: b, {in_zone('b')}}}]"), files) == []


def test_a_target_that_no_template_makes_is_told_where_a_subset_would_change_it() -> None:
    template = TEMPLATE.replace(
        "  namespace: kubeslice-acme\n",
        "  namespace: kubeslice-acme\n  annotations: {overspill.dev/workload: Deployment/llm-demo/vllm}\n",
        1,
    )
    files = {**FLEET, "templates/vllm.yaml": template.replace("kind: Deployment", "kind: ReplicaSet")}
    (told,) = doubtful(spread(f"subsets: [{{name: spot, {LABELS}}}]"), files)
    assert (
        "llm/vllm on worker-2: subset spot of WorkloadSpread llm-demo/vllm: the placement makes no Deployment vllm"
        in told
    )


def test_a_patch_is_looked_at_also_where_names_tell_subsets_apart() -> None:
    named = POD.replace(
        "name: vllm\n        namespace: llm-demo", 'name: "vllm-{{ placement.subset }}"\n        namespace: llm-demo'
    )
    named = named.replace("            name: vllm\n", '            name: "vllm-{{ placement.subset }}"\n', 1)
    named = named.replace(
        "  namespace: kubeslice-acme\n",
        "  namespace: kubeslice-acme\n  annotations: {overspill.dev/workload: Deployment/llm-demo/vllm}\n",
        1,
    )
    patch, why = PATCHES["of a volume that is not there"]
    (told,) = errors(
        load({**FLEET, "templates/vllm.yaml": named, "s.yaml": spread(f"subsets: [{{name: a, {patch}}}]")})
    )
    assert why in told


def test_a_stateful_set_that_can_leave_no_ordinals_to_others_is_told() -> None:
    files = {
        **FLEET,
        "clusters/worker-1.yaml": labelled("worker-1", "a"),
        "clusters/worker-2.yaml": labelled("worker-2", "b")
        + "spec: {provides: {kinds: [apps.kruise.io/StatefulSet]}}\n",
        "templates/vllm.yaml": TEMPLATE.replace("apps/v1", "apps.kruise.io/v1alpha1").replace(
            "kind: Deployment", "kind: StatefulSet"
        ),
    }
    lines = f"subsets:\n- {{name: home, maxReplicas: 3, {in_zone('a')}}}\n- {{name: away, {in_zone('b')}}}"
    head = HEAD.replace(
        "apiVersion: apps/v1, kind: Deployment", "apiVersion: apps.kruise.io/v1alpha1, kind: StatefulSet"
    )
    assert doubtful(spread(lines, head=head), files) == [
        (
            "10: spec.subsets[1]: llm/vllm on worker-2: subset away of WorkloadSpread llm-demo/vllm: StatefulSet vllm: "
            "apiVersion: has no ordinals that a subset could leave to others; v1beta1 has "
            "(try apiVersion: apps.kruise.io/v1beta1 in the template)"
        )
    ]
