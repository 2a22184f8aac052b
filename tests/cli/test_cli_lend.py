"""`lend`: from a live object to the plan of its first burst, with nothing written by hand."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.builders.kube_objects import node, pod, workload
from tests.cli.conftest import Terminal
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving

FLEET = """\
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata: {name: worker-1}
---
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata: {name: worker-2}
"""
SERVING = {
    "templates/serving.yaml": """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadTemplate
metadata: {name: serving}
spec:
  workspaceName: demo
  from: {path: apps}
""",
    "workspaces/demo.yaml": """\
apiVersion: overspill.dev/v1alpha1
kind: Workspace
metadata: {name: demo}
spec: {primaryCluster: worker-1, clusters: [worker-1, worker-2], namespaces: [demo]}
""",
    "policies/usual.yaml": """\
apiVersion: overspill.dev/v1alpha1
kind: BurstPolicy
metadata: {name: usual}
spec: {templates: [serving]}
""",
}
POD = {
    "containers": [
        {
            "name": "server",
            "image": "server:1",
            "envFrom": [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "token"}}],
            "resources": {"limits": {"nvidia.com/gpu": "1"}},
        }
    ]
}
TEMPLATE = {"metadata": {"labels": {"app": "vllm"}}, "spec": POD}
DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "vllm", "namespace": "demo", "uid": "1", "resourceVersion": "7"},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "vllm"}}, "template": TEMPLATE},
    "status": {},
}
SETTINGS = {"metadata": {"name": "settings", "namespace": "demo"}, "data": {"MODEL": "llama"}}
SERVICE = {
    "metadata": {"name": "vllm", "namespace": "demo"},
    "spec": {"selector": {"app": "vllm"}, "clusterIP": "10.0.0.1", "ports": [{"port": 80}]},
}
REMOTE = "https://git.example.com/acme/fleet.git"


class Clusters:
    """worker-1 with one GPU, which a Deployment has, and worker-2 with two."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.primary, self.other = Cluster(), Cluster()
        for each, gpus in ((self.primary, 1), (self.other, 2)):
            stack.enter_context(serving(each))
            each.put("nodes", node("gpu-1", gpus))
        self.kubeconfig = kubeconfig(path / "config", ("worker-1", self.primary.url), ("worker-2", self.other.url))
        self.primary.put("replicasets", workload("vllm-1", owner=("Deployment", "vllm")))
        self.primary.put("pods", pod("vllm-1-a", on="gpu-1"))
        self.primary.put("deployments", json.loads(json.dumps(DEPLOYMENT)))
        self.primary.put("services", SERVICE)
        self.primary.groups["apps"] = ["v1"]
        self.primary.documents |= {
            "/apis/apps/v1": {"resources": [{"name": "deployments", "kind": "Deployment"}]},
            "/apis/apps/v1/namespaces/demo/deployments/vllm": DEPLOYMENT,
            "/api/v1/namespaces/demo/configmaps/settings": SETTINGS,
        }


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Clusters]:
    with ExitStack() as stack:
        yield Clusters(tmp_path, stack)


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    directory = tmp_path / "fleet"
    (directory / "clusters").mkdir(parents=True)
    (directory / "clusters" / "all.yaml").write_text(FLEET)
    return directory


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """Open a terminal in a home without a kubeconfig."""
    return Terminal(env={"HOME": str(tmp_path / "home"), "KUBECONFIG": ""})


def git(directory: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(directory), *arguments], check=True, capture_output=True)


ARGUMENTS = ("lend", "deployment/vllm", "-n", "demo", "--primary", "worker-1")


def lend(terminal: Terminal, fleet: Path, *more: str) -> str:
    return terminal.done(*ARGUMENTS, "--fleet", str(fleet), *more)


def test_a_live_workload_has_its_files_and_its_first_plan(terminal: Terminal, fleet: Path, clusters: Clusters) -> None:
    printed = lend(terminal, fleet, "--kubeconfig", str(clusters.kubeconfig))
    assert f"Wrote {fleet}/templates/vllm.yaml\nWrote {fleet}/workspaces/demo.yaml\n" in printed
    assert "Secret demo/token: not copied" in printed
    assert "What if 3 more replicas of demo/vllm had been missing on worker-1 for 10s?" in printed
    (row,) = [line.split() for line in printed.splitlines() if line.startswith("Place")]
    assert (row[1], row[3], row[4]) == ("demo/vllm", "worker-2", "2")
    assert "NothingFits" in printed
    template = (fleet / "templates" / "vllm.yaml").read_text()
    assert "kind: ConfigMap" in template
    assert "kind: Service\n" in template
    assert "10.0.0.1" not in template
    assert "1 template, 1 policy: 0 errors" in terminal.done("check", str(fleet))


