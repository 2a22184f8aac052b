"""Approval with a real Gitea: proposed, reviewed, merged, placed and reverted; and its other ends."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.argo_cd import APPLICATIONS, KINDS, ArgoCD, gone, prepare, settled
from tests.e2e.argo_cd import missing as missing_argo_cd
from tests.e2e.components import Missing, sources
from tests.e2e.conftest import CHECKOUT
from tests.e2e.control_plane import Cluster
from tests.e2e.gitea import Gitea, GiteaFleet, missing

QUICK = {
    "fleet.yaml": {"engine: argocd": "engine: manifests"},
    "policies/serving.yaml": {
        "headroom: 1": "headroom: 0\n  approval: PullRequest",
        "window: 10s": "window: 1s",
        "window: 15m": "window: 1s",
        "coolDown: 5m": "coolDown: 1s",
    },
}
PUBLISHED_FLEET = "https://git.example.com/acme/fleet.git"
PODS = "/api/v1/namespaces/vllm-demo/pods"
PULLS = "/repos/acme/fleet/pulls"
PLACED = "burst(llm/vllm): 3 replicas on worker-2 for 10m"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[GiteaFleet]:
    """Describe a fleet in a Gitea of its own whose bursts are approved."""
    if reason := missing():
        pytest.skip(reason)
    gitea = Gitea(tmp_path / "gitea")
    fleet = GiteaFleet(tmp_path, gitea)
    fleet.describe(QUICK)
    yield fleet
    gitea.stop()


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[[str], Cluster]) -> Cluster:
    """Start worker-2, where Argo CD runs."""
    if reason := missing_argo_cd():
        pytest.skip(reason)
    found = sources(KINDS)
    if isinstance(found, Missing):
        pytest.skip(found.reason)
    cluster = start_cluster("approved")
    prepare(cluster, found)
    return cluster


@pytest.fixture
def argo_cd(cluster: Cluster, tmp_path: Path) -> Iterator[ArgoCD]:
    """Start Argo CD; nothing of a fleet is left when it ends."""
    argo_cd = ArgoCD(cluster, tmp_path / "argo", known_as="worker-2")
    yield argo_cd
    argo_cd.forget()
    argo_cd.stop()


def proposed(fleet: GiteaFleet) -> dict[str, Any]:
    """Wait for the pull request, and until the ledger has its address."""
    fleet.until(fleet.gitea.pulls, "no pull request")
    fleet.until(lambda: "propose(llm/vllm): its pull request" in fleet.subjects(), "its address is not noted")
    return fleet.gitea.pulls()[0]


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_burst_is_proposed_reviewed_merged_placed_and_reverted(fleet: GiteaFleet, how: str) -> None:
    fleet.observe(missing=3)
    with fleet.daemon():
        pull = proposed(fleet)
        assert pull["title"] == "approve(llm/vllm): 3 replicas on worker-2"
        assert "3 replicas missing on worker-1" in pull["body"]
        (file,) = fleet.gitea.call("ada", "GET", f"{PULLS}/{pull['number']}/files")
        assert file["filename"].startswith("ledger/llm/approvals/vllm-")
        assert PLACED not in fleet.subjects()
        review = {"event": "APPROVED", "body": "the launch is worth it"}
        fleet.gitea.call("ada", "POST", f"{PULLS}/{pull['number']}/reviews", review)
        merge(fleet, pull["number"], how)
        fleet.until(lambda: PLACED in fleet.subjects(), "not placed")
        fleet.until(lambda: not branches(fleet), "its branch is left")
        fleet.observe(missing=0)
        fleet.until(lambda: fleet.subjects()[-1] == f'Revert "{PLACED}"', "not reverted")
    assert fleet.subjects().count(PLACED) == 1
    assert not [path for path in fleet.check_out().rglob("*.yaml") if path.parent.name in ("approvals", "proposals")]


def test_approved_burst_is_applied_and_taken_away_by_argo_cd(
    fleet: GiteaFleet, cluster: Cluster, argo_cd: ArgoCD
) -> None:
    fleet.amend("fleet.yaml", {"engine: manifests": "engine: argocd", PUBLISHED_FLEET: fleet.url})
    argo_cd.follow(fleet)
    fleet.observe(missing=3)
    with fleet.daemon():
        number = proposed(fleet)["number"]
        argo_cd.look()
        assert cluster.items(APPLICATIONS) == []
        merge(fleet, number, "merge")
        fleet.until(lambda: PLACED in fleet.subjects(), "not placed")
        argo_cd.look()
        cluster.until(lambda: settled(cluster) == ("Synced", "Healthy"), "not applied", told=argo_cd.last_words)
        [application] = cluster.items(APPLICATIONS)
        placement = application["metadata"]["labels"]["overspill.dev/placement"]
        assert len(cluster.items(PODS, f"overspill.dev/placement={placement}")) == 3
        fleet.give_back()
    gone(cluster, argo_cd)
    assert cluster.inventory(selector="overspill.dev/placement") == frozenset()


def merge(fleet: GiteaFleet, number: int, how: str) -> None:
    """Merge as the button does, once Gitea has looked whether there are conflicts."""

    def merged() -> bool:
        if not fleet.gitea.call("ada", "GET", f"{PULLS}/{number}")["mergeable"]:
            return False
        try:
            fleet.gitea.call("ada", "POST", f"{PULLS}/{number}/merge", {"Do": how})
        except urllib.error.HTTPError as error:
            if error.code not in {HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.CONFLICT}:
                raise
            return False  # the base has just moved, or it looks again
        return True

    fleet.until(merged, "it is not mergeable")


def branches(fleet: GiteaFleet) -> str:
    return fleet.git("branch", "--list", "overspill/*", at=fleet.bare).strip()


def test_closed_pull_request_holds_the_workload(fleet: GiteaFleet) -> None:
    fleet.observe(missing=3)
    with fleet.daemon():
        number = proposed(fleet)["number"]
        fleet.gitea.call("ada", "PATCH", f"{PULLS}/{number}", {"state": "closed"})
        fleet.until(lambda: "proposal(llm/vllm): refused" in fleet.subjects(), "not refused")
        fleet.until(lambda: not branches(fleet), "its branch is left")
    assert PLACED not in fleet.subjects()


def test_demand_that_goes_closes_the_pull_request_with_a_word(fleet: GiteaFleet) -> None:
    fleet.observe(missing=3)
    with fleet.daemon():
        number = proposed(fleet)["number"]
        fleet.observe(missing=0)
        fleet.until(lambda: fleet.gitea.pulls()[0]["state"] == "closed", "it is left open")
    assert "proposal(llm/vllm): withdrawn" in fleet.subjects()
    (comment,) = fleet.gitea.call("ada", "GET", f"/repos/acme/fleet/issues/{number}/comments")
    assert "not proposed any more" in comment["body"]


def test_daemon_that_is_killed_and_a_host_that_is_away_lose_no_approval(fleet: GiteaFleet) -> None:
    fleet.observe(missing=3)
    with fleet.daemon() as process:
        fleet.until(lambda: any(subject.startswith("propose(") for subject in fleet.subjects()), "not proposed")
        process.kill()
        process.wait()
    with fleet.daemon():
        number = proposed(fleet)["number"]
        fleet.gitea.stop()
        fleet.until(lambda: "backing off" in fleet.last_words(), "it has not noticed")
        fleet.gitea.start()
        merge(fleet, number, "merge")
        fleet.observe(missing=3)
        fleet.until(lambda: PLACED in fleet.subjects(), "not placed")
    assert len(fleet.gitea.pulls()) == 1
    assert fleet.subjects().count(PLACED) == 1


def test_once_opens_the_pull_request_and_hears_of_its_end(fleet: GiteaFleet) -> None:
    fleet.observe(missing=3)
    said = once(fleet)
    assert "propose(llm/vllm): 3 replicas on worker-2" in said
    assert "propose(llm/vllm): its pull request" in said
    (pull,) = fleet.gitea.pulls()
    fleet.gitea.call("ada", "PATCH", f"{PULLS}/{pull['number']}", {"state": "closed"})
    fleet.observe(missing=3)
    assert "proposal(llm/vllm): refused" in once(fleet)
    once(fleet)
    assert not branches(fleet)


def once(fleet: GiteaFleet) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OVERSPILL_")}
    environment |= {
        "OVERSPILL_CACHE_DIR": str(fleet.path / "cache"),
        "OVERSPILL_GIT_USERNAME": fleet.server.username,
        "OVERSPILL_GIT_PASSWORD": fleet.server.password,
        "PYTHONPATH": str(CHECKOUT),
    }
    command = [sys.executable, "-m", "reconciler", "once", "--repo", fleet.url, "--observations", str(fleet.seen)]
    done = subprocess.run(command, env=environment, cwd=fleet.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
