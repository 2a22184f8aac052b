"""A watch that fails right after a list is a failure like any other: told, and tried less and less often."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.adapters.kube import KubeObservations
from tests.builders.kube_objects import pod
from tests.builders.watched_clusters import QUICK, Fleet, free, seen, until

GONE = {"kind": "Status", "code": 410, "message": "too old resource version"}
BROKEN = {"kind": "Status", "code": 500, "message": "no such revision"}


def fail(clusters: Fleet, error: dict[str, Any] | None) -> None:
    """Let each watch of pods begin and end with an error, or not begin."""
    if error is None:
        clusters.one.refuses_watches["/pods"] = 410
    else:
        clusters.one.ends_watches["/pods"] = error


def watch(clusters: Fleet) -> KubeObservations:
    view = clusters.view(replace(QUICK, longest_backoff=60), timedelta(seconds=5))
    view.follow(clusters.desired)
    return view


def lists(clusters: Fleet) -> int:
    return clusters.one.count("/pods", watch=False)


@pytest.mark.parametrize(("error", "told"), [(None, "(410)"), (GONE, "(410)"), (BROKEN, "no such revision")])
def test_watch_that_never_works_is_told_and_listed_less_and_less(
    clusters: Fleet, error: dict[str, Any] | None, told: str
) -> None:
    fail(clusters, error)
    view = watch(clusters)
    until(lambda: any(told in problem.message for problem in view.observe().problems))
    time.sleep(1.5)
    assert lists(clusters) <= 9
    assert any(told in problem.message for problem in view.observe().problems)


def test_watch_that_works_again_is_told_no_more(clusters: Fleet) -> None:
    fail(clusters, BROKEN)
    view = watch(clusters)
    until(lambda: view.observe().problems)
    clusters.one.ends_watches.clear()
    until(lambda: view.observe().problems == ())
    clusters.one.put("pods", pod("a", on="gpu-1"))
    until(lambda: free(view) == 7)


def test_version_that_is_gone_after_a_while_is_no_failure(clusters: Fleet) -> None:
    view = clusters.view(replace(QUICK, silence=10, first_backoff=30, longest_backoff=30))
    view.follow(clusters.desired)
    until(lambda: clusters.one.count("/pods", watch=True))
    time.sleep(1.2)  # a second is what tells a watch that ends at once from others
    with clusters.one.changed:
        clusters.one.version += 1
        clusters.one.events.append((clusters.one.version, "pods", "ERROR", {**GONE, "metadata": {}}))
        clusters.one.changed.notify_all()
    until(lambda: lists(clusters) == 2)


def test_change_that_is_heard_while_another_watch_fails_is_told_with_its_moment(clusters: Fleet) -> None:
    view = clusters.following(replace(QUICK, silence=1))
    clusters.one.refuses["/nodes"] = 500
    with clusters.one.changed:
        clusters.one.version += 1
        clusters.one.events.append((clusters.one.version, "nodes", "ERROR", {**GONE, "metadata": {}}))
        clusters.one.changed.notify_all()
    until(lambda: view.observe().problems)
    clusters.one.put("pods", pod("a", on="gpu-1"))
    until(lambda: free(view) == 7)
    behind = seen(view)
    assert behind.changed_at is not None
    assert behind.observed_at < behind.changed_at
    clusters.one.refuses.clear()
    until(lambda: seen(view).changed_at is None)
    assert seen(view).observed_at >= behind.changed_at
