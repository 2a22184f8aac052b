"""What docs/fit.md says is not guessed is refused in these words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.deciding.neighbourhood import HOST, LABELS, ZONE, apart, evenly, node, other, pod, term, why_not
from tests.deciding.scheduler import REQUIRED, Raw

PAGE = (Path(__file__).parents[2] / "docs" / "fit.md").read_text()
WORDS = re.findall(r"^\| .* \| `([^`]+)` \|$", PAGE.split("## What is not guessed")[1], re.MULTILINE)
REFUSED: list[tuple[Raw, list[Raw]]] = [
    (pod(nodeName="gpu-1"), []),
    (pod(labels={"app": "web"}, **apart(HOST)), []),
    (pod(affinity={"podAffinity": {REQUIRED: [term(ZONE, namespaceSelector={})]}}), []),
    (pod(affinity={"podAntiAffinity": {REQUIRED: [term(ZONE, mismatchLabelKeys=["app"])]}}), []),
    (pod(topologySpreadConstraints=[{**evenly(ZONE), "labelSelector": None}]), []),
    (pod(topologySpreadConstraints=[evenly(ZONE, matchLabelKeys=["version"])]), [other(LABELS)]),
]


@pytest.mark.parametrize(("wanted", "there"), REFUSED)
def test_what_is_refused_is_on_the_page_in_its_words(wanted: Raw, there: list[Raw]) -> None:
    said = why_not([node("a", 8, zone="a", pods=there)], wanted)
    assert [words for words in WORDS if words in said] != [], said


def test_the_page_has_words_for_every_row() -> None:
    assert len(WORDS) == len(REFUSED) + 3  # those of several manifests, of files and of pods on their way
