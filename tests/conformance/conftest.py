"""Says after the tests how many of the peers' cases were run, and how many do not apply."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.cases import SUITES, ids, ignored_fields, tally
from tests.conformance.given import Given


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a line for each suite that is there."""
    for suite in SUITES:
        if ids(suite):
            terminalreporter.write_line(tally(suite))


@pytest.fixture(autouse=True)
def nothing_dropped(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail where an adapter has not asked for a field of its case, and no reason is listed."""
    yield
    callspec = getattr(request.node, "callspec", None)
    case = callspec.params.get("case") if callspec is not None else None
    if isinstance(case, dict) and isinstance(case.get("input"), Given):
        listed = ignored_fields(case.get("group") or case["kind"])
        dropped = [name for name in case["input"].unread() if not any(name.startswith(field) for field in listed)]
        assert dropped == [], "the adapter drops fields of the case before it judges"
