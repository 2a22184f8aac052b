"""JSONPath is kubectl's: the examples of its own page, and errors that name the place."""

from __future__ import annotations

import pytest

from reconciler.text.jsonpath import JsonPathError, parse_jsonpath

DOCUMENT = {
    "kind": "List",
    "items": [
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.1", "labels": {"kubernetes.io/hostname": "127.0.0.1"}},
            "status": {"capacity": {"cpu": "4"}, "addresses": [{"type": "LegacyHostIP", "address": "127.0.0.1"}]},
        },
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.2"},
            "status": {"capacity": {"cpu": "8"}, "addresses": [{"type": "another", "address": "127.0.0.3"}]},
        },
    ],
    "users": [
        {"name": "myself", "user": {}},
        {"name": "e2e", "age": 3, "user": {"username": "admin", "password": "given"}},
    ],
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("kind is {.kind}", "kind is List"),
        ("{.kind}", "List"),
        ("{['kind']}", "List"),
        (".kind", "List"),
        ("kind", "List"),
        ("{$.kind}", "List"),
        ("{..name}", "127.0.0.1 127.0.0.2 myself e2e"),
        ("{.items[*].metadata.name}", "127.0.0.1 127.0.0.2"),
        ("{.users[0].name}", "myself"),
        ("{.users[-1].name}", "e2e"),
        ("{.users[-1:].name}", "e2e"),
        ("{.users[::-1].name}", "e2e myself"),
        ("{.users[9].name}", ""),
        ("{.items[*]['metadata.name', 'status.capacity']}", '127.0.0.1 {"cpu":"4"} 127.0.0.2 {"cpu":"8"}'),
        ('{.users[?(@.name=="e2e")].user.password}', "given"),
        ("{.users[?(@.age > 2)].name}", "e2e"),
        ("{.users[?(@.age > 3)].name}", ""),
        ("{.users[?(@.name < 3)].name}", ""),
        ("{.users[?(@.age)].name}", "e2e"),
        ("{.users[?( @.name != $.users[0].name )].name}", "e2e"),
        ('{.items[*].status.addresses[?(@.type=="another")].address}', "127.0.0.3"),
        ("{range .items[*]}[{.metadata.name}, {.kind}] {end}", "[127.0.0.1, None] [127.0.0.2, None] "),
        ('{range .items[*]}{.metadata.name}{"\\t"}{end}', "127.0.0.1\t127.0.0.2\t"),
        ("{range .items[*]}{range .status.addresses[*]}{.type};{end}{end}", "LegacyHostIP;another;"),
        (r"{.items[0].metadata.labels.kubernetes\.io/hostname}", "127.0.0.1"),
        ("{.items[0].metadata.labels['kubernetes.io/hostname']}", "127.0.0.1"),
        ("{.users[*].age}", "3"),
        ("{.nothing.of[0].this}", ""),
        ("{.users[0,1].name}", "myself e2e"),
        ("{@.users[0]}", '{"name":"myself","user":{}}'),
    ],
)  # fmt: skip # a table of templates, one a line
def test_template(template: str, text: str) -> None:
    assert parse_jsonpath(template).render(DOCUMENT) == text


def test_an_array_has_its_elements_in_items_as_well() -> None:
    array = [{"name": "a", "items": 1}, {"name": "b"}]
    assert parse_jsonpath("{.items[*].name}").render(array) == "a b"
    assert parse_jsonpath("{[*].name}").render(array) == "a b"
    assert parse_jsonpath("{.items[0].items}").render(array) == "1"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{.items[}", "the name of a field is expected here: before '}' of '{.items[}'"),
        ("{.items[0}", "']' is expected here: before '}'"),
        ("{.items", "'}' is expected here: at the end"),
        ("{range .items[*]}{.x}", "'range' has no 'end': at the end"),
        ("{end}", "'end' has no 'range'"),
        ("{'text}", "this quote is never closed"),
        ("{.users[?(@.name==e2e)]}", "'e2e' is no path, text or number"),
        ("{.users[?(@.a && @.b)]}", "a comparison or ')' is expected here: before '&& @.b)]}'"),
        ("{.users[::0]}", "the step of a slice is not 0"),
        ("{}x{,}", "a path is expected here: before ',}'"),
    ],
)
def test_error_names_the_place(template: str, message: str) -> None:
    with pytest.raises(JsonPathError, match="of ") as error:
        parse_jsonpath(template)
    assert message in str(error.value)
