"""How a burst ends: its time is over, a person takes it back, or it is told to leave what it made."""

from __future__ import annotations

import json
import signal
import time
from datetime import UTC, datetime

from reconciler.core.safety.lifetime import HOOKS, INSTRUCTIONS
from tests.e2e.argo_cd import APPLICATIONS
from tests.e2e.flux import KUSTOMIZATIONS, RELEASES
from tests.e2e.three_clusters.scenario import (
    AT_HOME,
    BY_ARGO_CD,
    BY_FLUX,
    CONFIG_MAPS,
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
LAPSING = {"window: 15m": "window: 10m", "renew: WhileNeeded": "renew: Never"}
"""Nothing is given back before its time is over, and then it goes, whatever the demand."""
BOUNDED = {"default: 1h": "default: 25s", "max: 24h": "max: 25s", "coolDown: 5m": "coolDown: 10m"}
"""A burst that is needed lasts this long, and both clusters rest after it."""

_BOTH = {"argocd.argoproj.io": "HookSucceeded,HookFailed", "helm.sh": "hook-succeeded,hook-failed"}
ALLOWED: tuple[dict[str, str], ...] = (
    {"argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/hook-delete-policy": _BOTH["argocd.argoproj.io"]},
    {"argocd.argoproj.io/hook": "PostSync", "argocd.argoproj.io/hook-delete-policy": _BOTH["argocd.argoproj.io"]},
    {"helm.sh/hook": "post-install", "helm.sh/hook-delete-policy": _BOTH["helm.sh"], "helm.sh/hook-weight": "3"},
    {"argocd.argoproj.io/sync-wave": "7"},
    {"argocd.argoproj.io/sync-options": "Replace=true,Force=true"},
    {"argocd.argoproj.io/sync-options": "ServerSideApply=true,ClientSideApplyMigration=false,Validate=false"},
    {"argocd.argoproj.io/sync-options": "SkipDryRunOnMissingResource=true,FailOnSharedResource=true"},
    {"argocd.argoproj.io/sync-options": "PruneLast=true,Prune=true,Delete=true"},
    {"argocd.argoproj.io/compare-options": "ServerSideDiff=true"},
    {"argocd.argoproj.io/ignore-healthcheck": "true"},
    {"argocd.argoproj.io/ignore-resource-updates": "true"},
    {"argocd.argoproj.io/ignore-default-links": "true"},
    {"kustomize.toolkit.fluxcd.io/prune": "enabled", "kustomize.toolkit.fluxcd.io/reconcile": "enabled"},
    {"kustomize.toolkit.fluxcd.io/ssa": "Merge"},
    {"kustomize.toolkit.fluxcd.io/ssa": "Override", "kustomize.toolkit.fluxcd.io/force": "enabled"},
    {"kustomize.toolkit.fluxcd.io/substitute": "disabled", "helm.toolkit.fluxcd.io/driftDetection": "disabled"},
    {"helm.sh/chart": "vllm-0.1.7", "helm.sh/resource-policy": "delete"},
)
"""Every instruction that a template may give to an engine, with values that it may have."""


def test_objects_with_any_instruction_that_is_allowed_go_with_their_burst(scenario: Scenario) -> None:
    assert {key for each in ALLOWED for key in each} == {*INSTRUCTIONS, *HOOKS}
    names = [f"instructed-{number}" for number in range(len(ALLOWED))]
    manifests = "".join(
        f"  - name: {name}\n    manifest:\n      apiVersion: v1\n      kind: ConfigMap\n"
        f"      metadata: {{name: {name}, namespace: vllm-stack, annotations: {json.dumps(annotations)}}}\n"
        for name, annotations in zip(names, ALLOWED, strict=True)
    )
    steps = "".join(f"  - name: {name}\n    type: manifest\n" for name in names)
    scenario.begin({TEMPLATE: {"  steps:\n": f"  manifestResources:\n{manifests}  steps:\n{steps}"}})
    hooks = {name for name, annotations in zip(names, ALLOWED, strict=True) if annotations.keys() & HOOKS}
    with scenario.daemon():
        scenario.wants(AT_HOME + 3)
        scenario.until_lent(by_flux=2, by_argo_cd=1)
        for cluster, wanted in ((scenario.by_flux, {*names}), (scenario.by_argo_cd, {*names} - hooks)):
            cluster.until(
                lambda cluster=cluster, wanted=wanted: (
                    wanted <= {each["metadata"]["name"] for each in cluster.items(CONFIG_MAPS)}
                ),
                "an object was not applied",
            )
        scenario.wants(AT_HOME)
        scenario.until_committed("Revert", "Revert")
        scenario.until_as_before()


def test_burst_is_removed_on_time_although_its_demand_lasts(scenario: Scenario) -> None:
    scenario.begin({TEMPLATE: {"burstDuration: 30m": "burstDuration: 25s"}, POLICY: BOUNDED})
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
            POLICY: LAPSING,
        }
    )
    scenario.home.create(DEMO, deployment(0))
    with scenario.daemon() as process:
        scenario.wants(AT_HOME + 1)
        scenario.until_lent(by_flux=1, by_argo_cd=0)
        scenario.wants(AT_HOME)  # what is missing when its time is over would be placed anew
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
