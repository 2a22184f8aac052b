"""A real Argo CD applies what is committed, and takes it away again, by the bootstrap that we print."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from reconciler.core.kubernetes.applications import read_application
from reconciler.model.deployed import EngineReport, EngineState
from tests.e2e.argo_cd import NAMESPACE, ArgoCD, missing, teach
from tests.e2e.components import Missing, sources
from tests.e2e.conftest import CHECKOUT, LAYOUT, Fleet
from tests.e2e.control_plane import Cluster, Json
from tests.e2e.git_server import free_port

APPLICATIONS = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applications"
BRANCH = "placements-by-cluster/worker-2"
PUBLISHED = "https://vllm-project.github.io/production-stack"
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: vllm-stack\nversion: 0.1.7\n",
    "values.yaml": "servingEngineSpec: {modelSpec: []}\n",
    "templates/engine.yaml": """
{{- range .Values.servingEngineSpec.modelSpec }}
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ $.Release.Name }}-{{ .name }}"}
spec:
  replicas: {{ .replicaCount }}
  selector: {matchLabels: {model: {{ .name }}}}
  template:
    metadata: {labels: {model: {{ .name }}}}
    spec:
      containers:
      - name: engine
        image: {{ .repository }}:{{ .tag }}
        resources: {limits: {nvidia.com/gpu: {{ .requestGPU }}}}
{{- end }}
""",
}
QUICK = {
    "policies/serving.yaml": {"window: 30s": "window: 1s", "window: 5m": "window: 1s", "coolDown: 5m": "coolDown: 1s"}
}


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[[str], Cluster]) -> Cluster:
    """Start worker-2 with the kinds of the release that the bootstrap asks for."""
    if reason := missing():
        pytest.skip(reason)
    found = sources("github.com/argoproj/argo-cd/v3@v3.3.18")
    if isinstance(found, Missing):
        pytest.skip(found.reason)
    cluster = start_cluster("argo")
    teach(cluster, found)
    cluster.add_node(
        "gpu", allocatable={"cpu": "64", "memory": "1Ti", "nvidia.com/gpu": "8"},
        labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    )  # fmt: skip
    for namespace in ("vllm-demo", "vllm-stack"):
        cluster.ensure_namespace(namespace)
    return cluster


@pytest.fixture
def charts(tmp_path: Path) -> Iterator[str]:
    """Serve the chart that the layout's template names; returns the repository's address."""
    root = tmp_path / "charts"
    root.mkdir()
    with tarfile.open(root / "vllm-stack-0.1.7.tgz", "w:gz") as archive:
        for path, text in CHART.items():
            entry = tarfile.TarInfo(f"vllm-stack/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    version = {"name": "vllm-stack", "version": "0.1.7", "apiVersion": "v2", "urls": ["vllm-stack-0.1.7.tgz"]}
    (root / "index.yaml").write_text(json.dumps({"apiVersion": "v1", "entries": {"vllm-stack": [version]}}))
    server = ThreadingHTTPServer(("127.0.0.1", free_port()), partial(Quiet, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name is the library's
        """Say nothing."""


@pytest.fixture
def argo_cd(cluster: Cluster, fleet: Fleet, charts: str, tmp_path: Path) -> Iterator[ArgoCD]:
    """Run Argo CD with the bootstrap of the layout, for the fleet's repository and the charts served here."""
    argo_cd = ArgoCD(cluster, tmp_path / "argo", known_as="worker-2")
    try:
        argo_cd.trust(fleet.server, "fleet.git")
        text = (LAYOUT / "bootstrap" / "argocd.yaml").read_text()
        text = text.replace("https://git.example.com/acme/fleet.git", fleet.url).replace(PUBLISHED, charts)
        cluster.kubectl("apply", "--server-side", "--filename=-", stdin=text)
        yield argo_cd
        cluster.kubectl("delete", "applicationsets,appprojects", "--all", "--namespace", NAMESPACE)
    finally:
        argo_cd.stop()


