"""A server that answers as none should costs no more than a warning."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.adapters.kube.answers import reason_text
from reconciler.model.bounds import CLUSTER_PAGE_SIZE, CLUSTER_REASON
from tests.builders.inputs import cluster
from tests.builders.kube_objects import node
from tests.builders.watched_clusters import ONE_NAME, QUICK, TWO_NAME, Fleet, fleet, free, until


def test_answer_that_is_too_long_is_asked_for_in_smaller_pages(clusters: Fleet) -> None:
    padding = {"annotations": {"padding": "x" * (CLUSTER_PAGE_SIZE.most // 2)}}
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


def test_objects_that_cannot_be_told_from_others_cost_themselves_alone(clusters: Fleet) -> None:
    raws = [node("gpu-2"), node("gpu-3"), node("gpu-4")]
    raws[0]["metadata"]["labels"] = ["odd"]
    raws[1]["metadata"]["resourceVersion"] = {"odd": 10**5000}
    documents = [*raws, None, 7, {"metadata": []}, node("gpu-1")]
    sys.set_int_max_str_digits(0)
    try:
        items = json.dumps({"metadata": {"resourceVersion": "1"}, "items": documents}).encode()
    finally:
        sys.set_int_max_str_digits(4300)
    clusters.one.documents["/api/v1/nodes"] = items
    view = clusters.view()
    view.follow(fleet(cluster("worker-1")))
    until(lambda: ONE_NAME in view.observe().clusters)
    assert free(view) == 16
    assert [problem.message.partition(":")[0] for problem in view.observe().problems] == [
        "5 objects of nodes are left out"
    ]


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {"items": []},
        {"metadata": {}, "items": {}},
        {"metadata": {"continue": [1]}},
        {"metadata": {"continue": "x" * 9000}},
    ],
)
def test_list_that_is_none_leaves_its_cluster_unseen_alone(clusters: Fleet, answer: object) -> None:
    clusters.one.documents["/api/v1/nodes"] = answer
    view = clusters.view()
    view.follow(fleet(cluster("worker-1"), cluster("worker-2")))
    until(lambda: TWO_NAME in view.observe().clusters)
    (problem,) = view.observe().problems
    assert problem.path == "cluster worker-1"
    assert problem.message.startswith("cannot be watched: sent ")


def test_reason_of_a_server_is_cut_and_stays_on_its_line() -> None:
    assert len(reason_text("x" * 10_000_000)) == CLUSTER_REASON.most
    assert reason_text("a\x1b[2Jb\nc") == "a\\x1b[2Jb\\nc"
    assert reason_text({"odd": 1}) == ""
