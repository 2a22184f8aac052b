"""Suggestions are made for the first wrong names of a file, and cost no more for a hundred thousand of them."""

from __future__ import annotations

import re
from pathlib import Path

from reconciler.core.fleet.read_file import parse_file
from reconciler.text.spelling import MAX_LENGTH, bounded_suggestions, closest, nearest, suggested
from tests.builders.fleet_files import FLEET, TEMPLATE, load, policy

ROOT = Path(__file__).parents[2] / "reconciler"
NAMES = [f"name-{number:05}" for number in range(2_000)]


def test_a_wrong_name_is_compared_in_any_case_where_that_is_asked_for() -> None:
    assert suggested("EUROPE/BERLIM", ["Europe/Berlin", "Europe/Bern"]) == "Europe/Berlin"
    assert nearest("EUROPE/BERLIM", ["Europe/Berlin"]) == "there are Europe/Berlin"
    assert closest("replica", ["replicas"]) == "replicas"
    assert closest("replica", ["replicas"], cutoff=0.95) == ""


def test_suggestions_of_a_block_end_once_its_allowance_is_spent() -> None:
    with bounded_suggestions():
        hints = [nearest("name-1", NAMES) for _ in range(20)]
    made = [hint for hint in hints if hint]
    assert 0 < len(made) < 10
    assert hints == [*made, *[""] * (20 - len(made))]
    assert nearest("name-1", NAMES) == made[0], "the next block has its own"


def test_a_block_within_a_block_has_no_allowance_of_its_own() -> None:
    with bounded_suggestions():
        for _ in range(10):
            nearest("name-1", NAMES)
        with bounded_suggestions():
            assert nearest("name-1", NAMES) == ""


def test_a_name_is_compared_by_its_first_characters_alone() -> None:
    assert closest("s" * 10**6, ["s" * MAX_LENGTH]) == "s" * MAX_LENGTH


def test_names_are_compared_by_one_module_alone() -> None:
    compared = re.compile("get_close_matches|SequenceMatcher")
    modules = [path for path in sorted(ROOT.rglob("*.py")) if compared.search(path.read_text())]
    assert modules == [ROOT / "text" / "spelling.py"]


def test_the_wrong_names_of_a_file_share_an_allowance() -> None:
    head = "apiVersion: overspill.dev/v1alpha1\nkind: BurstPolicy\nmetadata: {name: x}\nspec:\n  signals:\n"
    window = "start: 0 8 * * *, duration: 1h, replicas: 1"
    signals = (f"  - {{name: s{n}, schedule: {{{window}, timeZone: America/New_Yorc{n}}}}}\n" for n in range(300))
    hints = [problem.hint for problem in parse_file((head + "".join(signals)).encode()).problems]
    assert len(hints) == 100
    assert 1 < hints.count("try 'America/New_York'") < 90, "the others show how a zone is written"


def test_the_wrong_references_of_a_fleet_share_an_allowance() -> None:
    templates = {
        f"templates/{n}.yaml": TEMPLATE.replace("name: vllm\n", f"name: {'a' * 50}{n}\n", 1) for n in range(60)
    }
    names = ", ".join("b" * 50 + str(n) for n in range(100))
    made = load({**FLEET, **templates, "policies/gpu.yaml": policy(spec=f"{{templates: [{names}]}}")})
    unknown = [problem for problem in made.problems if "no file describes WorkloadTemplate" in problem.message]
    hints = [problem.hint.split()[0] for problem in unknown]
    assert 1 < hints.count("there") < len(hints)
    assert set(hints) == {"there", "add"}