def test_burst_comes_and_goes_by_commits_alone(cluster: Cluster, argo_cd: ArgoCD, fleet: Fleet) -> None:
    fleet.describe(QUICK)
    fleet.observe(missing=3)
    with fleet.daemon():
        fleet.until(fleet.subjects, "no burst")
        argo_cd.look()
        cluster.until(lambda: settled(cluster) == ("Synced", "Healthy"), "Argo CD has not applied the burst")
        [application] = cluster.items(APPLICATIONS)
        pods = cluster.items(
            "/api/v1/namespaces/vllm-demo/pods",
            f"overspill.dev/placement={application['metadata']['labels']['overspill.dev/placement']}",
        )
        assert len(pods) == 3
        cluster.until(lambda: said(cluster).state is EngineState.HEALTHY, "its health is still as of before the sync")
        assert (said(cluster).digest, said(cluster).revision) == written(fleet)
        fleet.observe(missing=0)
        fleet.until(lambda: len(fleet.subjects()) == 2, "no revert")
    argo_cd.look()
    cluster.until(lambda: not cluster.items(APPLICATIONS), "the Application is still there")
    assert cluster.inventory(selector="overspill.dev/placement") == frozenset()


def test_burst_that_the_cluster_refuses_is_given_up_and_says_why(
    cluster: Cluster, argo_cd: ArgoCD, fleet: Fleet
) -> None:
    another = {"matchLabels:\n            app: vllm": "matchLabels:\n            app: another"}
    fleet.describe(QUICK | {"templates/vllm.yaml": another})
    fleet.observe(missing=3)
    with fleet.daemon():
        fleet.until(fleet.subjects, "no burst")
        argo_cd.look()
        cluster.until(lambda: settled(cluster), "Argo CD has not seen the burst")
        cluster.until(lambda: said(cluster).state is EngineState.FAILED, "Argo CD has not given up")
        report = said(cluster)
        assert (report.digest, report.revision) == written(fleet)
        assert 'Deployment.apps "vllm" is invalid' in report.message
        assert report.message.endswith("(retried 3 times).")
        fleet.observe(missing=0)
        fleet.until(lambda: len(fleet.subjects()) == 2, "no revert")
    argo_cd.look()
    cluster.until(lambda: not cluster.items(APPLICATIONS), "the Application is still there")


def test_burst_that_the_project_forbids_has_failed_before_it_was_tried(
    cluster: Cluster, argo_cd: ArgoCD, fleet: Fleet
) -> None:
    nowhere = '{"spec": {"destinations": []}}'
    cluster.kubectl("patch", "appproject", "overspill", "--namespace", NAMESPACE, "--type=merge", "--patch", nowhere)
    fleet.describe(QUICK)
    fleet.observe(missing=3)
    with fleet.daemon():
        fleet.until(fleet.subjects, "no burst")
        argo_cd.look()
        cluster.until(lambda: settled(cluster), "Argo CD has not seen the burst")
        cluster.until(lambda: said(cluster).state is EngineState.FAILED, "Argo CD has not refused it")
        assert said(cluster).digest == written(fleet)[0]
        assert "do not match any of the allowed destinations" in said(cluster).message
        fleet.observe(missing=0)
        fleet.until(lambda: len(fleet.subjects()) == 2, "no revert")
    argo_cd.look()
    cluster.until(lambda: not cluster.items(APPLICATIONS), "the Application is still there")


def test_chart_is_installed_by_argo_cd_with_the_values_of_the_burst(
    cluster: Cluster, argo_cd: ArgoCD, fleet: Fleet, charts: str
) -> None:
    fleet.describe(QUICK | {"templates/vllm-helm.yaml": {PUBLISHED: charts}})
    fleet.observe(missing=2, namespace="vllm-stack")
    with fleet.daemon():
        fleet.until(fleet.subjects, "no burst")
        argo_cd.look()
        cluster.until(lambda: settled(cluster) == ("Synced", "Healthy"), "Argo CD has not installed the chart")
        assert len(cluster.items("/api/v1/namespaces/vllm-stack/pods", "model=llama3")) == 2
        fleet.observe(missing=0, namespace="vllm-stack")
        fleet.until(lambda: len(fleet.subjects()) == 2, "no revert")
    argo_cd.look()
    cluster.until(lambda: not cluster.items(APPLICATIONS), "the Application is still there")
    assert cluster.items("/apis/apps/v1/namespaces/vllm-stack/deployments") == []


