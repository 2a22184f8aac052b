"""docs/background/concepts.md: its diagram is the transition table, and its words are the program's."""

from __future__ import annotations

import re
from pathlib import Path

from reconciler.core.schema import KINDS
from reconciler.model.end_reason import EndReason
from reconciler.model.placement import TRANSITIONS, Phase
from tests.docs.concept_terms import CONCEPTS, concepts
from tests.pictures.diagram_svg import DIAGRAMS

PAGE = (Path(__file__).parents[2] / "docs" / "background" / "concepts.md").read_text()


def test_the_page_shows_the_picture_of_the_transition_table() -> None:
    # tests/pictures holds that the picture is what the table makes of it now.
    assert "](../pictures/life-of-a-placement.svg)" in PAGE
    assert {"life-of-a-placement", "overview"} == {*DIAGRAMS}
    phases = {phase for (before, _), after in TRANSITIONS.items() for phase in (before, after)}
    assert phases == {*Phase}
    assert all(f"{phase}" in PAGE for phase in phases)


def test_every_reason_for_an_end_is_named() -> None:
    section = PAGE.partition("What ended a placement stands in its revert, as the trailer `Overspill-Why`")[
        2
    ].partition("\n## ")[0]
    assert set(re.findall(r"`([a-z-]+)`", section)) == {*EndReason}


def test_the_list_of_concepts_is_that_of_the_page_and_of_the_kinds() -> None:
    """What counts the concepts of a first plan cannot do without one that is explained here."""
    table = PAGE.partition("## Words")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!word \|)([a-z][^|]*) \|", table, re.MULTILINE)
    assert rows
    headings = set(re.findall(r"^##+ (.+)$", PAGE, re.MULTILINE))
    assert {*rows} <= {*CONCEPTS}
    assert {*CONCEPTS} - {*rows} <= headings | {*KINDS}
    assert [kind for kind in KINDS if not concepts(kind)] == []
    assert [name for name in CONCEPTS if name not in concepts(name)] == []
