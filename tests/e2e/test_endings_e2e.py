"""How a burst ends: its time is over, a person takes it back, or it is told to leave what it made."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime

from tests.e2e.argo_cd import APPLICATIONS
from tests.e2e.flux import KUSTOMIZATIONS, RELEASES
from tests.e2e.scenario import (
    AT_HOME,
    BY_ARGO_CD,
    BY_FLUX,
    PODS,
    POLICY,
    TEMPLATE,
    Scenario,
    deployment,
    running,
)

DEMO = "/apis/apps/v1/namespaces/vllm-demo/deployments"
DEMO_PODS = "/api/v1/namespaces/vllm-demo/pods"
ANY_MODEL = "            nodeSelector:\n              nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3\n"
OURS = "overspill.dev/placement"
RETAINED = {"deletionPolicy: Delete": "deletionPolicy: Retain"}
LASTING = {"window: 5m": "window: 10m", "coolDown: 5m": "coolDown: 10m"}


def test_burst_is_removed_on_time_although_its_demand_lasts(scenario: Scenario) -> None:
    scenario.begin({TEMPLATE: {"burstDuration: 30m": "burstDuration: 25s"}, POLICY: LASTING})
    with scenario.daemon():
        tree = scenario.tree()
        scenario.wants(AT_HOME + 3)
        scenario.until_lent(by_flux=2, by_argo_cd=1)
        expiry = scenario.expiry()
        scenario.until_committed("Revert", "Revert")
        ended = datetime.fromisoformat(scenario.fleet.log("--format=%cI")[-1])
        assert 0 <= (ended - expiry).total_seconds() <= 2
        assert "expired" in " ".join(scenario.fleet.log("--format=%b"))
        scenario.until_as_before()
        assert scenario.tree() == tree
        waiting = [pod for pod in scenario.home.items(PODS) if pod["status"]["phase"] == "Pending"]
        assert len(waiting) == 3, "the demand lasts"


def test_retained_release_stays_when_its_burst_has_ended(scenario: Scenario) -> None:
    scenario.begin({TEMPLATE: RETAINED, POLICY: {BY_ARGO_CD: ""}})
    with scenario.daemon():
        scenario.wants(AT_HOME + 1)
        scenario.until_lent(by_flux=1, by_argo_cd=0)
        scenario.wants(AT_HOME)
        scenario.until_committed("burst", "Revert")
        scenario.by_flux.until(lambda: not scenario.by_flux.items(KUSTOMIZATIONS, OURS), "Flux has the placement still")
    assert len(scenario.by_flux.items(RELEASES)) == 1
    assert running(scenario.by_flux) == 1


def test_retained_manifests_stay_when_argo_cd_has_let_their_placement_go(scenario: Scenario) -> None:
    # A chart is retained by Argo CD 3.4 and newer only; what Overspill writes itself says so on each object.
    scenario.begin({"templates/vllm.yaml": RETAINED | {ANY_MODEL: ""}, POLICY: {BY_FLUX: ""}})
    scenario.home.create(DEMO, deployment(0))
    with scenario.daemon():
        scenario.home.kubectl("scale", "deployment/vllm", "--namespace=vllm-demo", "--replicas=1")
        scenario.by_argo_cd.until(lambda: scenario.by_argo_cd.items(APPLICATIONS), "Argo CD has no placement")
        scenario.by_argo_cd.until(lambda: scenario.by_argo_cd.items(DEMO_PODS), "it has not applied it")
        scenario.home.kubectl("scale", "deployment/vllm", "--namespace=vllm-demo", "--replicas=0")
        scenario.until_committed("burst", "Revert")
        scenario.by_argo_cd.until(lambda: not scenario.by_argo_cd.items(APPLICATIONS), "Argo CD has one still")
    assert len(scenario.by_argo_cd.items(DEMO_PODS)) == 1


def test_burst_that_a_person_reverts_stays_reverted(scenario: Scenario) -> None:
    scenario.begin({POLICY: {BY_ARGO_CD: ""}})
    with scenario.daemon():
        scenario.wants(AT_HOME + 1)
        scenario.until_lent(by_flux=1, by_argo_cd=0)
        work = scenario.fleet.path / "person"
        git = scenario.fleet.git
        git("clone", "--quiet", "--branch=placements", str(scenario.fleet.bare), str(work), at=scenario.fleet.path)
        git("revert", "--no-edit", "HEAD", at=work)
        git("push", "--quiet", "origin", "placements", at=work)
        scenario.until_committed("burst", "Revert", "hold")
        scenario.three.flux.look()  # the person's push was announced to nobody
        scenario.until_as_before()
        commits = len(scenario.fleet.subjects())
        time.sleep(5)  # several polls and windows: time enough to do the wrong thing
        assert len(scenario.fleet.subjects()) == commits
        waiting = [pod for pod in scenario.home.items(PODS) if pod["status"]["phase"] == "Pending"]
        assert len(waiting) == 1, "the demand lasts"


def test_two_bursts_and_an_expiry_in_one_second_are_one_push(scenario: Scenario) -> None:
    scenario.begin(
        {
            TEMPLATE: {"burstDuration: 30m": "burstDuration: 40s"},
            "templates/vllm.yaml": {ANY_MODEL: ""},
            POLICY: LASTING,
        }
    )
    scenario.home.create(DEMO, deployment(0))
    with scenario.daemon() as process:
        scenario.wants(AT_HOME + 1)
        scenario.until_lent(by_flux=1, by_argo_cd=0)
        began, tip = len(scenario.fleet.subjects()), scenario.fleet.tip()
        # While the remote is away, everything becomes due; when it is back, it is due at once.
        left = (scenario.expiry() - datetime.now(UTC)).total_seconds()
        time.sleep(max(0.0, left - 4))
        scenario.fleet.server.kill()
        scenario.home.kubectl("scale", "deployment/vllm", "--namespace=vllm-demo", "--replicas=4")
        time.sleep(6)
        scenario.fleet.server.start()
        process.send_signal(signal.SIGHUP)  # try now, whatever the back-off
        scenario.fleet.until(lambda: len(scenario.fleet.subjects()) == began + 3, "not three changes")
        told = scenario.fleet.log("--format=%cI %s")[-3:]
        assert [line.split()[1].partition("(")[0] for line in told] == ["Revert", "burst", "burst"]
        assert len({line.split()[0] for line in told}) == 1, "not in one second"
        assert scenario.fleet.git("rev-parse", "placements~3", at=scenario.fleet.bare).strip() == tip
        for cluster in (scenario.by_flux, scenario.by_argo_cd):
            cluster.until(lambda cluster=cluster: len(cluster.items(DEMO_PODS)) == 2, "a burst did not come")
        scenario.by_flux.until(lambda: not running(scenario.by_flux), "what has expired is still there")
