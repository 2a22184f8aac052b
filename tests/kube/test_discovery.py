"""What contexts of a kubeconfig lead to, read at once from every API server, whatever becomes of the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from reconciler.adapters.kube.discovery import kubeconfig_contexts, read_contexts, read_gpu_namespaces
from reconciler.core.onboarding.context_reading import ContextReading
from reconciler.errors import InvalidInput, Transient
from reconciler.model.policy import EngineName
from tests.builders.kube_objects import node, pod, workload
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving

APPLICATIONS = {"resources": [{"name": "applications"}, {"name": "applicationsets"}]}
KUSTOMIZATIONS = {"resources": [{"name": "kustomizations"}]}


@pytest.fixture
def served() -> Iterator[Cluster]:
    with ExitStack() as stack:
        cluster = Cluster()
        stack.enter_context(serving(cluster))
        cluster.put("nodes", node("gpu-1"))
        yield cluster


def readings(path: Path, **more: float) -> dict[str, ContextReading]:
    found = read_contexts(path, kubeconfig_contexts(path), **more)
    return {reading.context.name: reading for reading in found}


def test_nodes_version_and_identity_are_read(served: Cluster, tmp_path: Path) -> None:
    served.documents["/api/v1/namespaces/kube-system"] = {"metadata": {"uid": "c0ffee"}}
    (reading,) = readings(kubeconfig(tmp_path / "config", ("a", served.url))).values()
    assert (reading.version, reading.uid, reading.trouble) == ("v1.37.0", "c0ffee", "")
    assert [raw["metadata"]["name"] for raw in reading.nodes] == ["gpu-1"]
    assert reading.engines == {}


def test_engines_are_known_by_the_kinds_that_are_served_and_found_by_their_deployments(
    served: Cluster, tmp_path: Path
) -> None:
    served.documents["/apis/argoproj.io/v1alpha1"] = APPLICATIONS
    served.documents["/apis/kustomize.toolkit.fluxcd.io/v1"] = KUSTOMIZATIONS
    server = workload("argocd-server", namespace="gitops")
    server["metadata"]["labels"] = {"app.kubernetes.io/part-of": "argocd"}
    served.put("deployments", server)
    served.put("deployments", workload("other", namespace="elsewhere"))
    (reading,) = readings(kubeconfig(tmp_path / "config", ("a", served.url))).values()
    assert {name: sighting.namespaces for name, sighting in reading.engines.items()} == {
        EngineName.ARGOCD: ("gitops",),
        EngineName.FLUX: (),
    }


def test_argo_rollouts_alone_is_no_argo_cd(served: Cluster, tmp_path: Path) -> None:
    served.documents["/apis/argoproj.io/v1alpha1"] = {"resources": [{"name": "rollouts"}]}
    (reading,) = readings(kubeconfig(tmp_path / "config", ("a", served.url))).values()
    assert reading.engines == {}


def test_what_cannot_be_reached_or_logged_in_to_says_why_and_costs_no_other(served: Cluster, tmp_path: Path) -> None:
    strict = Cluster()
    strict.token = "sesame" * 3
    with serving(strict):
        contexts = [("away", "http://127.0.0.1:9"), ("strict", strict.url), ("a", served.url)]
        found = readings(kubeconfig(tmp_path / "config", *contexts))
    troubles = {name: reading.trouble for name, reading in found.items()}
    assert troubles["a"] == ""
    assert troubles["strict"].startswith("does not take our credentials (make a new login for context strict")
    assert troubles["away"].startswith("cannot be reached: ")


def test_a_server_that_keeps_silent_is_waited_for_within_a_limit(served: Cluster, tmp_path: Path) -> None:
    served.hangs.set()
    (reading,) = readings(kubeconfig(tmp_path / "config", ("a", served.url)), patience=0.2).values()
    assert reading.trouble == "gave no answer in 0.2 s"


def test_nodes_that_may_not_be_listed_leave_the_rest_known(served: Cluster, tmp_path: Path) -> None:
    served.refuses["/nodes"] = 403
    (reading,) = readings(kubeconfig(tmp_path / "config", ("a", served.url))).values()
    assert (reading.trouble, reading.nodes, reading.version) == ("", (), "v1.37.0")
    assert reading.unlisted.startswith("forbids it: ")


def test_an_answer_of_something_else_than_an_api_server_is_told(served: Cluster, tmp_path: Path) -> None:
    served.documents["/version"] = {"hello": "world"}
    (reading,) = readings(kubeconfig(tmp_path / "config", ("a", served.url))).values()
    assert reading.trouble == "sent what no API server sends (is it one?)"


def test_json_that_is_nested_too_deeply_costs_no_other(served: Cluster, tmp_path: Path) -> None:
    odd = Cluster()
    odd.documents["/version"] = b"[" * 100_000
    with serving(odd):
        found = readings(kubeconfig(tmp_path / "config", ("odd", odd.url), ("a", served.url)))
    troubles = {name: reading.trouble for name, reading in found.items()}
    assert troubles == {"odd": "sent what is nested over 500 levels", "a": ""}


def test_a_login_program_that_fails_is_told_without_its_words(served: Cluster, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", ("a", served.url))
    config = json.loads(path.read_text())
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-program"}
    config["users"] = [{"name": "reader", "user": {"exec": plugin}}]
    path.write_text(json.dumps(config))
    (reading,) = readings(path).values()
    assert reading.trouble == "cannot be logged in to: 'no-such-program': No such file or directory"
    assert not served.asked


def test_pods_that_ask_for_gpus_are_counted_by_namespace(served: Cluster, tmp_path: Path) -> None:
    served.put("pods", pod("a", on="gpu-1", namespace="llm"))
    served.put("pods", pod("b", namespace="llm"))
    served.put("pods", pod("c", on="gpu-1", namespace="web", gpus=0))
    served.put("pods", pod("d", on="gpu-1", namespace="old", phase="Succeeded"))
    path = kubeconfig(tmp_path / "config", ("a", served.url))
    assert read_gpu_namespaces(path, "a") == {"llm": 2}
    served.refuses["/pods"] = 403
    with pytest.raises(Transient, match="forbids it"):
        read_gpu_namespaces(path, "a")


def test_addresses_are_compared_as_servers_take_them(tmp_path: Path) -> None:
    addresses = ["https://K8s.example.com", "https://k8s.example.com:443/", "https://k8s.example.com/k8s/clusters/c-1"]
    path = kubeconfig(tmp_path / "config", *((f"c{index}", address) for index, address in enumerate(addresses)))
    one, same, other = (context.server for context in kubeconfig_contexts(path))
    assert one == same != other


def test_kubeconfigs_are_merged_and_the_current_context_is_known(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    kubeconfig(first, ("a", "https://a"))
    kubeconfig(second, ("b", "https://b"))
    second.write_text(json.dumps({**json.loads(second.read_text()), "current-context": "b"}))
    contexts = kubeconfig_contexts(Path(f"{first}:{second}"))
    assert [(context.name, context.current) for context in contexts] == [("a", False), ("b", True)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "is not a file"),
        ("- a\n", "is not a kubeconfig: it is no mapping"),
        ("kind: [", "is not YAML, from line 1 on"),
        ("clusters: []\nusers: []\ncontexts: []\n", "has no contexts"),
    ],
)
def test_a_kubeconfig_that_is_none_is_told(tmp_path: Path, text: str | None, why: str) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidInput, match=rf"config:? {why} \(try another --kubeconfig\)"):
        kubeconfig_contexts(path)
