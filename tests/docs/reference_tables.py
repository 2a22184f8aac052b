"""The tables of docs/reference, from schemas and commands: ``python -m tests.docs.reference_tables`` writes them.

A page has `<!-- fields Cluster -->`, `<!-- options plan -->`, `<!-- kinds labels -->`, `<!-- waits kueue -->` or
`<!-- bounds all -->`, then
the table, then `<!-- end -->`. The meaning of a field is the description in its schema, that of an option its help;
`field_links.yaml` says where a field leads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import click
import yaml

from reconciler.cli import main
from reconciler.core.schema import KINDS, json_schema
from reconciler.core.schema.egs.deploy import DeployFile
from reconciler.core.schema.egs.gpr import TermsFile
from reconciler.model.bounds import all_bounds
from tests.bounds.record import read as read_measured
from tests.bounds.record import row
from tests.docs.kind_tables import kind_table
from tests.docs.wait_tables import wait_table

CHECKOUT = Path(__file__).parents[2]
PAGES = [CHECKOUT / "docs" / "reference" / name for name in ("fleet.md", "cli.md", "kinds.md", "bounds.md", "waits.md")]
BLOCK = re.compile(
    r"^(<!-- (fields|options|kinds|bounds|waits) ([^>]+) -->\n)(.*?)(^<!-- end -->$)", re.MULTILINE | re.DOTALL
)
SHARED = {
    "TaintFile": "Taints",
    "TolerationFile": "Tolerations",
    "CheckedTolerationFile": "Tolerations",
    "TermFile": "Node selector terms",
}
"""Parts that are described once, below a heading of their own."""
TERMS = {field.alias: field.description for field in TermsFile.model_fields.values()}
"""Fields that all kinds of GPRs have, described once."""
DEPLOYED = tuple(f"spec.{field.alias}" for field in DeployFile.model_fields.values())
"""Fields of a template that placements have too, described once."""
TWINS = ("spec.helmConfigs[]", "spec.subsets[].preferredNodeSelector[]")
"""Other spellings of parts that are described under the usual one."""
UNREAD = ("Exported by kubectl; not read.", "EGS's; no effect.", "Reported by EGS; not read.")
"""Meanings of fields that say nothing here; docs/reference/egs.md has those of EGS."""
GLOBAL = ("REPO", "SOURCE_BRANCH", "OUTPUT_BRANCH", "OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "SLURM")
COMMON = {f"--{name.lower().replace('_', '-')}" for name in GLOBAL} | {
    "--output", "--author", "--reason", "--dry-run", "--at", "--watch", "--help",
}  # fmt: skip # a list of words
"""Options that several commands have alike; the page describes them once, above all commands."""
ASKING = "The address of a running daemon to ask"
"""How the help of `--server` begins where a daemon answers in the place of the command; the page describes it once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A field: its path, its type with its default, and its meaning."""

    path: str
    type: str
    meaning: str
    link: str = ""
    leaf: bool = True


def filled(text: str) -> str:
    """Return a page with its tables as they are now."""
    return BLOCK.sub(lambda block: f"{block[1]}{table(block[2], block[3])}{block[5]}", text)


def table(what: str, name: str) -> str:
    """Write one table as Markdown."""
    if what == "kinds":
        return kind_table(name)
    if what == "bounds":
        return bounds_table()
    if what == "waits":
        return wait_table(name)
    if what == "options":
        return "| option | meaning |\n|---|---|\n" + "".join(options(name))
    lines = [f"| {names(group)} | {group[0].type} | {group[0].meaning} |\n" for group in merged(fields(name))]
    return "| field | type, default | meaning |\n|---|---|---|\n" + "".join(lines)


def bounds_table() -> str:
    """Write a table of bounds for each input, with what was measured of them."""
    measured, lines = read_measured(), list[str]()
    for kind, bounds in groupby(all_bounds(), lambda each: each[1].input):
        lines.append(f"\n## {kind}\n\n| of | most | beyond it, the input | at it | beyond | late |\n{'|---' * 6}|\n")
        for name, bound in bounds:
            cells = " | ".join(row(measured[name], bound.unit)) if name in measured else " | | "
            lines.append(f"| {bound.of} | {bound} | {bound.beyond} | {cells} |\n")
    return "".join(lines)


def names(rows: list[Row]) -> str:
    """Write the fields of a row; of several, those after the first without what they have in common."""
    first = f"`{rows[0].path}`"
    first = f"[{first}]({rows[0].link})" if rows[0].link else first
    return ", ".join([first, *(f"`{row.path.rpartition('.')[2]}`" for row in rows[1:])])


def merged(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Group neighbours that are alike in all but their names."""

    def likeness(row: Row) -> Row:
        return replace(row, path=row.path.rpartition(".")[0]) if row.leaf else row

    for _, group in groupby(rows, likeness):
        yield [*group]


