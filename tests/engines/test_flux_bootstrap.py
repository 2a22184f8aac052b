"""What an admin applies once in a cluster, so that Flux there follows the output branch."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.core.engines.flux import FluxEngine
from reconciler.core.engines.flux.bootstrap import flux
from reconciler.core.fleet.assemble import assemble
from reconciler.core.fleet.read_file import parse_file
from reconciler.errors import InvalidInput
from reconciler.model.ids import ClusterName, CommitId, TemplateName, WorkspaceName
from reconciler.model.policy import Cluster, Desired, EngineName, Fleet, Flux, PodSecurity
from reconciler.model.request import Request
from reconciler.model.workload import WorkloadTemplate
from tests.builders.deploy_specs import CONFIG, JOBS, PLACEMENT, WEB, WORKSPACE, chart, files, spec

LAYOUT = Path(__file__).parents[2] / "repo-layout"
OVERLAY = Path(__file__).parents[1] / "golden" / "flux" / "fleet"
FLEET = Fleet(name="demo", repo_url="https://git.example.com/org/fleet.git")
WORKER_2, WORKER_9 = ClusterName("worker-2"), ClusterName("worker-9")


def desired(*specs: Any, workspace: Any = WORKSPACE, fleet: Fleet = FLEET) -> Desired:
    templates = [
        WorkloadTemplate(name=f"t{number}", workspace=workspace.name, namespace="k", spec=deployed, ref=None)
        for number, deployed in enumerate(specs)
    ]
    engines = {"worker-1": EngineName.ARGOCD, WORKER_2: EngineName.FLUX, WORKER_9: EngineName.FLUX}
    return Desired(
        commit=PLACEMENT.source_commit,
        fleet=fleet,
        clusters={ClusterName(name): Cluster(name=ClusterName(name), engine=it) for name, it in engines.items()},
        workspaces={workspace.name: workspace},
        templates={template.workload: template for template in templates},
    )


def written(given: Desired, cluster: ClusterName = WORKER_2) -> dict[str, Any]:
    """The objects by kind, namespace and name, as somebody else's reader reads them."""
    text = flux(given, cluster, output_branch="placements")
    made = {}
    for it in yaml.safe_load_all(text):
        place = "/".join(filter(None, (it["kind"], it["metadata"].get("namespace"), it["metadata"]["name"])))
        assert place not in made
        made[place] = it
    return made


def test_the_source_and_the_root_look_at_this_clusters_directory_alone() -> None:
    made = written(desired())
    source = made["GitRepository/overspill/placements"]["spec"]
    assert source == {
        "interval": "1m",
        "url": "https://git.example.com/org/fleet.git",
        "ref": {"branch": "placements"},
        "secretRef": {"name": "placements-read"},
        "sparseCheckout": ["clusters/worker-2"],
    }
    root = made["Kustomization/overspill/overspill-root"]["spec"]
    assert (root["path"], root["prune"], root["serviceAccountName"]) == (
        "./clusters/worker-2/flux",
        True,
        "overspill-root",
    )
    receiver = made["Receiver/overspill/placements"]["spec"]
    assert (receiver["type"], receiver["resources"][0]["name"]) == ("generic-hmac", "placements")


def test_a_branch_for_each_cluster_is_what_the_source_follows() -> None:
    given = desired(fleet=replace(FLEET, branch_per_cluster=True))
    made, before = written(given), written(desired())
    assert made["GitRepository/overspill/placements"]["spec"] == {
        "interval": "1m",
        "url": "https://git.example.com/org/fleet.git",
        "ref": {"branch": "placements-by-cluster/worker-2"},
        "secretRef": {"name": "placements-read"},
    }
    assert "The branch of this cluster, which holds nothing else." in flux(given, WORKER_2, output_branch="placements")
    del made["GitRepository/overspill/placements"], before["GitRepository/overspill/placements"]
    assert made == before, "paths are the same on the branch of a cluster"