def test_the_kubeconfig_of_kubectl_is_the_default(
    terminal: Terminal, fleet: Path, clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(clusters.kubeconfig))
    terminal.env["KUBECONFIG"] = str(clusters.kubeconfig)
    git(fleet, "init", "--quiet")
    git(fleet, "remote", "add", "origin", REMOTE)
    printed = " ".join(lend(terminal, fleet).split())
    assert " Place " in printed
    command = f"overspill plan --kubeconfig {clusters.kubeconfig} --what-if demo/vllm+3"
    assert f"Next: commit and push the new files. Then `{command}` in {fleet} answers again" in " ".join(
        printed.split()
    )


@pytest.mark.parametrize("begun", [False, True])
def test_what_comes_next_without_a_remote_leads_to_a_plan_of_what_is_committed(
    terminal: Terminal, fleet: Path, clusters: Clusters, begun: bool
) -> None:
    if begun:
        git(fleet, "init", "--quiet", "--initial-branch=main")
    printed = " ".join(lend(terminal, fleet, "--kubeconfig", str(clusters.kubeconfig)).split())
    steps = re.findall(r"`([^`]+)`", printed.partition("Next: ")[2])
    assert [shlex.split(step)[:2] for step in steps] == [["git", "init"]] * (not begun) + [["overspill", "plan"]]
    assert "push" not in printed
    for made in steps[:-1]:
        subprocess.run(shlex.split(made), check=True, capture_output=True)
    git(fleet, "add", "--all")
    git(fleet, "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "--quiet", "-m", "Lend vllm")
    planned = terminal.done(*shlex.split(steps[-1])[1:])
    assert [line.split()[1:4:2] for line in planned.splitlines() if line.startswith("Place")] == [
        ["demo/vllm", "worker-2"]
    ]


def test_a_dry_run_tells_nobody_to_commit(terminal: Terminal, fleet: Path, clusters: Clusters) -> None:
    printed = lend(terminal, fleet, "--kubeconfig", str(clusters.kubeconfig), "--dry-run")
    assert "Next: " not in printed
    assert "Nothing was written; leave out `--dry-run` to write the files." in printed


def test_the_kubeconfig_of_the_environment_is_not_repeated(terminal: Terminal, fleet: Path, clusters: Clusters) -> None:
    terminal.env["OVERSPILL_KUBECONFIG"] = str(clusters.kubeconfig)
    assert f"`overspill plan --repo {fleet} --what-if demo/vllm+3`" in " ".join(lend(terminal, fleet).split())


def test_the_repository_of_the_environment_is_the_one_to_push_to(
    terminal: Terminal, fleet: Path, clusters: Clusters
) -> None:
    terminal.env |= {"OVERSPILL_KUBECONFIG": str(clusters.kubeconfig), "OVERSPILL_REPO": REMOTE}
    assert "push the new files. Then `overspill plan --what-if demo/vllm+3`" in " ".join(lend(terminal, fleet).split())


def test_what_is_there_is_never_changed(terminal: Terminal, fleet: Path, clusters: Clusters) -> None:
    lend(terminal, fleet, "--kubeconfig", str(clusters.kubeconfig))
    before = {path: path.read_bytes() for path in fleet.rglob("*.yaml")}
    again = terminal(
        "lend", "deployment/vllm", "-n", "demo", "--fleet", str(fleet), "--kubeconfig", str(clusters.kubeconfig)
    )
    assert again.exit_code == 1
    assert "templates/vllm.yaml is there already (try --name with another name" in again.stderr
    assert {path: path.read_bytes() for path in fleet.rglob("*.yaml")} == before


def test_a_dry_run_prints_the_files_and_writes_none(terminal: Terminal, fleet: Path, clusters: Clusters) -> None:
    printed = lend(terminal, fleet, "--kubeconfig", str(clusters.kubeconfig), "--dry-run")
    assert f"--- {fleet}/templates/vllm.yaml\n# yaml-language-server" in printed
    assert "Place" in printed
    assert not (fleet / "templates").exists()


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("deployment/vlm", "worker-1 has no Deployment demo/vlm (try 'vllm')"),
        ("statefulset/vllm", "worker-1 serves no kind StatefulSet of apps"),
        ("vllm", "'vllm' is not KIND/NAME (try deployment/vllm)"),
    ],
)
def test_a_workload_that_is_not_there_is_told_with_what_is(
    terminal: Terminal, fleet: Path, clusters: Clusters, wanted: str, message: str
) -> None:
    arguments = ("-n", "demo", "--fleet", str(fleet), "--primary", "worker-1", "--kubeconfig", str(clusters.kubeconfig))
    result = terminal("lend", wanted, *arguments)
    assert result.exit_code == 1
    assert message in result.stderr


