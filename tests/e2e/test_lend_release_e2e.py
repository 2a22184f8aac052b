"""`lend release/NAME`: what the real Helm has installed becomes a template of its chart, with what its user set."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.core.schema import yaml
from tests.e2e.components import Missing, find
from tests.e2e.control_plane import Cluster, program
from tests.e2e.test_lend_e2e import GPU, NAMESPACE, kubeconfig

CHECKOUT = Path(__file__).parents[2]
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: stack\nversion: 1.4.2\n",
    "values.yaml": "engine:\n  replicas: 1\n  image: registry.invalid/engine:1\n",
    "templates/engine.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}-engine}
spec:
  replicas: {{ .Values.engine.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      containers:
        - name: server
          image: {{ .Values.engine.image }}
          resources: {limits: {nvidia.com/gpu: 1}}
""",
}


@pytest.fixture(scope="module")
def clusters(start_cluster: Callable[[str], Cluster]) -> tuple[Cluster, Cluster]:
    """A home with GPUs for a release, and a cluster beside it."""
    home, away = start_cluster("release-home"), start_cluster("release-away")
    for cluster in (home, away):
        cluster.ensure_namespace(NAMESPACE)
        cluster.add_node(f"{cluster.name}-gpu", allocatable={"cpu": "64", "memory": "256Gi", "pods": "110", GPU: "4"})
    return home, away


def overspill(*words: str, directory: Path, config: Path) -> str:
    """Run a command beside nothing but a kubeconfig, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "reconciler", *words, "--kubeconfig", str(config)],
        cwd=directory, env={"HOME": str(directory), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(CHECKOUT)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip # a command line, word by word
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.skipif(isinstance(find("helm"), Missing), reason=str(find("helm")))
def test_release_of_the_real_helm_is_lent_as_its_chart(clusters: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    home, _ = clusters
    for path, text in CHART.items():
        (tmp_path / "stack" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "stack" / path).write_text(text)
    install = ["install", "vllm", str(tmp_path / "stack"), "--namespace", NAMESPACE, "--set", "engine.replicas=3"]
    subprocess.run(
        [program("helm"), *install, "--kubeconfig", str(home.kubeconfig)], check=True, capture_output=True, timeout=120
    )
    home.until(lambda: _running(home) == 3, "the release does not run")
    config = kubeconfig(tmp_path, *clusters)
    init = ("init", "ours", "--from-kubeconfig", "--workspace", "llm", "--primary", home.name, "--engine", "argocd")
    overspill(*init, directory=tmp_path, config=config)
    lend = ("lend", "release/vllm", "--namespace", NAMESPACE, "--fleet", "ours")
    printed = overspill(*lend, "--chart-repo", "https://charts.example.com/stack", directory=tmp_path, config=config)
    (template,) = (tmp_path / "ours").glob("**/vllm.yaml")
    document = yaml.parse(template.read_bytes(), template.name)[0].value
    (chart,) = document["spec"]["helmConfig"]
    assert chart == {
        "name": "vllm",
        "chart": "stack",
        "repoURL": "https://charts.example.com/stack",
        "version": "1.4.2",
        "releaseName": "vllm",
        "releaseNamespace": NAMESPACE,
        "values": {"engine": {"replicas": "{{ replicas }}"}},
    }, printed
    assert f"sh.helm.release.v1.vllm.v1 of {home.name}" in printed


def _running(cluster: Cluster) -> int:
    pods = cluster.items(f"/api/v1/namespaces/{NAMESPACE}/pods")
    return sum(pod["status"].get("phase") == "Running" for pod in pods)
