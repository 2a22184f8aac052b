"""A resource that a cluster may do without keeps nothing else from being seen."""

from __future__ import annotations

import time

import pytest

from reconciler.adapters.kube import KubeObservations
from tests.builders.kube_objects import autoscaler, node, queued, workload
from tests.builders.watched_clusters import Fleet, seen, until

HPAS = "/horizontalpodautoscalers"


def asked(clusters: Fleet) -> list[str]:
    """Watch a cluster in which an autoscaler asks for more, and say who asks."""
    clusters.one.put("deployments", workload("vllm", 6))
    clusters.one.put("horizontalpodautoscalers", autoscaler())
    return [ask.signal for one in seen(clusters.following()).workloads for ask in one.asks]


def test_signals_of_a_cluster_are_watched(clusters: Fleet) -> None:
    assert asked(clusters) == ["hpa demo/vllm"]


def test_signals_are_asked_of_primaries_only(clusters: Fleet) -> None:
    clusters.following()
    assert clusters.one.count(HPAS, watch=False)
    assert not clusters.two.count(HPAS, watch=False)


def test_resource_that_is_not_served_is_no_problem(clusters: Fleet) -> None:
    clusters.one.refuses[HPAS] = 404
    clusters.one.put("deployments", workload("vllm", 6))
    view = clusters.following()
    assert [one.wanted for one in seen(view).workloads] == [6]
    assert view.observe().problems == ()


def test_resource_that_is_served_later_is_found(clusters: Fleet) -> None:
    clusters.one.refuses[HPAS] = 404
    clusters.one.put("deployments", workload("vllm", 6))
    clusters.one.put("horizontalpodautoscalers", autoscaler())
    view = clusters.following()
    assert not seen(view).workloads[0].asks
    clusters.one.refuses.clear()
    until(lambda: seen(view).workloads[0].asks)


def test_resource_that_is_served_no_longer_asks_for_nothing(clusters: Fleet) -> None:
    clusters.one.put("deployments", workload("vllm", 6))
    clusters.one.put("horizontalpodautoscalers", autoscaler())
    view = clusters.following()
    assert seen(view).workloads[0].asks
    clusters.one.refuses[HPAS] = 404
    clusters.one.drop()
    until(lambda: not seen(view).workloads[0].asks)
    until(lambda: view.observe().problems == ())


def test_absence_that_lasts_wakes_nobody(clusters: Fleet) -> None:
    clusters.one.refuses[HPAS] = 404
    clusters.following()
    until(lambda: clusters.woken)
    time.sleep(0.2)
    clusters.woken.clear()
    before = clusters.one.count(HPAS, watch=False)
    until(lambda: clusters.one.count(HPAS, watch=False) > before + 1)
    assert clusters.woken == []


def test_missing_rights_are_told_and_keep_nothing_else_up(clusters: Fleet) -> None:
    clusters.one.refuses[HPAS] = 403
    clusters.one.put("deployments", workload("vllm", 6))
    clusters.one.put("horizontalpodautoscalers", autoscaler())
    view = clusters.following()
    first = seen(view)
    assert [one.wanted for one in first.workloads] == [6]
    (problem,) = view.observe().problems
    assert problem.path == "cluster worker-1"
    assert problem.message.startswith("horizontalpodautoscalers.autoscaling are not looked at: forbids it")
    assert "bootstrap/rbac.yaml" in problem.message
    until(lambda: seen(view).observed_at > first.observed_at)
    clusters.one.refuses.clear()
    until(lambda: seen(view).workloads[0].asks)
    until(lambda: view.observe().problems == ())  # a page is applied before its list is complete


def test_rights_to_list_alone_are_told_for_as_long_as_they_are_all(clusters: Fleet) -> None:
    clusters.one.refuses_watches[HPAS] = 403
    clusters.one.put("deployments", workload("vllm", 6))
    clusters.one.put("horizontalpodautoscalers", autoscaler())
    view = clusters.following()
    until(lambda: clusters.one.count(HPAS, watch=True) and view.observe().problems)
    time.sleep(0.2)
    clusters.woken.clear()
    before = clusters.one.count(HPAS, watch=True)
    told = []
    while clusters.one.count(HPAS, watch=True) < before + 3:
        told.append((len(view.observe().problems), seen(view).workloads[0].asks))
        time.sleep(0.01)
    assert set(told) == {(1, ())}
    assert clusters.woken == []
    clusters.one.refuses_watches.clear()
    until(lambda: seen(view).workloads[0].asks)
    assert view.observe().problems == ()