def fields(name: str) -> Iterator[Row]:
    """Yield the rows of a kind, or of a part that several kinds have."""
    if name in KINDS:
        schema = json_schema(name)
        elsewhere = DEPLOYED if name == "WorkloadPlacement" else ()
        rows = _rows(schema, schema, "")
        yield from (row for row in rows if ".".join(re.split(r"\.|\[", row.path)[:2]) not in elsewhere)
        return
    model = "DetailsFile" if name == "TermsFile" else name
    schema = next(schema for kind in KINDS if model in (schema := json_schema(kind))["$defs"])
    rows = _rows(schema, schema["$defs"][model], "metadata" if model == "Metadata" else "", name)
    yield from (row for row in rows if name != "TermsFile" or row.path in TERMS)


def _rows(schema: dict[str, Any], node: dict[str, Any], path: str, owner: str = "") -> Iterator[Row]:
    """Yield a row for each field below a node of a JSON Schema, in its order."""
    node = resolved(schema, node)
    for name, child in node.get("properties", {}).items():
        at = f"{path}.{name}" if path else name
        if at in ("apiVersion", "kind", "metadata"):
            continue
        if at == "spec":
            yield from _rows(schema, child, at)
            continue
        inner = resolved(schema, child)
        meaning = child.get("description") or inner.get("description", "")
        if meaning in UNREAD or (path and TERMS.get(name) == meaning):
            continue
        if "items" in inner:
            inner, below = resolved(schema, inner["items"]), f"{at}[]"
        else:
            below = at
        deeper = below not in TWINS and inner.get("title") not in SHARED and "properties" in inner
        yield Row(
            path=at,
            type=type_and_default(schema, child, required=name in node.get("required", ())),
            meaning=meaning.removesuffix(".").replace("|", "\\|"),
            link=links().get(owner or schema.get("title", ""), {}).get(at, ""),
            leaf=not deeper,
        )
        if deeper:
            yield from _rows(schema, inner, below)


@cache
def links() -> dict[str, dict[str, str]]:
    """Read where fields lead, by kind and path."""
    read: dict[str, dict[str, str]] = yaml.safe_load((Path(__file__).parent / "field_links.yaml").read_text())
    return read


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


def type_and_default(schema: dict[str, Any], node: dict[str, Any], *, required: bool) -> str:
    """Write a type with its default."""
    if required:
        return f"{type_of(schema, node)}, required"
    default = node.get("default")
    if "enum" in resolved(schema, node):
        return type_of(schema, node).replace(f"`{default}`", f"**`{default}`**")
    if isinstance(default, dict) and [*default] == ["window"]:
        default = f"window: {default['window']}"
    if isinstance(default, bool):
        default = str(default).lower()
    written = isinstance(default, int | str) and default not in ("", "false")
    return f"{type_of(schema, node)}, `{default}`" if written else type_of(schema, node)


def type_of(schema: dict[str, Any], node: dict[str, Any]) -> str:
    """Name a type."""
    or_text = len([*forms(schema, node)]) > 1 and any(form.get("type") == "string" for form in forms(schema, node))
    node = resolved(schema, node)
    if "enum" in node:
        return " ".join(f"`{word}`" for word in node["enum"] if word)
    if "items" in node:
        return f"list of {type_of(schema, node['items'])}"
    words = {"integer": "integer", "number": "number", "boolean": "boolean"}
    match node.get("type"):
        case "object":
            word = "object" if "properties" in node else "any"
            word = "labels" if isinstance(node.get("additionalProperties"), dict) else word
            return f"{word} or text" if or_text else word
        case "integer" if or_text:
            return "integer or text"
        case "string":
            pattern = node.get("pattern", "")
            return "name" if "[-a-z0-9]{0,61}" in pattern else "duration" if "[dhms]" in pattern else "text"
        case str(kind):
            return words[kind]
        case _:
            return "any"


def options(name: str) -> Iterator[str]:
    """Yield a row for each option of a command that not all commands have; `name` is a command line's words."""
    command: click.Command = main
    for word in name.split():
        assert isinstance(command, click.Group)
        command = command.commands[word]
    for parameter in command.params:
        if not isinstance(parameter, click.Option) or {*parameter.opts} & COMMON:
            continue
        if (parameter.help or "").startswith(ASKING):
            continue
        spelled = ", ".join(sorted((*parameter.opts, *parameter.secondary_opts), key=len))
        value = "" if parameter.is_flag else f" {placeholder(parameter)}"
        meaning = re.sub(r"\s*\[env:[^]]*\]", "", parameter.help or "").strip().removesuffix(".")
        meaning = re.sub(r"\s*\[default: (.*)\]", r"; \1 by default", meaning)
        default = parameter.default
        if parameter.show_default and not parameter.is_flag and isinstance(default, str | int):
            meaning += f"; `{default}` by default"
        if parameter.multiple and "several times" not in meaning:
            meaning += "; may be given several times"
        yield f"| `{spelled}{value}` | {meaning.replace('|', chr(92) + '|')} |\n"


def placeholder(parameter: click.Option) -> str:
    """Return the word that stands for the value of an option in usage."""
    if isinstance(parameter.type, click.Choice):
        return "/".join(map(str, parameter.type.choices))
    return (parameter.metavar or parameter.type.name.upper()).replace("|", "/")


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text()))
