"""What a subset of a WorkloadSpread changes in the pods of a placement, in the order in which OpenKruise does it."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.core.engines import Deployment, engine, target_namespace
from reconciler.core.pods.strategic_merge import Unmergeable
from reconciler.core.spread.inject import placement_injection
from reconciler.core.spread.subset_pods import MATCHED_ANNOTATION, Injection, injection, ordinals_start, patch_template
from reconciler.core.spread.subset_selection import narrow_shape
from reconciler.errors import InvalidInput
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.scheduling import Toleration
from reconciler.model.kubernetes.workload_spread import Bound, PreferredTerm, Subset, WorkloadSpread
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.policy import BurstPolicy, Cluster, Desired, EngineName, PodSecurity
from reconciler.model.workload import WorkloadRef
from tests.builders.deploy_specs import PLACEMENT, WEB, WORKSPACE, chart, spec

CLUSTER = Cluster(name=ClusterName("worker-2"), labels={"region": "eu-1"})
ZONE = Requirement(key="zone", operator="In", values=("a", "b"))
REGION = Requirement(key="region", operator="In", values=("eu-1",))
SPOT = Toleration(key="capacity", value="spot", effect="NoSchedule")
WEB_REF = WorkloadRef(namespace="vllm-demo", name="web", kind="Deployment")
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "registry.example.com/web:1"}]},
}


def spread_of(*subsets: Subset, **changes: Any) -> WorkloadSpread:
    """Make a spread of a Deployment, or of what the changes say."""
    said = {"name": "pools", "namespace": "vllm-demo", "group": "apps", "target": WEB_REF, "path": "pools.yaml"}
    return WorkloadSpread(**{**said, "line": 1, "subsets": subsets, **changes})


def on_cluster(subset: Subset, cluster: Cluster = CLUSTER, **changes: Any) -> Injection:
    """Say what a subset injects on a cluster."""
    return injection(spread_of(subset, **changes), subset, cluster)


def pod(template: dict[str, Any] | None = None, **said: Any) -> dict[str, Any]:
    """Make the pod template of a subset that says so."""
    return patch_template(template or TEMPLATE, on_cluster(Subset(name="spot", **said)))


def node_affinity(template: dict[str, Any]) -> Any:
    """Return what a template says of nodes."""
    return template["spec"]["affinity"]["nodeAffinity"]


def written(
    injected: Injection | None, *parts: Any, name: EngineName = EngineName.MANIFESTS, **more: Any
) -> dict[str, Any]:
    """Write a placement of a subset, and read its objects by kind."""
    deployed, chosen = spec(*parts), engine(name)
    placement = replace(PLACEMENT, engine=name, target_namespace=target_namespace(deployed, WORKSPACE))
    given = {"workspace": WORKSPACE, **more}
    deployment = Deployment(placement=placement, spec=deployed, injection=injected, **given)
    files = {**chosen.files(deployment), chosen.marker_path(placement): chosen.marker(deployment)}
    made = [one for data in files.values() for one in yaml.safe_load_all(data) if one]
    return {f"{one['kind']}/{one['metadata']['name']}" if "metadata" in one else one["kind"]: one for one in made}


def web(*args: Any, **kwargs: Any) -> Any:
    """Return the pod template of the Deployment in what is written."""
    return written(*args, **kwargs)["Deployment/web"]["spec"]["template"]


# The order of OpenKruise, on one pod template


def test_tolerations_are_appended() -> None:
    own = {"key": "gpu", "operator": "Exists"}
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "tolerations": [own]}}
    made = pod(template, tolerations=(SPOT, replace(SPOT, effect="NoExecute", seconds=30)))
    spot = {"key": "capacity", "operator": "Equal", "value": "spot", "effect": "NoSchedule"}
    assert made["spec"]["tolerations"] == [own, spot, {**spot, "effect": "NoExecute", "tolerationSeconds": 30}]


def test_preferred_terms_are_appended() -> None:
    own = {"weight": 1, "preference": {"matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]}}
    field = "preferredDuringSchedulingIgnoredDuringExecution"
    template = {"spec": {"affinity": {"podAntiAffinity": {}, "nodeAffinity": {field: [own]}}}}
    made = pod(template, preferred=(PreferredTerm(weight=7, term=Requirements(labels=(ZONE,))),))
    zone = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    assert node_affinity(made) == {field: [own, {"weight": 7, "preference": {"matchExpressions": [zone]}}]}
    assert made["spec"]["affinity"]["podAntiAffinity"] == {}


def test_a_required_term_becomes_the_only_one() -> None:
    made = pod(required=Requirements(labels=(ZONE,)))
    zone = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
    assert node_affinity(made) == {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def test_a_required_term_goes_into_every_term_that_is_there() -> None:
    one, two = ({"key": key, "operator": "Exists"} for key in ("one", "two"))
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [one, two]}, named]}
    made = pod({"spec": {"affinity": {"nodeAffinity": {field: terms}}}}, required=Requirements(labels=(ZONE,)))
    zone = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    assert node_affinity(made)[field]["nodeSelectorTerms"] == [
        {"matchExpressions": [one, two, zone]},
        {**named, "matchExpressions": [zone]},
    ]


def test_the_patch_comes_last_and_wins() -> None:
    patch = {"spec": {"tolerations": [{"operator": "Exists"}], "affinity": None}}
    made = pod(required=Requirements(labels=(ZONE,)), tolerations=(SPOT,), patch=patch)
    assert made["spec"] == {**TEMPLATE["spec"], "tolerations": [{"operator": "Exists"}]}


def test_another_priority_class_clears_the_number() -> None:
    template = {"spec": {**TEMPLATE["spec"], "priorityClassName": "low", "priority": 7}}
    assert pod(template, patch={"spec": {"priorityClassName": "high"}})["spec"]["priorityClassName"] == "high"
    assert "priority" not in pod(template, patch={"spec": {"priorityClassName": "high"}})["spec"]
    assert pod(template, patch={"spec": {"priorityClassName": "low"}})["spec"]["priority"] == 7


def test_an_annotation_names_the_spread_and_the_subset() -> None:
    made = pod(patch={"metadata": {"annotations": {"by": "patch"}}})
    assert made["metadata"]["annotations"] == {"by": "patch", MATCHED_ANNOTATION: '{"name":"pools","subset":"spot"}'}


def test_nothing_but_the_annotation_is_made_up() -> None:
    made = pod()
    assert made["spec"] == TEMPLATE["spec"]
    assert made["metadata"] == {
        **TEMPLATE["metadata"],
        "annotations": {MATCHED_ANNOTATION: '{"name":"pools","subset":"spot"}'},
    }


def test_what_a_cluster_decides_is_not_asked_of_its_nodes() -> None:
    name = Requirement(key="metadata.name", operator="In", values=("worker-2",))
    made = pod(required=Requirements(labels=(REGION,), fields=(name,)))
    assert "affinity" not in made["spec"]
    made = pod(required=Requirements(labels=(REGION, ZONE), fields=(name,)))
    (term,) = node_affinity(made)["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}


def test_a_preferred_term_is_left_out_where_the_cluster_does_not_meet_its_part() -> None:
    term = PreferredTerm(weight=1, term=Requirements(labels=(REGION, ZONE)))
    elsewhere = replace(CLUSTER, labels={"region": "us-1"})
    assert [len(on_cluster(Subset(name="a", preferred=(term,)), one).preferred) for one in (CLUSTER, elsewhere)] == [
        1,
        0,
    ]


def test_a_template_stays_as_it_was() -> None:
    before = copy.deepcopy(TEMPLATE)
    pod(required=Requirements(labels=(ZONE,)), tolerations=(SPOT,), patch={"spec": {"nodeSelector": {"a": "b"}}})
    assert before == TEMPLATE


@pytest.mark.parametrize(
    ("template", "patch", "said"),
    [
        (TEMPLATE, {"spec": {"containers": [{"image": "x"}]}}, "spec.containers[0]: has no name"),
        (TEMPLATE, {"spec": {"$patch": "merge"}}, "spec.$patch: 'merge' is neither"),
        (
            TEMPLATE,
            {"spec": {"containers": [{"name": "new", "env": [{"name": "A", "$patch": "delete"}]}]}},
            "spec.containers[0].env[0].$patch: Kubernetes leaves it",
        ),
        ({"spec": {"tolerations": "all"}}, {}, "spec.tolerations: is no list"),
    ],
)
def test_what_cannot_be_patched_says_where(template: dict[str, Any], patch: dict[str, Any], said: str) -> None:
    with pytest.raises(Unmergeable) as refused:
        pod(template, patch=patch, tolerations=(SPOT,))
    assert said in str(refused.value)


# In what is written for a placement


def test_each_pod_template_that_is_written_is_the_subsets() -> None:
    injected = on_cluster(Subset(name="spot", patch={"metadata": {"labels": {"pool": "spot"}}}))
    made = web(injected, ("web", WEB))
    assert made["metadata"]["labels"] == {"app": "web", "pool": "spot", "overspill.dev/placement": "vllm-7f3a"}
    assert json.loads(made["metadata"]["annotations"][MATCHED_ANNOTATION]) == {"name": "pools", "subset": "spot"}
    assert written(None, ("web", WEB)) != written(injected, ("web", WEB))


def test_the_label_by_which_pods_are_counted_stays() -> None:
    patch = {"metadata": {"labels": {"$patch": "replace", "app": "web"}}}
    made = web(on_cluster(Subset(name="spot", patch=patch)), ("web", WEB))
    assert made["metadata"]["labels"] == {"app": "web", "overspill.dev/placement": "vllm-7f3a"}


def test_only_the_object_that_the_spread_targets_is_changed() -> None:
    other = {**WEB, "metadata": {**WEB["metadata"], "name": "cache"}}
    injected = on_cluster(Subset(name="spot", tolerations=(SPOT,)))
    made = written(injected, ("web", WEB), ("cache", other))
    assert "tolerations" in made["Deployment/web"]["spec"]["template"]["spec"]
    assert "tolerations" not in made["Deployment/cache"]["spec"]["template"]["spec"]


def test_where_none_has_its_name_all_of_its_kind_are_changed() -> None:
    other = {**WEB, "metadata": {**WEB["metadata"], "name": "web-burst"}}
    made = written(on_cluster(Subset(name="spot", tolerations=(SPOT,))), ("web", other))
    assert "tolerations" in made["Deployment/web-burst"]["spec"]["template"]["spec"]


def test_a_placement_without_the_target_is_refused_with_a_way_out() -> None:
    injected = on_cluster(Subset(name="spot", tolerations=(SPOT,)), group="apps.kruise.io")
    with pytest.raises(InvalidInput) as refused:
        written(injected, ("web", WEB))
    assert str(refused.value) == (
        "pools.yaml:1: spec.subsets[0]: subset spot of WorkloadSpread vllm-demo/pools: the placement makes no "
        "Deployment web, which it targets (write it into the template itself, where an expression may ask for "
        "placement.subset)"
    )
    assert written(on_cluster(Subset(name="spot"), group="apps.kruise.io"), ("web", WEB)) == written(None, ("web", WEB))


def tf_job(**labels: Any) -> Any:
    """A job of two roles, whose pods have these labels."""
    roles = {
        role: {"replicas": 1, "template": {"metadata": {"labels": labels.get(role, {})}, "spec": TEMPLATE["spec"]}}
        for role in ("PS", "Worker")
    }
    metadata = {"name": "train", "namespace": "vllm-demo"}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": metadata, "spec": {"tfReplicaSpecs": roles}}


@pytest.mark.parametrize("labels", [{"Worker": {"role": "worker"}}, {}], ids=["by label", "by replicas path"])
def test_only_the_role_that_the_spread_selects_is_changed(labels: dict[str, Any]) -> None:
    injected = on_cluster(
        Subset(name="spot", tolerations=(SPOT,)),
        group="kubeflow.org",
        target=WorkloadRef(namespace="vllm-demo", name="train", kind="TFJob"),
        selector={"role": "worker"},
        replicas_paths=("spec.tfReplicaSpecs.Worker.replicas",),
    )
    made = written(injected, ("train", tf_job(**labels)))["TFJob/train"]["spec"]["tfReplicaSpecs"]
    assert "tolerations" in made["Worker"]["template"]["spec"]
    assert "tolerations" not in made["PS"]["template"]["spec"]


def test_a_role_that_no_template_has_is_refused() -> None:
    injected = on_cluster(Subset(name="spot", tolerations=(SPOT,)), selector={"role": "worker"})
    with pytest.raises(
        InvalidInput, match=r"Deployment web has no pod template of its own with the labels that .*, role=worker"
    ):
        written(injected, ("web", WEB))


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ({"spec": {"containers": [{"image": "x"}]}}, "Deployment web: spec.containers[0]: has no name"),
        (
            {"spec": {"containers": [{"name": "web", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]}},
            "spec.containers[0].volumeMounts[0].name: there is no volume 'data'",
        ),
        ({"metadata": {"labels": {"app": "other"}}}, "spec.template.metadata.labels.app: is what the object selects"),
        ({"spec": {"containers": [{"name": "web", "resources": {"limits": {"cpu": "2 cores"}}}]}}, "2 cores"),
        (
            {"spec": {"containers": [{"name": "web", "env": [{"name": "T", "value": f"hf_{'x1Y' * 12}"}]}]}},
            "spec.template.spec.containers[0].env[0]",
        ),
    ],
)
def test_a_patch_that_breaks_an_object_is_one_clear_error(patch: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        written(on_cluster(Subset(name="spot", patch=patch)), ("web", WEB))
    assert str(refused.value).startswith(
        "pools.yaml:1: spec.subsets[0]: subset spot of WorkloadSpread vllm-demo/pools: Deployment web: "
    )
    assert said in str(refused.value)
    assert len(refused.value.problems) == 1


# In charts


PATCH = {"metadata": {"labels": {"pool": "spot", "old": None}}, "spec": {"nodeSelector": {"a": "b"}, "hostname": "x"}}
MAPS = on_cluster(Subset(name="spot", patch={**PATCH, "spec": {**PATCH["spec"], "priorityClassName": "high"}}))
LISTS = on_cluster(Subset(name="spot", patch={"spec": {"containers": [{"name": "web", "image": "x"}]}}))
TOLERATING = on_cluster(Subset(name="spot", tolerations=(SPOT,)))
DIRECTED = on_cluster(Subset(name="spot", patch={"metadata": {"labels": {"$patch": "delete"}}}))


def test_charts_that_are_rendered_are_changed_as_manifests_are() -> None:
    rendered = {**WEB, "spec": {**WEB["spec"], "replicas": 3}}
    made = web(LISTS, chart(), charts={"vllm-app": (rendered,)})
    assert [one["image"] for one in made["spec"]["containers"]] == ["x"]


def post_renderers(injected: Injection | None) -> list[Any]:
    """Return what Kustomize changes in the chart of a placement with Flux."""
    made = written(injected, chart(), name=EngineName.FLUX)["HelmRelease/vllm-7f3a-vllm-app"]
    return made["spec"]["postRenderers"][0]["kustomize"]["patches"]


def test_flux_has_kustomize_patch_the_object_of_the_targets_name() -> None:
    labels = post_renderers(None)
    assert post_renderers(MAPS)[: len(labels)] == labels
    (patch,) = post_renderers(MAPS)[len(labels) :]
    assert patch["target"] == {"group": "apps", "kind": "Deployment", "name": "web"}
    said = yaml.safe_load(patch["patch"])["spec"]["template"]
    assert said["spec"] == {"nodeSelector": {"a": "b"}, "hostname": "x", "priorityClassName": "high", "priority": None}
    assert said["metadata"]["annotations"] == MAPS.annotation


def test_what_kustomize_makes_of_a_chart_is_what_is_written_of_a_manifest(tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    spec = {**WEB["spec"]["template"]["spec"], "priorityClassName": "low", "priority": 5}
    template = {"metadata": {"labels": {"app": "web", "old": "x"}}, "spec": spec}
    made = {**WEB, "spec": {**WEB["spec"], "replicas": 3, "template": template}}
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(made))
    (tmp_path / "kustomization.yaml").write_text(
        yaml.safe_dump({"resources": ["web.yaml"], "patches": post_renderers(MAPS)})
    )
    done = subprocess.run(["kubectl", "kustomize", tmp_path], capture_output=True, text=True, check=True, timeout=60)
    assert yaml.safe_load(done.stdout)["spec"]["template"] == web(MAPS, ("web", made))


@pytest.mark.parametrize(
    ("injected", "what"),
    [
        (LISTS, "the list containers of its patch"),
        (TOLERATING, "tolerations"),
        (DIRECTED, "the directive $patch of its patch"),
        (on_cluster(Subset(name="a", required=Requirements(labels=(ZONE,)))), "terms of nodes"),
        (on_cluster(Subset(name="a", patch=PATCH), selector={"role": "worker"}), "which pods the spread selects"),
    ],
)
def test_what_flux_cannot_change_exactly_is_refused_with_a_way_out(injected: Injection, what: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        written(injected, chart(), name=EngineName.FLUX)
    assert f"Flux installs the chart itself, and {what} cannot be said of what it makes (give the " in str(
        refused.value
    )


@pytest.mark.parametrize(
    ("patch", "level", "what"),
    [
        ({"spec": {"hostNetwork": True}}, PodSecurity.BASELINE, "hostNetwork takes a namespace of the node"),
        ({"spec": {"hostPID": True}}, PodSecurity.RESTRICTED, "hostPID takes a namespace of the node"),
        (
            {"spec": {"securityContext": {"windowsOptions": {"hostProcess": True}}}},
            PodSecurity.BASELINE,
            "a host process has the node",
        ),
        (
            {"spec": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}},
            PodSecurity.BASELINE,
            "seccompProfile Unconfined confines nothing",
        ),
        (
            {"metadata": {"annotations": {"inject": '[{"hostPath": {"path": "/"}}]'}}},
            PodSecurity.BASELINE,
            "hostPath '/' is a directory of the node",
        ),
        ({"spec": {"securityContext": None}}, PodSecurity.RESTRICTED, "a container may run as root"),
        ({"metadata": {"labels": {PLACEMENT_LABEL: "x-12345678"}}}, PodSecurity.PRIVILEGED, PLACEMENT_LABEL),
        ({"metadata": {"annotations": {"key": "ghp_" + "a1B2" * 9}}}, PodSecurity.PRIVILEGED, "token"),
        ({"spec": {"terminationGracePeriodSeconds": 90_000}}, PodSecurity.PRIVILEGED, "terminationGracePeriodSeconds"),
    ],
)
def test_a_patch_of_a_chart_is_held_to_the_rules_of_objects(
    patch: dict[str, Any], level: PodSecurity, what: str
) -> None:
    """Flux applies it after every other check: pods of the chart that keep to the rules keep to them after it."""
    workspace = replace(WORKSPACE, pod_security=level)
    injected = on_cluster(Subset(name="spot", patch=patch))
    with pytest.raises(InvalidInput, match=re.escape(what)):
        written(injected, chart(), name=EngineName.FLUX, workspace=workspace)


def test_a_patch_of_a_chart_may_do_what_the_level_allows() -> None:
    workspace = replace(WORKSPACE, pod_security=PodSecurity.PRIVILEGED)
    injected = on_cluster(Subset(name="spot", patch={"spec": {"hostNetwork": True}}))
    assert written(injected, chart(), name=EngineName.FLUX, workspace=workspace)
    for level in PodSecurity:
        workspace = replace(WORKSPACE, pod_security=level)
        assert written(MAPS, chart(), name=EngineName.FLUX, workspace=workspace)


def test_argo_cd_changes_nothing_in_a_chart() -> None:
    with pytest.raises(
        InvalidInput, match=r"Argo CD installs the chart itself.*\(give the cluster the manifests engine"
    ):
        written(TOLERATING, chart(), name=EngineName.ARGOCD)
    idle = on_cluster(Subset(name="spot"))
    assert written(idle, chart(), name=EngineName.ARGOCD) == written(None, chart(), name=EngineName.ARGOCD)


@pytest.mark.parametrize("name", list(EngineName))
def test_a_chart_beside_the_target_is_left_alone(name: EngineName) -> None:
    made = written(TOLERATING, chart(), ("web", WEB), name=name, charts={"vllm-app": ()})
    assert "tolerations" in made["Deployment/web"]["spec"]["template"]["spec"]


# Ordinals


FIVE = [Subset(name=name, most=Bound(number=5)) for name in "ab"]
REST = Subset(name="c")
STATEFUL = WorkloadRef(namespace="vllm-demo", name="web", kind="StatefulSet")


def stateful(**more: Any) -> Any:
    """A StatefulSet with these fields beside its usual ones."""
    return {**WEB, "kind": "StatefulSet", "spec": {**WEB["spec"], "replicas": 3, "serviceName": "web", **more}}


@pytest.mark.parametrize(("name", "own", "start"), [("a", None, None), ("b", None, 5), ("c", None, 10), ("c", 2, 12)])
def test_a_stateful_set_begins_where_the_subsets_before_it_end(name: str, own: int | None, start: int | None) -> None:
    spread = spread_of(*FIVE, REST, target=STATEFUL)
    subset = next(one for one in spread.subsets if one.name == name)
    more = {} if own is None else {"ordinals": {"start": own}}
    made = written(injection(spread, subset, CLUSTER), ("web", stateful(**more)))["StatefulSet/web"]
    assert made["spec"].get("ordinals") == (None if start is None else {"start": start})


KRUISE = "apps.kruise.io/v1beta1"


@pytest.mark.parametrize(
    ("name", "own", "reserved"),
    [
        ("a", None, None),
        ("b", None, [0, 1, 2, 3, 4]),
        ("b", [1, "3-4", 9], [1, "3-4", 9, 0, 2, 5, 6, 7]),
    ],
)
def test_one_of_openkruise_leaves_the_ordinals_before_its_own_out(
    name: str, own: list[int | str] | None, reserved: list[int | str] | None
) -> None:
    spread = replace(spread_of(*FIVE, REST, target=STATEFUL), group="apps.kruise.io")
    subset = next(one for one in spread.subsets if one.name == name)
    more = {} if own is None else {"reserveOrdinals": own}
    made = written(injection(spread, subset, CLUSTER), ("web", {**stateful(**more), "apiVersion": KRUISE}))
    assert made["StatefulSet/web"]["spec"].get("reserveOrdinals") == (own if reserved is None else reserved)


@pytest.mark.parametrize(
    ("version", "more", "said"),
    [
        ("v1alpha1", {}, "apiVersion: has no ordinals that a subset could leave to others; v1beta1 has"),
        ("v1beta1", {"ordinals": {"start": 1}}, "spec.ordinals: may count or not, by a feature gate of OpenKruise"),
        ("v1beta1", {"reserveOrdinals": ["a-b"]}, "spec.reserveOrdinals: is no list of numbers, and of ranges"),
    ],
)
def test_what_openkruise_may_count_otherwise_is_refused(version: str, more: dict[str, Any], said: str) -> None:
    spread = replace(spread_of(*FIVE, REST, target=STATEFUL), group="apps.kruise.io")
    one = {**stateful(**more), "apiVersion": f"apps.kruise.io/{version}"}
    with pytest.raises(InvalidInput, match=re.escape(said)):
        written(injection(spread, REST, CLUSTER), ("web", one))


def test_ordinals_of_openkruise_in_a_chart_are_refused_under_flux() -> None:
    spread = replace(spread_of(*FIVE, REST, target=STATEFUL), group="apps.kruise.io")
    with pytest.raises(InvalidInput):
        post_renderers(injection(spread, REST, CLUSTER))
    (patch,) = post_renderers(injection(spread, FIVE[0], CLUSTER))[len(post_renderers(None)) :]
    assert patch["target"]["group"] == "apps.kruise.io"


def test_a_stateful_set_of_a_chart_begins_there_too() -> None:
    spread = spread_of(*FIVE, REST, target=STATEFUL)
    (patch,) = post_renderers(injection(spread, REST, CLUSTER))[len(post_renderers(None)) :]
    assert yaml.safe_load(patch["patch"])["spec"]["ordinals"] == {"start": 10}


@pytest.mark.parametrize(
    ("before", "said"),
    [(Subset(name="a"), "has no maxReplicas"), (Subset(name="a", most=Bound(number=50, percent=True)), "percentage")],
)
def test_without_a_number_before_it_a_subset_has_no_ordinals(before: Subset, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ordinals_start(spread_of(before, REST), REST)


# By the name that a placement has


def desired(spread: WorkloadSpread | None) -> Desired:
    """Say that a spread governs the workload of the placement."""
    policies = {PLACEMENT.workload: BurstPolicy(name="pools", spread=spread)}
    return Desired(commit=CommitId(""), clusters={CLUSTER.name: CLUSTER}, policies=policies)


def test_a_placement_has_the_subset_of_its_name() -> None:
    spread = spread_of(*FIVE, REST)
    found = [placement_injection(desired(spread), replace(PLACEMENT, subset=name)) for name in ("c", "", "gone")]
    assert found == [injection(spread, REST, CLUSTER), None, None]
    assert placement_injection(desired(None), replace(PLACEMENT, subset="c")) is None
    assert placement_injection(Desired(commit=CommitId("")), replace(PLACEMENT, subset="c")) is None


@pytest.mark.parametrize("name", ["c", "gone"])
def test_a_placement_keeps_the_ordinals_that_it_was_given(name: str) -> None:
    given = replace(PLACEMENT, subset=name, first_ordinal=7)
    for subsets in ((*FIVE, REST), (Subset(name="a"), REST)):
        found = placement_injection(desired(spread_of(*subsets, target=STATEFUL)), given)
        assert found is not None
        assert (found.start, found.subset.name) == (7, name)
        assert made_by(found)["spec"]["ordinals"] == {"start": 7}
    found = placement_injection(desired(spread_of(*FIVE, REST)), given)
    assert found is None or found.start == 0


def made_by(asked: Injection) -> dict[str, Any]:
    """Return the StatefulSet that is written for a subset."""
    return written(asked, ("web", stateful()))["StatefulSet/web"]


def test_a_placement_without_ordinals_of_its_own_is_refused() -> None:
    with pytest.raises(InvalidInput) as refused:
        placement_injection(desired(spread_of(Subset(name="a"), REST, target=STATEFUL)), replace(PLACEMENT, subset="c"))
    assert str(refused.value) == (
        "pools.yaml:1: spec.subsets[1]: subset c of WorkloadSpread vllm-demo/pools: subset a before it has no "
        "maxReplicas, so that no ordinal is left for it (give each subset before it a maxReplicas in replicas)"
    )


# What decides where replicas fit


def test_a_toleration_for_a_time_lets_replicas_come_as_the_scheduler_does() -> None:
    timed = replace(SPOT, effect="NoExecute", seconds=30)
    unready = replace(timed, key="node.kubernetes.io/not-ready")
    subset = Subset(name="spot", tolerations=(SPOT, timed, unready))
    assert narrow_shape(PLACEMENT.shape, subset, CLUSTER).tolerations == (SPOT, replace(timed, seconds=None))
