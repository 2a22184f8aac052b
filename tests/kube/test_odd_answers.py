"""A server that answers as none should costs no more than a warning."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests.builders.inputs import cluster
from tests.builders.kube_objects import node
from tests.builders.watched_clusters import ONE_NAME, QUICK, Fleet, fleet, free, until


def test_answer_that_is_too_long_is_asked_for_in_smaller_pages(clusters: Fleet) -> None:
    padding = {"annotations": {"padding": "x" * (34 << 20)}}
    for name in ("gpu-2", "gpu-3"):
        raw = node(name)
        raw["metadata"] |= padding
        clusters.one.put("nodes", raw)
    view = clusters.view(pace=replace(QUICK, answer=20, silence=20), patience=timedelta(seconds=20))
    view.follow(fleet(cluster("worker-1")))
    until(lambda: ONE_NAME in view.observe().clusters, seconds=20)
    assert free(view) == 24
    limits = [query["limit"] for _, path, query in clusters.one.asked if path.endswith("/nodes") and "limit" in query]
    assert limits[:2] == ["3", "1"]


def test_redirect_is_told_and_not_followed(clusters: Fleet) -> None:
    asked = len(clusters.two.asked)
    clusters.one.redirects["/pods"] = f"{clusters.two.url}/latest/meta-data?key=value"
    view = clusters.view()
    view.follow(fleet(cluster("worker-1")))
    (problem,) = view.observe().problems
    assert problem.message == f"cannot be watched: redirects to {clusters.two.url}/latest/meta-data"
    assert len(clusters.two.asked) == asked


def test_redirect_to_nowhere_is_told(clusters: Fleet) -> None:
    clusters.one.redirects["/pods"] = "http://[/"
    view = clusters.view()
    view.follow(fleet(cluster("worker-1")))
    (problem,) = view.observe().problems
    assert problem.message == "cannot be watched: redirects to an address that is none"
