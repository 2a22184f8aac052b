"""What `overspill bootstrap` prints is taken by an API server that knows Argo CD's kinds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.core.schema import yaml
from tests.e2e.argo_cd import teach
from tests.e2e.components import Missing, sources
from tests.e2e.conftest import LAYOUT
from tests.e2e.control_plane import Cluster, Json

BOOTSTRAP = LAYOUT / "bootstrap" / "argocd.yaml"
KINDS = {"AppProject": "appprojects", "ApplicationSet": "applicationsets"}
STRICTLY = ("apply", "--server-side", "--validate=strict", "--filename=-")


@pytest.fixture(scope="module", params=["v3.3.18", "v3.5.7"])
def cluster(start_cluster: Callable[[str], Cluster], request: pytest.FixtureRequest) -> Cluster:
    """Teach a cluster Argo CD's kinds as released: those of the oldest line that we name, and of a newer one."""
    found = sources(f"github.com/argoproj/argo-cd/v3@{request.param}")
    if isinstance(found, Missing):
        pytest.skip(found.reason)
    cluster = start_cluster("worker-2")
    teach(cluster, found)
    return cluster


def test_argo_cd_bootstrap_is_accepted_with_every_field_kept(cluster: Cluster) -> None:
    text = BOOTSTRAP.read_text()
    cluster.kubectl(*STRICTLY, "--dry-run=server", stdin=text)
    cluster.kubectl(*STRICTLY, stdin=text)
    for document in yaml.parse(BOOTSTRAP.read_bytes(), BOOTSTRAP.name):
        sent: Json = document.value
        path = f"/apis/argoproj.io/v1alpha1/namespaces/argocd/{KINDS[sent['kind']]}/{sent['metadata']['name']}"
        assert cluster.call("GET", path)["spec"] == sent["spec"], "a field was dropped, or filled in otherwise"


def test_field_that_argo_cd_does_not_know_would_be_refused(cluster: Cluster) -> None:
    text = BOOTSTRAP.read_text().replace("preserveResourcesOnDeletion", "preserveResourcesOnDelete")
    with pytest.raises(AssertionError, match="preserveResourcesOnDelete"):
        cluster.kubectl(*STRICTLY, "--dry-run=server", stdin=text)
