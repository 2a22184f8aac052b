"""Says after the tests how many of the peers' cases were run, and how many do not apply."""

from __future__ import annotations

import pytest

from tests.conformance.cases import SUITES, ids, tally


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a line for each suite that is there."""
    for suite in SUITES:
        if ids(suite):
            terminalreporter.write_line(tally(suite))
