"""What we take for immutable an API server refuses to change, and what we write in its place it takes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache

import pytest
import yaml

from reconciler.core.engines.standing_objects import hold_immutable
from reconciler.core.schema.yaml import emit
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS
from tests.builders.immutable_objects import CHANGES, FREE_CHANGES, NAMESPACE, FieldChange
from tests.e2e.api_server import Json, Refused
from tests.e2e.control_plane import Cluster, missing


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start an API server alone: nothing but its validation is asked."""
    if reason := missing(("etcd", "kube-apiserver")):
        pytest.skip(reason)
    made = Cluster("immutable", tmp_path_factory.mktemp("clusters") / "immutable", controllers=False)
    made.ensure_namespace(NAMESPACE)
    made.call("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
    yield made
    made.stop()


def path_of(server: Cluster, manifest: Json) -> str:
    """Return where the objects of a kind are, as the server says."""
    version, kind = manifest["apiVersion"], manifest["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = manifest["metadata"].get("namespace")
    around = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{around}/{_plural(server, root, kind)}"


@cache
def _plural(server: Cluster, root: str, kind: str) -> str:
    resources = server.call("GET", root)["resources"]
    (name,) = (entry["name"] for entry in resources if entry["kind"] == kind and "/" not in entry["name"])
    return str(name)


def written(before: Json, after: Json) -> Json:
    """Return what we write over an object that stands."""
    held = hold_immutable(
        {"a/object.yaml": emit(before).encode()}, {"a/object.yaml": emit(after).encode()}, {}, NO_SCHEMAS, charts=False
    )
    (data,) = held.files.values()
    return yaml.safe_load(data)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.id)
def test_immutable_field_is_refused_and_what_is_written_is_taken(server: Cluster, change: FieldChange) -> None:
    path = path_of(server, change.before)
    server.apply(path, change.before)
    with pytest.raises(Refused) as refused:
        server.apply(path, change.after)
    assert refused.value.status == 422, str(refused.value)
    server.apply(path, written(change.before, change.after))


@pytest.mark.parametrize("change", FREE_CHANGES, ids=lambda change: change.id)
def test_field_that_is_not_held_is_taken(server: Cluster, change: FieldChange) -> None:
    path = path_of(server, change.before)
    for version in (change.before, change.after):
        named = copy.deepcopy(version)
        named["metadata"]["name"] += "-free"
        server.apply(path, named)
    assert written(change.before, change.after) == change.after
