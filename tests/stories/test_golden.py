"""What repo-layout and some observations come to, file by file and commit by commit."""

import re
from pathlib import Path

import pytest

from tests.stories.golden import GOLDEN, STORIES, play


@pytest.mark.parametrize("story", STORIES, ids=[story.name for story in STORIES])
def test_story_comes_out_as_it_is_written_down(story: Path, tmp_path: Path) -> None:
    expected = story / "expected"
    written = {str(path.relative_to(expected)): path.read_text() for path in expected.rglob("*") if path.is_file()}
    played = play(story, tmp_path)
    assert played == written


def test_shortage_ends_with_the_tree_it_began_with() -> None:
    last = GOLDEN / "shortage" / "expected" / "4-time-is-up"
    assert not (last / "clusters").exists()


def test_flux_story_leaves_nothing_but_what_it_began_with() -> None:
    last = GOLDEN / "flux" / "expected" / "2-time-is-up" / "clusters"
    assert [path.name for path in last.rglob("*") if path.is_file()] == ["_anchor.yaml"]


def test_replicas_that_two_signals_ask_for_are_lent_once_and_kept_while_one_is_away() -> None:
    steps = GOLDEN / "signals" / "expected"
    lent = [re.findall(r"^  replicas: (\d+)$", read(step), re.MULTILINE) for step in sorted(steps.iterdir())[:5]]
    assert lent == [["2"], ["3"], ["3"], ["5"], ["5"]]


def read(step: Path) -> str:
    """Read the Deployments of a step."""
    return "".join(path.read_text() for path in step.rglob("*-deployment-*.yaml"))


def test_a_set_that_moves_is_in_one_cluster_after_every_commit() -> None:
    steps = sorted(path for path in (GOLDEN / "moved" / "expected").iterdir() if path.is_dir())
    homes = [sorted(path.parts[-3] for path in step.rglob("placement.yaml")) for step in steps]
    assert homes == [["worker-2"]] * 3 + [["worker-3"]] * 2 + [[]]
    log = (GOLDEN / "moved" / "expected" / "log.txt").read_text()
    assert log.count("Overspill-Action: Move") == 1
    assert log.count("Overspill-Action: Place") == 1
