"""Flux's own controllers apply what is committed, and take it away again, by the bootstrap that we print."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.e2e import command_step, webhooks
from tests.e2e.api_server import Json
from tests.e2e.charts import PUBLISHED
from tests.e2e.conftest import Fleet
from tests.e2e.control_plane import Cluster
from tests.e2e.flux import HELM, KUSTOMIZATIONS, KUSTOMIZE, NOTIFICATION, RELEASES, Flux, lacking, teach
from tests.e2e.flux import missing as missing_flux

QUICK = {
    "headroom: 1": "headroom: 0",
    "window: 10s": "window: 1s",
    "window: 15m": "window: 1s",
    "coolDown: 5m": "coolDown: 1s",
}
GIT = "https://git.example.com/acme/fleet.git"
DEPLOYMENTS = "/apis/apps/v1/namespaces/vllm-demo/deployments"
PODS = "/api/v1/namespaces/vllm-demo/pods"


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[[str], Cluster]) -> Cluster:
    """Start worker-2 with Flux's kinds, and eight GPUs."""
    if reason := missing_flux():
        pytest.skip(reason)
    cluster = start_cluster("flux")
    teach(cluster)
    command_step.prepare(cluster)
    cluster.add_node(
        "gpu",
        allocatable={"cpu": "128", "memory": "1Ti", "nvidia.com/gpu": "8"},
        labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    )
    return cluster


@pytest.fixture(scope="module")
def controllers(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flux]:
    flux = Flux(cluster, tmp_path_factory.mktemp("flux") / "home", known_as="worker-2")
    yield flux
    flux.stop()


@pytest.fixture
def follow(controllers: Flux, fleet: Fleet, charts: str) -> Iterator[Callable[..., Flux]]:
    """Describe a fleet of one Flux cluster that takes up to four replicas, and have Flux follow it."""
    following: list[Flux] = []

    def begin(edits: dict[str, dict[str, str]] | None = None) -> Flux:
        usual = {
            "fleet.yaml": {"engine: argocd": "engine: flux", GIT: fleet.url},
            "policies/serving.yaml": QUICK,
            "templates/vllm-helm.yaml": {PUBLISHED: charts},
        }
        for name, more in (edits or {}).items():
            usual[name] = usual.get(name, {}) | more
        fleet.describe(usual)
        controllers.follow(fleet)
        following.append(controllers)
        return controllers

    yield begin
    for flux in following:
        flux.forget()


def test_burst_comes_and_goes_by_commits_alone(cluster: Cluster, fleet: Fleet, follow: Callable[..., Flux]) -> None:
    flux = follow()
    with fleet.bursting(missing=3):
        flux.look()
        cluster.until(lambda: settled(stages(cluster)), "Flux has not applied the burst", told=flux.last_words)
        [stage] = stages(cluster)
        placement = stage["metadata"]["labels"]["overspill.dev/placement"]
        assert len(cluster.items(PODS, f"overspill.dev/placement={placement}")) == 3
        assert stage["status"]["lastAppliedRevision"] == f"placements@sha1:{fleet.tip()}"
        fleet.give_back()
    gone(cluster, flux)
    assert cluster.inventory(selector="overspill.dev/placement") == frozenset()


def test_anchor_keeps_the_path_alive_after_the_last_placement_has_left(
    cluster: Cluster, fleet: Fleet, follow: Callable[..., Flux]
) -> None:
    flux = follow()
    with fleet.bursting(missing=1):
        flux.look()
        cluster.until(lambda: settled(stages(cluster)), "Flux has not applied the burst", told=flux.last_words)
        fleet.give_back()
        gone(cluster, flux)
        cluster.until(lambda: applied(cluster, fleet.tip()), "the root does not apply the empty directory")
        fleet.observe(missing=2)
        fleet.until(lambda: len(fleet.subjects()) == 3, "no second burst")
        flux.look()
        cluster.until(lambda: settled(stages(cluster)), "Flux has not applied the second burst")


def test_chart_is_installed_by_flux_with_the_values_of_the_burst(
    cluster: Cluster, fleet: Fleet, follow: Callable[..., Flux]
) -> None:
    if reason := lacking(HELM):
        pytest.skip(reason)
    flux = follow()
    with fleet.bursting(missing=2, namespace="vllm-stack"):
        flux.look()
        cluster.until(lambda: settled(stages(cluster)), "Flux has not installed the chart", told=flux.last_words)
        [release] = cluster.items(RELEASES)
        assert release["status"]["history"][0]["chartVersion"] == "0.1.7"
        assert len(cluster.items("/api/v1/namespaces/vllm-stack/pods", "model=llama3")) == 2
        fleet.give_back()
    gone(cluster, flux)
    cluster.until(lambda: not cluster.items(RELEASES), "the release is still there")
    assert cluster.items("/apis/apps/v1/namespaces/vllm-stack/deployments") == []
    assert cluster.items("/api/v1/namespaces/vllm-stack/secrets", "owner=helm") == []


def test_retained_placement_leaves_its_objects_behind(
    cluster: Cluster, fleet: Fleet, follow: Callable[..., Flux]
) -> None:
    flux = follow({"templates/vllm.yaml": {"deletionPolicy: Delete": "deletionPolicy: Retain"}})
    with fleet.bursting(missing=2):
        flux.look()
        cluster.until(lambda: settled(stages(cluster)), "Flux has not applied the burst", told=flux.last_words)
        fleet.give_back()
    gone(cluster, flux)
    try:
        assert [one["metadata"]["name"] for one in cluster.items(DEPLOYMENTS)] == ["vllm"]
        assert len(cluster.items(PODS)) == 2
    finally:
        cluster.kubectl("delete", "deployments,services", "--all", "--namespace=vllm-demo")
        cluster.kubectl("delete", "configmaps", "--selector=overspill.dev/placement", "--namespace=vllm-demo")
        cluster.until(lambda: not cluster.items(PODS), "pods are still there")