def test_fleet_gets_a_branch_for_each_cluster_while_a_burst_runs(
    cluster: Cluster, argo_cd: ArgoCD, fleet: Fleet, charts: str
) -> None:
    fleet.describe(QUICK)
    fleet.observe(missing=3)
    with fleet.daemon():
        fleet.until(fleet.subjects, "no burst")
        argo_cd.look()
        cluster.until(lambda: settled(cluster) == ("Synced", "Healthy"), "Argo CD has not applied the burst")
        [before] = cluster.items(APPLICATIONS)
        fleet.describe(QUICK | {"fleet.yaml": {"engine: argocd": "engine: argocd\n  branchPerCluster: true"}})
        fleet.until(lambda: fleet.git("branch", "--list", BRANCH, at=fleet.bare), "no branch for the cluster")
        command = [sys.executable, "-m", "reconciler", "bootstrap", "argocd", "--repo", str(fleet.bare)]
        text = subprocess.run(command, check=True, capture_output=True, text=True, cwd=CHECKOUT).stdout
        text = text.replace("https://git.example.com/acme/fleet.git", fleet.url).replace(PUBLISHED, charts)
        # Argo CD, which notes that it has looked, writes all of the object as its own.
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=text)
        argo_cd.look()
        cluster.until(lambda: followed(cluster) == f"refs/heads/{BRANCH}", "Argo CD stays on the output branch")
        tip = fleet.git("rev-parse", BRANCH, at=fleet.bare).strip()
        cluster.until(lambda: deployed(cluster) == tip, "Argo CD has not looked at the branch")
        cluster.until(lambda: settled(cluster) == ("Synced", "Healthy"), "Argo CD has not settled on the branch")
        [after] = cluster.items(APPLICATIONS)
        assert after["metadata"]["uid"] == before["metadata"]["uid"], "it was taken away in between"
        fleet.observe(missing=0)
        fleet.until(lambda: len(fleet.subjects()) == 2, "no revert")
    argo_cd.look()
    cluster.until(lambda: not cluster.items(APPLICATIONS), "the Application is still there")
    assert cluster.inventory(selector="overspill.dev/placement") == frozenset()


def said(cluster: Cluster) -> EngineReport:
    """Read what Argo CD says of the one burst."""
    [application] = cluster.items(APPLICATIONS)
    report = read_application(application)
    assert report is not None
    return report


def written(fleet: Fleet) -> tuple[str, str]:
    """Return the digest of the one burst, and the commit that wrote it."""
    [record] = (fleet.check_out() / "clusters").glob("*/*/placement.yaml")
    digest = yaml.safe_load(record.read_text())["metadata"]["annotations"]["overspill.dev/digest"]
    return digest, fleet.log("--format=%H")[-1]


def followed(cluster: Cluster) -> str:
    """Return the branch that the one Application follows."""
    [found] = cluster.items(APPLICATIONS)
    return str(found["spec"]["sources"][0]["targetRevision"])


def deployed(cluster: Cluster) -> str:
    """Return the commit of it that Argo CD has looked at."""
    [found] = cluster.items(APPLICATIONS)
    return str(found.get("status", {}).get("sync", {}).get("revisions", [""])[0])


def settled(cluster: Cluster) -> tuple[str, str] | None:
    """Return sync and health of the one Application; None while there is none."""
    found: list[Json] = cluster.items(APPLICATIONS)
    if not found:
        return None
    status = found[0].get("status", {})
    return status.get("sync", {}).get("status", ""), status.get("health", {}).get("status", "")