def test_settings_of_the_fleet_say_where_and_how_often() -> None:
    fleet = replace(FLEET, flux=Flux(namespace="gitops", interval=Flux().interval * 5))
    made = written(desired(fleet=fleet))
    assert made["GitRepository/gitops/placements"]["spec"]["interval"] == "5m"
    assert made["Kustomization/gitops/overspill-root"]["spec"]["targetNamespace"] == "gitops"
    assert "Namespace/gitops" in made


def test_the_accounts_have_rights_where_workspaces_reach_and_nowhere_else() -> None:
    made = written(desired(spec(("web", WEB), chart())))
    bindings = [place for place in made if "Binding" in place]
    assert bindings == [
        "RoleBinding/overspill/overspill-root",
        "RoleBinding/overspill/overspill-applier",
        "RoleBinding/tools/overspill-applier-overspill-usual",
        "RoleBinding/vllm-demo/overspill-applier-overspill-usual",
        "ClusterRoleBinding/overspill-cluster",
    ]
    assert {"Namespace/tools", "Namespace/vllm-demo"} <= made.keys()
    held = [rule for it in made.values() for rule in it.get("rules", [])]
    assert not any("*" in str(rule) or "impersonate" in rule["verbs"] for rule in held)
    usual = made["ClusterRole/overspill-usual"]["rules"]
    assert [rule for rule in held if "secrets" in rule["resources"]] == usual[:1]
    held_kinds = {(rule["apiGroups"][0], name) for rule in usual for name in rule["resources"]}
    assert ("apps", "deployments") in held_kinds
    assert not {("rbac.authorization.k8s.io", "roles"), ("", "resourcequotas"), ("", "endpoints")} & held_kinds
    assert made["Namespace/tools"]["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "baseline"}
    assert made["ClusterRole/overspill-cluster"]["rules"][1] == {
        "apiGroups": [""],
        "resources": ["namespaces"],
        "verbs": ["update", "patch"],
        "resourceNames": ["tools", "vllm-demo"],
    }
    assert not any(place.startswith("RoleBinding/tools") for place in written(desired(), WORKER_9))


BEYOND = ("/PersistentVolume", "storage.k8s.io/StorageClass", "x.io/Bus")


def test_a_namespace_has_the_least_strict_level_of_the_workspaces_that_use_it() -> None:
    given = desired()
    others = {
        WorkspaceName(level): replace(WORKSPACE, name=WorkspaceName(level), pod_security=level, namespaces=(space,))
        for level, space in ((PodSecurity.RESTRICTED, "tools"), (PodSecurity.PRIVILEGED, "vllm-demo"))
    }
    made = written(replace(given, workspaces={**given.workspaces, **others}))
    levels = {name: made[f"Namespace/{name}"]["metadata"]["labels"] for name in ("tools", "vllm-demo")}
    assert [*levels.values()] == [
        {"pod-security.kubernetes.io/enforce": level} for level in (PodSecurity.BASELINE, PodSecurity.PRIVILEGED)
    ]


def test_kinds_beyond_the_usual_are_allowed_by_name() -> None:
    monitor = {"apiVersion": "monitoring.example.com/v1", "kind": "PodPolicy", "metadata": {"name": "a"}}
    workspace = replace(WORKSPACE, allowed_kinds=(*BEYOND, "monitoring.example.com/PodPolicy"))
    made = written(desired(spec(("a", monitor), ("b", CONFIG)), workspace=workspace))
    rules = {(rule["apiGroups"][0], *rule["resources"]) for rule in made["ClusterRole/overspill-more"]["rules"]}
    assert rules == {("monitoring.example.com", "podpolicies"), ("x.io", "buses")}
    beyond = {(rule["apiGroups"][0], *rule["resources"]) for rule in made["ClusterRole/overspill-cluster"]["rules"]}
    assert beyond == {("", "namespaces"), ("", "persistentvolumes"), ("storage.k8s.io", "storageclasses")}
    assert made["RoleBinding/tools/overspill-applier-overspill-more"]["roleRef"]["name"] == "overspill-more"


def test_a_primary_has_the_rights_of_its_workspace_only_while_that_has_requests_there() -> None:
    monitor = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor", "metadata": {"name": "a"}}
    asked = Request(name=TemplateName("watch"), workspace=WORKSPACE.name, namespace="k", spec=spec(("a", monitor)))
    for takes in (True, False):
        workspace = replace(WORKSPACE, primary=WORKER_2, requests_on_primary=takes)
        made = written(replace(desired(workspace=workspace), requests={asked.workload: asked}))
        assert ("RoleBinding/vllm-demo/overspill-applier-overspill-usual" in made) is takes
        assert ("ClusterRole/overspill-more" in made) is takes


def test_command_jobs_may_run_where_their_accounts_are_and_nothing_else_may() -> None:
    made = written(desired(workspace=replace(WORKSPACE, command_jobs=JOBS)))
    (rule,) = made["Role/kubeslice-system/overspill-applier"]["rules"]
    assert (rule["apiGroups"], rule["resources"]) == (["batch"], ["jobs"])
    assert "RoleBinding/kubeslice-system/overspill-applier-overspill-usual" not in made
    assert "Namespace/kubeslice-system" not in made


def test_a_workspace_that_nothing_bounds_reaches_every_namespace() -> None:
    open_ended = desired(
        spec(chart(release_namespace="{{ placement.name }}")), workspace=replace(WORKSPACE, namespaces=())
    )
    made = written(open_ended)
    assert made["ClusterRoleBinding/overspill-applier-overspill-usual"]["roleRef"]["name"] == "overspill-usual"
    assert "Namespace/*" not in made
    assert "resourceNames" not in str(made["ClusterRole/overspill-cluster"])


@pytest.mark.parametrize(
    ("fleet", "cluster", "message"),
    [
        (Fleet(), WORKER_2, r"the Fleet has no spec\.repoURL"),
        (FLEET, ClusterName("worker-1"), r"its engine is argocd \(try worker-2, worker-9\)"),
        (FLEET, ClusterName("worker-7"), r"no such Cluster is described \(try 'worker-"),
    ],
)
def test_what_cannot_be_written_for_flux_says_what_is_missing(fleet: Fleet, cluster: ClusterName, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        flux(desired(fleet=fleet), cluster, output_branch="placements")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_no_file_of_the_branch_can_choose_another_account(tmp_path: Path) -> None:
    """As Flux does it: kustomize with the patches of the root, then, for a stage, with those that the root gave it."""
    made = files(spec(chart()), EngineName.FLUX)
    text = made["flux/vllm-7f3a.yaml"].decode().replace("overspill-applier", "admin")
    root = written(desired())["Kustomization/overspill/overspill-root"]["spec"]
    (tmp_path / "anchor.yaml").write_bytes(FluxEngine().anchor(WORKER_2).content)
    (stage,) = (it for it in built(tmp_path, text, root) if it["kind"] == "Kustomization")
    assert stage["spec"]["serviceAccountName"] == "overspill-applier"
    release = next(data for path, data in made.items() if "helmrelease" in path).decode()
    for drifted in (
        release.replace("overspill-applier", "admin"),
        release.replace("  serviceAccountName: overspill-applier\n", ""),
    ):
        (one,) = (it for it in built(tmp_path, drifted, stage["spec"]) if it["kind"] == "HelmRelease")
        assert one["spec"]["serviceAccountName"] == "overspill-applier"


def built(directory: Path, text: str, spec: Any) -> list[Any]:
    (directory / "it.yaml").write_text(text)
    given = {"resources": ["anchor.yaml", "it.yaml"], "patches": spec["patches"]}
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(given))
    done = subprocess.run(
        ["kubectl", "kustomize", str(directory)], capture_output=True, text=True, check=True, timeout=60
    )
    return list(yaml.safe_load_all(done.stdout))


def test_the_file_in_the_layout_is_what_the_command_prints_once_worker_2_has_flux() -> None:
    """With the golden story's overlay, which is the layout with `engine: flux` in one cluster."""
    found = {
        path.relative_to(root).as_posix(): parse_file(path.read_bytes())
        for root in (LAYOUT, OVERLAY)
        for path in sorted(root.rglob("*.yaml"))
    }
    given = assemble(CommitId("0" * 40), found)
    assert (LAYOUT / "bootstrap" / "flux.yaml").read_text() == flux(given, WORKER_2, output_branch="placements")
