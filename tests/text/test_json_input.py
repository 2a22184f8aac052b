"""JSON of others is read within bounds of bytes, values and depth, and every string of it can be written again."""

from __future__ import annotations

import json

import pytest

from reconciler.model.bounds import CLUSTER_DEPTH, BoundedInput, InputBound, JsonBounds, Unit
from reconciler.text.json_input import JsonTooLarge, UnreadableJson, parse_json


def bound(most: int, unit: Unit) -> InputBound:
    return InputBound(input=BoundedInput.HTTP, of="an answer", most=most, unit=unit, beyond="is refused")


BOUNDS = JsonBounds(size=bound(1000, Unit.BYTES), values=bound(100, Unit.VALUES), depth=bound(5, Unit.LEVELS))


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, {"a": [1, {"b": [2]}]}, [[[[[]]]]]])
def test_a_value_within_the_bounds_is_read_as_it_is(value: object) -> None:
    assert parse_json(json.dumps(value).encode(), BOUNDS) == value


@pytest.mark.parametrize("text", [b'"' + b"x" * 1000 + b'"', b"[" + b"[]," * 99 + b"[]]", b"[" + b"1," * 99 + b"1]"])
def test_too_many_bytes_or_values_are_refused_as_too_large(text: bytes) -> None:
    with pytest.raises(JsonTooLarge, match=r"over (1,000 bytes|100 values)"):
        parse_json(text, BOUNDS)


@pytest.mark.parametrize("text", [b"[" * 6 + b"]" * 6, b'{"a":' * 6 + b"1" + b"}" * 6, b'["]]]]",[[[[[]]]]]]'])
def test_a_deep_value_is_refused(text: bytes) -> None:
    with pytest.raises(UnreadableJson, match="nested over 5 levels"):
        parse_json(text, BOUNDS)


def test_a_depth_beyond_the_interpreter_is_refused_alike() -> None:
    wide = JsonBounds(size=bound(1 << 20, Unit.BYTES), values=bound(1 << 20, Unit.VALUES), depth=BOUNDS.depth)
    with pytest.raises(UnreadableJson, match="nested over 5 levels"):
        parse_json(b"[" * 200_000 + b"]" * 200_000, wide)


@pytest.mark.parametrize("text", [b"", b"<html>", b"NaN", b"[-Infinity]", b"\0", b"{'a': 1}"])
def test_what_is_no_json_is_refused_with_a_reason(text: bytes) -> None:
    with pytest.raises(UnreadableJson, match=r"^is no JSON: "):
        parse_json(text, BOUNDS)


@pytest.mark.parametrize("text", [b'{"\\ud800": "\\udc00x"}', b'["\xff\xed\xa0\x80", "\\ud83d"]'])
def test_text_that_is_no_unicode_can_be_written_again(text: bytes) -> None:
    json.dumps(parse_json(text, BOUNDS), ensure_ascii=False).encode()


def test_pairs_of_surrogates_stay() -> None:
    assert parse_json(b'"\\ud83d\\ude00"', BOUNDS) == "\N{GRINNING FACE}"


def test_a_number_of_too_many_digits_costs_its_field_alone() -> None:
    wide = JsonBounds(size=bound(1 << 20, Unit.BYTES), values=BOUNDS.values, depth=BOUNDS.depth)
    text = b'{"huge": -' + b"9" * 5000 + b', "usual": 7, "large": ' + b"9" * 300 + b"}"
    assert parse_json(text, wide) == {"huge": None, "usual": 7, "large": int("9" * 300)}


def test_a_number_that_is_infinite_to_python_costs_its_field_alone() -> None:
    assert parse_json(b'{"huge": 1e400, "low": -1E999, "usual": 1.5, "large": 1e300}', BOUNDS) == {
        "huge": None,
        "low": None,
        "usual": 1.5,
        "large": 1e300,
    }


@pytest.mark.parametrize("most", [1, 2, 64, CLUSTER_DEPTH.most])
@pytest.mark.parametrize("innermost", [b"", b"1", b'{"a": 1}'])
def test_depth_is_bounded_to_the_level(most: int, innermost: bytes) -> None:
    wide = JsonBounds(size=bound(1 << 20, Unit.BYTES), values=bound(1000, Unit.VALUES), depth=bound(most, Unit.LEVELS))
    inside = most - innermost.count(b"{")
    assert parse_json(b"[" * inside + innermost + b"]" * inside, wide) is not None
    with pytest.raises(UnreadableJson, match=f"nested over {most} levels"):
        parse_json(b"[" * (inside + 1) + innermost + b"]" * (inside + 1), wide)


def test_depth_that_python_cannot_read_is_refused_as_any_other() -> None:
    wide = JsonBounds(size=bound(1 << 20, Unit.BYTES), values=bound(1 << 20, Unit.VALUES), depth=CLUSTER_DEPTH)
    with pytest.raises(UnreadableJson, match="nested over 500 levels"):
        parse_json(b"[" * 2500 + b"]" * 2500, wide)
