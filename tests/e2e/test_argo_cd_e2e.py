"""A real Argo CD applies what is committed, and takes it away again, by the bootstrap that we print."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest
import yaml

from reconciler.core.engines.argocd.applications import read_application
from reconciler.model.rollout import EngineReport, EngineState
from tests.e2e import command_step, webhooks
from tests.e2e.argo_cd import APPLICATIONS, KINDS, NAMESPACE, ArgoCD, gone, missing, prepare, settled
from tests.e2e.charts import PUBLISHED
from tests.e2e.components import Missing, sources
from tests.e2e.conftest import Fleet
from tests.e2e.control_plane import Cluster

DEPLOYMENTS = "/apis/apps/v1/namespaces/vllm-demo/deployments"
PODS = "/api/v1/namespaces/vllm-demo/pods"
BRANCH = "placements-by-cluster/worker-2"
HEALTHY = ("Synced", "Healthy")
QUICK = {
    "headroom: 1": "headroom: 0",
    "window: 10s": "window: 1s",
    "window: 15m": "window: 1s",
    "coolDown: 5m": "coolDown: 1s",
}


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[[str], Cluster]) -> Cluster:
    """Start worker-2 with the kinds of the release that the bootstrap asks for."""
    if reason := missing():
        pytest.skip(reason)
    found = sources(KINDS)
    if isinstance(found, Missing):
        pytest.skip(found.reason)
    cluster = start_cluster("argo")
    prepare(cluster, found)
    command_step.prepare(cluster)
    return cluster


@pytest.fixture(scope="module")
def controllers(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArgoCD]:
    argo_cd = ArgoCD(cluster, tmp_path_factory.mktemp("argo") / "home", known_as="worker-2")
    yield argo_cd
    argo_cd.stop()


@pytest.fixture
def follow(controllers: ArgoCD, fleet: Fleet, charts: str) -> Iterator[Callable[..., ArgoCD]]:
    """Describe the layout's fleet with its chart served here, and have Argo CD follow it."""
    following: list[ArgoCD] = []

    def begin(edits: Mapping[str, Mapping[str, str]] | None = None) -> ArgoCD:
        usual = {
            "fleet.yaml": {"https://git.example.com/acme/fleet.git": fleet.url},
            "policies/serving.yaml": QUICK,
            "templates/vllm-helm.yaml": {PUBLISHED: charts},
        }
        for name, more in (edits or {}).items():
            usual[name] = usual.get(name, {}) | dict(more)
        fleet.describe(usual)
        controllers.follow(fleet)
        following.append(controllers)
        return controllers

    yield begin
    for argo_cd in following:
        argo_cd.forget()


def test_burst_comes_and_goes_by_commits_alone(cluster: Cluster, fleet: Fleet, follow: Callable[..., ArgoCD]) -> None:
    argo_cd = follow()
    with fleet.bursting(missing=3):
        argo_cd.look()
        cluster.until(lambda: settled(cluster) == HEALTHY, "Argo CD has not applied the burst", told=argo_cd.last_words)
        [application] = cluster.items(APPLICATIONS)
        placement = application["metadata"]["labels"]["overspill.dev/placement"]
        assert len(cluster.items(PODS, f"overspill.dev/placement={placement}")) == 3
        cluster.until(lambda: said(cluster).state is EngineState.HEALTHY, "its health is still as of before the sync")
        assert (said(cluster).digest, said(cluster).revision) == written(fleet)
        fleet.give_back()
    gone(cluster, argo_cd)
    assert cluster.inventory(selector="overspill.dev/placement") == frozenset()


def test_chart_is_installed_by_argo_cd_with_the_values_of_the_burst(
    cluster: Cluster, fleet: Fleet, follow: Callable[..., ArgoCD]
) -> None:
    argo_cd = follow()
    with fleet.bursting(missing=2, namespace="vllm-stack"):
        argo_cd.look()
        cluster.until(
            lambda: settled(cluster) == HEALTHY, "Argo CD has not installed the chart", told=argo_cd.last_words
        )
        assert len(cluster.items("/api/v1/namespaces/vllm-stack/pods", "model=llama3")) == 2
        fleet.give_back()
    gone(cluster, argo_cd)
    assert cluster.items("/apis/apps/v1/namespaces/vllm-stack/deployments") == []


def test_command_is_done_before_what_follows_it_begins(
    cluster: Cluster, fleet: Fleet, follow: Callable[..., ArgoCD]
) -> None:
    argo_cd = follow(command_step.EDITS)
    with fleet.bursting(missing=2):
        with command_step.held(cluster):
            argo_cd.look()
            cluster.until(lambda: cluster.items(command_step.JOBS), "there is no Job")
            cluster.until(lambda: "waiting for healthy state" in doing(cluster), "the sync does not wait for the Job")
            assert cluster.items(DEPLOYMENTS) == []
        cluster.until(lambda: settled(cluster) == HEALTHY, "Argo CD has not applied the burst", told=argo_cd.last_words)
        assert [command_step.done(job) for job in cluster.items(command_step.JOBS)] == [True]
        assert len(cluster.items(PODS)) == 2
        fleet.give_back()
    gone(cluster, argo_cd)
    assert cluster.inventory(selector="overspill.dev/placement") == frozenset()


