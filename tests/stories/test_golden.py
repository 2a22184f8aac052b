"""What repo-layout and some observations come to, file by file and commit by commit."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.stories.golden import STORIES, Played, difference, expected, play


# Playing a story takes longer than all that is asked of it.
@pytest.mark.parametrize("story", STORIES, ids=[story.name for story in STORIES])
def test_story_comes_out_as_it_is_written_down(story: Path, tmp_path: Path) -> None:
    played = play(story, tmp_path)
    folder = story / "expected"
    written = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert expected(played) == written
    for claim in CLAIMS.get(story.name, ()):
        claim(played)


def shortage_ends_with_the_tree_it_began_with(played: Played) -> None:
    assert below(played.trees["4-none-missing"], "clusters") == {}


def flux_story_leaves_nothing_but_what_it_began_with(played: Played) -> None:
    last = below(played.trees["2-time-is-up"], "clusters")
    assert [path.rpartition("/")[2] for path in last] == ["_anchor.yaml"]


def spread_goes_out_in_order_over_two_pools_and_a_cluster_and_comes_back_in_reverse(played: Played) -> None:
    told = re.findall(r'^(?:Revert ")?(?:burst|resize)\(llm/vllm\): (.*?)(?: for 1h"?)?$', played.log, re.MULTILINE)
    assert told == [
        "2 replicas on worker-2/reserved",
        "1 replica on worker-2/shared",
        "1 to 3 replicas on worker-2/shared",
        "2 replicas on worker-3/spot",
        "2 replicas on worker-3/spot",
        "3 to 1 replica on worker-2/shared",
        "1 replica on worker-2/shared",
        "2 replicas on worker-2/reserved",
    ]
    assert below(played.trees["6-still-none"], "clusters") == {}


def replicas_that_two_signals_ask_for_are_placed_once_and_kept_while_one_is_away(played: Played) -> None:
    deployments = [
        "".join(text for path, text in tree.items() if "-deployment-" in path) for tree in played.trees.values()
    ]
    replicas = [re.findall(r"^  replicas: (\d+)$", text, re.MULTILINE) for text in deployments]
    assert replicas == [["2"], ["3"], ["3"], ["5"], ["5"]]


def a_set_that_moves_is_in_one_cluster_after_every_commit(played: Played) -> None:
    records = [[path for path in tree if path.endswith("/placement.yaml")] for tree in played.trees.values()]
    clusters = [[path.split("/")[1] for path in paths] for paths in records]
    assert clusters == [["worker-2"]] * 3 + [["worker-3"]] * 2 + [[]]
    assert played.log.count("Overspill-Action: Move") == 1
    assert played.log.count("Overspill-Action: Place") == 1


CLAIMS: Mapping[str, tuple[Callable[[Played], None], ...]] = {
    "shortage": (shortage_ends_with_the_tree_it_began_with,),
    "flux": (flux_story_leaves_nothing_but_what_it_began_with,),
    "spread": (spread_goes_out_in_order_over_two_pools_and_a_cluster_and_comes_back_in_reverse,),
    "signals": (replicas_that_two_signals_ask_for_are_placed_once_and_kept_while_one_is_away,),
    "moved": (a_set_that_moves_is_in_one_cluster_after_every_commit,),
}
"""What is asked of a story beside every byte."""


def below(tree: Mapping[str, str], directory: str) -> dict[str, str]:
    return {path: text for path, text in tree.items() if path.startswith(f"{directory}/")}


def test_a_difference_shows_every_byte_of_what_changed_and_digests_the_rest() -> None:
    before = {"a": "1\n2\n", "b": "same\n", "c": "gone\n", "d": "no end"}
    after = {"a": "1\n3\n", "b": "same\n", "d": "no end\n", "e": "gone\n", "f": "new\n"}
    header, *lines = difference(before, after).splitlines()
    assert header.startswith("5 files, sha256:")
    assert lines == [
        "", "removed c",
        "", "--- before/a", "+++ a", "@@ -1,2 +1,2 @@", " 1", "-2", "+3",
        "", "--- before/d", "+++ d", "@@ -1 +1 @@", "-no end", "\\ No newline at end of file", "+no end",
        "", "added e", "equal to c",
        "", "added f", "+new",
    ]  # fmt: skip # a paragraph a file
    assert difference(before, after | {"b": "same \n"}).splitlines()[0] != header


def test_each_story_with_claims_exists() -> None:
    assert CLAIMS.keys() <= {story.name for story in STORIES}
