"""Node selector terms mean here what they mean to the scheduler, and fit never says more than it does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.ledger.replica_record import read_shape, write_shape
from reconciler.core.pods.node_affinity import describe_node_selector, required_labels
from reconciler.core.pods.pod_shape import node_terms, replica_shape
from reconciler.model.capacity import ClusterObservation, Node, Pool, ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.requirements import Requirement, Requirements, any_met
from tests.builders.inputs import NOW, gpus, shape

NODE = {"zone": "a", "cores": "64", "model": "H100", "empty": ""}


def requirement(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key=key, operator=operator, values=values)


def term(*labels: Requirement, fields: tuple[Requirement, ...] = ()) -> Requirements:
    return Requirements(labels=labels, fields=fields)


@pytest.mark.parametrize(
    ("asked", "met"),
    [
        (requirement("zone", "In", "b", "a"), True),
        (requirement("zone", "In", "b"), False),
        (requirement("none", "In", "a"), False),
        (requirement("zone", "NotIn", "a", "b"), False),
        (requirement("zone", "NotIn", "b"), True),
        (requirement("none", "NotIn", "b"), True),
        (requirement("empty", "Exists"), True),
        (requirement("none", "Exists"), False),
        (requirement("none", "DoesNotExist"), True),
        (requirement("empty", "DoesNotExist"), False),
        (requirement("cores", "Gt", "63"), True),
        (requirement("cores", "Gt", "64"), False),
        (requirement("cores", "Lt", "65"), True),
        (requirement("zone", "Gt", "1"), False),
        (requirement("none", "Lt", "1"), False),
        (requirement("cores", "Gt", "many"), False),
        (requirement("zone", "Near", "a"), False),
    ],
)
def test_operators_are_kubernetes(asked, met) -> None:
    assert any_met((term(asked),), NODE, "gpu-1") is met


def test_terms_are_alternatives_and_their_requirements_hold_together() -> None:
    zone, model = requirement("zone", "In", "b"), requirement("model", "In", "H100")
    assert not any_met((term(zone, model),), NODE, "gpu-1")
    assert any_met((term(zone), term(model)), NODE, "gpu-1")


def test_term_that_asks_for_nothing_is_met_by_no_node() -> None:
    assert not any_met((term(),), NODE, "gpu-1")
    assert replica_shape(affine({})).node_terms == (Requirements(),)


def test_node_is_found_by_its_name() -> None:
    asked = term(fields=(requirement("metadata.name", "In", "gpu-1"),))
    assert any_met((asked,), {}, "gpu-1")
    assert not any_met((asked,), {}, "gpu-2")


def affine(*terms: dict, **spec: object) -> dict:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"containers": [], "affinity": {"nodeAffinity": required}, **spec}


def expressions(*rows: tuple[str, str, list[str]]) -> dict:
    return {
        "matchExpressions": [{"key": key, "operator": operator, "values": values} for key, operator, values in rows]
    }


def test_what_a_selector_could_say_becomes_part_of_it() -> None:
    seen = replica_shape(affine(expressions(("zone", "In", ["a"]), ("cores", "Gt", ["8"])), nodeSelector={"arch": "x"}))
    assert seen.node_selector == {"arch": "x", "zone": "a"}
    assert seen.node_terms == (term(requirement("cores", "Gt", "8")),)
    assert replica_shape(affine(expressions(("zone", "In", ["a"])))).node_terms == ()


def test_selector_and_affinity_that_contradict_each_other_fit_nowhere() -> None:
    seen = replica_shape(affine(expressions(("zone", "In", ["b"])), nodeSelector={"zone": "a"}))
    assert room(*({"zone": name} for name in "ab")).count(seen, 1) == 0


def test_several_terms_are_kept_as_they_are() -> None:
    terms = (expressions(("zone", "In", ["a"])), expressions(("model", "NotIn", ["A100"])))
    seen = replica_shape(affine(*terms))
    assert seen.node_selector == {}
    assert seen.node_terms == (term(requirement("zone", "In", "a")), term(requirement("model", "NotIn", "A100")))


def test_no_selector_is_not_a_selector_that_nothing_meets() -> None:
    assert node_terms(None) is None
    assert node_terms({"nodeSelectorTerms": []}) == ()


def room(*labels: dict[str, str]) -> ClusterCapacity:
    nodes = tuple(Node(name=f"n{index}", free=gpus(8), labels=one) for index, one in enumerate(labels))
    pool = Pool(name="p", nodes=nodes)
    return ClusterCapacity(ClusterObservation(cluster=ClusterName("c"), observed_at=NOW, pools=(pool,)))


def test_only_nodes_that_meet_a_term_count() -> None:
    wanted = shape(8, node_terms=(term(requirement("model", "In", "H100", "H200")),))
    full = room({"model": "H100"}, {"model": "A100"}, {})
    assert full.count(wanted, 5) == 1
    full.take(wanted, 1)
    assert full.count(wanted, 5) == 0
    assert full.count(shape(8), 5) == 2


def test_shortfall_says_which_labels_no_node_has() -> None:
    wanted = shape(
        1,
        node_selector={"zone": "a"},
        node_terms=(term(requirement("cores", "Gt", "8"), requirement("spot", "DoesNotExist")), term()),
    )
    assert room({}).shortfall(wanted) == "no node has zone=a, cores > 8, no spot or nothing"
    assert (
        describe_node_selector(shape(1, node_terms=(term(requirement("zone", "NotIn", "a", "b")),)))
        == "zone not in (a, b)"
    )


def test_models_are_named_where_several_will_do() -> None:
    product = "nvidia.com/gpu.product"
    assert required_labels(shape(1, node_terms=(term(requirement(product, "In", "H100", "H200")),))) == (
        (product, "H100 or H200"),
    )


def test_shape_without_terms_is_written_as_ever() -> None:
    plain = ReplicaShape(requests=gpus(1), node_selector={"zone": "a"})
    assert (
        write_shape(plain)
        == '{"groupSize":1,"nodeSelector":{"zone":"a"},"requests":{"nvidia.com/gpu":"1"},"tolerations":[]}'
    )


words = st.text(max_size=5)
requirements = st.lists(
    st.builds(Requirement, key=words, operator=words, values=st.lists(words, max_size=2).map(tuple)), max_size=2
).map(tuple)


@given(st.lists(st.builds(Requirements, labels=requirements, fields=requirements), max_size=3).map(tuple))
def test_terms_survive_being_written_to_git(terms) -> None:
    asked = shape(1, node_terms=terms)
    assert read_shape(write_shape(asked)) == asked
