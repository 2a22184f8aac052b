"""docs/how-to/policies.md: it has every ready-made policy, and its figures are those of the lab."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.policy_tables import CHECKOUT, HEADS, PAGE, policies, rows, scenarios, tables

TEXT = PAGE.read_text()
TABLES = tables(TEXT)
READY_MADE = sorted(path.stem for path in (CHECKOUT / "policies").glob("*.yaml"))


@pytest.mark.parametrize("name", READY_MADE)
def test_every_ready_made_policy_has_its_heading_and_its_figures(name: str) -> None:
    assert re.search(rf"^## .*`{name}`", TEXT, re.MULTILINE)
    assert any(name in policies(command) for command in TABLES)


def test_every_command_has_its_table_with_each_scenario_and_policy() -> None:
    assert len(TABLES) == TEXT.count("overspill lab run ") - TEXT.count("`overspill lab run")
    for command, lines in TABLES.items():
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        assert cells[0] == [*HEADS.values()]
        assert {Path(name).stem for name in scenarios(command)} == {row[0] for row in cells[2:]}
        ready_made = {"`init`" if name == "init" else name for name in policies(command)}
        assert ready_made <= {row[1] for row in cells[2:]}


@pytest.mark.parametrize("command", TABLES)
@pytest.mark.exhaustive(one_in=9)
def test_figures_are_those_of_the_lab(command: str) -> None:
    # The first scenario of each table is a quick one; `python -m tests.docs.policy_tables` writes all of them.
    first = scenarios(command)[:1]
    name = Path(first[0]).stem
    assert [line for line in TABLES[command] if line.startswith(f"| {name} |")] == [*rows(command, first)]
