"""That no case of the peers' is left out because no suite has heard of its group."""

from __future__ import annotations

import pytest

from tests.conformance.cases import SUITES, cases, there


@pytest.mark.parametrize("file", [pytest.param(file, marks=there(file)) for file in ("lws", "workloadspread")])
def test_every_group_of_cases_belongs_to_a_suite(file: str) -> None:
    known = {group for files in SUITES.values() for group in files.get(file, ())}
    assert {case["group"] for case in cases(file)} == known
