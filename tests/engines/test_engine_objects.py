"""What engines say is watched where their objects are, and counts as whole only while that is so."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.adapters.kube import KubeObservations, WatchTiming
from reconciler.core.engines.argocd.applications import ApplicationReports
from reconciler.core.engines.flux.reports import HELM_RELEASES, KUSTOMIZATIONS, FluxReports
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.model.ids import ClusterName
from reconciler.model.policy import ArgoCD, Connection, Desired, EngineName
from reconciler.model.policy import Fleet as ModelFleet
from reconciler.model.rollout import EngineReport, EngineState
from tests.builders.engine_objects import COMMIT, DIGEST, application, kustomization, release
from tests.builders.inputs import cluster, desired
from tests.builders.watched_clusters import ONE_NAME, PATIENCE, QUICK, TWO_NAME, Fleet, free, seen, until
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving

CONTROL = Connection(context="control")
HERE, THERE = "clusters/worker-1/vllm-1", "clusters/worker-2/vllm-1"
ALIVE, SHORT_LIVED = replace(QUICK, beat=2), replace(QUICK, beat=0.6)
"""The clock counts seconds, so that signs of life closer to each other than the second of these tell nothing."""
ARGOCD, FLUX = EngineName.ARGOCD, EngineName.FLUX


class Engines(Fleet):
    """Argo CD deploys to one cluster, from another that is not of the fleet, and Flux in a third."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.control = Cluster()
        stack.enter_context(serving(self.control))
        super().__init__(path, stack)
        self.desired = self.fleet()

    def view(self, pace: WatchTiming = ALIVE, patience: timedelta = PATIENCE) -> KubeObservations:
        return super().view(pace, patience)

    def following(self, pace: WatchTiming = ALIVE) -> KubeObservations:
        return super().following(pace)

    def fleet(self, one: EngineName = ARGOCD, two: EngineName = FLUX, argocd: Connection | None = CONTROL) -> Desired:
        clusters = (replace(cluster("worker-1"), engine=one), replace(cluster("worker-2"), engine=two))
        return desired(clusters=clusters, fleet=ModelFleet(argocd=ArgoCD(connection=argocd)))

    def login(self, token: str = "") -> None:
        named = (("worker-1", self.one), ("worker-2", self.two), ("control", self.control))
        kubeconfig(self.path, *((name, one.url) for name, one in named), token=token)


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[Engines]:
    with ExitStack() as stack:
        yield Engines(tmp_path, stack)


def reported(view: KubeObservations, *paths: str) -> Mapping[str, EngineReport]:
    """Wait for the reports to be on these placements and no others."""
    until(lambda: set(view.observe().reports) == {*paths})
    return view.observe().reports


def test_application_is_a_report_of_the_cluster_that_it_deploys_to(engines: Engines) -> None:
    engines.control.put("applications", application("worker-1"))
    report = reported(engines.following(), HERE)[HERE]
    assert (report.state, report.revision, report.digest) == (EngineState.HEALTHY, COMMIT, DIGEST)


def test_stages_and_charts_are_one_report_of_the_cluster_that_they_are_in(engines: Engines) -> None:
    engines.two.put("kustomizations", kustomization(stage=0))
    engines.two.put("kustomizations", kustomization(stage=1, ready=False))
    engines.two.put("helmreleases", release(stage=1, message="chart not found"))
    report = reported(engines.following(), THERE)[THERE]
    assert (report.cluster, report.placement, report.message) == (TWO_NAME, "vllm-1", "chart not found")


def test_clusters_count_as_reporting_once_all_has_been_listed(engines: Engines) -> None:
    view = engines.following()
    until(lambda: view.observe().reporting.keys() == {ONE_NAME, TWO_NAME})
    assert view.observe().reports == {}
    assert view.observe().problems == ()


