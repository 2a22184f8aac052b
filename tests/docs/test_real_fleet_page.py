"""docs/tutorial/real-fleet.md begins a repository that is true of its fleet. tests/e2e runs it on clusters."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from reconciler.core.observe.kubernetes.resources import plural_of
from tests.builders.kube_objects import node, pod
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "tutorial" / "real-fleet.md").read_text()
ADDRESS = "https://git.example.com/acme/fleet.git"
DEPLOYMENT = {
    "metadata": {"name": "vllm", "namespace": "serving"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "vllm"}},
        "template": {
            "metadata": {"labels": {"app": "vllm"}},
            "spec": {
                "containers": [
                    {"name": "server", "image": "server:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
                ]
            },
        },
    },
}


def commands(number: int) -> str:
    """Find what one step of the page says to type, but for what needs more than the clusters served here have."""
    (step,) = re.findall(rf"^## {number}\. .*?(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    typed = "".join(re.findall(r"^```sh run\n(.*?)^```$", step, re.MULTILINE | re.DOTALL))
    return re.sub("^overspill doctor .*$", "", typed, flags=re.MULTILINE)


def still(text: str) -> str:
    """Return a table without its times and the digits of names."""
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z|\b\d+s\b|\b[0-9a-f]{8}\b", "*", text)


@pytest.fixture
def served() -> dict[str, Cluster]:
    """Hold the clusters of the page, once they are served."""
    return {}


@pytest.fixture
def clusters(tmp_path: Path, served: dict[str, Cluster]) -> Iterator[Path]:
    """Serve the three clusters of the page, and yield the kubeconfig that it begins with."""
    engines = {
        "worker-1": {},
        "worker-2": {"/apis/kustomize.toolkit.fluxcd.io/v1": {"resources": [{"name": "kustomizations"}]}},
        "worker-3": {"/apis/argoproj.io/v1alpha1": {"resources": [{"name": "applications"}]}},
    }
    with ExitStack() as stack:
        addresses = []
        for name, documents in engines.items():
            cluster = Cluster()
            cluster.documents |= documents
            cluster.put("namespaces", {"metadata": {"name": "argocd"}})
            cluster.put("nodes", node("gpu-1", 8))
            served[name] = cluster
            addresses.append((name, stack.enter_context(serving(cluster))))
        served["worker-1"].put("pods", pod("vllm-1", on="gpu-1", namespace="serving"))
        served["worker-1"].groups["apps"] = ["v1"]
        served["worker-1"].documents |= {
            "/apis/apps/v1": {"resources": [{"name": "deployments", "kind": "Deployment"}]},
            "/apis/apps/v1/namespaces/serving/deployments/vllm": DEPLOYMENT,
        }
        yield kubeconfig(tmp_path / "administrator", *addresses)


@pytest.fixture
def person(person: dict[str, str], clusters: Path) -> dict[str, str]:
    """Be somebody with the commands of the page, whose clusters take all that they are given."""
    person["KUBECONFIG"] = str(clusters)
    for name, does in {"kubectl": "echo /hook/0", "openssl": "echo 0"}.items():
        program = Path(person["PATH"].partition(os.pathsep)[0]) / name
        program.write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o755)
    return person


def test_what_is_granted_and_applied_is_for_its_own_clusters(
    tmp_path: Path, person: dict[str, str], served: dict[str, Cluster]
) -> None:
    remote = tmp_path / "fleet.git"

    def types(*lines: str) -> str:
        text = "\n".join(lines).replace(ADDRESS, str(remote))
        # The engines clone from an address that is not on this disk.
        text = text.replace("overspill init ", f"overspill init --repo-url {ADDRESS} ")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=tmp_path, env=person, check=False,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180,
        )  # fmt: skip # a command line, word by word
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    types("git init --quiet --bare --initial-branch=main fleet.git", "echo 0 > git-read-password")
    types(commands(1))
    here = f"export OVERSPILL_REPO={shlex.quote(str(remote))}"
    types(here, commands(3))
    planned = types(here, 'export OVERSPILL_KUBECONFIG="$PWD/kubeconfig"', commands(4))
    (shown,) = re.findall(r"^```text plan\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert still(shown) in still(planned)
    contexts = yaml.safe_load((tmp_path / "kubeconfig").read_text())["contexts"]
    assert [context["name"] for context in contexts] == ["worker-1", "worker-2", "worker-3"]
    assert "overspill/overspill-flux-reader" in served["worker-2"].objects["roles"]
    assert "argocd/overspill-argocd-reader" in served["worker-3"].objects["roles"]
    for name, words in (("worker-3", "argocd"), ("worker-2", "flux --cluster worker-2")):
        for document in yaml.safe_load_all(types(here, f"overspill bootstrap {words}")):
            metadata = document["metadata"]
            key = f"{metadata.get('namespace', '')}/{metadata['name']}"
            applied = served[name].objects[plural_of(document["kind"])][key]
            assert {**applied, "metadata": metadata} == document
