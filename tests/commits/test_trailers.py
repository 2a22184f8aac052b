"""Trailers are named in one place, and every one of them is a promise of docs/reference/commits.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.core.commits.trailers import Trailer, action, is_trailer, write_trailers
from reconciler.model.action import Action
from tests.builders.changes import HISTORY

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "commits.md").read_text(encoding="utf-8")


def test_one_module_alone_names_the_keys_of_trailers():
    sources = (ROOT / "reconciler").rglob("*.py")
    naming = [path.name for path in sources if "Overspill-" in path.read_text(encoding="utf-8")]
    assert naming == ["trailers.py"]


@pytest.mark.parametrize("trailer", Trailer)
def test_the_page_shows_every_trailer(trailer: Trailer):
    assert f"\n{trailer}: " in PAGE


@pytest.mark.parametrize("value", Action)
def test_the_page_shows_every_action(value: Action):
    assert f"\n{Trailer.ACTION}: {value}\n" in PAGE


def test_trailer_without_a_value_is_left_out():
    pairs = [(Trailer.CLUSTER, "worker-2"), (Trailer.SUBSET, ""), (Trailer.WHY, "expired")]
    assert write_trailers(pairs) == f"{Trailer.CLUSTER}: worker-2\n{Trailer.WHY}: expired"


def test_what_is_written_is_read_back():
    assert [action(commit) for commit in HISTORY] == [Action.EXTEND, Action.RESIZE, Action.PLACE]
    assert {Trailer.SUBSET.read(commit, "none") for commit in HISTORY} == {"none"}
    assert all(Trailer.PLACEMENT.among(commit) for commit in HISTORY)


def test_lines_of_other_programs_are_no_trailers_of_ours():
    assert is_trailer(f"{Trailer.EXPIRES}: 2026-01-01T00:00:00Z")
    assert not is_trailer("Signed-off-by: Ann <ann@example.com>")
    assert not is_trailer("Overspill ended it: see above")
