"""GPUs are idle where each of them was measured throughout and never in use; everything else counts as in use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from itertools import chain

import pytest

from reconciler.core.observe.gpu_use import GpuAnswer, GpuAnswers, IdleTerm, questions, read_answer, with_unused_gpus
from reconciler.core.observe.kubernetes.placement_pods import PlacementPods
from reconciler.core.observe.kubernetes.pods import read_pod
from reconciler.errors import InvalidInput
from reconciler.model.capacity import GpuPod, Observed
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from tests.builders.inputs import NOW, free

IDLE, AGE = timedelta(minutes=30), timedelta(minutes=2)
NAME = PlacementName("vllm-1")
TERM = IdleTerm(cluster=ClusterName("worker-2"), placement=NAME, idle=IDLE, changed_at=NOW - 2 * IDLE)
OWN = {"cluster": "worker-2", "namespace": "demo", "pod": "vllm-a", "UUID": "GPU-1", "gpu": "0"}


def seen(gpus: int = 1) -> Observed:
    pods = {NAME: (GpuPod(namespace="demo", name="vllm-a", gpus=gpus),)}
    return Observed(clusters={TERM.cluster: free("worker-2", 8, gpu_pods=pods)})


def series(
    labels: Mapping[str, str] = OWN, *, most: float = 0, recent: float = 0, covered: int = 6, now: float | None = 0
) -> list[object]:
    values = {"most": most, "recent": recent, "covered": covered, "now": now}
    return [
        {"metric": {**labels, "overspill_value": kind}, "value": [1, "NaN" if math.isnan(value) else str(value)]}
        for kind, value in values.items()
        if value is not None
    ]


def judged(
    *answer: list[object], gpus: int = 1, age: timedelta = timedelta(), trouble: str = "", late: bool = False
) -> Observed:
    (question,) = questions([TERM], seen(gpus), "cluster")
    document = {"status": "success", "data": {"resultType": "vector", "result": [*chain.from_iterable(answer)]}}
    given = GpuAnswer(at=NOW - age, pods=read_answer(document, question))
    told = GpuAnswers(answers={} if late else {question: given}, trouble=trouble)
    return with_unused_gpus(seen(gpus), [TERM], told, now=NOW, max_age=AGE)


def is_idle(observed: Observed) -> bool:
    return NAME in observed.clusters[TERM.cluster].unused


def test_a_gpu_without_use_is_idle_since_the_idle_time() -> None:
    assert judged(series()).clusters[TERM.cluster].unused == {NAME: NOW - IDLE}


def test_labels_that_the_scrape_has_renamed_name_the_pod() -> None:
    renamed = {
        **OWN,
        "namespace": "gpu-operator",
        "pod": "dcgm-1",
        "exported_namespace": "demo",
        "exported_pod": "vllm-a",
    }
    assert is_idle(judged(series(renamed)))


@pytest.mark.parametrize(
    "answer",
    [
        judged(series(most=3)),
        judged(series(most=float("nan"))),
        judged(series(recent=1)),
        judged(series(now=1)),
        judged(series(covered=5)),
        judged(series(now=None)),
        judged(series(), gpus=2),
        judged(series(), gpus=0),
        judged(series(), series({**OWN, "UUID": "GPU-2"})),
        judged(series({**OWN, "cluster": ""})),
        judged(series({**OWN, "cluster": "worker-3"})),
        judged(series({**OWN, "pod": "vllm-b"})),
        judged(series(), age=timedelta(minutes=3)),
        judged(late=True, trouble="no connection"),
        judged(),
    ],
    ids=[
        "used", "no number", "used since the last step", "used now", "not measured throughout", "not measured now",
        "one of two", "claimed", "ambiguous", "no cluster", "other cluster", "other pod", "old", "no answer",
        "no series",
    ],
)  # fmt: skip # a table
def test_it_counts_as_used_where_it_is(answer: Observed) -> None:
    assert not is_idle(answer)


def test_unknown_use_and_a_mute_server_are_warned_of() -> None:
    (unknown,) = judged().problems
    assert "does not say whether the GPUs of vllm-1 are used" in str(unknown)
    (seldom,) = judged(series(covered=5)).problems
    assert "measure each GPU at least 6 times in the idle time" in str(seldom)
    (claimed,) = judged(series(), gpus=0).problems
    assert "pods of vllm-1 claim devices, whose number is unknown" in str(claimed)
    (mute,) = judged(late=True, trouble="no connection").problems
    assert "what it said counts for 2m, and then no GPU counts as idle): no connection" in str(mute)


def test_a_value_of_now_is_no_older_than_prometheus_looks_back() -> None:
    (question,) = questions([TERM], seen(), "cluster")
    now = question.text.rpartition("overspill_metric")[0].rpartition('"overspill_value","covered"')[2]
    assert "DCGM_FI_DEV_GPU_UTIL{" in now
    assert "max_over_time" not in now


def test_many_idle_times_are_few_questions_none_of_them_shorter() -> None:
    terms = [
        IdleTerm(cluster=TERM.cluster, placement=NAME, idle=timedelta(minutes=number), changed_at=NOW)
        for number in range(1, 30)
    ]
    asked = questions(terms, seen(), "cluster")
    assert [question.idle.seconds // 60 for question in asked] == [1, 2, 3, 4, 5, 6, 7, 29]
    assert questions(terms, Observed(), "cluster") == ()


@pytest.mark.parametrize("metric", [{"pod": {"a": "b"}}, {"namespace": 1}, {"overspill_value": ["now"]}, [], None])
def test_series_whose_labels_are_no_texts_are_refused(metric: object) -> None:
    (question,) = questions([TERM], seen(), "cluster")
    result = [{"metric": metric, "value": [1, "1"]}]
    with pytest.raises(InvalidInput):
        read_answer({"status": "success", "data": {"resultType": "vector", "result": result}}, question)


def test_an_answer_of_another_kind_is_refused() -> None:
    (question,) = questions([TERM], seen(), "cluster")
    with pytest.raises(InvalidInput):
        read_answer({"status": "success", "data": {"resultType": "matrix", "result": []}}, question)


@pytest.mark.parametrize(("resource", "gpus"), [("nvidia.com/gpu", 2), ("nvidia.com/mig-1g.10gb", 2), ("cpu", None)])
def test_pods_that_a_watch_sees_are_those_that_are_asked_for(resource: str, gpus: int | None) -> None:
    pod = read_pod(
        {
            "metadata": {"namespace": "demo", "name": "vllm-a", "labels": {PLACEMENT_LABEL: NAME}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": {resource: "2"}}}]},
        }
    )
    assert pod is not None
    pods = PlacementPods()
    pods.count("demo/vllm-a", pod, 1)
    seen_pods = {} if gpus is None else {NAME: (GpuPod(namespace="demo", name="vllm-a", gpus=gpus),)}
    assert pods.progress().gpu_pods == seen_pods
