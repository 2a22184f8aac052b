"""No object outlives its placement, whichever way its manifest would have it stay."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.core.safety.lifetime import MAX_GRACE, check_lifetime
from reconciler.core.safety.rules import check_chart_objects
from reconciler.model.policy import Workspace
from reconciler.model.workload import DeletionPolicy

ARGO_HOOK, HELM_HOOK = "argocd.argoproj.io/hook", "helm.sh/hook"


def fields(manifest: dict[str, Any], **more: bool) -> list[tuple[str | int, ...]]:
    """Name the fields of an object that would keep it in the cluster."""
    return [finding.loc for finding in check_lifetime(manifest, (), **more)]


def noted(**metadata: object) -> dict[str, Any]:
    """Make an object with this metadata."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}


STAYS = {
    "argocd.argoproj.io/sync-options": (
        "Prune=false",
        "Replace=true, Delete=false",
        "Delete=confirm",
        "Prune=False",
        "New",
    ),
    "argocd.argoproj.io/compare-options": ("IgnoreExtraneous",),
    "argocd.argoproj.io/tracking-id": ("other:apps/Deployment:ns/a",),
    "argocd.argoproj.io/installation-id": ("theirs",),
    "argocd.argoproj.io/managed-by": ("x",),
    "kustomize.toolkit.fluxcd.io/prune": ("disabled", "Disabled", "no"),
    "kustomize.toolkit.fluxcd.io/reconcile": ("disabled",),
    "kustomize.toolkit.fluxcd.io/ssa": ("Ignore", "IfNotPresent"),
    "kustomize.toolkit.fluxcd.io/name": ("apps",),
    "helm.toolkit.fluxcd.io/name": ("apps",),
    "fluxcd.io/ignore": ("true",),
    "helm.sh/resource-policy": ("keep", "keep, x"),
    "config.kubernetes.io/local-config": ("true",),
    "cli-utils.sigs.k8s.io/on-remove": ("keep",),
    "client.lifecycle.config.k8s.io/deletion": ("detach",),
    "kapp.k14s.io/delete-strategy": ("orphan",),
    "applyset.kubernetes.io/part-of": ("applyset-x",),
    "objectset.rio.cattle.io/id": ("x",),
}

GOES = {
    "argocd.argoproj.io/sync-options": "Replace=true,Prune=true",
    "argocd.argoproj.io/sync-wave": "-3",
    "kustomize.toolkit.fluxcd.io/prune": "enabled",
    "kustomize.toolkit.fluxcd.io/force": "enabled",
    "kustomize.toolkit.fluxcd.io/ssa": "Merge",
    "helm.sh/chart": "vllm-0.1.7",
    "link.argocd.argoproj.io/external-link": "https://example.com",
    "app.kubernetes.io/instance": "vllm",
    "prometheus.io/scrape": "true",
    "fluxcd": "a word, and no domain",
}


@pytest.mark.parametrize("field", ["annotations", "labels"])
@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in STAYS.items() for value in values])
def test_an_instruction_that_keeps_an_object_is_refused(field: str, key: str, value: str) -> None:
    assert fields(noted(**{field: {key: value}})) == [("metadata", field, key)]


@pytest.mark.parametrize(("key", "value"), GOES.items())
def test_an_instruction_that_lets_the_object_go_is_the_templates_own(key: str, value: str) -> None:
    assert fields(noted(annotations={key: value})) == []


@pytest.mark.parametrize(
    ("hook", "policy", "stays"),
    [
        ({ARGO_HOOK: "PreSync"}, "", True),
        ({ARGO_HOOK: "Sync"}, "BeforeHookCreation", True),
        ({ARGO_HOOK: "Sync"}, "HookSucceeded", True),
        ({ARGO_HOOK: "PreSync"}, "HookSucceeded, HookFailed", False),
        ({ARGO_HOOK: "PreDelete"}, "HookSucceeded,HookFailed", True),
        ({ARGO_HOOK: "Skip"}, "HookSucceeded,HookFailed", True),
        ({HELM_HOOK: "pre-install,pre-upgrade"}, "before-hook-creation", True),
        ({HELM_HOOK: "pre-install"}, "hook-succeeded,hook-failed", False),
        ({HELM_HOOK: "pre-install,post-delete"}, "hook-succeeded,hook-failed", True),
    ],
)
def test_a_hook_goes_only_by_its_delete_policy(hook: dict[str, str], policy: str, stays: bool) -> None:
    (key,) = hook
    annotations = hook | ({f"{key}-delete-policy": policy} if policy else {})
    assert fields(noted(annotations=annotations)) == ([("metadata", "annotations", key)] if stays else [])


@pytest.mark.parametrize("field", ["finalizers", "ownerReferences"])
def test_finalizers_and_owners_are_refused_wherever_they_are_copied_from(field: str) -> None:
    kept = {field: ["example.com/never"]}
    template = {"metadata": kept, "spec": {"containers": []}}
    deployed = {"kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": template}}
    claims = {"kind": "StatefulSet", "metadata": {"name": "a"}, "spec": {"volumeClaimTemplates": [{"metadata": kept}]}}
    assert fields(noted(**kept)) == [("metadata", field)]
    assert fields(deployed) == [("spec", "template", "metadata", field)]
    assert fields(claims) == [("spec", "volumeClaimTemplates", 0, "metadata", field)]
    assert fields(noted(**{field: []})) == []
    assert fields({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {field: "words"}}) == []


def test_a_namespace_has_finalizers_in_its_spec() -> None:
    assert fields({"kind": "Namespace", "metadata": {"name": "a"}, "spec": {"finalizers": ["x"]}}) == [
        ("spec", "finalizers")
    ]


@pytest.mark.parametrize(("seconds", "stays"), [(MAX_GRACE, False), (MAX_GRACE + 1, True), ("{{ 1 }}", False)])
def test_pods_do_not_take_for_ever_to_end(seconds: object, stays: bool) -> None:
    pod = {"spec": {"terminationGracePeriodSeconds": seconds}}
    place = ("spec", "template", "spec", "terminationGracePeriodSeconds")
    assert fields({"kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": pod}}) == [place] * stays


def test_objects_of_a_rendered_chart_go_as_well() -> None:
    hook, kept = noted(annotations={HELM_HOOK: "pre-install"}), noted(annotations={"helm.sh/resource-policy": "keep"})
    workspace = Workspace(name="llm", primary="worker-1", clusters=("worker-1",))
    assert check_chart_objects((hook,), (), workspace) == ()
    (of_argo,) = check_chart_objects((noted(annotations={ARGO_HOOK: "PreDelete"}),), (), workspace)
    assert "a hook of this kind (PreDelete)" in of_argo.message
    (finding,) = check_chart_objects((kept,), (), workspace)
    assert finding.message.startswith("the chart makes ConfigMap a: this keeps the object in the cluster")
    assert check_chart_objects((kept,), (), workspace, deletion_policy=DeletionPolicy.RETAIN) == ()
