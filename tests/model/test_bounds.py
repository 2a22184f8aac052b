"""Every bound on an input is enforced in code, tried by an experiment, and in the table of the docs."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.bounds import InputBound, all_bounds
from tests.bounds import catalogue
from tests.bounds.experiment import BESIDE_PASSES, EXPERIMENTS
from tests.bounds.record import read

CHECKOUT = Path(__file__).parents[2]
CODE = {path: path.read_text() for path in (CHECKOUT / "reconciler").rglob("*.py") if path.name != "bounds.py"}
MEASURED = read()
LATEST = 10.0
"""Seconds: the sweep begins two after an end that no pass has carried out."""


@pytest.mark.parametrize(("name", "bound"), all_bounds(), ids=[name for name, _ in all_bounds()])
class TestBound:
    def test_is_enforced(self, name: str, bound: InputBound) -> None:
        assert any(name in text for text in CODE.values()), f"nothing enforces {name}"

    def test_is_measured(self, name: str, bound: InputBound) -> None:
        assert name in EXPERIMENTS, f"no experiment of tests/bounds goes beyond {name}"
        assert MEASURED[name].most == bound.most, "the bound has changed: measure it again (try: make bounds)"
        if bound.input in BESIDE_PASSES:
            assert MEASURED[name].late is not None
            assert MEASURED[name].late < LATEST, "its burst was ended in time beside this input"

    def test_states_a_positive_number(self, name: str, bound: InputBound) -> None:
        assert bound.most > 0
        assert str(bound)[0].isdigit()


def test_experiments_are_of_bounds_that_there_are() -> None:
    assert catalogue.MODULES
    assert EXPERIMENTS.keys() == MEASURED.keys() == {name for name, _ in all_bounds()}
