"""Pictures of terminals are whole by themselves, and a film shows each line when the screen did."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.text import Text

from tests.pictures.terminal_svg import CELL, film, runs, still

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
LARGEST = 300_000
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", ["demo", "plan", "status", "explain", "watch", "doctor", "comment"])
def test_pictures_of_docs_need_nothing_beside_them(name: str) -> None:
    text = (PICTURES / f"{name}.svg").read_text()
    assert len(text.encode()) < LARGEST
    assert {element.tag for element in ET.fromstring(text).iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "style", "rect", "circle", "text", "g", "path")
    }
    assert re.findall(r"[a-z]*://[^\s\"]*|@import|@font-face|url\(", text) == ["http://www.w3.org/2000/svg"]


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ET.fromstring(svg).iter(f"{SVG}text")][1:]


def test_a_still_shows_each_run_at_its_column_in_its_colour() -> None:
    line = Text.assemble("ab  ", ("<c>", "bold red"), "   ")
    assert [(run.column, run.text) for run in runs(line)] == [(0, "ab"), (4, "<c>")]
    svg = still([line], 10, "a & b")
    assert texts(svg) == ["ab", "<c>"]
    assert f'x="{14 + 4 * CELL:g}"' in svg
    assert 'fill="#ff7b72" font-weight="600"' in svg


def test_colours_of_a_terminal_are_those_of_its_escapes() -> None:
    (run,) = runs(Text.from_ansi("\x1b[32mok\x1b[0m"))
    assert run.colour == runs(Text("ok", "green"))[0].colour != runs(Text("ok"))[0].colour


def test_what_is_reversed_stands_on_its_colour() -> None:
    (run,) = runs(Text(" k ", "reverse"))
    assert (run.text, run.colour, run.ground) == (" k ", "#0d1117", "#e6edf3")


def test_cells_are_squares_and_bars_are_lines() -> None:
    svg = still([Text("■ □ "), Text("━━──")], 10, "cells")
    assert texts(svg) == []
    paths = [element.attrib["d"] for element in ET.fromstring(svg).iter(f"{SVG}path")]
    assert [path.count("h") for path in paths] == [2, 2, 1, 1]  # a square has two level edges


def test_a_film_draws_a_line_once_and_says_when_it_shows() -> None:
    frames = [
        (1.0, [Text("title"), Text("first")]),
        (1.0, [Text("title"), Text("second")]),
        (2.0, [Text("title"), Text("first")]),
    ]
    svg = film(frames, 20, "film", rest=1)
    assert sorted(texts(svg)) == ["first", "second", "title"]
    groups = {"".join(group.itertext()): group.attrib["class"].split() for group in ET.fromstring(svg).iter(f"{SVG}g")}
    assert groups.keys() == {"first", "second"}  # the title always shows
    assert "s" in groups["second"]
    assert "s" not in groups["first"]
    rules = dict(re.findall(r"@keyframes (\w+)\{(.*?\})\}", svg))
    assert rules[groups["first"][1]] == "0%{visibility:visible}25%{visibility:hidden}50%{visibility:visible}"
    assert rules[groups["second"][1]] == "0%{visibility:hidden}25%{visibility:visible}50%{visibility:hidden}"
    assert "animation:4s " in svg
