"""An API server judges the workloads that the tests of `check` take for wrong and for right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.builders.judged_workloads import NAMESPACE, REFUSED, TAKEN
from tests.e2e.api_server import Json, Refused
from tests.e2e.control_plane import Cluster, lone_server, missing, path_of


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start an API server alone: nothing but its validation is asked."""
    if reason := missing(("etcd", "kube-apiserver")):
        pytest.skip(reason)
    with lone_server(tmp_path_factory.mktemp("clusters") / "judged", NAMESPACE) as made:
        yield made


def ask(server: Cluster, manifest: Json) -> None:
    """Ask the server for the object, which it does not keep; an unknown field is an error as well."""
    server.call("POST", f"{path_of(server, manifest)}?dryRun=All&fieldValidation=Strict", manifest)


@pytest.mark.parametrize("manifest", REFUSED.values(), ids=REFUSED)
def test_an_api_server_refuses_what_is_taken_for_wrong(server: Cluster, manifest: Json) -> None:
    with pytest.raises(Refused) as refused:
        ask(server, manifest)
    assert refused.value.status in (400, 422), str(refused.value)


@pytest.mark.parametrize("manifest", TAKEN.values(), ids=TAKEN)
def test_an_api_server_takes_what_is_taken_for_right(server: Cluster, manifest: Json) -> None:
    ask(server, manifest)
