"""`lend`: objects as a real API server completes them become templates that another real API server takes unchanged."""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.core.onboarding.lend import LiveWorkload, lent_files
from reconciler.core.schema import yaml
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.policy import Desired, Workspace
from tests.builders.inputs import desired
from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster

README = Path(__file__).parents[2] / "README.md"
REPOSITORY = "https://git.example.com/acme/fleet.git"
NAMESPACE = "serving"
GPU = "nvidia.com/gpu"
POD: Json = {
    "serviceAccountName": "runner",
    "initContainers": [{"name": "proxy", "image": "registry.invalid/proxy:1", "restartPolicy": "Always"}],
    "containers": [
        {
            "name": "server",
            "image": "registry.invalid/server:1",
            "args": ["--template={{ not ours }}"],
            "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "envFrom": [{"configMapRef": {"name": "settings"}}],
            "ports": [{"name": "http", "containerPort": 8000}],
            "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}},
            "resources": {"limits": {GPU: "1"}},
            "volumeMounts": [{"name": "models", "mountPath": "/models"}],
        }
    ],
    "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}],
}
LABELS = {"app": "vllm"}
OTHERS: tuple[Json, ...] = (
    {"kind": "ServiceAccount", "metadata": {"name": "runner"}},
    {"kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"MODEL": "{{ llama }}"}},
    {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "models"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    },
    {"kind": "Service", "metadata": {"name": "vllm"}, "spec": {"selector": LABELS, "ports": [{"port": 80}]}},
    {
        "kind": "Service",
        "metadata": {"name": "vllm-headless"},
        "spec": {"selector": LABELS, "clusterIP": "None", "ports": [{"port": 80}]},
    },
)


def workload(kind: str, group: str = "apps", *, restarts: str = "", **spec: Json) -> Json:
    template = {"metadata": {"labels": LABELS}, "spec": {**POD, **({"restartPolicy": restarts} if restarts else {})}}
    selector = {} if group == "batch" else {"selector": {"matchLabels": LABELS}}
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": f"vllm-{kind.lower()}", "namespace": NAMESPACE},
        "spec": {**selector, "template": template, **spec},
    }


WORKLOADS = (
    workload("Deployment", replicas=1),
    workload("StatefulSet", replicas=1, serviceName="vllm-headless"),
    workload("ReplicaSet", replicas=1),
    workload("Job", "batch", restarts="Never", parallelism=1, completions=2, completionMode="Indexed", suspend=True),
)


SMALL = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "vllm", "namespace": NAMESPACE},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "small"}},
        "template": {
            "metadata": {"labels": {"app": "small"}},
            "spec": {
                "containers": [
                    {"name": "server", "image": "registry.invalid/server:1", "resources": {"limits": {GPU: "1"}}}
                ]
            },
        },
    },
}
"""A workload whose claims no provisioner of these clusters has to bind."""


@pytest.fixture(scope="module")
def clusters(start_cluster: Callable[[str], Cluster]) -> tuple[Cluster, Cluster]:
    """A home where all of it lives, and a cluster that has the namespace alone."""
    home, away = start_cluster("lend-home"), start_cluster("lend-away")
    for cluster, gpus in ((home, "4"), (away, "2")):
        cluster.ensure_namespace(NAMESPACE)
        cluster.add_node(f"{cluster.name}-gpu", allocatable={"cpu": "64", "memory": "256Gi", "pods": "110", GPU: gpus})
    for each in OTHERS:
        metadata = {**each["metadata"], "namespace": NAMESPACE}
        home.kubectl("apply", "--filename=-", stdin=json.dumps({"apiVersion": "v1", **each, "metadata": metadata}))
    for each in WORKLOADS:
        home.kubectl("apply", "--filename=-", stdin=json.dumps(each))
    return home, away


def live(cluster: Cluster, kind: str) -> LiveWorkload:
    """Read a workload and what is beside it as the API server has them by now."""
    printed = cluster.kubectl(
        "get", "serviceaccounts,configmaps,persistentvolumeclaims,services", "-n", NAMESPACE, "-o", "json"
    )
    manifest = json.loads(cluster.kubectl("get", kind, f"vllm-{kind.lower()}", "-n", NAMESPACE, "-o", "json"))
    companions = tuple(json.loads(printed)["items"])
    return LiveWorkload(primary=ClusterName("home"), manifest=manifest, companions=companions)


