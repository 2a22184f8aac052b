"""Diagrams of docs/pictures are what the program's tables make of them now, and need nothing beside them."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from reconciler.model.placement import TRANSITIONS, Phase
from tests.pictures.diagram_svg import DIAGRAMS, life

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


@pytest.mark.parametrize("name", DIAGRAMS)
def test_diagram_of_docs_is_current_and_whole_by_itself(name: str) -> None:
    text = (PICTURES / f"{name}.svg").read_text()
    assert text == DIAGRAMS[name](), "run `python -m tests.pictures.diagram_svg`"
    assert ET.fromstring(text).get("viewBox")
    assert re.findall(r"[a-z]*://[^\s\"]*|@import|@font-face|url\(", text) == ["http://www.w3.org/2000/svg"]
    assert "prefers-color-scheme: dark" in text


def test_life_of_a_placement_has_every_phase_and_every_event() -> None:
    words = re.findall(r"[\w ]+", " ".join(ET.fromstring(life()).itertext()))
    said = {word.strip() for word in words}
    for (before, event), after in TRANSITIONS.items():
        assert {str(before), str(after)} <= {part for word in said for part in word.split()}
        assert any(str(event) in word for word in said), event
    ends = {*TRANSITIONS.values()} - {before for before, _ in TRANSITIONS}
    by_phase = [
        {(event, after) for (before, event), after in TRANSITIONS.items() if before is phase and after in ends}
        for phase in (Phase.PENDING, Phase.RUNNING)
    ]
    assert by_phase[0] == by_phase[1], "the picture has one arrow for both"
