"""A live workload is read as a whole or with one reason: whatever an API server sends, and however long it takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.kube.live.objects import read_live_workload
from reconciler.app.commands import live_workload
from reconciler.core.onboarding.lend import LiveWorkload, find_kind
from reconciler.errors import InvalidInput, Transient
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Connection
from reconciler.settings import Settings
from tests.builders.inputs import desired
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving

PRIMARY = ClusterName("worker-1")
DEPLOYMENT = "/apis/apps/v1/namespaces/demo/deployments/vllm"
SERVICES = "/api/v1/namespaces/demo/services"
SETTINGS = "/api/v1/namespaces/demo/configmaps/settings"
POD = {"containers": [{"name": "server", "envFrom": [{"configMapRef": {"name": "settings"}}]}]}
STRANGE = "cluster worker-1 sent what no API server sends (is it one?)"
NESTED = b"[" * 100_000


@pytest.fixture
def primary() -> Iterator[Cluster]:
    """Serve a Deployment and the ConfigMap that its pods need."""
    with ExitStack() as stack:
        cluster = Cluster()
        stack.enter_context(serving(cluster))
        cluster.groups["apps"] = ["v1"]
        cluster.documents |= {
            "/apis/apps/v1": {"resources": [{"name": "deployments", "kind": "Deployment"}]},
            DEPLOYMENT: {
                "metadata": {"name": "vllm", "namespace": "demo"},
                "spec": {"template": {"metadata": {"labels": {"app": "vllm"}}, "spec": POD}},
            },
            SETTINGS: {"metadata": {"name": "settings", "namespace": "demo"}},
        }
        yield cluster


def read(path: Path, *, name: str = "vllm", **more: float) -> LiveWorkload:
    wanted = find_kind("deployment", {}), "demo", name
    return read_live_workload(path, PRIMARY, Connection(context=PRIMARY), wanted, {}, **more)


def kinds_and_names(live: LiveWorkload) -> list[tuple[str, str]]:
    return [(str(each["kind"]), each["metadata"]["name"]) for each in live.companions]


def test_all_pages_of_the_services_are_read(primary: Cluster, tmp_path: Path) -> None:
    for number in range(1_001):
        primary.put("services", {"metadata": {"name": f"s{number:04}", "namespace": "demo"}})
    live = read(kubeconfig(tmp_path / "config", (PRIMARY, primary.url)))
    expected = [("ConfigMap", "settings"), *(("Service", f"s{number:04}") for number in range(1_001))]
    assert kinds_and_names(live) == expected
    assert primary.count(SERVICES, watch=False) == 3


def test_objects_that_may_not_be_read_are_left_out(primary: Cluster, tmp_path: Path) -> None:
    primary.refuses |= {SERVICES: 403, SETTINGS: 403}
    live = read(kubeconfig(tmp_path / "config", (PRIMARY, primary.url)))
    assert kinds_and_names(live) == []
    assert live.services_unread.startswith("forbids it: ")


@pytest.mark.parametrize("path", ["/apis/apps", "/apis/apps/v1"])
def test_discovery_that_is_forbidden_is_no_kind_that_is_not_served(primary: Cluster, tmp_path: Path, path: str) -> None:
    primary.refuses[path] = 403
    with pytest.raises(Transient, match=r"cluster worker-1 forbids it: .* \(bind the ClusterRole system:discovery"):
        read(kubeconfig(tmp_path / "config", (PRIMARY, primary.url)))


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/apis/apps", []),
        ("/apis/apps", {"versions": [{}]}),
        ("/apis/apps", {"versions": 7}),
        ("/apis/apps/v1", []),
        ("/apis/apps/v1", {"resources": ["deployments"]}),
        ("/apis/apps/v1", {"resources": [{"name": 7, "kind": "Deployment"}]}),
        (DEPLOYMENT, []),
        (DEPLOYMENT, None),
        (DEPLOYMENT, {"hello": "world"}),
        (DEPLOYMENT, {"metadata": {"name": "other", "namespace": "demo"}}),
        (SETTINGS, []),
        (SETTINGS, {"metadata": []}),
        (SERVICES, []),
        (SERVICES, {"metadata": {}, "items": ["x"]}),
        (SERVICES, {"metadata": {}, "items": [{"metadata": {"name": 7}}]}),
    ],
)
def test_an_answer_that_no_api_server_gives_is_told(
    primary: Cluster, tmp_path: Path, path: str, answer: object
) -> None:
    primary.documents[path] = answer
    with pytest.raises(Transient) as error:
        read(kubeconfig(tmp_path / "config", (PRIMARY, primary.url)))
    assert str(error.value) == STRANGE


@pytest.mark.parametrize("path", ["/apis/apps", DEPLOYMENT, SETTINGS, SERVICES])
def test_json_that_is_nested_too_deeply_is_told(primary: Cluster, tmp_path: Path, path: str) -> None:
    primary.documents[path] = NESTED
    with pytest.raises(Transient, match="cluster worker-1 sent what is nested over 500 levels"):
        read(kubeconfig(tmp_path / "config", (PRIMARY, primary.url)))


@pytest.mark.parametrize("path", [DEPLOYMENT, SERVICES])
def test_an_object_that_is_gone_is_told(primary: Cluster, tmp_path: Path, path: str) -> None:
    primary.refuses[path] = 410
    with pytest.raises(Transient, match="cluster worker-1 changed too much while it was read"):
        read(kubeconfig(tmp_path / "config", (PRIMARY, primary.url)))


def test_names_of_something_else_than_an_api_server_are_told(primary: Cluster, tmp_path: Path) -> None:
    primary.documents["/apis/apps/v1/namespaces/demo/deployments"] = {"metadata": {}, "items": ["x"]}
    with pytest.raises(Transient) as error:
        read(kubeconfig(tmp_path / "config", (PRIMARY, primary.url)), name="vlm")
    assert str(error.value) == STRANGE


def test_all_answers_have_one_limit(primary: Cluster, tmp_path: Path) -> None:
    primary.hangs.set()
    with pytest.raises(Transient, match=r"cluster worker-1 gave no answer in 0\.2 s"):
        read(kubeconfig(tmp_path / "config", (PRIMARY, primary.url)), patience=0.2)


def test_a_login_program_that_sleeps_has_the_same_limit(primary: Cluster, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", (PRIMARY, primary.url))
    config: dict[str, Any] = json.loads(path.read_text())
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["600"]}
    config["users"] = [{"name": "reader", "user": {"exec": plugin}}]
    path.write_text(json.dumps(config))
    with pytest.raises(Transient, match=r"cluster worker-1 gave no answer in 0\.2 s"):
        read(path, patience=0.2)
    assert not primary.asked


def test_a_kubeconfig_that_is_not_there_is_told_before_it_is_read(tmp_path: Path) -> None:
    settings = Settings(cache_dir=tmp_path, kubeconfig=tmp_path / "nowhere")
    with pytest.raises(
        InvalidInput, match=r"reading the kubeconfig: .*nowhere is not a file \(try another --kubeconfig"
    ):
        live_workload(settings, desired(), PRIMARY, (find_kind("deployment", {}), "demo", "vllm"))