def test_resource_that_cannot_be_read_is_told_and_keeps_nothing_else_up(clusters: Fleet) -> None:
    clusters.one.refuses[HPAS] = 500
    view = clusters.following()
    first = seen(view)
    until(lambda: "horizontalpodautoscalers.autoscaling are not looked at: answers 500" in str(view.observe().problems))
    until(lambda: seen(view).observed_at > first.observed_at)
    clusters.one.put("nodes", node("gpu-2"))
    until(lambda: len(seen(view).pools[0].nodes) == 2)


# signals that were known, and are not any more


def stale_signals(view: KubeObservations) -> list[tuple[str, bool]]:
    """Say which kinds of signals are stale, and whether they ever answered."""
    return [(one.signal, one.at is not None) for one in seen(view).stale]


def signals(view: KubeObservations) -> list[str]:
    return [ask.signal for one in seen(view).workloads for ask in one.asks]


def until_heard(clusters: Fleet, view: KubeObservations) -> None:
    """Wait until autoscalers are watched, and the cluster has given a sign of life since."""
    until(lambda: clusters.one.count(HPAS, watch=True))
    before = seen(view).observed_at
    until(lambda: seen(view).observed_at > before)


@pytest.mark.parametrize("status", [403, 500])
@pytest.mark.exhaustive(one_in=2)
def test_signal_that_can_no_longer_be_read_is_unheard_and_not_content(clusters: Fleet, status: int) -> None:
    clusters.one.put("deployments", workload("vllm", 6))
    clusters.one.put("horizontalpodautoscalers", autoscaler())
    view = clusters.following()
    assert (signals(view), stale_signals(view)) == (["hpa demo/vllm"], [])
    until_heard(clusters, view)
    clusters.one.refuses[HPAS] = status
    clusters.one.drop()
    until(lambda: stale_signals(view) == [("hpa", True)])
    clusters.one.delete("horizontalpodautoscalers", "vllm", "demo")
    (first,) = seen(view).stale
    assert ("forbids it" if status == 403 else "answers 500") in first.trouble
    until(lambda: seen(view).observed_at > first.at)
    assert ([one.at for one in seen(view).stale], signals(view)) == ([first.at], ["hpa demo/vllm"])
    clusters.one.refuses.clear()
    until(lambda: not stale_signals(view) and not signals(view))


def test_signal_that_was_never_allowed_is_no_signal(clusters: Fleet) -> None:
    clusters.one.refuses[HPAS] = 403
    view = clusters.following()
    assert (stale_signals(view), len(view.observe().problems)) == ([], 1)


def test_signal_whose_first_list_fails_is_unheard(clusters: Fleet) -> None:
    clusters.one.refuses[HPAS] = 500
    view = clusters.following()
    until(lambda: stale_signals(view) == [("hpa", False)])


def test_signal_that_is_gone_after_a_refusal_asks_for_nothing(clusters: Fleet) -> None:
    clusters.one.put("deployments", workload("vllm", 6))
    clusters.one.put("horizontalpodautoscalers", autoscaler())
    view = clusters.following()
    until_heard(clusters, view)
    clusters.one.refuses[HPAS] = 403
    clusters.one.drop()
    until(lambda: stale_signals(view))
    clusters.one.refuses[HPAS] = 404
    until(lambda: not stale_signals(view))
    assert signals(view) == []


def test_newest_version_that_is_served_is_watched(clusters: Fleet) -> None:
    clusters.one.put("deployments", workload("vllm", 6))
    clusters.one.put("workloads", queued(owner=("Deployment", "vllm")))
    view = clusters.following()
    assert [ask.signal for one in seen(view).workloads for ask in one.asks] == ["kueue queue-a"]
    assert clusters.one.count("/v1beta1/workloads", watch=False) == 0
    clusters.one.refuses["/v1beta2/workloads"] = 404
    clusters.one.drop()
    until(lambda: clusters.one.count("/v1beta1/workloads", watch=True))
    clusters.one.delete("workloads", "job-train-1a2b3", "demo")
    until(lambda: not any(one.asks for one in seen(view).workloads))
    assert view.observe().problems == ()


def test_what_is_needed_still_makes_a_cluster_unseen(clusters: Fleet) -> None:
    clusters.one.refuses["/deployments"] = 404
    view = clusters.following()
    assert "worker-1" not in view.observe().clusters
    assert "answers 404" in str(view.observe().problems)
