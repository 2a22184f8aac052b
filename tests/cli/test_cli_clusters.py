"""Commands and the daemon with nothing but a kubeconfig: the shortage is seen in the clusters themselves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests.builders.kube_objects import NO_GPU, SINCE, node, pod, workload
from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote
from tests.cli.conftest import Terminal
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving
from tests.fakes.warm_command import overspill as warm

ROOT = Path(__file__).parents[2]


class Clusters:
    """worker-1 with one GPU and a Deployment of one replica, worker-2 with two GPUs, worker-3 with eight."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.all = [Cluster() for _ in range(3)]
        for each, gpus in zip(self.all, (1, 2, 8), strict=True):
            stack.enter_context(serving(each))
            each.put("nodes", node("gpu-1", gpus))
        self.primary = self.all[0]
        self.kubeconfig = path / "kubeconfig"
        self.know(3)
        self.primary.put("replicasets", workload("vllm-1", owner=("Deployment", "vllm")))
        self.primary.put("pods", pod("vllm-1-a", on="gpu-1"))
        self.scale(1)

    def know(self, number: int) -> None:
        """Write a kubeconfig for the first so many clusters."""
        kubeconfig(self.kubeconfig, *((f"worker-{index + 1}", self.all[index].url) for index in range(number)))

    def scale(self, replicas: int) -> None:
        """Let the Deployment want more than fits, since a minute and a half."""
        since = f"{datetime.now(UTC) - timedelta(seconds=90):%Y-%m-%dT%H:%M:%SZ}"
        for index in range(1, replicas):
            self.primary.put("pods", pod(f"vllm-1-{index}", waits=NO_GPU, since=since))
        self.primary.put("deployments", workload("vllm", replicas))


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Clusters]:
    with ExitStack() as stack:
        yield Clusters(tmp_path, stack)


@pytest.fixture
def terminal(overspill: Terminal, clusters: Clusters) -> Terminal:
    overspill.env["OVERSPILL_OBSERVATIONS"] = ""
    overspill.env["OVERSPILL_KUBECONFIG"] = str(clusters.kubeconfig)
    return overspill


def test_once_bursts_what_is_unschedulable_and_names_the_cause(
    terminal: Terminal, clusters: Clusters, fleet: Remote
) -> None:
    clusters.scale(6)
    lines = terminal.done("once").splitlines()
    assert [line.partition(" for 10m (")[0] for line in lines[1:3]] == [
        "burst(llm/vllm): 2 replicas on worker-2",
        "burst(llm/vllm): 3 replicas on worker-3",
    ]
    told = fleet.git("log", "-1", "--format=%B", "placements")
    assert "(nvidia.com/gpu): insufficient nvidia.com/gpu." in " ".join(told.split())


def test_command_waits_for_the_clusters_and_tells_which_it_cannot_see(terminal: Terminal, clusters: Clusters) -> None:
    clusters.scale(6)
    clusters.all[2].token = "another"
    result = terminal("plan", "-o", "json")
    assert result.exit_code == 0
    assert [one["change"]["placement"]["cluster"] for one in json.loads(result.stdout)["commits"] if one["change"]] == [
        "worker-2"
    ]
    assert "warning: cluster worker-3: cannot be watched: does not take our credentials" in result.stderr


def test_what_is_supposed_comes_on_top_of_what_is_watched(terminal: Terminal) -> None:
    assert [one for one in terminal.answer("plan")["commits"] if one["change"]] == []
    for supposition, expected in (
        ("cluster/worker-2=down", [("worker-3", 3)]),
        ("cluster/worker-2/gpu-1+1", [("worker-2", 3)]),
    ):
        answer = terminal.answer("plan", "--what-if", "llm/vllm+3", "--what-if", supposition)
        places = [one["change"]["placement"] for one in answer["commits"] if one["change"]]
        assert [(place["cluster"], place["replicas"]) for place in places] == expected


def test_supposition_about_a_cluster_that_cannot_be_watched_says_why(terminal: Terminal, clusters: Clusters) -> None:
    clusters.all[0].token = "another"
    result = terminal("plan", "--what-if", "llm/vllm+3")
    assert result.exit_code == 1
    assert "worker-1 has not been observed, so there is nothing to add it to" in result.stderr
    assert "warning: cluster worker-1: cannot be watched: does not take our credentials" in result.stderr


