"""What is kept of a cluster is bounded, in number and in memory; what fits again is seen again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.adapters import operating_system
from reconciler.adapters.kube import kept_objects, stream
from reconciler.adapters.kube.kept_objects import KeptObjects, TooMuchKept, kept_bytes
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.model.bounds import CLUSTER_MEMORY, CLUSTER_OBJECTS
from tests.builders.inputs import cluster
from tests.builders.kube_objects import node, pod
from tests.builders.watched_clusters import ONE_NAME, QUICK, TWO_NAME, Fleet, fleet, free, until

HASTY = replace(QUICK, silence=0.5)


def nothing() -> set[str]:
    return set()


def test_objects_are_counted_only_where_they_may_be_too_many() -> None:
    kept, counted = KeptObjects(lambda: 0, list), list[int]()
    there = {f"pod-{number}" for number in range(100)}

    def keys() -> set[str]:
        counted.append(1)
        return there

    for _ in range(CLUSTER_OBJECTS.most // 500):
        kept.admit(Resource.PODS, ["new"] * 500, keys)
    assert counted == []
    for _ in range(CLUSTER_OBJECTS.most - 100):
        kept.admit(Resource.PODS, ["pod-1"], keys)
    assert len(counted) == 1, "most of them were events of objects that were there already"


def test_objects_that_are_there_already_are_no_more() -> None:
    kept = KeptObjects(lambda: 0, list)
    there = {f"pod-{number}" for number in range(CLUSTER_OBJECTS.most)}
    kept.admit(Resource.PODS, there, lambda: there)
    kept.admit(Resource.PODS, ["pod-1"], lambda: there)
    with pytest.raises(TooMuchKept, match="has over 250,000 objects of pods"):
        kept.admit(Resource.PODS, ["new"], lambda: there)
    kept.admit(Resource.NODES, ["new"], lambda: there)


def test_memory_is_measured_by_what_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operating_system, "resident_memory", lambda: 1 << 30)
    received, roots = 0, [["x" * CLUSTER_MEMORY.most]]
    kept = KeptObjects(lambda: received, lambda: roots)
    kept.admit(Resource.PODS, ["new"], nothing)
    received = 32 << 20
    with pytest.raises(TooMuchKept, match=r"takes over 256 MiB here, pods last \(delete objects"):
        kept.admit(Resource.PODS, ["new"], nothing)
    kept.admit(Resource.PODS, ["new"], nothing)
    received, roots = 64 << 20, []
    kept.admit(Resource.PODS, ["new"], nothing)


def test_small_process_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    received = 0
    kept = KeptObjects(lambda: received, lambda: [["x" * CLUSTER_MEMORY.most]])
    received = 32 << 20
    monkeypatch.setattr(operating_system, "resident_memory", lambda: 300 << 20)
    kept.admit(Resource.PODS, ["new"], nothing)


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_memory_of_the_process_is_known() -> None:
    assert 20 << 20 < operating_system.resident_memory() < 64 << 30


def test_process_of_unknown_memory_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    received = 0
    kept = KeptObjects(lambda: received, lambda: [["x" * CLUSTER_MEMORY.most]])
    received = 32 << 20
    monkeypatch.setattr(operating_system, "resident_memory", lambda: 0)
    with pytest.raises(TooMuchKept):
        kept.admit(Resource.PODS, ["new"], nothing)


def test_memory_is_that_of_all_that_is_kept_and_of_nothing_else() -> None:
    text = "x" * 1000
    record = pod("a", "gpu-1", labels={"note": text})
    assert kept_bytes(record, record) == kept_bytes(record) > sys.getsizeof(text)
    assert kept_bytes([text, text]) == sys.getsizeof([text, text]) + sys.getsizeof(text)
    assert kept_bytes(kept_bytes, Fleet, kept_objects, Resource.PODS) == 0


@pytest.fixture(params=["number", "memory"])
def crowd(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Fleet], list[str]]:
    """Put nodes beyond a bound, which is a small one, into the first cluster; their names are returned."""
    if request.param == "number":
        for module in (kept_objects, stream):
            monkeypatch.setattr(module, "CLUSTER_OBJECTS", replace(CLUSTER_OBJECTS, most=4))
        size, names = 0, ["gpu-2", "gpu-3", "gpu-4", "gpu-5"]
    else:
        monkeypatch.setattr(kept_objects, "_STEP", 50_000)
        monkeypatch.setattr(kept_objects, "_SMALL", 0)
        monkeypatch.setattr(kept_objects, "CLUSTER_MEMORY", replace(CLUSTER_MEMORY, most=400_000))
        size, names = 700, [f"gpu-{number}" for number in range(2, 20)]

    def put(clusters: Fleet) -> list[str]:
        for name in names:
            clusters.one.put(
                "nodes", node(name, labels={f"{name}.example.com/{number}": "x" * 60 for number in range(size)})
            )
        return names

    return put


def test_cluster_beyond_a_bound_is_unseen_alone_and_seen_once_it_fits(
    clusters: Fleet, crowd: Callable[[Fleet], list[str]]
) -> None:
    names = crowd(clusters)
    view = clusters.view(HASTY, patience=timedelta(seconds=1))
    view.follow(clusters.desired)
    until(lambda: any("takes over" in each.message or "has over" in each.message for each in view.observe().problems))
    until(lambda: TWO_NAME in view.observe().clusters)
    assert ONE_NAME not in view.observe().clusters
    for name in names:
        clusters.one.delete("nodes", name)
    until(lambda: ONE_NAME in view.observe().clusters)
    until(lambda: free(view) == 8)  # it fits before the last of them is deleted


def test_cluster_that_grows_beyond_a_bound_is_seen_as_it_was(
    clusters: Fleet, crowd: Callable[[Fleet], list[str]]
) -> None:
    view = clusters.view(HASTY)
    view.follow(fleet(cluster("worker-1")))
    until(lambda: ONE_NAME in view.observe().clusters)
    names = crowd(clusters)
    until(lambda: any("takes over" in each.message or "has over" in each.message for each in view.observe().problems))
    before = view.observe().clusters[ONE_NAME].observed_at
    assert free(view) >= 8, "nodes that do not fit take none away that were seen"
    assert view.observe().clusters[ONE_NAME].observed_at == before, "it grows old"
    for name in names:
        clusters.one.delete("nodes", name)
    until(lambda: view.observe().clusters[ONE_NAME].observed_at > before)
    until(lambda: free(view) == 8)


def test_cluster_at_its_bound_is_listed_again(clusters: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (kept_objects, stream):
        monkeypatch.setattr(module, "CLUSTER_OBJECTS", replace(CLUSTER_OBJECTS, most=3))
    for name in ("gpu-2", "gpu-3"):
        clusters.one.put("nodes", node(name))
    view = clusters.view(HASTY)
    view.follow(fleet(cluster("worker-1")))
    until(lambda: ONE_NAME in view.observe().clusters)
    for _ in range(3):
        listed = clusters.one.count("/api/v1/nodes", watch=False)
        clusters.one.forget_history()
        until(lambda listed=listed: clusters.one.count("/api/v1/nodes", watch=False) > listed + 1)
        assert free(view) == 24
        assert not [each for each in view.observe().problems if "has over" in each.message]
