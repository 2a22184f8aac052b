"""Labels and annotations of Overspill's own are set by Overspill alone, wherever a tenant tries to."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.core.expressions import render
from reconciler.core.safety import rules
from reconciler.model.workload import DeletionPolicy
from tests.builders.deploy_specs import PLACEMENT, WEB, WORKSPACE, context, spec

LABEL = "overspill.dev/placement"


def deployment(labels: dict[str, Any] | None = None, pod_labels: dict[str, Any] | None = None) -> dict[str, Any]:
    template = WEB["spec"]["template"]
    metadata = {"labels": {"app": "web", **(pod_labels or {})}}
    return {
        **WEB,
        "metadata": {**WEB["metadata"], "labels": labels or {}},
        "spec": {**WEB["spec"], "template": {**template, "metadata": metadata}},
    }


@pytest.mark.parametrize(
    ("manifest", "place"),
    [
        pytest.param(deployment(labels={LABEL: "other-1a2b"}), f"metadata.labels.{LABEL}", id="another placement"),
        pytest.param(
            deployment(pod_labels={LABEL: "other-1a2b"}),
            f"spec.template.metadata.labels.{LABEL}",
            id="pods of another placement",
        ),
        pytest.param(
            deployment(labels={"overspill.dev/step": "01"}),
            "metadata.labels.overspill.dev/step",
            id="no workload, so that its pods are not counted",
        ),
        pytest.param(
            {**WEB, "metadata": {**WEB["metadata"], "annotations": {"overspill.dev/deletion-policy": "Retain"}}},
            "metadata.annotations.overspill.dev/deletion-policy",
            id="kept by whoever applies manifests",
        ),
        pytest.param(
            {
                "apiVersion": "ray.io/v1",
                "kind": "RayCluster",
                "metadata": {"name": "a"},
                "spec": {"podLabels": {LABEL: "x"}},
            },
            f"spec.podLabels.{LABEL}",
            id="in a field of a custom kind",
        ),
    ],
)
def test_a_name_of_overspill_is_refused_in_objects_and_in_charts(manifest: dict[str, Any], place: str) -> None:
    told = [finding.loc for finding in rules.check_safety(spec(("it", manifest)), WORKSPACE)]
    assert [".".join(map(str, loc[4:])) for loc in told if "overspill.dev/" in str(loc[-1])] == [place]
    of_chart = rules.check_chart_objects((manifest,), ("spec",), WORKSPACE, placement=PLACEMENT.name)
    assert any("overspill.dev/" in finding.message for finding in of_chart)


@pytest.mark.parametrize(
    "line",
    ["kubectl label cm settings overspill.dev/placement=other-1a2b", "kubectl annotate svc web overspill.dev/digest=x"],
)
def test_a_command_marks_nothing_with_a_name_of_overspill(line: str) -> None:
    assert rules.check_safety(spec(("mark", line)), WORKSPACE)


def test_pods_may_have_the_label_of_their_own_placement() -> None:
    own = spec(("it", deployment(pod_labels={LABEL: "{{ placement.name }}"})))
    assert rules.check_safety(own, WORKSPACE) == ()
    made = render.render(own, context(own))
    assert rules.check_safety(made, WORKSPACE, rendered=True, placement=PLACEMENT.name) == ()


def test_an_expression_cannot_give_the_label_of_another_placement() -> None:
    forged = spec(("it", deployment(pod_labels={LABEL: "{{ 'other-' ~ '1a2b' }}"})))
    assert rules.check_safety(forged, WORKSPACE) == ()
    made = render.render(forged, context(forged))
    (finding,) = rules.check_safety(made, WORKSPACE, rendered=True, placement=PLACEMENT.name)
    assert finding.loc[-1] == LABEL


def test_a_selector_may_ask_for_the_label() -> None:
    selector = {"labelSelector": {"matchLabels": {LABEL: "any"}}, "topologyKey": "zone", "maxSkew": 1}
    manifest = deployment()
    pods = {
        **manifest["spec"]["template"]["spec"],
        "topologySpreadConstraints": [{**selector, "whenUnsatisfiable": "ScheduleAnyway"}],
    }
    manifest = {**manifest, "spec": {**manifest["spec"], "template": {**manifest["spec"]["template"], "spec": pods}}}
    assert rules.check_safety(spec(("it", manifest)), WORKSPACE) == ()


@pytest.mark.parametrize("policy", DeletionPolicy)
@pytest.mark.parametrize(
    "mark",
    [
        "argocd.argoproj.io/sync-options=Prune=false",
        "kustomize.toolkit.fluxcd.io/prune=disabled",
        "argocd.argoproj.io/hook=PreSync",
        "helm.sh/resource-policy=keep",
    ],
)
def test_a_command_keeps_no_object_of_another_placement(mark: str, policy: DeletionPolicy) -> None:
    (finding,) = rules.check_safety(
        spec(("mark", f"kubectl annotate deployment web {mark}"), deletion_policy=policy), WORKSPACE
    )
    assert finding.loc == ("spec", "cmdExec", 0, "cmd")
