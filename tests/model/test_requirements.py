"""Requirements on labels: what holds together, what a cluster decides, and the values that are left."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.kubernetes.requirements import Requirement, Requirements, all_met, allowed_values, equals

KEYS, VALUES = ("zone", "model", "cores"), ("a", "b", "7", "64")
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
OPERATORS = st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))


@st.composite
def requirements(draw: st.DrawFn) -> tuple[Requirement, ...]:
    made = []
    for _ in range(draw(st.integers(0, 4))):
        operator = draw(OPERATORS)
        values = () if "Exist" in operator else tuple(draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3)))
        made.append(Requirement(key=draw(st.sampled_from(KEYS)), operator=operator, values=values))
    return tuple(made)


@given(requirements(), requirements(), LABELS)
def test_requirements_with_others_are_met_where_both_are(
    some: tuple[Requirement, ...], others: tuple[Requirement, ...], labels: Mapping[str, str]
) -> None:
    both = Requirements(labels=some).also(others)
    assert both.are_met(labels, "") is (not both.is_empty and all_met(some, labels) and all_met(others, labels))


@given(requirements(), LABELS, LABELS)
def test_nodes_of_a_cluster_decide_what_its_own_labels_leave(
    asked: tuple[Requirement, ...], cluster: Mapping[str, str], node: Mapping[str, str]
) -> None:
    term = Requirements(labels=asked)
    left = term.given(cluster, "")
    met = left is not None and all_met(left.labels, node)
    assert met is all_met(asked, {**node, **cluster})
    assert left is None or left.labels == term.undecided(cluster)


@given(requirements(), LABELS)
def test_values_that_are_left_are_those_that_lists_allow(
    asked: tuple[Requirement, ...], labels: Mapping[str, str]
) -> None:
    left = allowed_values(asked)
    if all_met(asked, labels):
        assert all(labels[key] in values for key, values in left.items())
    listed = [requirement for requirement in asked if requirement.operator in ("In", "NotIn")]
    assert all(
        all(requirement.is_met(value) for requirement in listed if requirement.key == key)
        for key, values in left.items()
        for value in values
    )


def test_name_of_a_cluster_decides_requirements_on_it() -> None:
    named = Requirements(labels=(equals("zone", "a"),), fields=(equals("metadata.name", "worker-2"),))
    assert named.given({}, "worker-3") is None
    assert named.given({}, "worker-2") == Requirements(labels=(equals("zone", "a"),))
    assert named.given({"zone": "a"}, "worker-2") == Requirements()
    assert named.given({"zone": "b"}, "worker-2") is None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (equals("pool", "h100"), "pool=h100"),
        (Requirement(key="spot", operator="DoesNotExist"), "no spot"),
        (Requirement(key="zone", operator="NotIn", values=("a", "b")), "zone not in (a, b)"),
        (Requirement(key="cores", operator="Gt", values=("8",)), "cores > 8"),
        (Requirements(), "nothing"),
        (Requirements(labels=(equals("pool", "h100"),), fields=(equals("name", "a"),)), "pool=h100, name=a"),
    ],
)
def test_requirements_describe_themselves(asked: Requirement | Requirements, words: str) -> None:
    assert str(asked) == words
