"""Bodies of JSON: what is taken, and what is told of those that are not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.schema.yaml import read_object
from reconciler.errors import InvalidInput
from tests.builders.api_server import ACCESS, ADA, Answer, SecuredApi, open_api


@pytest.fixture(scope="module")
def secured() -> Iterator[SecuredApi]:
    with open_api(access=lambda: ACCESS) as opened:
        yield opened


def put(secured: SecuredApi, body: bytes, kind: str = "application/json; charset=utf-8") -> Answer:
    secured.clock.move(1)
    return secured.call("/test/llm/things/x", ADA, method="PUT", body=body, Content_Type=kind)


def test_an_object_is_taken(secured: SecuredApi) -> None:
    assert put(secured, '{"a": [1, {"b": "ü😀"}]}'.encode()).body["data"] == {"x": {"a": [1, {"b": "ü😀"}]}}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "request: is empty (try {})"),
        (b"{", "request:1: is not JSON: Expecting property name enclosed in double quotes at column 2"),
        (b'{"a": 1,\n "b" 2}', "request:2: is not JSON: Expecting ':' delimiter at column 6"),
        (b"a: 1", "request:1: is not JSON"),
        (b"{a: 1}", "request:1: is not JSON"),
        (b"[1]", "request:1: must be an object (try {...})"),
        (b'"a"', "request:1: must be an object"),
        (b'{"a": 1,\n "a": 2}', "request:2: key 'a' stands here twice (try removing one)"),
        (b'{"a": [{"b": 1,\n "b": 2}]}', "request:2: key 'b' stands here twice"),
        (b'{"a": "\\ud83d\\ude00", "a": 2}', "request: has the same key twice in an object, or more than 64 levels"),
        (b'{"a": NaN}', "request: holds NaN, which is no JSON (try null, or leaving the field out)"),
        (b'{"a": -Infinity}', "request: holds -Infinity, which is no JSON"),
        (b'{"a": 1e999}', "request:1: 1e999 is more than a number can hold"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is more than a number can hold"),
        (b'{"a": "\\ud800"}', "request: holds half of a surrogate pair"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "request:1: is nested deeper than 64 levels"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "request:1: is nested deeper than 64 levels"),
        (b'{"a": "\xff"}', "request:1: is not UTF-8 (byte 0xff)"),
        ('{"a": 1}'.encode("utf-16"), "request:1: begins with a byte order mark of UTF-16"),
        (b'{"a": [' + b"1," * 100_000 + b"1]}", "request:1: holds more than 100,000 values"),
    ],
)
def test_anything_else_is_refused_with_its_place(secured: SecuredApi, body: bytes, told: str) -> None:
    answer = put(secured, body)
    assert answer.status == 400
    assert told in answer.body["message"]
    assert answer.body["error"]["problems"][0]["path"] == "request"


def test_other_content_is_refused_with_the_header_to_send(secured: SecuredApi) -> None:
    answer = put(secured, b"a=1", "application/x-www-form-urlencoded")
    assert (answer.status, answer.body["message"]) == (415, "application/x-www-form-urlencoded is not JSON")
    assert answer.body["error"]["hint"] == "try -H 'Content-Type: application/json'"


def test_body_over_a_mebibyte_is_not_read(secured: SecuredApi) -> None:
    assert put(secured, b'{"a": "' + b"x" * (1 << 20) + b'"}').status == 413


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(TEXTS, JSON, max_size=3), st.booleans())
def test_every_object_that_json_can_write_is_read(value: dict[str, Any], ascii_only) -> None:
    assert read_object(json.dumps(value, ensure_ascii=ascii_only).encode(), "request") == value


@given(st.binary(max_size=50))
def test_no_bytes_do_more_than_be_refused(data: bytes) -> None:
    try:
        value = read_object(data, "request")
    except InvalidInput as error:
        value = {problem.path: problem for problem in error.problems}
    assert isinstance(value, dict)