def test_what_is_not_ours_is_not_read(engines: Engines) -> None:
    unlabelled = application("worker-1", "vllm-2")
    del unlabelled["metadata"]["labels"]["overspill.dev/placement"]
    engines.control.put("applications", unlabelled)
    engines.control.put("applications", application("worker-1", "vllm-3", namespace="elsewhere"))
    engines.control.put("applications", application("worker-1", "vllm-4", project="default"))
    engines.control.put("applications", application("worker-1"))
    engines.two.put("kustomizations", kustomization("vllm-5", namespace="flux-system"))
    reported(engines.following(), HERE)


def test_nothing_is_asked_for_that_no_engine_has(engines: Engines) -> None:
    engines.desired = engines.fleet(EngineName.MANIFESTS, EngineName.MANIFESTS)
    view = engines.following()
    assert free(view) == 8
    assert engines.control.asked == []
    assert not engines.two.count("/kustomizations", watch=False)
    assert view.observe().reporting.keys() == frozenset()


def test_argo_cd_that_nothing_says_the_way_to_is_left_alone(engines: Engines) -> None:
    engines.desired = engines.fleet(argocd=None)
    view = engines.following()
    until(lambda: view.observe().reporting.keys() == {TWO_NAME})
    assert engines.control.asked == []


def test_cluster_whose_engine_changes_is_asked_for_the_new_one(engines: Engines) -> None:
    engines.two.put("kustomizations", kustomization())
    engines.desired = engines.fleet(two=ARGOCD)
    view = engines.following()
    until(lambda: view.observe().reporting == {ONE_NAME: ARGOCD, TWO_NAME: ARGOCD})
    assert view.observe().reports == {}
    view.follow(engines.fleet(ARGOCD, FLUX))
    until(lambda: set(view.observe().reports) == {THERE})
    assert view.observe().reporting[TWO_NAME] is FLUX
    view.follow(engines.fleet(FLUX, EngineName.MANIFESTS))
    assert view.observe().reports == {}
    until(lambda: view.observe().reporting.keys() == {ONE_NAME})


def test_change_of_a_report_wakes_the_daemon(engines: Engines) -> None:
    view = engines.following()
    until(lambda: engines.woken)
    for where, plural, raw, path in (
        (engines.control, "applications", application("worker-1"), HERE),
        (engines.two, "kustomizations", kustomization(), THERE),
    ):
        time.sleep(0.2)
        engines.woken.clear()
        where.put(plural, raw)
        until(lambda path=path: path in view.observe().reports)
        until(lambda: engines.woken)


def test_object_that_goes_takes_its_report_along(engines: Engines) -> None:
    engines.control.put("applications", application("worker-1"))
    engines.two.put("kustomizations", kustomization())
    view = engines.following()
    engines.control.delete("applications", "worker-1.vllm-1", "argocd")
    engines.two.delete("kustomizations", "vllm-1-s00", "overspill")
    until(lambda: view.observe().reports == {})


def test_reports_are_the_same_object_until_one_changes(engines: Engines) -> None:
    engines.control.put("applications", application("worker-1"))
    engines.two.put("kustomizations", kustomization())
    view = engines.following()
    first = reported(view, HERE, THERE)
    engines.two.put(
        "pods", {"metadata": {"name": "a", "namespace": "b"}, "spec": {"nodeName": "gpu-1", "containers": []}}
    )
    engines.two.put("kustomizations", kustomization())
    time.sleep(0.2)
    assert view.observe().reports is first
    engines.two.put("kustomizations", kustomization(ready=False))
    until(lambda: view.observe().reports is not first)


def test_argo_cd_that_hangs_holds_up_no_cluster(engines: Engines) -> None:
    engines.control.hangs.set()
    view = engines.view(replace(ALIVE, answer=4), patience=timedelta())
    view.follow(engines.desired)
    both = {ONE_NAME, TWO_NAME}
    until(lambda: (set(view.observe().clusters), view.observe().reporting.keys()) == (both, {TWO_NAME}), seconds=4)
    until(lambda: any(problem.path == "Argo CD" for problem in view.observe().problems))