def manifests(cluster: Cluster, kind: str) -> list[Json]:
    """Return the objects of the template of a live workload, as a burst of one replica has them."""
    alone = Workspace(name=WorkspaceName("llm"), primary=ClusterName("home"), clusters=(), namespaces=(NAMESPACE,))
    files = lent_files(live(cluster, kind), _fleet(), workspace=alone)
    document = yaml.parse(files.files[files.template].encode(), files.template)[0].value
    text = json.dumps([resource["manifest"] for resource in document["spec"]["manifestResources"]])
    text = text.replace('"{{ replicas }}"', "1").replace("{% raw %}", "").replace("{% endraw %}", "")
    rendered: list[Json] = json.loads(text)
    return rendered


def _fleet() -> Desired:
    return desired(clusters=())


@pytest.mark.parametrize("kind", [each["kind"] for each in WORKLOADS])
def test_another_api_server_takes_it_and_makes_the_same_of_it(clusters: tuple[Cluster, Cluster], kind: str) -> None:
    home, away = clusters
    written = manifests(home, kind)
    assert [manifest["kind"] for manifest in written] == [
        "ServiceAccount", "ConfigMap", "PersistentVolumeClaim", kind, "Service", "Service",
    ]  # fmt: skip # a list of words
    for manifest in written:
        away.kubectl("apply", "--server-side", "--validate=strict", "--filename=-", stdin=json.dumps(manifest))
    # What the other server has completed is read back as the same template: nothing of it was lost or tied to home.
    assert manifests(away, kind) == written
    of_home, of_away = (_spec(cluster, kind) for cluster in clusters)
    assert of_home == of_away


def _spec(cluster: Cluster, kind: str) -> Json:
    """Return the spec of a workload as its API server completed it, without what a Job's controller made up."""
    spec = live(cluster, kind).manifest["spec"]
    if kind == "Job":
        spec.pop("selector")
        spec["template"]["metadata"]["labels"] = LABELS
    return spec


def test_from_a_kubeconfig_to_the_first_plan_as_the_readme_says(
    clusters: tuple[Cluster, Cluster], tmp_path: Path
) -> None:
    """The commands of README on a terminal, in an empty home: two questions, and not a line written by hand."""
    home, _ = clusters
    (block,) = re.findall(r"^```sh clusters\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    home.create(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", SMALL)
    home.until(lambda: _running(home) == 1, "the workload does not run")
    (tmp_path / ".kube").mkdir()
    kubeconfig(tmp_path / ".kube", *clusters)
    empty = tmp_path / "acme.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(empty)], check=True)
    assert block.startswith(f"git clone {REPOSITORY} ours")
    printed = _on_terminal(block.replace(REPOSITORY, str(empty)), tmp_path, answers=f"{home.name}\nflux\n")
    rows = [line.split() for line in printed.splitlines() if line.startswith("Place")]
    assert [row[1:5:2] for row in rows] == [["llm/vllm", "lend-away"]], printed
    assert int(rows[0][4]) == 2, "lend-away has two GPUs"
    assert "1 template, 1 policy: 0 errors, 0 warnings" in printed, printed


def _on_terminal(script: str, directory: Path, *, answers: str) -> str:
    """Run a script whose standard input is a terminal, and return what it printed."""
    person, terminal = pty.openpty()
    command = directory / "overspill"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m reconciler "$@"\n')
    command.chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OVERSPILL_", "KUBE"))}
    paths = os.pathsep.join((str(directory), os.environ["PATH"]))
    env = {**inherited, "HOME": str(directory), "PATH": paths, "PYTHONPATH": str(README.parent)}
    os.write(person, answers.encode())
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=directory, env=env, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=90,
        check=False,
    )  # fmt: skip # a command line, word by word
    assert done.returncode == 0, done.stdout
    return done.stdout


def _running(cluster: Cluster) -> int:
    pods = cluster.items(f"/api/v1/namespaces/{NAMESPACE}/pods")
    return sum(pod["status"].get("phase") == "Running" for pod in pods)


def kubeconfig(path: Path, *clusters: Cluster) -> Path:
    """Write a person's kubeconfig with a context for each cluster."""
    config: Json = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    for cluster in clusters:
        authority = base64.b64encode(cluster.access.authority.read_bytes()).decode()
        server = {"server": cluster.access.server, "certificate-authority-data": authority}
        config["clusters"].append({"name": cluster.name, "cluster": server})
        config["users"].append({"name": cluster.name, "user": {"token": cluster.access.token}})
        config["contexts"].append({"name": cluster.name, "context": {"cluster": cluster.name, "user": cluster.name}})
    target = path / "config"
    target.write_text(json.dumps(config))
    return target
