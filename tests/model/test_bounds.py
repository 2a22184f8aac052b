"""Every bound on an input is enforced in code, tried by a test, and in the table of the docs."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.bounds import InputBound, all_bounds

CHECKOUT = Path(__file__).parents[2]
CODE = {path: path.read_text() for path in (CHECKOUT / "reconciler").rglob("*.py") if path.name != "bounds.py"}
TESTS = {path: path.read_text() for path in (CHECKOUT / "tests").rglob("*.py")}


@pytest.mark.parametrize(("name", "bound"), all_bounds(), ids=[name for name, _ in all_bounds()])
class TestBound:
    def test_is_enforced(self, name: str, bound: InputBound) -> None:
        assert any(name in text for text in CODE.values()), f"nothing enforces {name}"

    def test_is_tried(self, name: str, bound: InputBound) -> None:
        assert any(name in text for text in TESTS.values()), f"no test goes beyond {name}"

    def test_states_a_positive_number(self, name: str, bound: InputBound) -> None:
        assert bound.most > 0
        assert str(bound)[0].isdigit()
