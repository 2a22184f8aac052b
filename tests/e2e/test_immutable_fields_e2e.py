"""What we take for immutable an API server refuses to change, and what we write in its place it takes."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import yaml

from reconciler.core.engines.standing_objects import hold_immutable
from reconciler.core.schema.yaml import emit
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS
from tests.builders.immutable_objects import CHANGES, FREE_CHANGES, NAMESPACE, FieldChange
from tests.e2e.api_server import Json, Refused
from tests.e2e.control_plane import Cluster, lone_server, missing, path_of


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start an API server alone: nothing but its validation is asked."""
    if reason := missing(("etcd", "kube-apiserver")):
        pytest.skip(reason)
    with lone_server(tmp_path_factory.mktemp("clusters") / "immutable", NAMESPACE) as made:
        yield made


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
