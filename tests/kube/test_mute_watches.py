"""A watch that stands proves nothing by that: only what comes of it does."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

from reconciler.adapters.kube import KubeObservations, WatchTiming
from reconciler.model.ids import ClusterName
from tests.builders.kube_objects import node
from tests.builders.watched_clusters import ONE_NAME, PATIENCE, TWO_NAME, Fleet, free, seen, until
from tests.builders.watched_clusters import QUICK as PACE
from tests.fakes.kube_api_server import Cluster

QUICK = replace(PACE, silence=1)
MUTE = "watches do not tell what changes, of nodes "
BOOKMARKS = 8
CURT = "cannot be watched: ends each watch at once, with nothing in it"


def watch(clusters: Fleet, pace: WatchTiming) -> KubeObservations:
    view = clusters.view(pace, PATIENCE)
    view.follow(clusters.desired)
    return view


def observed_at(view: KubeObservations, name: ClusterName = TWO_NAME) -> datetime:
    return seen(view, name).observed_at


def lists(clusters: Fleet) -> int:
    return clusters.two.count("/nodes", watch=False)


def watch_problems(view: KubeObservations) -> list[str]:
    return [problem.message for problem in view.observe().problems if problem.path == "cluster worker-2"]


def follows_bookmarks(view: KubeObservations, server: Cluster, name: ClusterName) -> None:
    """Send bookmarks, which are of nodes and pods alone, for longer than the silence; each makes the cluster newer."""
    for _ in range(BOOKMARKS):
        sent = datetime.now(UTC)
        server.bookmark()
        until(lambda since=sent: observed_at(view, name) >= since)
        time.sleep(0.4)


def test_quiet_cluster_with_bookmarks_is_seen_now_and_listed_once(clusters: Fleet) -> None:
    view = watch(clusters, replace(QUICK, silence=3, beat=0.2))
    until(lambda: clusters.two.count("/nodes", watch=True))
    follows_bookmarks(view, clusters.two, TWO_NAME)
    assert (lists(clusters), watch_problems(view)) == (1, [])


def test_resource_of_which_nothing_ever_comes_makes_no_cluster_older(clusters: Fleet) -> None:
    view = watch(clusters, replace(QUICK, silence=3, beat=0.2))
    until(lambda: clusters.one.count("/jobs", watch=True))
    follows_bookmarks(view, clusters.one, ONE_NAME)
    until(lambda: clusters.one.count("/jobs", watch=False) >= 2)


def test_quiet_cluster_without_bookmarks_is_listed_now_and_then(clusters: Fleet) -> None:
    view = watch(clusters, replace(QUICK, silence=2))
    for count in (1, 2, 3):
        until(lambda listed=count: lists(clusters) >= listed)
        before = observed_at(view)
        assert watch_problems(view) == []
    until(lambda: observed_at(view) > before)


def test_cluster_is_seen_as_of_its_list_until_its_watches_are_proven(clusters: Fleet) -> None:
    view = watch(clusters, replace(QUICK, silence=60, beat=0.2))
    before = observed_at(view)
    time.sleep(1)  # several beats, which prove nothing
    assert observed_at(view) == before
    clusters.two.bookmark()
    until(lambda: observed_at(view) > before)


def test_changes_that_a_watch_keeps_are_listed_and_told(clusters: Fleet) -> None:
    clusters.two.mute.set()
    view = watch(clusters, QUICK)
    clusters.two.put("nodes", node("gpu-2"))
    until(lambda: free(view, TWO_NAME) == 16)
    until(lambda: watch_problems(view))
    clusters.two.delete("nodes", "gpu-1")
    until(lambda: free(view, TWO_NAME) == 8)
    (message,) = watch_problems(view)
    assert MUTE in message
    clusters.two.mute.clear()
    clusters.two.bookmark()
    until(lambda: watch_problems(view) == [])


def test_watch_that_falls_mute_is_listed_anew(clusters: Fleet) -> None:
    view = watch(clusters, QUICK)
    clusters.two.put("nodes", node("gpu-2"))
    until(lambda: free(view, TWO_NAME) == 16)
    clusters.two.mute.set()
    clusters.two.put("nodes", node("gpu-3"))
    until(lambda: free(view, TWO_NAME) == 24)


def test_watches_that_end_well_at_once_are_told_and_listed_less_and_less(clusters: Fleet) -> None:
    clusters.two.curt.set()
    view = watch(clusters, replace(QUICK, longest_backoff=60))
    until(lambda: watch_problems(view) == [CURT])
    before = seen(view, TWO_NAME).observed_at
    clusters.two.put("nodes", node("gpu-2"))
    until(lambda: free(view, TWO_NAME) == 16)
    time.sleep(1)
    assert lists(clusters) <= 10
    assert seen(view, TWO_NAME).observed_at == before
    clusters.two.curt.clear()
    until(lambda: watch_problems(view) == [], seconds=10)
    clusters.two.put("nodes", node("gpu-3"))
    until(lambda: free(view, TWO_NAME) == 24)