def test_cluster_without_a_context_is_told_and_left_to_other_sources(terminal: Terminal, clusters: Clusters) -> None:
    clusters.know(2)
    clusters.scale(2)
    result = terminal("status")
    assert result.exit_code == 0
    assert "warning: cluster worker-3: is not watched" in result.stderr
    assert "no observations" not in result.stderr


def test_status_names_the_context_that_a_cluster_is_reached_by_though_its_file_names_none(
    terminal: Terminal, clusters: Clusters
) -> None:
    clusters.know(2)
    reached = {one["cluster"]: one["connection"] for one in terminal.answer("status")["clusters"]}
    assert reached == {"worker-1": "context worker-1", "worker-2": "context worker-2", "worker-3": ""}


def test_kubeconfig_that_is_not_there_is_refused(terminal: Terminal) -> None:
    result = terminal("plan", "--kubeconfig", "nowhere")
    assert result.exit_code == 1
    assert "nowhere is not a file" in result.stderr


def test_commands_that_need_no_sight_ask_for_no_kubeconfig(terminal: Terminal) -> None:
    terminal.env["OVERSPILL_KUBECONFIG"] = "/nonexistent"
    terminal.done("sweep")


def test_daemon_acts_on_what_it_watches_and_sees_its_own_replicas_come(
    terminal: Terminal, clusters: Clusters, fleet: Remote
) -> None:
    command = [*warm(), "run", "--poll-interval", "1h"]
    env = {**os.environ, **terminal.env}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT, env=env) as running:
        try:
            until(lambda: fleet.tip("placements") is not None)
            clusters.scale(3)
            until(lambda: "clusters/worker-2" in " ".join(fleet.files("placements")))
            (path,) = [path for path in fleet.files("placements") if path.endswith("placement.yaml")]
            name = path.split("/")[2]
            for index in range(2):
                ours = {"overspill.dev/placement": name}
                made = pod(f"ours-{index}", on="gpu-1", owner=None, labels=ours, ready=index == 0)
                clusters.all[1].put("pods", made)
            (bound,) = terminal.answer("status")["placements"]
            assert (bound["bound"], bound["provisioning"], bound["phase"]) == (2, "Successful", "Pending")
            assert bound["message"] == "1 of 2 ready"
            clusters.all[1].put("pods", pod("ours-1", on="gpu-1", owner=None, labels=ours, ready=True))
            placements = terminal.answer("status")["placements"]
            assert [(one["bound"], one["phase"]) for one in placements] == [(2, "Running")]
            running.send_signal(signal.SIGTERM)
            out, _ = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 0
    assert f"clusters of {clusters.kubeconfig}" in out.decode()
    assert "no observations" not in out.decode()


def until(true, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


def test_what_flux_may_not_apply_goes_back_with_its_words_and_to_the_next_cluster(
    terminal: Terminal, clusters: Clusters, fleet: Remote
) -> None:
    flux = SOURCE_FILES["clusters.yaml"].replace("worker-2}\nspec: {}", "worker-2}\nspec: {engine: flux}")
    fleet.commit("main", {"clusters.yaml": flux})
    clusters.scale(3)
    assert "on worker-2" in terminal.done("once")
    (path,) = [path for path in fleet.files("placements") if path.startswith("clusters/worker-2/flux/vllm")]
    (stage,) = yaml.safe_load_all(fleet.files("placements")[path])
    words = (
        'Deployment/demo/vllm dry-run failed (Forbidden): deployments.apps "vllm" is forbidden: User "x" cannot patch'
    )
    stage["metadata"]["generation"] = 1
    stage["status"] = {
        "observedGeneration": -1,
        "lastAttemptedRevision": f"placements@sha1:{fleet.tip('placements')}",
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "ReconciliationFailed",
                "message": words,
                "lastTransitionTime": SINCE,
            }
        ],
    }
    clusters.all[1].put("kustomizations", stage)
    (placed,) = terminal.answer("status")["placements"]
    assert (placed["engine"], placed["message"]) == ("Failed", words)
    reverted, tried, *_ = terminal.done("once").splitlines()
    assert reverted == f'Revert "burst(llm/vllm): 2 replicas on worker-2 for 10m" (failed: {words})'
    assert tried.startswith("burst(llm/vllm): 2 replicas on worker-3 for 10m")
    (left,) = terminal.answer("status")["leaving"]
    assert (left["cluster"], left["name"]) == ("worker-2", placed["placement"]["name"])
