"""The files of a placement, as Flux finds them: stages, and the Kustomizations that apply them one after the other."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.engines import Deployment, anchor_path, engine
from reconciler.core.engines.flux import FluxEngine
from reconciler.errors import InvalidInput
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.policy import EngineName, Fleet, Flux
from reconciler.model.workload import DeletionPolicy, HelmFlags
from tests.builders.deploy_specs import CONFIG, JOBS, PLACEMENT, WEB, WORKSPACE, chart, files, spec

FLUX = EngineName.FLUX
JOBFUL = replace(WORKSPACE, command_jobs=JOBS)
SUBSTITUTE = "kustomize.toolkit.fluxcd.io/substitute"
BESIDE = "flux/vllm-7f3a.yaml"


def named(name: str, manifest: Any = CONFIG, **metadata: Any) -> Any:
    return {**manifest, "metadata": {"name": name, **metadata}}


def stages(*parts: Any, **more: Any) -> dict[str, list[str]]:
    """The kinds and names of the objects of each stage, in the order of their files."""
    found: dict[str, list[str]] = {}
    for path, manifest in written(*parts, **more).items():
        found.setdefault(path.split("/")[1], []).append(f"{manifest['kind']} {manifest['metadata']['name']}")
    return found


def written(*parts: Any, **more: Any) -> dict[str, Any]:
    """The objects of all stages by path."""
    made = files(spec(*parts, service_account="vllm-sa"), FLUX, workspace=JOBFUL, **more)
    return {
        path: yaml.safe_load(data)
        for path, data in sorted(made.items())
        if path.startswith("stages/") and not path.endswith("/kustomization.yaml")
    }


def kustomizations(*parts: Any, **more: Any) -> list[Any]:
    made = files(spec(*parts, service_account="vllm-sa", **more), FLUX, workspace=JOBFUL)
    return list(yaml.safe_load_all(made[BESIDE]))


def release(**changes: Any) -> Any:
    (made,) = (it for it in written(chart(**changes)).values() if it["kind"] == "HelmRelease")
    return made["spec"]


def test_plain_objects_in_a_row_share_a_stage_and_what_has_to_be_waited_for_stands_alone() -> None:
    found = stages(
        ("settings", CONFIG),
        ("web", WEB),
        chart("one"),
        chart("two"),
        ("a", named("a")),
        ("b", named("b")),
        ("check", "kubectl get pods"),
        ("c", named("c")),
    )
    job = found["04"][0]
    assert job.startswith("Job vllm-7f3a-07-check-")
    assert found == {
        "00": ["ConfigMap settings", "Deployment web"],
        "01": ["HelmRelease vllm-7f3a-one", "HelmRepository vllm-7f3a-one"],
        "02": ["HelmRelease vllm-7f3a-two", "HelmRepository vllm-7f3a-two"],
        "03": ["ConfigMap a", "ConfigMap b"],
        "04": [job],
        "05": ["ConfigMap c"],
    }


def test_each_stage_has_a_kustomization_that_waits_for_the_one_before() -> None:
    first, second = kustomizations(("web", WEB), chart(flags=HelmFlags(timeout=timedelta(minutes=15))))
    assert first == {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {
            "name": "vllm-7f3a-s00",
            "namespace": "overspill",
            "labels": {"overspill.dev/placement": "vllm-7f3a"},
            "annotations": {"overspill.dev/digest": PLACEMENT.digest, SUBSTITUTE: "disabled"},
        },
        "spec": {
            "interval": "10m",
            "retryInterval": "30s",
            "timeout": "10m",
            "path": "./clusters/worker-2/vllm-7f3a/stages/00",
            "prune": True,
            "deletionPolicy": "Delete",
            "wait": True,
            "serviceAccountName": "overspill-applier",
            "sourceRef": {"kind": "GitRepository", "name": "placements"},
        },
    }
    assert second["metadata"]["name"] == "vllm-7f3a-s01"
    assert second["spec"]["dependsOn"] == [{"name": "vllm-7f3a-s00"}]
    assert second["spec"]["timeout"] == "16m"  # the chart's own, and a minute to tell what was wrong


def test_retained_objects_are_orphaned_by_every_stage() -> None:
    made = kustomizations(("web", WEB), chart(), deletion_policy=DeletionPolicy.RETAIN)
    assert [it["spec"]["deletionPolicy"] for it in made] == ["Orphan", "Orphan"]


def test_replicas_are_left_to_an_autoscaler_only_where_one_ships() -> None:
    scaler = named("web", {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"})
    (plain,) = kustomizations(("web", WEB))
    (scaled,) = kustomizations(("web", WEB), ("scaler", scaler))
    assert "ignore" not in plain["spec"]
    assert scaled["spec"]["ignore"] == [
        {"paths": ["/spec/replicas"], "target": {"group": "apps", "kind": "Deployment"}}
    ]


def test_a_chart_is_a_release_of_its_own_in_the_control_namespace() -> None:
    made = written(chart(values={"text": "${HOME}"}, secret_ref="login"))
    repository, released = (
        made["stages/00/01-vllm-app-helmrepository-vllm-7f3a-vllm-app.yaml"],
        made["stages/00/01-vllm-app-helmrelease-vllm-7f3a-vllm-app.yaml"],
    )
    assert repository["spec"] == {"interval": "1h", "url": "https://charts.example.com", "secretRef": {"name": "login"}}
    assert released["metadata"] == {
        "name": "vllm-7f3a-vllm-app",
        "namespace": "overspill",
        "labels": {"overspill.dev/placement": "vllm-7f3a"},
        "annotations": {SUBSTITUTE: "disabled"},
    }
    assert released["spec"] == {
        "interval": "10m",
        "timeout": "5m",
        "releaseName": "vllm",
        "targetNamespace": "vllm-demo",
        "storageNamespace": "vllm-demo",
        "serviceAccountName": "overspill-applier",
        "chart": {
            "spec": {
                "chart": "vllm-stack",
                "version": "0.1.7",
                "sourceRef": {"kind": "HelmRepository", "name": "vllm-7f3a-vllm-app"},
            }
        },
        "install": {"disableWait": True},
        "upgrade": {"disableWait": True},
        "uninstall": {"deletionPropagation": "foreground"},
        "driftDetection": {
            "mode": "enabled",
            "ignore": [{"paths": ["/spec/replicas"], "target": {"kind": "(Deployment|StatefulSet)"}}],
        },
        "postRenderers": released["spec"]["postRenderers"],
        "values": {"text": "${HOME}"},
    }


def test_the_pods_of_a_chart_are_labelled_whatever_kind_makes_them() -> None:
    (renderer,) = release()["postRenderers"]
    patches = renderer["kustomize"]["patches"]
    assert [patch["target"] for patch in patches] == [
        {"group": "apps", "kind": "(DaemonSet|Deployment|ReplicaSet|StatefulSet)"},
        {"group": "batch", "kind": "(Job)"},
    ]
    for patch in patches:
        inner = yaml.safe_load(patch["patch"])
        assert inner["spec"] == {"template": {"metadata": {"labels": {"overspill.dev/placement": "vllm-7f3a"}}}}
        # Kustomize takes a patch for one only with a kind and a name, and finds its objects by the target.
        assert inner["apiVersion"] == f"{patch['target']['group']}/v1"
        assert inner["kind"] in patch["target"]["kind"]
        assert inner["metadata"]["name"]


def test_helms_flags_are_said_in_fluxs_words() -> None:
    made = release(flags=HelmFlags(create_namespace=True, skip_crds=True, wait=True, cleanup_on_fail=True))
    assert made["install"] == {"createNamespace": True, "crds": "Skip"}
    assert made["upgrade"] == {"cleanupOnFail": True}
    once_more = {"retries": 1, "remediateLastFailure": True}
    made = release(flags=HelmFlags(atomic=True, timeout=timedelta(days=1, seconds=30)))
    assert made["install"] == {"remediation": once_more}
    assert made["upgrade"] == {"remediation": {**once_more, "strategy": "rollback"}}
    assert made["timeout"] == "86430s"  # Flux knows no days


@pytest.mark.parametrize(
    ("version", "ref"),
    [
        ("1.2.3+build", {"tag": "1.2.3_build"}),
        (">=1.2", {"semver": ">=1.2"}),
        ("", {"semver": "*"}),
    ],
)
def test_a_chart_in_a_registry_is_one_artifact(version: str, ref: Any) -> None:
    made = written(chart(repo_url="oci://registry.example.com/charts/", version=version))
    source, released = (
        made["stages/00/01-vllm-app-ocirepository-vllm-7f3a-vllm-app.yaml"]["spec"],
        made["stages/00/01-vllm-app-helmrelease-vllm-7f3a-vllm-app.yaml"]["spec"],
    )
    assert (source["url"], source["ref"]) == ("oci://registry.example.com/charts/vllm-stack", ref)
    assert released["chartRef"] == {"kind": "OCIRepository", "name": "vllm-7f3a-vllm-app"}
    assert "chart" not in released


def test_a_chart_that_two_steps_name_is_installed_once() -> None:
    assert list(stages(chart(), ("a", CONFIG), chart())) == ["00", "01"]


def test_a_namespace_that_something_needs_before_its_chart_makes_it_is_there_first() -> None:
    made = chart(flags=HelmFlags(create_namespace=True))
    assert stages(("a", CONFIG), made)["00"] == ["Namespace vllm-demo", "ConfigMap settings"]
    assert "Namespace vllm-demo" not in stages(made, ("a", CONFIG))["00"]
    assert "Namespace vllm-demo" not in stages(("a", CONFIG), chart())["00"]


def test_namespaces_and_marked_objects_survive_the_revert_and_are_not_fought_over() -> None:
    made = written(("a", CONFIG), ("ns", "kubectl create ns tools"), ("mark", "kubectl label cm other tier=front"))
    kept = {"kustomize.toolkit.fluxcd.io/prune": "disabled", SUBSTITUTE: "disabled"}
    namespace, mark = made["stages/00/00-namespace-tools.yaml"], made["stages/00/03-mark-configmap-other.yaml"]
    assert namespace["metadata"]["annotations"] == {**kept, "kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"}
    assert mark["metadata"]["annotations"] == {**kept, "kustomize.toolkit.fluxcd.io/ssa": "Merge"}
    plain = made["stages/00/01-a-configmap-settings.yaml"]
    assert plain["metadata"]["annotations"] == {SUBSTITUTE: "disabled"}


def test_the_settings_of_the_fleet_say_where_fluxs_objects_live() -> None:
    deployed = spec(("a", CONFIG), chart())
    deployment = Deployment(
        placement=PLACEMENT, spec=deployed, workspace=WORKSPACE, fleet=Fleet(flux=Flux(namespace="gitops"))
    )
    chosen = engine(FLUX)
    made = [*yaml.safe_load_all(chosen.marker(deployment))]
    made += [yaml.safe_load(data) for path, data in chosen.files(deployment).items() if "helmre" in path]
    assert [it["metadata"]["namespace"] for it in made] == ["gitops"] * 4


def test_nothing_to_apply_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nothing for Flux to apply"):
        files(spec(("check", "kubectl get pods")), FLUX)


def test_the_same_object_in_two_stages_is_refused() -> None:
    with pytest.raises(InvalidInput, match="step 'a' and step 'b' both make ConfigMap vllm-demo/settings"):
        files(spec(("a", CONFIG), chart(), ("b", CONFIG)), FLUX)


def test_a_chart_from_nowhere_is_refused() -> None:
    refused = engine(FLUX).refusals(spec(chart(repo_url="")), WORKSPACE, helm=False)
    assert refused == ("chart 'vllm-app' has no repoURL, so Flux cannot find it (set repoURL)",)
    refused = engine(FLUX).refusals(spec(chart(repo_name="")), WORKSPACE, helm=False)
    assert "set repoName: vllm, or leave 'vllm/' out" in refused[0]
    assert engine(FLUX).refusals(spec(chart(), chart("two")), WORKSPACE, helm=False) == ()


@given(st.text(min_size=1, max_size=80), st.text(min_size=1, max_size=80), st.integers(1, 50))
def test_every_name_fits_into_a_label_and_differs_where_charts_do(one: str, two: str, length: int) -> None:
    placement = replace(PLACEMENT, name=PlacementName("p" * length))
    deployed = spec(chart(one, release_name="a"), chart(two, release_name="b"))
    made = files(deployed, FLUX, placement=placement)
    names = [
        yaml.safe_load(data)["metadata"]["name"]
        for path, data in made.items()
        if "/0" in path and "helmrelease" in path
    ]
    assert len(set(names)) == len({one, two})
    names += [it["metadata"]["name"] for it in yaml.safe_load_all(made[f"flux/{placement.name}.yaml"])]
    assert all(len(name) <= 63 for name in names)
    assert all(name.replace("-", "a").isalnum() and name.isascii() and name[-1] != "-" for name in names)


def test_the_anchor_says_what_it_is_for() -> None:
    data = FluxEngine().anchor(ClusterName("worker-2")).content
    assert anchor_path("worker-2", FluxEngine.directory) == "clusters/worker-2/flux/_anchor.yaml"
    assert data.startswith(b"# Keeps this directory alive.")
    assert yaml.safe_load(data)["kind"] == "ConfigMap"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_builds_each_stage_and_what_applies_them(tmp_path) -> None:
    deployed = spec(
        ("ns", "kubectl create ns tools"), ("web", WEB), chart(values={"a": "yes", "b": "1e3"}), ("s", CONFIG)
    )
    made = files(deployed, FLUX)
    for path, data in made.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    built = {
        stage: sorted(it["kind"] for it in yaml.safe_load_all(build(tmp_path / "stages" / stage)))
        for stage in ("00", "01", "02")
    }
    assert built == {
        "00": ["Deployment", "Namespace"],
        "01": ["HelmRelease", "HelmRepository"],
        "02": ["ConfigMap"],
    }
    (tmp_path / "flux" / "_anchor.yaml").write_bytes(FluxEngine().anchor(ClusterName("worker-2")).content)
    # Flux makes a kustomization of all files of a directory that has none; so does this.
    (tmp_path / "flux" / "kustomization.yaml").write_text(
        "resources: [_anchor.yaml, vllm-7f3a.yaml]\nnamespace: control\n"
    )
    root = list(yaml.safe_load_all(build(tmp_path / "flux")))
    assert [it["kind"] for it in root] == ["ConfigMap", "Kustomization", "Kustomization", "Kustomization"]
    assert {it["metadata"]["namespace"] for it in root} == {"control"}


def build(directory) -> str:
    return subprocess.run(
        ["kubectl", "kustomize", str(directory)], capture_output=True, text=True, check=True, timeout=60
    ).stdout
