"""The HTML page of runs."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache, partial
from html.parser import HTMLParser

import pytest

from reconciler.lab.controllers import RULES, OverspillController
from reconciler.lab.fleet_files import fleet_files
from reconciler.lab.page import page
from reconciler.lab.picture import draw_alone
from reconciler.lab.report import Comparison
from reconciler.lab.simulation import simulate
from tests.lab.test_simulation import POLICY, SCENARIO


class Elements(HTMLParser):
    """The elements of a page, and whether each is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.seen: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag != "meta":
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


@cache
def played() -> Comparison:
    scenario = replace(SCENARIO, name="<hour>")
    results = tuple(
        simulate(scenario, make)
        for make in (partial(OverspillController, files=fleet_files(scenario, POLICY)), RULES["static peak"])
    )
    return Comparison(scenario="<hour>", about="four & more", length=scenario.length, results=results, optimum=None)


@pytest.fixture(scope="module")
def shown() -> str:
    return page([played()])


def test_page_is_whole_and_needs_nothing_beside_it(shown: str) -> None:
    elements = Elements(shown)
    assert elements.stack == []
    assert not {"script", "link", "img", "iframe"} & {*elements.seen}
    assert not re.search(r"https?://|url\(|@import", shown)


def test_texts_are_escaped(shown: str) -> None:
    assert "<hour>" not in shown
    assert "four &amp; more" in shown


def test_picture_has_each_cluster_and_a_mark_for_the_commits_of_each_second(shown: str) -> None:
    for name in ("worker-2", "worker-3", "2 GPUs"):
        assert f">{name}</text>" in shown
    marks = re.findall(r"<title>(\S+) (.*?)</title>", shown, re.DOTALL)
    begun = next(text for moment, text in marks if text.startswith("burst("))
    assert "2 replicas on worker-2" in begun
    assert "2 replicas on worker-3" in begun
    assert "unschedulable on worker-1" in begun


def test_all_runs_of_a_scenario_have_the_same_axis(shown: str) -> None:
    ends = [re.findall(r">(\d+:\d\d)</text></svg>", picture + "</svg>") for picture in shown.split("</svg>")[:-1]]
    assert len(ends) == 2
    assert ends[0] == ends[1] != []


def test_picture_alone_is_a_whole_file_with_its_title_and_key() -> None:
    comparison = played()
    for result in comparison.results:
        drawing = ET.fromstring(draw_alone(result, comparison.length, comparison.about))
        texts = {element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text")}
        assert {f"<hour>, {result.controller}: four & more", "served", "burst", "worker-2"} <= texts
