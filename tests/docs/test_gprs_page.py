"""docs/reference/gprs.md: its states are those of the table that GPRs follow, its tables have the printed columns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.cli.actions import remote
from reconciler.core.decide.candidates.gpr_terms import BANDS
from reconciler.model.gpr import TRANSITIONS, GprEvent, GprState, read_state

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "gprs.md").read_text()
SECTION = PAGE.partition("\n## States\n")[2].partition("\n## ")[0]
ENDS = {*GprState} - {before for before, _ in TRANSITIONS}
SAID = {
    "no room": [GprEvent.REFUSED],
    "room": [GprEvent.GRANTED],
    "released": [GprEvent.RELEASED],
    "all replicas have a node": [GprEvent.BOUND],
    "a node is lost": [GprEvent.LOST],
    "evicted": [GprEvent.EVICTED],
    "its time is over, or it is released": [GprEvent.OVER, GprEvent.RELEASED],
    "its GPUs are free again, in time or before it": [GprEvent.GONE, GprEvent.GIVEN_BACK],
    "failed": [GprEvent.FAILED],
}
"""What the page calls the events."""


def test_the_states_lead_to_each_other_as_the_page_says() -> None:
    told = set()
    for sources, words, targets in re.findall(
        r"^\| ([A-Z].*?|any of these) \| (.*?) \| (.*?) \|$", SECTION, re.MULTILINE
    ):
        events, after = SAID[words], targets.split(", ")
        before = [*{state for state, _ in TRANSITIONS}] if sources == "any of these" else sources.split(", ")
        reached = after * len(events) if len(after) == 1 else after
        told |= {(source, event, to) for source in before for event, to in zip(events, reached, strict=True)}
    assert told == {(before, event, after) for (before, event), after in TRANSITIONS.items() if before != after}


def test_the_ends_and_the_other_names_are_told() -> None:
    ends = re.search(r"Nothing leads out of (\w+), (\w+) and (\w+)\.", SECTION)
    assert ends
    assert {*ends.groups()} == ENDS
    named = re.findall(r"(\w+)\s+is\s+(\w+)[,.]", SECTION.partition("EGS writes some of them otherwise")[2])
    assert named[:3] == [("Provisioned", "Successful"), ("Complete", "Completed"), ("Error", "Failed")]
    assert all(read_state(name) is GprState(state) for name, state in named[:3])


def test_the_bands_are_told() -> None:
    bands = f"Priorities up to {BANDS[0][0]} are low, up to {BANDS[1][0]} medium, and above that high"
    assert bands in " ".join(PAGE.split())


@pytest.mark.parametrize("columns", [remote.GPRS, remote.WAITS, remote.NODES, remote.ALLOCATIONS])
def test_every_table_it_shows_has_the_columns_that_are_printed(columns: tuple[str, ...]) -> None:
    usual = tuple(column for column in columns if column not in remote.WIDE)
    assert usual in [tuple(re.split(r" {2,}", line)) for line in PAGE.splitlines()]
