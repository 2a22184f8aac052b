"""A Helm release is read from the one Secret of its deployed revision, and from no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.adapters.kube.live.release import read_live_release
from reconciler.core.onboarding.helm_release import HelmRelease
from reconciler.errors import InvalidInput, Transient
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Connection
from tests.builders.helm_releases import VALUES, document, secret
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving

PRIMARY = ClusterName("worker-1")
SECRETS = "/api/v1/namespaces/demo/secrets"
NAME = "sh.helm.release.v1.vllm.v"


@pytest.fixture
def primary() -> Iterator[Cluster]:
    cluster = Cluster()
    with serving(cluster):
        cluster.put("secrets", secret(b"old", revision=9, status="superseded"))
        cluster.put("secrets", secret(document(), revision=10))
        cluster.put("secrets", secret(b"broken", revision=11, status="failed"))
        yield cluster


def read(primary: Cluster, path: Path, name: str = "vllm") -> HelmRelease:
    file = kubeconfig(path / "config", (PRIMARY, primary.url))
    return read_live_release(file, PRIMARY, Connection(context=PRIMARY), ("demo", name))


def test_deployed_revision_is_read_and_no_other_secret(primary: Cluster, tmp_path: Path) -> None:
    release = read(primary, tmp_path)
    assert (release.chart, release.version, release.values) == ("vllm-stack", "0.1.7", VALUES)
    assert [(each.title, each.source) for each in release.objects][:2] == [
        ("deployment/vllm-engine", "vllm-stack/templates/engine.yaml"),
        ("deployment/vllm-router", "vllm-stack/charts/router/templates/router.yaml"),
    ]
    assert release.read_from == f"Secret demo/{NAME}10 of worker-1"
    assert [path for _, path, _ in primary.asked] == [SECRETS, f"{SECRETS}/{NAME}10"]


def test_release_that_is_not_there_is_told_with_the_nearest(primary: Cluster, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"worker-1 has no Helm release demo/vlm \(try 'vllm'\)"):
        read(primary, tmp_path, "vlm")
    primary.objects["secrets"].clear()
    with pytest.raises(InvalidInput, match=r"there is none: try another --namespace"):
        read(primary, tmp_path)


def test_release_of_which_nothing_is_deployed_is_told(primary: Cluster, tmp_path: Path) -> None:
    primary.delete("secrets", f"{NAME}10", "demo")
    with pytest.raises(InvalidInput, match="of release demo/vllm on worker-1 is deployed: the last one is failed"):
        read(primary, tmp_path)


@pytest.mark.parametrize("path", ["/secrets", f"/{NAME}10"])
def test_login_without_the_right_is_told_the_way_out(primary: Cluster, tmp_path: Path, path: str) -> None:
    primary.refuses[path] = 403
    with pytest.raises(InvalidInput, match="worker-1 forbids it") as caught:
        read(primary, tmp_path)
    way = "`helm get values vllm --namespace demo --output yaml > values.yaml`"
    assert way in str(caught.value)
    assert "--filename manifest.yaml --values values.yaml" in str(caught.value)


def test_answer_that_no_api_server_gives_is_told(primary: Cluster, tmp_path: Path) -> None:
    primary.documents[SECRETS] = {"items": [{}]}
    with pytest.raises(Transient, match="cluster worker-1 sent what no API server sends"):
        read(primary, tmp_path)
