"""Passes as documents: nothing that deciding reads is lost, and a patch is as good as the whole."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.state.order import Order
from reconciler.core.recording.documents import Operation, document_type
from reconciler.core.recording.json_patch import patched
from reconciler.core.recording.pass_record import ORDERS, PLAN, RECORD, PassRecord, RecordedPlan, read_record
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.model.capacity import ClusterObservation, Node, NodePool, Observed, Pool
from reconciler.model.ids import ClusterName, CommitId, TemplateName
from reconciler.model.request import Verb
from reconciler.model.tree import Identity
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import DeploySpec, ManifestResource
from tests.builders.passes import START
from tests.builders.random_values import RandomValues


def through_json(document: Any) -> Any:
    return json.loads(json.dumps(document))


def difference(before: PassRecord, after: PassRecord) -> list[Operation]:
    operations: list[Operation] = []
    RECORD.difference(before, after, "", operations)
    return operations


@given(st.integers(0, 2**32))
def test_record_is_read_back_as_it_was(seed: int) -> None:
    record: PassRecord = replace(RandomValues(seed).of(PassRecord), plan=RecordedPlan())
    ages = {name: record.at - seen.observed_at for name, seen in record.observed.clusters.items()}
    record = replace(record, ages=ages)
    assert read_record(through_json(RECORD.encode(record))) == record


@given(st.integers(0, 2**32))
def test_patch_makes_the_next_document_and_leaves_the_one_before_alone(seed: int) -> None:
    values = RandomValues(seed)
    before = values.of(PassRecord)
    after = before
    for _ in range(3):
        after = values.changed(after, PassRecord)
    document = through_json(RECORD.encode(before))
    kept = json.dumps(document)
    assert patched(document, through_json(difference(before, after))) == through_json(RECORD.encode(after))
    assert json.dumps(document) == kept


def test_document_from_before_a_field_was_recorded_is_read() -> None:
    seen = ClusterObservation(cluster=ClusterName("worker-2"), observed_at=START, node_pools={"gpu": NodePool()})
    kind = document_type(ClusterObservation)
    document = through_json(kind.encode(seen))
    assert kind.decode(document) == seen
    assert document.pop("nodePools") == {"gpu": {}}
    assert kind.decode(document) == replace(seen, node_pools=None)


def test_order_of_small_mappings_is_kept() -> None:
    labels = document_type(dict[str, str])
    operations: list[Operation] = []
    labels.difference({"b": "1", "c": "2"}, {"a": "0", "b": "1", "c": "2"}, "", operations)
    assert list(patched({"b": "1", "c": "2"}, operations)) == ["a", "b", "c"]


def test_unchanged_clusters_cost_no_operation() -> None:
    nodes = tuple(Node(name=f"node-{index}", free=Resources(amounts={"gpu": ONE})) for index in range(50))
    seen = ClusterObservation(
        cluster=ClusterName("worker-2"), observed_at=START, pools=(Pool(name="gpu", nodes=nodes),)
    )
    before = PassRecord(at=START, source=CommitId("5" * 40), observed=Observed(clusters={seen.cluster: seen}))
    fuller = replace(nodes[7], free=Resources(amounts={"gpu": Quantity(0)}))
    pools = (Pool(name="gpu", nodes=(*nodes[:7], fuller, *nodes[8:])),)
    after = replace(before, observed=Observed(clusters={seen.cluster: replace(seen, pools=pools)}))
    assert difference(before, after) == [
        {"op": "replace", "path": "/observed/clusters/worker-2/pools/0/nodes/7/free/amounts/gpu", "value": "0"}
    ]


def test_node_that_comes_is_one_operation() -> None:
    names = document_type(tuple[str, ...])
    operations: list[Operation] = []
    names.difference(("a", "b", "d"), ("a", "b", "c", "d"), "/nodes", operations)
    assert operations == [{"op": "add", "path": "/nodes/2", "value": "c"}]


def test_credentials_in_texts_are_left_out() -> None:
    seen = ClusterObservation(
        cluster=ClusterName("worker-2"), observed_at=START, message="pulling https://ada:hunter2@registry failed"
    )
    record = PassRecord(at=START, source=CommitId("5" * 40), observed=Observed(clusters={seen.cluster: seen}))
    assert "hunter2" not in json.dumps(RECORD.encode(record))


def order_of_pod(variable: dict[str, str]) -> Order:
    manifest = {"kind": "Pod", "spec": {"containers": [{"env": [variable]}]}}
    spec = DeploySpec(manifests=(ManifestResource(name="pod", manifest=manifest),))
    return Order(
        number=1, verb=Verb.CREATE, name="demo", workspace=None, within=None,
        author=Identity(name="Ada", email="ada@example.com"),
        draft=RequestDraft(name=TemplateName("demo"), workspace=None, spec=spec),
    )  # fmt: skip # one order


def test_credential_in_an_order_is_left_out_by_the_name_that_it_stands_under() -> None:
    order = order_of_pod({"name": "DB_PASSWORD", "value": "correct-horse"})
    assert "correct-horse" not in json.dumps(ORDERS.encode((order,)))
    assert ORDERS.decode(ORDERS.encode((order,))) != (order,)


def test_order_that_refers_to_credentials_is_recorded_as_it_is() -> None:
    order = order_of_pod({"name": "DATABASE_URL", "value": "postgres://$(USER):$(PASS)@db"})
    assert ORDERS.decode(ORDERS.encode((order,))) == (order,)


@dataclass(frozen=True, kw_only=True)
class Strange:
    """A type that no recording has."""

    value: complex = field(default=0j)


def test_type_without_a_document_is_refused() -> None:
    with pytest.raises(TypeError, match="complex"):
        document_type(Strange)


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        ({"op": "replace", "path": "/c", "value": 1}, KeyError),
        ({"op": "remove", "path": "/a/7"}, IndexError),
        ({"op": "move", "path": "/a", "from": "/b"}, ValueError),
        ({"op": "add", "path": "/b/x/y", "value": 1}, (TypeError, AttributeError)),
    ],
)
def test_patch_that_does_not_fit_is_refused(operation: Operation, error: type[Exception]) -> None:
    with pytest.raises(error):
        patched({"a": [1], "b": 2}, [operation])


def test_every_change_of_a_plan_has_a_document() -> None:
    for seed in range(20):
        plan = RandomValues(seed).of(RecordedPlan)
        assert len(PLAN.encode(plan).get("changes", ())) == len(plan.changes)
