"""docs/reference/fleet.md lists every field of every file, by the schemas that the program goes by."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.core.expressions.dialect import CONTEXT
from reconciler.core.expressions.work import FILTERS
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.schema import KINDS, yaml
from reconciler.model.ids import CommitId
from tests.docs.reference_tables import PAGES, fields, filled, links

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "reference" / "fleet.md").read_text()
KINDS_THERE = [kind for kind in KINDS if kind != "Observation"]  # observations are no files of the repository


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_schemas_and_commands(page: Path) -> None:
    assert page.read_text() == filled(page.read_text()), "run `make reference`"


def test_every_kind_and_every_part_has_its_table() -> None:
    assert {*re.findall(r"^<!-- fields (\w+) -->$", PAGE, re.MULTILINE)} == {
        *KINDS_THERE, "Metadata", "TermsFile", "TaintFile", "TolerationFile", "TermFile"
    }  # fmt: skip # two lines of words
    for kind in KINDS_THERE:
        assert f"<!-- fields {kind} -->" in PAGE.partition(f"\n## {kind}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("kind", KINDS_THERE)
def test_every_field_has_a_type_and_a_meaning(kind: str) -> None:
    rows = [*fields(kind)]
    assert rows
    assert [row.path for row in rows if not row.type or not row.meaning] == []


def test_links_of_fields_belong_to_fields() -> None:
    for kind, targets in links().items():
        assert targets.keys() <= {row.path for row in fields(kind)}, kind


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
    assert set(re.findall(r"`(\w+)`", filters)) == FILTERS.keys()


def test_the_problems_it_shows_are_what_is_told() -> None:
    cluster = "\n\nkind: Cluster\nmetadata:\n  name: a\n\nspec:\n  availabilty: Active\n"
    policy = "\n" * 9 + "kind: BurstPolicy\nmetadata: {name: a}\nspec:\n  scaleUp:\n    window: 30 seconds\n"
    files = {"clusters/worker-2.yaml": cluster, "policies/serving.yaml": policy}
    parsed = {path: parse_file(f"apiVersion: overspill.dev/v1alpha1{text}".encode()) for path, text in files.items()}
    told = [str(problem) for problem in assemble(CommitId(""), parsed).problems]
    assert "\n".join(told) in PAGE