def test_argo_cd_out_of_reach_reports_no_more(engines: Engines) -> None:
    engines.control.put("applications", application("worker-1"))
    view = engines.view(SHORT_LIVED)
    view.follow(engines.desired)
    until(lambda: view.observe().reporting.keys() == {ONE_NAME, TWO_NAME})
    engines.control.hangs.set()
    until(lambda: view.observe().reporting.keys() == {TWO_NAME})  # the watch is still open, but nobody answers
    assert view.observe().reports == {}
    first = seen(view).observed_at
    until(lambda: seen(view).observed_at > first)
    engines.control.hangs.clear()
    until(lambda: view.observe().reporting.keys() == {ONE_NAME, TWO_NAME})
    reported(view, HERE)


def test_broken_watch_takes_nothing_away(engines: Engines) -> None:
    engines.control.put("applications", application("worker-1"))
    view = engines.view(ALIVE)
    view.follow(engines.desired)
    until(lambda: view.observe().reporting.keys() == {ONE_NAME, TWO_NAME})
    first, end = reported(view, HERE), time.monotonic() + 0.5
    engines.control.drop()
    while time.monotonic() < end:
        assert (view.observe().reporting.keys(), view.observe().reports is first) == ({ONE_NAME, TWO_NAME}, True)
        time.sleep(0.01)


def test_cluster_without_flux_has_nothing_of_flux(engines: Engines) -> None:
    engines.two.refuses = {"/kustomizations": 404, "/helmreleases": 404}
    view = engines.following()
    until(lambda: view.observe().reporting.keys() == {ONE_NAME, TWO_NAME})
    assert view.observe().problems == ()


def test_flux_that_we_may_not_look_at_is_told_and_keeps_nothing_else_up(engines: Engines) -> None:
    engines.two.refuses = {"/kustomizations": 403}
    view = engines.following()
    until(lambda: view.observe().reporting.keys() == {ONE_NAME})
    (problem,) = view.observe().problems
    assert (problem.path, free(view, TWO_NAME)) == ("cluster worker-2", 8)
    assert problem.message.startswith("kustomizations.kustomize.toolkit.fluxcd.io are not looked at: forbids it")
    assert problem.message.endswith("(apply bootstrap/rbac-flux.yaml there)")


@pytest.mark.parametrize("status", [403, 404])
def test_argo_cd_that_we_may_not_look_at_or_is_elsewhere_is_told(engines: Engines, status: int) -> None:
    engines.control.refuses = {"/applications": status}
    view = engines.following()
    until(lambda: view.observe().reporting.keys() == {TWO_NAME})
    (problem,) = view.observe().problems
    assert problem.path == "Argo CD"
    assert problem.message.startswith("applications.argoproj.io are not looked at: ")
    assert ("bootstrap/rbac-argocd.yaml" in problem.message) is (status == 403)


def test_argo_cd_is_looked_for_when_no_cluster_is_watched(engines: Engines) -> None:
    clusters = (replace(cluster("worker-9"), engine=ARGOCD),)
    view = engines.view()
    engines.control.put("applications", application("worker-9"))
    view.follow(desired(clusters=clusters, fleet=ModelFleet(argocd=ArgoCD(connection=CONTROL))))
    until(lambda: view.observe().reporting.keys() == {ClusterName("worker-9")})
    reported(view, "clusters/worker-9/vllm-1")
    assert view.observe().clusters == {}


def test_applications_are_listed_a_few_at_a_time(engines: Engines) -> None:
    for index in range(30):
        engines.control.put("applications", application("worker-1", f"vllm-{index}"))
    view = engines.view(replace(ALIVE, page=200))
    view.follow(engines.desired)
    until(lambda: len(view.observe().reports) == 30)
    asked = [query for _, path, query in engines.control.asked if path.endswith("/applications")]
    assert [query["limit"] for query in asked[:2]] == ["25", "25"]


# what is kept of them


