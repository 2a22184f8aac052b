"""Companions of live workloads are watched one by one, by their names, and Secrets never."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.manifest_source import Companion, SourceKey, WorkloadSource
from reconciler.model.policy import Desired
from tests.builders.watched_clusters import LASTING, ONE_NAME, Fleet, seen, until

CONFIG_MAPS = "/api/v1/namespaces/demo/configmaps"
SETTINGS = Companion(kind="ConfigMap", namespace="demo", name="settings")
SERVICE = Companion(kind="Service", namespace="demo", name="vllm")


def settings(model: str, name: str = "settings") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "demo", "uid": "1"}, "data": {"MODEL": model}}


@pytest.fixture
def watched(tmp_path: Path):
    with ExitStack() as stack:
        fleet = Fleet(tmp_path, stack)
        fleet.one.put("configmaps", settings("llama"))
        fleet.one.put("configmaps", settings("other", "others"))
        fleet.one.put(
            "services", {"metadata": {"name": "vllm", "namespace": "demo"}, "spec": {"clusterIP": "10.0.0.1"}}
        )
        yield fleet


def made_from(fleet: Fleet, *companions: Companion) -> Desired:
    source = WorkloadSource(kind="Deployment", group="apps", namespace="demo", name="vllm", companions=companions)
    return replace(fleet.desired, sources=frozenset({SourceKey(source, ONE_NAME)}))


def objects(view: Any) -> list[tuple[str, Any]]:
    return [(str(each.manifest["kind"]), each.manifest.get("data")) for each in seen(view).objects]


def test_each_companion_is_followed_by_its_name(watched: Fleet) -> None:
    view = watched.view(LASTING)
    view.follow(made_from(watched, SETTINGS, SERVICE))
    assert objects(view) == [("ConfigMap", {"MODEL": "llama"}), ("Service", None)]
    asked = [(path, query) for _, path, query in watched.one.asked if path == CONFIG_MAPS]
    assert {query.get("fieldSelector") for _, query in asked} == {"metadata.name=settings"}
    assert not [path for _, path, _ in watched.one.asked if "secrets" in path]
    watched.one.put("configmaps", settings("mistral"))
    until(lambda: ("ConfigMap", {"MODEL": "mistral"}) in objects(view))
    assert watched.woken
    lists = watched.one.count(CONFIG_MAPS, watch=False)
    view.follow(made_from(watched, SETTINGS))
    until(lambda: objects(view) == [("ConfigMap", {"MODEL": "mistral"})])
    assert watched.one.count(CONFIG_MAPS, watch=False) == lists, "the one that stays is not listed anew"
    watched.one.delete("configmaps", "settings", "demo")
    until(lambda: objects(view) == [])
    view.follow(watched.desired)


def test_companion_that_may_not_be_read_is_told_and_the_cluster_is_seen(watched: Fleet) -> None:
    watched.one.refuses["/configmaps"] = 403
    view = watched.view()
    view.follow(made_from(watched, SETTINGS, SERVICE))
    assert objects(view) == [("Service", None)]
    (problem,) = view.observe().problems
    assert str(problem).startswith(
        "cluster worker-1: ConfigMap demo/settings: configmaps are not looked at: forbids it"
    )
    assert "(`overspill grant` gives this right)" in str(problem)
    watched.one.refuses.clear()
    until(lambda: ("ConfigMap", {"MODEL": "llama"}) in objects(view))


def test_companion_is_read_with_a_new_login(watched: Fleet) -> None:
    view = watched.view()
    view.follow(made_from(watched, SETTINGS))
    watched.one.token = watched.two.token = "new"
    watched.login("new")
    view.follow(made_from(watched, SETTINGS))
    watched.one.put("configmaps", settings("mistral"))
    until(lambda: objects(view) == [("ConfigMap", {"MODEL": "mistral"})])
