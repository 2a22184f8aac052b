"""docs/reference/fleet.md lists every field of every file, with the type and the default that the program goes by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.core.expressions.dialect import CONTEXT
from reconciler.core.expressions.sandbox import FILTERS
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.schema import KINDS, json_schema, yaml
from reconciler.core.schema.egs.deploy import DeployFile
from reconciler.model.ids import CommitId

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "reference" / "fleet.md").read_text()
KINDS_THERE = [kind for kind in KINDS if kind != "Observation"]  # observations are no files of the repository
SHARED = {
    "Metadata": "Metadata",
    "TaintFile": "Taints",
    "TolerationFile": "Tolerations",
    "CheckedTolerationFile": "Tolerations",
    "TermFile": "Node selector terms",
}
SAME = "spec.helmConfigs[]"
"""Described once, as spec.helmConfig[]."""
DEPLOYED = tuple(f"spec.{field.alias}" for field in DeployFile.model_fields.values())
"""What placements say in the fields of a template; described once, there."""

Row = tuple[str, str, str]
_ROW = re.compile(r"^\| `([^`]+)` \| (.+?) \| (.+?) \| (.+) \|$", re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS_THERE)
def test_every_field_of_a_kind_is_listed(kind: str) -> None:
    schema = json_schema(kind)
    elsewhere = DEPLOYED if kind == "WorkloadPlacement" else ()
    expected = [row for row in rows(schema, schema, "") if re.match(r"[a-z]+(\.\w+)?", row[0])[0] not in elsewhere]
    assert listed(kind) == expected


@pytest.mark.parametrize(("model", "heading"), SHARED.items())
def test_every_field_of_a_shared_part_is_listed(model: str, heading: str) -> None:
    schema = next(schema for kind in KINDS if model in (schema := json_schema(kind))["$defs"])
    assert listed(heading) == list(rows(schema, schema["$defs"][model], "" if model != "Metadata" else "metadata"))


def test_every_kind_has_an_example_that_is_in_force_without_a_complaint() -> None:
    text = "---\n".join(re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    desired = assemble(CommitId(""), {"fleet.yaml": parse_file(text.encode())})
    assert desired.problems == ()
    kinds = [document.value["kind"] for document in yaml.parse(text.encode(), "fleet.yaml")]
    assert {*kinds} == {*KINDS_THERE}


def test_the_names_and_filters_of_expressions_are_listed() -> None:
    section = PAGE.partition("\n## Expressions\n")[2].partition("\n## ")[0]
    names = {
        f"{name}.{part}" if part else name
        for name, parts in CONTEXT.items()
        for part in (parts if isinstance(parts, dict) else ("",))
    }
    table, _, rest = section.partition("There is")
    assert set(re.findall(r"`([a-z][\w.]*)`(?=[,| ])", table.partition("|---")[2])) == names
    filters = rest.partition("filters:")[2].partition(".")[0]
    assert set(re.findall(r"`(\w+)`", filters)) == FILTERS


def test_the_problems_it_shows_are_what_is_told() -> None:
    cluster = "\n\nkind: Cluster\nmetadata:\n  name: a\n\nspec:\n  availabilty: Active\n"
    policy = "\n" * 9 + "kind: BurstPolicy\nmetadata: {name: a}\nspec:\n  scaleUp:\n    window: 30 seconds\n"
    files = {"clusters/worker-2.yaml": cluster, "policies/serving.yaml": policy}
    parsed = {path: parse_file(f"apiVersion: overspill.dev/v1alpha1{text}".encode()) for path, text in files.items()}
    told = [str(problem) for problem in assemble(CommitId(""), parsed).problems]
    assert "\n".join(told) in PAGE


def listed(heading: str) -> list[Row]:
    """Read the table below a heading of the page, without its meanings."""
    _, _, rest = PAGE.partition(f"\n## {heading}\n")
    section = re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    return [match.groups()[:3] for match in _ROW.finditer(section)]


def rows(schema: dict[str, Any], node: dict[str, Any], path: str) -> Iterator[Row]:
    """Yield a row for each field below a node of a JSON Schema, in its order."""
    node = resolved(schema, node)
    for name, child in node.get("properties", {}).items():
        at = f"{path}.{name}" if path else name
        if at in ("apiVersion", "kind", "metadata", "spec"):
            if at == "spec":
                yield from rows(schema, child, at)
            continue
        yield at, kind_of(schema, child), default_of(child, required=name in node.get("required", ()))
        inner = resolved(schema, child)
        if "items" in inner:
            inner, at = resolved(schema, inner["items"]), f"{at}[]"
        if at != SAME and inner.get("title") not in SHARED:
            yield from rows(schema, inner, at)


def forms(schema: dict[str, Any], node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the forms that a node may take, references followed, null left out."""
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        for form in forms(schema, schema["$defs"][name]):
            yield {"title": name, **form}
    elif alternatives := node.get("anyOf", node.get("oneOf")):
        for alternative in alternatives:
            yield from forms(schema, alternative)
    elif node.get("type") != "null":
        yield node


def resolved(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """Follow references, and of several forms take the one that has most to say."""
    return max(forms(schema, node), key=lambda form: "properties" in form)


def kind_of(schema: dict[str, Any], node: dict[str, Any]) -> str:
    """Name a type as the page does."""
    or_text = len([*forms(schema, node)]) > 1 and any(form.get("type") == "string" for form in forms(schema, node))
    node = resolved(schema, node)
    if "enum" in node:
        return ", ".join(f"`{word}`" for word in node["enum"] if word)
    if "items" in node:
        return f"list of {kind_of(schema, node['items'])}"
    words = {"integer": "whole number", "number": "number", "boolean": "true or false"}
    match node.get("type"):
        case "object":
            word = "mapping" if "properties" in node else "anything"
            word = "labels" if isinstance(node.get("additionalProperties"), dict) else word
            return f"{word} or text" if or_text else word
        case "integer" if or_text:
            return "whole number or text"
        case "string":
            pattern = node.get("pattern", "")
            return "name" if "[-a-z0-9]{0,61}" in pattern else "duration" if "[dhms]" in pattern else "text"
        case str(kind):
            return words[kind]
        case _:
            return "anything"


def default_of(node: dict[str, Any], *, required: bool) -> str:
    """Write a default as the page does."""
    if required:
        return "required"
    default = node.get("default")
    if isinstance(default, dict) and [*default] == ["window"]:
        return f"`window: {default['window']}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default}`" if isinstance(default, int | str) and default != "" else "none"