def test_signed_push_is_all_that_argo_cd_waits_for_and_others_are_refused(
    cluster: Cluster, fleet: Fleet, follow: Callable[..., ArgoCD]
) -> None:
    argo_cd = follow()
    fleet.observe(missing=1)
    with fleet.daemon():
        fleet.until(fleet.log, "the daemon has not begun the branch")
        begun = fleet.tip()
        argo_cd.look()
        cluster.until(lambda: generated(cluster), "the ApplicationSet has not looked at the branch yet")
        fleet.until(fleet.subjects, "no burst")
        push = {"repository": fleet.url, "before": begun, "after": fleet.tip()}
        for endpoint in argo_cd.webhook_urls:
            assert webhooks.github(endpoint, "wrong", **push) == 400
        argo_cd.announce(fleet.url, before=begun, after=fleet.tip(), changed=fleet.changed(begun))
        cluster.until(
            lambda: settled(cluster) == HEALTHY, "the push was not heard", timeout=30, told=argo_cd.last_words
        )


def test_burst_that_the_cluster_refuses_is_given_up_and_says_why(
    cluster: Cluster, fleet: Fleet, follow: Callable[..., ArgoCD]
) -> None:
    others = "matchExpressions:\n            - {key: app, operator: NotIn, values: [vllm]}"
    another = {"matchLabels:\n            app: vllm": others}
    argo_cd = follow({"templates/vllm.yaml": another})
    with fleet.bursting(missing=3):
        argo_cd.look()
        cluster.until(lambda: settled(cluster), "Argo CD has not seen the burst")
        cluster.until(
            lambda: said(cluster).state is EngineState.FAILED, "Argo CD has not given up", told=argo_cd.last_words
        )
        report = said(cluster)
        assert (report.digest, report.revision) == written(fleet)
        assert 'Deployment.apps "vllm" is invalid' in report.message
        assert report.message.endswith("(retried 3 times).")
        fleet.give_back()
    gone(cluster, argo_cd)


def test_burst_that_the_project_forbids_has_failed_before_it_was_tried(
    cluster: Cluster, fleet: Fleet, follow: Callable[..., ArgoCD]
) -> None:
    argo_cd = follow()
    nowhere = '{"spec": {"destinations": []}}'
    cluster.kubectl("patch", "appproject", "overspill", "--namespace", NAMESPACE, "--type=merge", "--patch", nowhere)
    with fleet.bursting(missing=3):
        argo_cd.look()
        cluster.until(lambda: settled(cluster), "Argo CD has not seen the burst")
        cluster.until(lambda: said(cluster).state is EngineState.FAILED, "Argo CD has not refused it")
        assert said(cluster).digest == written(fleet)[0]
        assert "do not match any of the allowed destinations" in said(cluster).message
        fleet.give_back()
    gone(cluster, argo_cd)


def test_fleet_gets_a_branch_for_each_cluster_while_a_burst_runs(
    cluster: Cluster, fleet: Fleet, follow: Callable[..., ArgoCD]
) -> None:
    argo_cd = follow()
    with fleet.bursting(missing=3):
        argo_cd.look()
        cluster.until(lambda: settled(cluster) == HEALTHY, "Argo CD has not applied the burst", told=argo_cd.last_words)
        [before] = cluster.items(APPLICATIONS)
        fleet.amend("fleet.yaml", {"engine: argocd": "engine: argocd\n  branchPerCluster: true"})
        fleet.until(lambda: fleet.git("branch", "--list", BRANCH, at=fleet.bare), "no branch for the cluster")
        # Argo CD, which notes that it has looked, writes all of the object as its own.
        text = fleet.bootstrap("argocd")
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=text)
        argo_cd.look()
        cluster.until(lambda: followed(cluster) == f"refs/heads/{BRANCH}", "Argo CD stays on the output branch")
        tip = fleet.git("rev-parse", BRANCH, at=fleet.bare).strip()
        cluster.until(lambda: deployed(cluster) == tip, "Argo CD has not looked at the branch")
        cluster.until(lambda: settled(cluster) == HEALTHY, "Argo CD has not settled on the branch")
        [after] = cluster.items(APPLICATIONS)
        assert after["metadata"]["uid"] == before["metadata"]["uid"], "it was taken away in between"
        fleet.give_back()
    gone(cluster, argo_cd)
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


def doing(cluster: Cluster) -> str:
    """Return what the operation of the one Application says of itself."""
    messages = [
        each.get("status", {}).get("operationState", {}).get("message", "") for each in cluster.items(APPLICATIONS)
    ]
    return " ".join(messages)


def generated(cluster: Cluster) -> bool:
    """Tell whether the ApplicationSet has read the branch."""
    found = cluster.call("GET", f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applicationsets/overspill")
    conditions = found.get("status", {}).get("conditions", ())
    return any(each["type"] == "ParametersGenerated" and each["status"] == "True" for each in conditions)
