"""A template that is made from a live object, on real API servers, through an image bump on the primary."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.test_lend_e2e import GPU, NAMESPACE, SMALL, kubeconfig
from tests.fakes.warm_command import overspill

FLEET = """\
apiVersion: overspill.dev/v1alpha1
kind: Fleet
metadata: {name: bump}
spec: {engine: manifests}
---
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata: {name: bump-home}
---
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata: {name: bump-away}
"""
POLICY = """\
apiVersion: overspill.dev/v1alpha1
kind: BurstPolicy
metadata: {name: serving}
spec:
  clusters: [{name: bump-away}]
  scaleUp: {window: 0s}
"""
REPLICAS = 3
FITTING = 2


def test_a_burst_runs_what_its_primary_runs_and_follows_its_image(
    start_cluster: Callable[[str], Cluster], tmp_path: Path
) -> None:
    home, away = start_cluster("bump-home"), start_cluster("bump-away")
    for cluster in (home, away):
        cluster.ensure_namespace(NAMESPACE)
        allocatable = {"cpu": "64", "memory": "256Gi", "pods": "110", GPU: str(FITTING)}
        cluster.add_node(f"{cluster.name}-gpu", allocatable=allocatable)
    workload: Json = json.loads(json.dumps(SMALL))
    workload["spec"]["replicas"] = REPLICAS
    home.create(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", workload)
    home.until(lambda: _waiting(home) == REPLICAS - FITTING, "one replica is to find no node")
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("OVERSPILL_", "KUBE"))},
        "HOME": str(tmp_path),
        "OVERSPILL_KUBECONFIG": str(kubeconfig(tmp_path, home, away)),
        "OVERSPILL_REPO": str(tmp_path / "fleet.git"),
    }
    fleet = tmp_path / "fleet"
    for path, text in {"fleet.yaml": FLEET, "policies/serving.yaml": POLICY}.items():
        (fleet / path).parent.mkdir(parents=True, exist_ok=True)
        (fleet / path).write_text(text)

    lent = _run(
        env, "lend", "deployment/vllm", "-n", NAMESPACE, "--fleet", fleet, "--primary", home.name, "--reference"
    )
    assert "Place" in lent, lent
    _publish(fleet, tmp_path / "fleet.git")
    _run(env, "once")
    first = _newest(tmp_path / "fleet.git")
    assert f"\nOverspill-From: Deployment/{NAMESPACE}/vllm@sha256-" in first
    assert _image(tmp_path / "fleet.git") == "registry.invalid/server:1"

    home.kubectl("set", "image", "deployment/vllm", "server=registry.invalid/server:2", "-n", NAMESPACE)
    _run(env, "once")
    second = _newest(tmp_path / "fleet.git")
    assert second.startswith("update(serving/vllm): 1 replica on bump-away\n"), second
    assert "runs registry.invalid/server:2 now, registry.invalid/server:1 before" in " ".join(second.split())
    assert _image(tmp_path / "fleet.git") == "registry.invalid/server:2"
    for name in _manifests(tmp_path / "fleet.git"):
        manifest = _git(tmp_path / "fleet.git", "show", f"placements:{name}")
        away.kubectl("apply", "--server-side", "--validate=strict", "--filename=-", stdin=manifest)


def _waiting(cluster: Cluster) -> int:
    """Count the pods that the scheduler has found no node for."""
    pods = cluster.items(f"/api/v1/namespaces/{NAMESPACE}/pods")
    conditions = [entry for pod in pods for entry in pod["status"].get("conditions", ())]
    return sum(entry["type"] == "PodScheduled" and entry["status"] == "False" for entry in conditions)


def _run(env: dict[str, str], *words: object) -> str:
    done = subprocess.run(
        [*overspill(), *map(str, words)], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def _publish(fleet: Path, remote: Path) -> None:
    """Push a directory as the source branch of a new repository."""
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", remote], check=True)
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "--all"),
        ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "--quiet", "--message=fleet"),
        ("push", "--quiet", str(remote), "main"),
    ):
        subprocess.run(["git", "-C", fleet, *words], check=True)


def _git(repository: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", repository, *words], check=True, capture_output=True, text=True).stdout


def _newest(repository: Path) -> str:
    return _git(repository, "log", "-1", "--format=%B", "placements")


def _manifests(repository: Path) -> list[str]:
    names = _git(repository, "ls-tree", "-r", "--name-only", "placements").splitlines()
    return [name for name in names if "/manifests/" in name]


def _image(repository: Path) -> str:
    """Return the image that the burst runs."""
    (name,) = (name for name in _manifests(repository) if name.endswith("deployment-vllm.yaml"))
    manifest = _git(repository, "show", f"placements:{name}")
    (line,) = (line for line in manifest.splitlines() if "image:" in line)
    return str(json.loads(line.partition("image:")[2]))
