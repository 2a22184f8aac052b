"""docs/how-to/lab.md: its pictures, its table of runs and its comparison are what the lab makes now."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from reconciler.cli.package_files import layout
from reconciler.lab import report
from reconciler.lab.picture import draw_alone
from reconciler.lab.policy_file import read_policy
from reconciler.lab.report import Comparison
from reconciler.lab.runs import chosen_scenarios, compare
from tests.docs.recorded_morning import comparison

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "how-to" / "lab.md").read_text()
PICTURES = re.findall(r"\]\(\.\./(pictures/[^)]+\.svg)\)", PAGE)


@cache
def played(name: str) -> Comparison:
    (scenario,) = chosen_scenarios([name], None)
    policy = read_policy(layout() / "policies" / "serving.yaml", "overspill")
    return compare(scenario, [policy], peers=True, best=False, progress=lambda _what, _part: None)


def test_pictures_are_those_that_make_lab_docs_draws() -> None:
    runs = played("owners")
    drawn = {
        "pictures/" + re.sub(r"[^\w.]+", "-", f"owners {run.controller}") + ".svg": draw_alone(
            run, runs.length, runs.about
        )
        for run in runs.results
    }
    assert {f"pictures/{path.name}" for path in (DOCS / "pictures").glob("owners-*")} == drawn.keys()
    assert {*PICTURES} <= drawn.keys()
    for name, text in drawn.items():
        assert (DOCS / name).read_text() == text, name


def test_table_of_runs_is_that_of_the_lab() -> None:
    shown = re.search(r"^\$ overspill lab run plateau\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    # The parts of the optimum's hours and dollars need HiGHS, which is not here always.
    lines = [re.sub(r" \(x[\d.]+\)", "", line) for line in shown[1].splitlines()[1:-1]]
    cells = [re.split(r" {2,}", line.rstrip()) for line in lines]
    assert cells == [[cell or "-" for cell in row] for row in report.rows(played("plateau"))]


def test_comparison_is_what_the_lab_says_of_a_recorded_morning() -> None:
    shown = re.search(r"^\$ overspill lab compare main [^\n]*\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert shown[1] == comparison()