def test_rights_that_are_missing_are_told(terminal: Terminal, fleet: Path, clusters: Clusters) -> None:
    clusters.primary.refuses["/deployments/vllm"] = 403
    arguments = ("--fleet", str(fleet), "--primary", "worker-1", "--kubeconfig", str(clusters.kubeconfig))
    result = terminal("lend", "deployment/vllm", "-n", "demo", *arguments)
    assert result.exit_code != 0
    assert "cluster worker-1 forbids it" in result.stderr


def test_a_server_that_is_no_api_server_is_told(terminal: Terminal, fleet: Path, clusters: Clusters) -> None:
    clusters.primary.documents["/apis/apps"] = []
    arguments = ("--fleet", str(fleet), "--primary", "worker-1", "--kubeconfig", str(clusters.kubeconfig))
    result = terminal("lend", "deployment/vllm", "-n", "demo", *arguments)
    assert result.exit_code == 1
    assert "cluster worker-1 sent what no API server sends (is it one?)" in result.stderr


def test_an_object_that_is_nested_too_deeply_is_told(terminal: Terminal, fleet: Path, clusters: Clusters) -> None:
    text = json.dumps(DEPLOYMENT).replace('"server:1"', '{"a":' * 900 + "1" + "}" * 900)
    clusters.primary.documents["/apis/apps/v1/namespaces/demo/deployments/vllm"] = text.encode()
    arguments = ("--fleet", str(fleet), "--primary", "worker-1", "--kubeconfig", str(clusters.kubeconfig))
    result = terminal("lend", "deployment/vllm", "-n", "demo", *arguments)
    assert result.exit_code == 1
    assert "cluster worker-1 sent what is nested over 500 levels" in result.stderr


def test_objects_may_come_from_a_file(terminal: Terminal, fleet: Path, tmp_path: Path) -> None:
    items = [
        {"apiVersion": "apps/v1", "kind": "Deployment", **DEPLOYMENT},
        {"apiVersion": "v1", "kind": "ConfigMap", **SETTINGS},
    ]
    (tmp_path / "live.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    printed = lend(terminal, fleet, "--filename", str(tmp_path / "live.json"))
    assert "What would be placed is unknown, since no cluster is seen (pass --kubeconfig or --observations)." in printed
    assert "kind: ConfigMap" in (fleet / "templates" / "vllm.yaml").read_text()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"spec": []}, "Deployment chat is left out: spec: Kubernetes takes a mapping here, not a list"),
        ({"spec": {"selector": 7}}, "spec.selector: Kubernetes takes a mapping here"),
        ({"metadata": {"name": {}}}, "metadata.name: Kubernetes takes a text here"),
        (
            {"spec": {"template": {"spec": {"containers": [None]}}}},
            "spec.template.spec.containers[0]: Kubernetes takes",
        ),
        ({"apiVersion": "v9", "kind": "Service", "spec": {"ports": [1]}}, "apiVersion: Kubernetes"),
    ],
)
def test_an_object_whose_fields_have_other_types_is_left_out_and_told(
    terminal: Terminal, fleet: Path, tmp_path: Path, changed: dict[str, object], told: str
) -> None:
    live = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "chat"}, **changed}
    (tmp_path / "live.json").write_text(json.dumps({"kind": "List", "items": [live, 7, None]}))
    result = terminal("lend", "--fleet", str(fleet), "--primary", "worker-1", "--filename", str(tmp_path / "live.json"))
    assert result.exit_code == 1
    assert told in result.stderr
    assert "has no workload" in result.stderr


def test_a_workload_that_no_fleet_may_hold_leaves_no_file_behind(
    terminal: Terminal, fleet: Path, tmp_path: Path
) -> None:
    privileged = json.loads(json.dumps(DEPLOYMENT))
    privileged["spec"]["template"]["spec"]["hostNetwork"] = True
    document = {"apiVersion": "apps/v1", "kind": "Deployment", **privileged}
    (tmp_path / "live.json").write_text(json.dumps(document))
    arguments = ("--fleet", str(fleet), "--primary", "worker-1", "--filename", str(tmp_path / "live.json"))
    result = terminal("lend", "deployment/vllm", "-n", "demo", *arguments)
    assert result.exit_code == 1
    assert "hostNetwork" in result.stderr
    assert not (fleet / "templates").exists()


