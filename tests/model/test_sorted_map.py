"""A SortedMap is a dict that does not change and is always in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.sorted_map import SortedMap

mappings = st.dictionaries(st.integers(0, 40), st.integers(0, 3) | st.none(), max_size=100)


@given(first=mappings, edits=st.lists(st.tuples(mappings, st.lists(st.integers(0, 40))), max_size=4))
def test_it_holds_what_a_dict_would_hold_in_the_order_of_keys(first: dict, edits: list):
    expected, found = dict(first), SortedMap(first)
    for put, drop in edits:
        expected = {key: value for key, value in expected.items() if key not in drop} | put
        before, entries = found, list(found.items())
        found = found.changed(put, drop)
        assert list(before.items()) == entries
        assert list(found) == sorted(expected)
        assert list(found.items()) == sorted(expected.items(), key=lambda item: item[0])
        assert list(found.values()) == [expected[key] for key in sorted(expected)]
        assert found == expected
        assert found == SortedMap(expected)
        assert len(found) == len(expected)


def test_many_changes_at_once_keep_the_order():
    numbers = SortedMap(dict.fromkeys(range(0, 1000, 2)))
    assert list(numbers.changed(dict.fromkeys(range(1, 1000, 2)))) == list(range(1000))


def test_it_cannot_be_changed():
    with pytest.raises(TypeError):
        SortedMap({1: 2})[1] = 3


def test_a_missing_key_is_a_key_error():
    assert SortedMap({1: 2}).get(3) is None
    assert 3 not in SortedMap({1: 2})
    with pytest.raises(KeyError):
        SortedMap({1: 2})[3]