def test_command_is_done_before_what_follows_it_begins(
    cluster: Cluster, fleet: Fleet, follow: Callable[..., Flux]
) -> None:
    flux = follow(command_step.EDITS)
    with fleet.bursting(missing=2):
        with command_step.held(cluster):
            flux.look()
            cluster.until(lambda: cluster.items(command_step.JOBS), "there is no Job")
            cluster.until(lambda: "DependencyNotReady" in reasons(stages(cluster)), "the second stage does not wait")
            assert cluster.items(DEPLOYMENTS) == []
        cluster.until(lambda: settled(stages(cluster)), "Flux has not applied the burst", told=flux.last_words)
        assert [command_step.done(job) for job in cluster.items(command_step.JOBS)] == [True]
        assert len(cluster.items(PODS)) == 2
        fleet.give_back()
    gone(cluster, flux)
    assert cluster.inventory(selector="overspill.dev/placement") == frozenset()


def test_revert_does_not_wait_for_a_burst_that_never_gets_ready(
    cluster: Cluster, fleet: Fleet, follow: Callable[..., Flux]
) -> None:
    flux = follow()
    cluster.kubectl("cordon", "gpu")  # no observation of ours says so
    try:
        with fleet.bursting(missing=2):
            flux.look()
            cluster.until(lambda: len(cluster.items(PODS)) == 2, "Flux has not applied the burst", told=flux.last_words)
            assert "Progressing" in reasons(stages(cluster)), "it waits for the pods, ten minutes at most"
            fleet.give_back()
        gone(cluster, flux)
        assert cluster.inventory(selector="overspill.dev/placement") == frozenset()
    finally:
        cluster.kubectl("uncordon", "gpu")


def test_burst_is_applied_once_an_api_server_that_was_away_is_back(
    cluster: Cluster, fleet: Fleet, follow: Callable[..., Flux]
) -> None:
    flux = follow()
    fleet.observe(missing=1)
    with fleet.daemon():
        fleet.until(lambda: fleet.log("--format=%H"), "the daemon has not begun the branch")
        cluster.kill("kube-apiserver")
        fleet.until(fleet.subjects, "no burst")
        cluster.start("kube-apiserver")
        flux.look()
        cluster.until(lambda: settled(stages(cluster)), "Flux has not applied the burst", told=flux.last_words)


def test_killed_controllers_take_up_where_they_were(
    cluster: Cluster, fleet: Fleet, follow: Callable[..., Flux]
) -> None:
    flux = follow()
    with fleet.bursting(missing=2):
        flux.kill(KUSTOMIZE)  # between fetch and apply: what is fetched now is applied by the next one
        flux.look()
        cluster.until(lambda: flux.fetched() == fleet.tip(), "the source has not fetched the burst")
        flux.kill(flux.source)
        assert stages(cluster) == []
        flux.start(KUSTOMIZE)
        flux.start(flux.source)
        cluster.until(lambda: settled(stages(cluster)), "Flux has not applied the burst", told=flux.last_words)
        fleet.give_back()
    gone(cluster, flux)
    assert cluster.inventory(selector="overspill.dev/placement") == frozenset()


def test_signed_webhook_makes_flux_fetch_and_others_are_refused(
    cluster: Cluster, fleet: Fleet, follow: Callable[..., Flux]
) -> None:
    if reason := lacking(NOTIFICATION):
        pytest.skip(reason)
    flux = follow()
    with fleet.bursting(missing=1):
        url = flux.webhook_url()
        assert webhooks.generic(url, "wrong") == 400
        assert webhooks.generic(url, flux.hook_token) == 200
        cluster.until(lambda: flux.fetched() == fleet.tip(), "the webhook was not heard")
        cluster.until(lambda: settled(stages(cluster)), "Flux has not applied the burst", told=flux.last_words)


def gone(cluster: Cluster, flux: Flux) -> None:
    """Wait until Flux has taken every stage away."""
    flux.look()
    cluster.until(lambda: not stages(cluster), "a Kustomization is still there", told=flux.last_words)


def stages(cluster: Cluster) -> list[Json]:
    """List the Kustomizations of placements, first stage first."""
    found = cluster.items(KUSTOMIZATIONS, "overspill.dev/placement")
    return sorted(found, key=lambda stage: str(stage["metadata"]["name"]))


def settled(found: list[Json]) -> bool:
    """Tell whether there are stages and all of them are ready as they stand."""
    return bool(found) and all(
        condition["type"] != "Ready"
        or (condition["status"] == "True" and stage["status"]["observedGeneration"] == stage["metadata"]["generation"])
        for stage in found
        for condition in stage.get("status", {}).get("conditions", [{"type": "Ready", "status": "Unknown"}])
    )


def reasons(found: list[Json]) -> set[str]:
    """Collect the reasons of the stages' Ready conditions."""
    return {
        condition["reason"]
        for stage in found
        for condition in stage.get("status", {}).get("conditions", ())
        if condition["type"] == "Ready"
    }


def applied(cluster: Cluster, commit: str) -> bool:
    """Tell whether the root Kustomization has applied a commit, and is well."""
    status = cluster.call("GET", f"{KUSTOMIZATIONS}/overspill-root").get("status", {})
    ready = {each["type"]: each["status"] for each in status.get("conditions", [])}.get("Ready")
    return ready == "True" and status.get("lastAppliedRevision") == f"placements@sha1:{commit}"
