"""A fleet repository and a kubeconfig are all: the daemon sees the shortage itself, and its replicas come and go."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.api_server import Json
from tests.e2e.conftest import CHECKOUT, Fleet
from tests.e2e.control_plane import Cluster
from tests.e2e.kubeconfigs import kubeconfig

GPU = "nvidia.com/gpu"
DEPLOYMENTS = "/apis/apps/v1/namespaces/vllm-demo/deployments"
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


def test_shortage_is_seen_lent_for_and_given_back(fleet: Fleet, start_cluster: Callable[[str], Cluster]) -> None:
    home, away = start_cluster("worker-1"), start_cluster("worker-2")
    for cluster, gpus in ((home, "2"), (away, "8")):
        cluster.add_node("gpu-1", allocatable={"cpu": "64", "memory": "512Gi", GPU: gpus}, labels=H100)
        cluster.ensure_namespace("vllm-demo")
    home.create(DEPLOYMENTS, deployment(2))
    fleet.describe(
        {
            "fleet.yaml": {"engine: argocd": "engine: manifests"},
            "policies/serving.yaml": {
                "headroom: 1": "headroom: 0",
                "window: 10s": "window: 1s",
                "window: 15m": "window: 3s",
            },
        }
    )
    with watching(fleet, kubeconfig(fleet.path, home, away)) as status:
        fleet.until(lambda: demand(status()).get("running") == 2, "the Deployment is not seen")
        before = home.call("GET", f"{DEPLOYMENTS}/vllm")["metadata"]["generation"]
        home.kubectl("scale", "deployment/vllm", "-n", "vllm-demo", "--replicas=5")
        fleet.until(lambda: any("3 replicas on worker-2" in one for one in fleet.subjects()), "no burst")
        assert f"insufficient {GPU}" in " ".join(fleet.log("--format=%B"))
        (manifests,) = fleet.check_out().glob("clusters/worker-2/*/manifests")
        away.kubectl("apply", "--recursive", "-f", str(manifests))
        fleet.until(lambda: bound(status()) == 3, "its replicas are not seen")
        home.kubectl("scale", "deployment/vllm", "-n", "vllm-demo", "--replicas=2")
        fleet.until(lambda: any(one.startswith("Revert") for one in fleet.subjects()), "not given back")
        assert home.call("GET", f"{DEPLOYMENTS}/vllm")["metadata"]["generation"] == before + 2, "ours to scale alone"


def demand(status: Json) -> Json:
    return next((one for one in status["workloads"] if one["workload"] == "llm/vllm"), {})


def bound(status: Json) -> int:
    return sum(one["bound"] or 0 for one in status["placements"])


def deployment(replicas: int) -> Json:
    container = {"name": "main", "image": "registry.invalid/vllm:1", "resources": {"limits": {GPU: "1"}}}
    template = {"metadata": {"labels": {"app": "vllm"}}, "spec": {"containers": [container], "nodeSelector": H100}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "vllm"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "vllm"}, "spec": spec}


@contextmanager
def watching(fleet: Fleet, config: Path) -> Iterator[Callable[[], Json]]:
    """Run the daemon with a kubeconfig and nothing else, and give the way to ask for the status."""
    password = fleet.path / "password"
    password.write_text(fleet.server.password)
    env = {name: value for name, value in os.environ.items() if not name.startswith("OVERSPILL_")} | {
        "OVERSPILL_REPO": fleet.url,
        "OVERSPILL_CACHE_DIR": str(fleet.path / "cache"),
        "OVERSPILL_GIT_USERNAME": fleet.server.username,
        "OVERSPILL_GIT_PASSWORD_FILE": str(password),
        "OVERSPILL_KUBECONFIG": str(config),
        "PYTHONPATH": str(CHECKOUT),
    }

    def status() -> Json:
        command = [sys.executable, "-m", "reconciler", "status", "-o", "json"]
        asked = {**env, "OVERSPILL_CACHE_DIR": str(fleet.path / "cache-of-status")}
        return json.loads(subprocess.run(command, env=asked, check=True, capture_output=True, cwd=fleet.path).stdout)

    with (fleet.path / "daemon.log").open("a") as log:
        command = [sys.executable, "-m", "reconciler", "run", "--poll-interval", "1h"]
        process = subprocess.Popen(command, env=env, cwd=fleet.path, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield status
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, fleet.last_words()
        finally:
            process.kill()
            process.wait()
    assert "Traceback" not in fleet.last_words()