def test_only_a_change_of_state_is_urgent() -> None:
    made = ApplicationReports("overspill")
    assert made.apply(application("worker-1", health="Progressing")) is ChangeEffect.DEMAND
    assert made.apply(application("worker-1", health="Progressing")) is ChangeEffect.NOTHING
    worse = application("worker-1", health="Progressing")
    worse["status"]["health"]["message"] = "waiting for a node"
    assert made.apply(worse) is ChangeEffect.CAPACITY
    assert made.apply(application("worker-1")) is ChangeEffect.DEMAND
    assert made.remove("argocd/worker-1.vllm-1") is ChangeEffect.DEMAND
    assert made.remove("argocd/worker-1.vllm-1") is ChangeEffect.NOTHING


def test_application_that_leaves_the_project_takes_its_report_along() -> None:
    made = ApplicationReports("overspill")
    made.apply(application("worker-1"))
    made.apply(application("worker-1", project="default"))
    assert (made.keys(), made.reports.all()) == (set(), {})


def test_application_of_another_placement_than_before_has_one_report() -> None:
    made = ApplicationReports("overspill")
    made.apply(application("worker-1"))
    moved = application("worker-1")
    moved["metadata"]["labels"]["overspill.dev/cluster"] = "worker-2"
    made.apply(moved)
    assert set(made.reports.all()) == {THERE}


def test_renamed_application_keeps_its_report_when_the_old_one_goes() -> None:
    made = ApplicationReports("overspill")
    old, new = application("worker-1", health="Progressing"), application("worker-1")
    old["metadata"]["name"] = "old"
    made.apply(old)
    made.apply(new)
    assert made.remove("argocd/old") is ChangeEffect.NOTHING
    assert (made.keys(), made.reports.all()[HERE].state) == ({"argocd/worker-1.vllm-1"}, EngineState.HEALTHY)
    made.apply(old)
    assert made.remove("argocd/old") is ChangeEffect.DEMAND
    assert made.reports.all()[HERE].state is EngineState.HEALTHY
    made.remove("argocd/worker-1.vllm-1")
    assert (made.keys(), made.reports.all()) == (set(), {})


def test_stage_that_goes_leaves_the_report_of_the_others() -> None:
    made = FluxReports(TWO_NAME)
    stages = made.parts[KUSTOMIZATIONS]
    stages.apply(kustomization(stage=0))
    stages.apply(kustomization(stage=1, ready=False))
    assert made.reports.all()[THERE].state is EngineState.PROGRESSING
    stages.remove("overspill/vllm-1-s01")
    assert made.reports.all()[THERE].state is EngineState.HEALTHY
    stages.remove("overspill/vllm-1-s00")
    assert made.reports.all() == {}


def test_chart_without_a_stage_is_no_report() -> None:
    made = FluxReports(TWO_NAME)
    assert made.parts[HELM_RELEASES].apply(release(message="no")) is ChangeEffect.NOTHING
    assert made.reports.all() == {}


@pytest.mark.exhaustive(one_in=None)
def test_a_thousand_applications_with_large_statuses_take_two_megabytes() -> None:
    made = ApplicationReports("overspill")
    tracemalloc.start()
    try:
        for index in range(1000):
            raw = application(f"worker-{index % 50}", f"vllm-{index}")
            raw["status"]["resources"] = [{"name": f"object-{index}-{one}", "kind": "Deployment"} for one in range(100)]
            raw["metadata"]["managedFields"] = [{"manager": f"argocd-{index}-{one}"} for one in range(100)]
            made.apply(raw)
        del raw
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(made.reports.all()) == 1000
    assert kept < 2 << 20


def test_engine_whose_watch_keeps_changes_is_told_and_says_nothing(engines: Engines) -> None:
    engines.control.mute.set()
    view = engines.view(replace(ALIVE, silence=1))
    view.follow(engines.desired)
    until(lambda: ONE_NAME in view.observe().reporting)
    engines.control.put("applications", application("worker-1"))
    until(lambda: "do not tell what changes, of applications.argoproj.io" in str(view.observe().problems))
    assert ONE_NAME not in view.observe().reporting