def test_without_a_login_the_way_out_is_told(terminal: Terminal, fleet: Path) -> None:
    result = terminal("lend", "deployment/vllm", "-n", "demo", "--fleet", str(fleet), "--primary", "worker-1")
    assert result.exit_code == 1
    assert "no kubeconfig leads to cluster worker-1 (pass --kubeconfig PATH, or --filename" in result.stderr


OBSERVED = """\
items:
- apiVersion: overspill.dev/v1alpha1
  kind: Observation
  cluster: worker-1
  observedAt: "{now:%Y-%m-%dT%H:%M:%SZ}"
- apiVersion: overspill.dev/v1alpha1
  kind: Observation
  cluster: worker-2
  observedAt: "{now:%Y-%m-%dT%H:%M:%SZ}"
  pools: [{{name: gpus, allocatable: {{cpu: 8, nvidia.com/gpu: 2}}, nodes: [{{name: gpu-1}}]}}]
"""


def test_observations_that_lack_the_workload_show_its_burst_by_its_template(
    terminal: Terminal, fleet: Path, tmp_path: Path
) -> None:
    (tmp_path / "live.json").write_text(json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", **DEPLOYMENT}))
    (tmp_path / "observed.yaml").write_text(OBSERVED.format(now=datetime.now(UTC)))
    files = ("-f", str(tmp_path / "live.json"), "--observations", os.path.relpath(tmp_path / "observed.yaml"))
    git(fleet, "init", "--quiet")
    git(fleet, "remote", "add", "origin", REMOTE)
    printed = lend(terminal, fleet, *files)
    assert f"--observations {Path.cwd()}" in printed  # it is typed in the directory of the fleet
    assert "had been missing on worker-1 for 10s, with the requests of its template?" in printed
    assert [line.split()[3:5] for line in printed.splitlines() if line.startswith("Place")] == [["worker-2", "2"]]


def test_the_only_workload_of_a_file_needs_no_name_and_a_reference_shows_its_plan(
    terminal: Terminal, fleet: Path, tmp_path: Path
) -> None:
    (tmp_path / "live.json").write_text(json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", **DEPLOYMENT}))
    (tmp_path / "observed.yaml").write_text(OBSERVED.format(now=datetime.now(UTC)))
    files = ("-f", str(tmp_path / "live.json"), "--observations", str(tmp_path / "observed.yaml"))
    arguments = ("--fleet", str(fleet), "--primary", "worker-1", *files)
    printed = terminal.done("lend", "--reference", *arguments)
    assert [line.split()[3:5] for line in printed.splitlines() if line.startswith("Place")] == [["worker-2", "2"]]
    assert "from:" in (written := (fleet / "templates" / "vllm.yaml").read_text())
    assert "image:" not in written
    again = terminal("lend", "--reference", "--name", "a-copy", *arguments)
    assert (again.exit_code, (fleet / "templates" / "a-copy.yaml").exists()) == (1, False)
    assert (
        "Deployment demo/vllm on worker-1 is lent already by template demo/vllm in templates/vllm.yaml" in again.stderr
    )


def test_a_reference_with_companions_shows_its_plan_from_the_cluster(
    terminal: Terminal, fleet: Path, clusters: Clusters
) -> None:
    clusters.primary.put("configmaps", SETTINGS)
    printed = lend(terminal, fleet, "--reference", "--companions", "--kubeconfig", str(clusters.kubeconfig))
    (row,) = [line.split() for line in printed.splitlines() if line.startswith("Place")]
    assert (row[1], row[3], row[4]) == ("demo/vllm", "worker-2", "2")
    text = (fleet / "templates" / "vllm.yaml").read_text()
    assert "- configmap/settings" in text
    assert "MODEL" not in text
    alone = ("--fleet", str(fleet), "--primary", "worker-1", "--companions")
    refused = terminal("lend", "deployment/vllm", "-n", "demo", *alone)
    assert (refused.exit_code, "--companions goes with --reference" in refused.stderr) == (2, True)


def test_a_file_of_several_workloads_has_them_named(terminal: Terminal, fleet: Path, tmp_path: Path) -> None:
    other = {**DEPLOYMENT, "metadata": {"name": "embed", "namespace": "demo"}}
    items = [{"apiVersion": "apps/v1", "kind": "Deployment", **each} for each in (DEPLOYMENT, other)]
    (tmp_path / "live.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    arguments = ("--fleet", str(fleet), "--primary", "worker-1", "-f", str(tmp_path / "live.json"))
    refused = terminal("lend", *arguments)
    assert refused.exit_code == 1
    assert "has several workloads (name one as KIND/NAME; it holds deployment/embed in demo" in refused.stderr
    assert "(try -n demo)" in terminal("lend", "deployment/vllm", "-n", "default", *arguments).stderr
    assert terminal("lend", "--fleet", str(fleet), "--primary", "worker-1").exit_code == 2


def test_a_link_is_not_replaced(terminal: Terminal, fleet: Path, clusters: Clusters, tmp_path: Path) -> None:
    (fleet / "templates").mkdir()
    (fleet / "templates" / "vllm.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    arguments = ("--fleet", str(fleet), "--primary", "worker-1", "--kubeconfig", str(clusters.kubeconfig))
    result = terminal("lend", "deployment/vllm", "-n", "demo", *arguments)
    assert result.exit_code == 1
    assert "templates/vllm.yaml is there already" in result.stderr
    assert (fleet / "templates" / "vllm.yaml").is_symlink()


def test_a_preview_that_fails_takes_back_nothing(terminal: Terminal, fleet: Path, tmp_path: Path) -> None:
    broken = kubeconfig(tmp_path / "broken", ("worker-1", "http://127.0.0.1:9"), ("worker-2", "http://127.0.0.1:9"))
    live = {"apiVersion": "apps/v1", "kind": "Deployment", **DEPLOYMENT}
    (tmp_path / "live.json").write_text(json.dumps(live))
    printed = lend(terminal, fleet, "-f", str(tmp_path / "live.json"), "--kubeconfig", str(broken))
    assert (fleet / "templates" / "vllm.yaml").is_file()
    assert "Wrote" in printed


def test_a_kubeconfig_that_is_not_there_is_told_before_a_file_is_written(
    terminal: Terminal, fleet: Path, tmp_path: Path
) -> None:
    (tmp_path / "live.json").write_text(json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", **DEPLOYMENT}))
    arguments = ("--fleet", str(fleet), "--primary", "worker-1", "-f", str(tmp_path / "live.json"))
    result = terminal("lend", "deployment/vllm", "-n", "demo", *arguments, "--kubeconfig", "nowhere")
    assert result.exit_code == 1
    assert "reading the kubeconfig: nowhere is not a file" in result.stderr
    assert not (fleet / "templates").exists()


def test_a_name_that_the_file_lacks_is_told_with_those_that_it_holds(
    terminal: Terminal, fleet: Path, tmp_path: Path
) -> None:
    (tmp_path / "live.json").write_text(json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", **DEPLOYMENT}))
    arguments = ("--fleet", str(fleet), "--primary", "worker-1", "-f", str(tmp_path / "live.json"))
    result = terminal("lend", "deployment/vlm", "-n", "demo", *arguments)
    assert "has no Deployment demo/vlm (it holds deployment/vllm in demo)" in result.stderr
    result = terminal("lend", "statefulset/vllm", "-n", "demo", *arguments)
    assert "has no StatefulSet demo/vllm (it holds none, but 1 other object)" in result.stderr


def test_object_whose_template_is_a_directory_is_lent_already(terminal: Terminal, fleet: Path, tmp_path: Path) -> None:
    live = json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", **DEPLOYMENT})
    for name, text in {"apps/deployment.json": live, **SERVING}.items():
        (fleet / name).parent.mkdir()
        (fleet / name).write_text(text)
    (tmp_path / "live.json").write_text(live)
    refused = terminal("lend", "--fleet", str(fleet), "--primary", "worker-1", "-f", str(tmp_path / "live.json"))
    assert refused.exit_code == 1
    assert "is lent already by template demo/serving in templates/serving.yaml" in refused.stderr


@pytest.mark.parametrize(
    ("provides", "counts"),
    [("secrets: [other]", (1, 0)), ("storageClasses: [fast]", (0, 1)), ("secrets: [demo/token]", (0, 1))],
    ids=["no cluster has it", "no cluster declares it", "it is there"],
)
def test_a_secret_that_clusters_may_lack_is_told_once(
    terminal: Terminal, fleet: Path, clusters: Clusters, provides: str, counts: tuple[int, int]
) -> None:
    spec = f"metadata: {{name: worker-2}}\nspec: {{provides: {{{provides}}}}}"
    (fleet / "clusters" / "all.yaml").write_text(FLEET.replace("metadata: {name: worker-2}", spec))
    result = terminal(*ARGUMENTS, "--fleet", str(fleet), "--kubeconfig", str(clusters.kubeconfig), "--dry-run")
    lines = [" ".join(line.split()) for line in (result.stdout + result.stderr).splitlines()]
    told = [line for line in lines if "Secret demo/token" in line and line.startswith(("warning:", "Note:"))]
    assert tuple(sum(line.startswith(word) for line in told) for word in ("warning:", "Note:")) == counts
