"""Every reader takes what we write for what we meant."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.schema.yaml import MAX_DEPTH, MAX_NODES, emit, parse, reads_back
from reconciler.errors import InvalidInput

TRICKY = [
    "1e3", "1E5", "0o17", ".5e1", "1e-3", "-1e9", "y", "n", "yes", "No", "on", "OFF", "true", "False", "null", "~", "",
    "25921e05", "25921605", "0755", "0x1f", "1_000", "12:30:45", "2026-11-20", "2026-11-20T10:15:00Z", ".inf", ".nan",
    "=", "<<", "-", "--- ", "...", "---", "?", ":", "#", "a #b", "a: b", "a:", ": b", "- a", "[a]", "{a}", "&a", "*a",
    "!a", "|", ">", "%a", "@a", "`a`", "'", '"', "\\", " x", "x ", "\t", "\n", "\n\n", "a\n", "a\nb", "a\n\nb\n",
    "a\n\n", " a\nb", "a\n b\n  c\n", "a\nb ", "a\n   ", "\na", "a\tb\nc", "a\r\nb", "\x00", "\x07", "\x7f", "\x85",
    "\xa0", "\u2028",
    "\ufeff", "\uffff", "é", "日本語", "😀", "a\n😀\n", "x" * 5000, "x " * 3000, "key: |\n  text\n",
    "# comment\nkey: value\n", "---\na: 1\n", "{{ replicas }}",
]  # fmt: skip # a list of words, filled line by line


def read_back(value):
    written = emit(value)
    assert written.endswith("\n")
    ours = [document.value for document in parse(written.encode(), "f.yaml")]
    assert ours == ([] if value is None else [value])
    assert list(yaml.load_all(written, Loader=yaml.CSafeLoader)) == [value]
    assert list(yaml.load_all(written, Loader=yaml.SafeLoader)) == [value]
    return written


@pytest.mark.parametrize("text", TRICKY)
def test_tricky_text_stays_text(text):
    for value in (text, [text], {"key": text}, {text: "value"}, {"a": {"b": [text, [text], {text: text}]}}):
        read_back(value)


def test_only_words_that_nobody_takes_for_anything_else_stand_plain():
    assert emit({"a": ["vllm", "nvidia.com/gpu", "apps/v1", "10m", "Yes", "1e3", "a:b", ""]}) == (
        'a:\n- vllm\n- nvidia.com/gpu\n- apps/v1\n- "10m"\n- "Yes"\n- "1e3"\n- "a:b"\n- ""\n'
    )


def test_text_of_several_lines_is_a_block():
    assert (
        emit({"a": {"b": "one\n\ntwo\n", "c": ["x\ny"]}})
        == "a:\n  b: |\n    one\n\n    two\n  c:\n  - |-\n    x\n    y\n"
    )


def test_the_order_of_keys_is_kept():
    assert emit({"b": 1, "a": {"z": 1, "c": 2}}) == "b: 1\na:\n  z: 1\n  c: 2\n"


def test_empty_collections_are_written_in_flow_style():
    assert emit({"a": {}, "b": [], "c": [{}, []]}) == "a: {}\nb: []\nc:\n- {}\n- []\n"
    assert emit({}) == "{}\n"


def test_sequences_of_sequences_keep_their_shape():
    read_back([[1, [2, {"a": [3]}]], [], [[[]]]])


@pytest.mark.parametrize("number", [0.0, -1.5, 1e16, 1e-7, 1.7976931348623157e308, 5e-324, 1000.0])
def test_floats_stay_floats(number):
    assert type(parse(read_back({"a": number}).encode(), "f")[0].value["a"]) is float


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), "\ud800", {1, 2}, object()])
def test_what_yaml_cannot_hold_is_refused(value):
    with pytest.raises(InvalidInput, match="writing YAML"):
        emit({"a": value})


TEXT = st.text() | st.sampled_from(TRICKY) | st.text(alphabet="ab01eE.:-#\n \"'|>{}[]&*!%~yYnN", max_size=12)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=12
)


@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_everything_reads_back_the_same(value):
    read_back(value)


def nested(levels, wrap):
    value = "x"
    for _ in range(levels):
        value = wrap(value)
    return value


def test_what_is_plain_but_for_quotes_reads_back_for_certain():
    assert reads_back(emit({"a": "b c", "shape": '{"requests":{}}', "n": 3, "list": [{"x": "0.5"}]}).encode())


@pytest.mark.parametrize(
    "value",
    [
        {"a": "é"},
        {"a": "\\"},
        {"a": "\x00"},
        {"a": "b\\"},
        {"a": 2**64},
        {"a": -(2**64)},
        {"a": [1] * (MAX_NODES + 1)},
        nested(MAX_DEPTH + 1, lambda inner: {"a": inner}),
        nested(MAX_DEPTH + 1, lambda inner: [inner]),
        nested(MAX_DEPTH // 2 + 1, lambda inner: {"a": [inner]}),
        nested(MAX_DEPTH // 2 + 1, lambda inner: [{"a": inner}]),
    ],
)
def test_what_only_a_reader_can_tell_of_is_not_taken_for_certain(value):
    assert not reads_back(emit(value).encode())


@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_what_reads_back_for_certain_does(value):
    written = emit(value).encode()
    if reads_back(written):
        assert [document.value for document in parse(written, "f.yaml")] == [value]
