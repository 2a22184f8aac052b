"""What the strict reader takes, what it refuses, and in which words."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.schema.yaml import parse
from reconciler.errors import InvalidInput
from reconciler.model.bounds import FILE_DEPTH, FILE_SIZE, FILE_VALUES


def value(text: str | bytes) -> object:
    (document,) = parse(text.encode() if isinstance(text, str) else text, "f.yaml")
    return document.value


def refusal(data: str | bytes) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        parse(data.encode() if isinstance(data, str) else data, "f.yaml")
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("", None),
        ("0", 0),
        ("-7", -7),
        ("12", 12),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("-2.5E-3", -0.0025),
        ("18446744073709551615", 2**64 - 1),
    ],
)
def test_scalars_of_json_are_typed(text, expected):
    assert value(f"a: {text}\n") == {"a": expected}
    assert type(value(f"a: {text}\n")["a"]) is type(expected)


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "no",
        "on",
        "off",
        "y",
        "n",
        "True",
        "FALSE",
        "~",
        "Null",
        "0755",
        "0o17",
        "0x1F",
        "+1",
        "1_000",
        ".5",
        "1.",
        ".inf",
        "12:30:45",
        "2026-11-20",
        "25921e05x",
        "10m",
        "-",
        "1.2.3",
        "nan",
    ],
)
def test_every_other_scalar_is_text(text):
    assert value(f"a: {text}x\n") == {"a": f"{text}x"}
    if text != "-":
        assert value(f"a: {text}\n") == {"a": text}


def test_quoted_scalars_and_blocks_are_text():
    assert value("a: '1'\nb: \"true\"\nc: |\n  12\n") == {"a": "1", "b": "true", "c": "12\n"}


def test_keys_are_text():
    assert value("1: a\ntrue: b\nnull: c\n") == {"1": "a", "true": "b", "null": "c"}


def test_scalars_that_others_type_differently_are_warned_about():
    (document,) = parse(b"a: yes\nb: 'no'\nc:\n- ~\noff: 1\n", "f.yaml")
    assert [str(problem) for problem in document.warnings] == [
        "f.yaml:1: yes is read as text; other tools read it as true (try true, or 'yes' in quotes)",
        "f.yaml:4: ~ is read as text; other tools read it as null (try null, or '~' in quotes)",
        "f.yaml:5: off is read as text; other tools read it as false (try false, or 'off' in quotes)",
    ]


def test_empty_documents_are_left_out():
    assert [document.value for document in parse(b"---\n---\na: 1\n--- null\n---\n- 2\n", "f.yaml")] == [{"a": 1}, [2]]
    assert parse(b"# nothing\n", "f.yaml") == ()


def test_duplicate_keys_are_refused():
    assert refusal("a: 1\nb:\n  c: 1\n  c: 2\n") == ["f.yaml:4: key 'c' stands here twice (try removing one)"]


def test_anchors_aliases_tags_and_merge_keys_are_all_told_at_once():
    assert refusal("a: &x 1\nb: *x\nc: !!str 1\nd:\n  <<: {}\ne: ! f\n") == [
        "f.yaml:1: anchor &x is not read (try writing the value out)",
        "f.yaml:2: alias *x is not read (try writing the value out)",
        "f.yaml:3: tag !!str is not read (try removing it; quote what should be text)",
        "f.yaml:5: merge keys are not read (try writing the keys out)",
        "f.yaml:6: tag ! is not read (try removing it; quote what should be text)",
    ]


def test_a_bomb_of_aliases_is_refused_without_being_built():
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30)]
    problems = refusal("l0: &l0 [lol]\n" + "\n".join(levels) + "\n")
    assert problems[0] == "f.yaml:1: anchor &l0 is not read (try writing the value out)"
    assert problems[-1].endswith("has more than 100 problems; the rest is not read")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_depth_is_bounded(opening):
    assert (
        "is nested deeper than 64 levels" in refusal(opening * 5000)[0]
        or "key must be text" in refusal(opening * 5000)[0]
    )


def test_the_deepest_allowed_document_is_read():
    text = "[" * FILE_DEPTH.most + "]" * FILE_DEPTH.most
    assert json.dumps(value(text)) == text
    assert refusal("[" + text + "]") == ["f.yaml:1: is nested deeper than 64 levels"]


@pytest.mark.parametrize(
    "text",
    ["[" + "1," * FILE_VALUES.most + "]", "[" + "1,\n" * FILE_VALUES.most + "1]", "a:\n" + "- x\n" * FILE_VALUES.most],
)
def test_the_number_of_values_is_bounded(text):
    assert refusal(text)[0].endswith("holds more than 100,000 values (try splitting it)")


def test_a_file_of_ten_megabytes_is_refused_by_its_size():
    assert refusal(b"a" * 10 * FILE_SIZE.most) == [
        "f.yaml: is 10.0 MB; files over 1 MiB are not read (try splitting it, or list it in the Fleet's spec.ignore)"
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: 1\nb: caf\xe9\n", "f.yaml:2: is not UTF-8 (byte 0xe9) (try saving it as UTF-8)"),
        (
            b"\xef\xbb\xbfa: 1\n",
            "f.yaml:1: begins with a byte order mark of UTF-8 (try saving it as UTF-8 without one)",
        ),
        (
            "a: 1".encode("utf-16"),
            "f.yaml:1: begins with a byte order mark of UTF-16 (try saving it as UTF-8 without one)",
        ),
        (b"a: \x00\n", "f.yaml:1: is not YAML: control characters are not allowed (try removing the character)"),
        (b"a:\n\tb: 1\n", "f.yaml:2: is not YAML: a tab cannot indent (try spaces)"),
        (
            b"a: b: c\n",
            (
                "f.yaml:1: is not YAML: mapping values are not allowed in this context (check the "
                "indentation, or quote a value that holds ': ')"
            ),
        ),
        (b"a: 'b\n", "f.yaml:2: is not YAML: found unexpected end of stream"),
        (b"a: @b\n", "f.yaml:1: is not YAML: found character that cannot start any token (try quoting the value)"),
        (b"? [a]\n: b\n", "f.yaml:1: a key must be text (try quoting it)"),
        (b"a: 1e999\n", "f.yaml:1: 1e999 is more than a number can hold (try quoting it)"),
        (
            b"a: 99999999999999999999\n",
            "f.yaml:1: 99999999999999999999 is more than a number can hold (try quoting it)",
        ),
        (b"%TAG ! tag:example.com,2026:\n---\na: 1\n", "f.yaml:1: tags are not read (try removing the %TAG line)"),
        (b"a: 1\r---\r%TAG ! tag:b:\r---\ra: 1\r", "f.yaml:3: tags are not read (try removing the %TAG line)"),
        (b"# a\xe2\x80\xa8%TAG ! tag:b:\n---\na: 1\n", "f.yaml:2: tags are not read (try removing the %TAG line)"),
        (
            b"a: 1\r\nb: 2\rc: @d\r",
            "f.yaml:3: is not YAML: found character that cannot start any token (try quoting the value)",
        ),
    ],
)
def test_what_is_no_yaml_is_told_with_the_way_out(data, message):
    assert refusal(data) == [message]


@pytest.mark.parametrize("marker", ["<<<<<<< HEAD", "=======", ">>>>>>> other"])
def test_a_merge_conflict_is_told_at_its_first_marker(marker):
    told = "f.yaml:2: holds a merge conflict marker (try keeping one side and removing the markers)"
    assert refusal(f"a: 1\n{marker}\nb: 2\n>>>>>>> last\n") == [told]


def test_text_that_only_looks_like_a_conflict_is_none():
    assert "conflict" not in refusal("a: 1\n========\nb: 2\n")[0]
    assert parse(b"a: |\n  =======\n  text\n", "f.yaml")[0].value == {"a": "=======\ntext\n"}


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        ("replicas: {{ replicas }}", '"{{ replicas }}"'),
        ("- {{ replicas }}", '"{{ replicas }}"'),
        ("image: {{ cluster.name }}:v1", '"{{ cluster.name }}"'),
        ('image: {{ cluster.labels["zone"] }}', "'{{ cluster.labels[\"zone\"] }}'"),
        ("{replicas: {{ replicas }}}", '"{{ replicas }}"'),
    ],
)
def test_an_expression_without_quotes_is_told_how_to_quote_it(line, quoted):
    (told,) = refusal(f"# one\n{line}\n")
    assert told.startswith("f.yaml:2: ")
    assert told.endswith(f"(put quotes around the whole expression: {quoted})")


def test_a_key_that_is_no_text_below_a_quoted_expression_is_no_expression():
    assert refusal('a: "{{ replicas }}"\n? [b]\n: c\n') == ["f.yaml:2: a key must be text (try quoting it)"]


def test_what_was_wrong_before_the_syntax_error_is_told_too():
    assert refusal("a: 1\na: 2\nb: 'c\n") == [
        "f.yaml:2: key 'a' stands here twice (try removing one)",
        "f.yaml:4: is not YAML: found unexpected end of stream",
    ]


def test_lines_are_those_of_keys_and_items():
    document = parse(
        b"# c\n---\n---\nx: 0\n---\na:\n  b:\n    long value\n  c:\n  - d: 1\n    e: 2\n  - f\n", "f.yaml"
    )[1]
    assert document.line(()) == 6
    assert document.line(("a", "b")) == 7
    assert document.line(("a", "c", 0)) == 10
    assert document.line(("a", "c", 0, "e")) == 11
    assert document.line(("a", "c", 1)) == 12


def test_lines_are_those_of_the_file_in_every_document():
    text = "# é\n%YAML 1.1\n---\n# ü\na: ü\nb: 1\n...\n# 😀\n---\n\nc: 2\n--- # x\n- d\n- {e: 1,\n   f: 2}\n"
    first, second, third = parse(text.encode(), "f.yaml")
    assert [first.line(("a",)), first.line(("b",))] == [5, 6]
    assert [second.line(("c",)), second.start] == [11, 11]
    assert [third.line((0,)), third.line((1, "e")), third.line((1, "f")), third.line((2,))] == [13, 14, 15, 13]


def test_a_file_of_many_documents_is_not_read_again_for_each():
    count = 20_000
    documents = parse(b"".join(b"---\na: 1\nb: yes\n" for _ in range(count)), "f.yaml")
    assert [document.line(("b",)) for document in documents] == [3 * number + 3 for number in range(count)]


def test_the_line_of_what_is_not_there_is_that_of_its_nearest_ancestor():
    (document,) = parse(b"a:\n  b: 1\n  c: []\n", "f.yaml")
    assert document.line(("a", "c", 3, "d")) == 3
    assert document.line(("a", "missing")) == 1
    assert document.line(("missing",)) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n"a": 2}', "f.yaml:2: key 'a' stands here twice (try removing one)"),
        ('{"a": 1e999}', "f.yaml:1: 1e999 is more than a number can hold (try quoting it)"),
        (
            '{"a": 18446744073709551616}',
            "f.yaml:1: 18446744073709551616 is more than a number can hold (try quoting it)",
        ),
        ('{"a": [1}', "f.yaml:1: is not YAML: did not find expected ',' or ']' (try closing what is open)"),
        ('{"a": "\\ud800"}', "f.yaml:1: is not YAML: found invalid Unicode character escape code"),
    ],
)
def test_json_is_held_to_the_same_rules(text, message):
    assert refusal(text) == [message]


def test_json_has_no_constants_beyond_its_own():
    assert value('{"a": NaN, "b": -Infinity}') == {"a": "NaN", "b": "-Infinity"}


def test_json_has_lines_too():
    (document,) = parse(b'\n{\n "a": [\n  {"b": 1}\n ]\n}\n', "f.json")
    assert (document.start, document.line(("a", 0, "b"))) == (2, 4)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@given(st.dictionaries(st.text(), JSON))
def test_json_reads_as_json_does(data):
    text = json.dumps(data, ensure_ascii=False)
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return  # half a character: no file can hold it
    assert value(encoded) == data


@given(st.binary(max_size=200) | st.text(alphabet="a1:-?[]{}&*!|>'\"%@ \n\t#,", max_size=60).map(str.encode))
def test_no_input_makes_the_reader_fail_in_another_way(data):
    documents, problems = (), ()
    try:
        documents = parse(data, "f.yaml")
    except InvalidInput as error:
        problems = error.problems or ("an error that says nothing",)
    assert all(problem.path == "f.yaml" and problem.message for problem in problems)
    for document in documents:
        json.dumps(document.value, allow_nan=False)
        assert document.line(()) >= 1


@given(st.text(alphabet="ab1:- \n[]{},'\"", max_size=60))
def test_what_is_read_has_the_structure_that_pyyaml_sees(text):
    try:
        documents = [document.value for document in parse(text.encode(), "f.yaml")]
    except InvalidInput:
        return
    expected = [document for document in yaml.load_all(text, Loader=yaml.BaseLoader) if document != ""]
    assert [as_text(document) for document in documents if document != ""] == [
        as_text(document) for document in expected if document != "null"
    ]


def as_text(node):
    """Write scalars back as far as the alphabet above allows, so that only structure is compared."""
    if isinstance(node, dict):
        return {key: as_text(child) for key, child in node.items()}
    if isinstance(node, list):
        return [as_text(child) for child in node]
    return "" if node is None else str(node).removeprefix("-").lstrip("0") if not isinstance(node, bool) else node
