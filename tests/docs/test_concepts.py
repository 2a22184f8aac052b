"""docs/background/concepts.md: its diagram is the transition table, and its words are the program's."""

from __future__ import annotations

import re
from pathlib import Path

from reconciler.model.placement import TRANSITIONS, Phase
from reconciler.model.plan import EndReason

PAGE = (Path(__file__).parents[2] / "docs" / "background" / "concepts.md").read_text()


def test_the_diagram_is_the_transition_table() -> None:
    (diagram,) = re.findall(r"^```mermaid\nstateDiagram-v2\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    steps = [line.strip() for line in diagram.splitlines()]
    ends = set(TRANSITIONS.values()) - {before for before, _ in TRANSITIONS}
    assert steps == [
        f"[*] --> {Phase.PENDING}: placed",
        *(f"{before} --> {after}: {event}" for (before, event), after in TRANSITIONS.items()),
        *(f"{end} --> [*]" for end in sorted(ends)),
    ]


def test_every_reason_for_an_end_is_named() -> None:
    section = PAGE.partition("What ended a placement stands in its revert, as the trailer `Overspill-Why`")[
        2
    ].partition("\n## ")[0]
    assert set(re.findall(r"`([a-z-]+)`", section)) == {*EndReason}
