"""docs/how-to/spread.md: its policy is in force, its picture is what comes of it, and its commit was made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.core.decide.distribution import returns
from reconciler.core.expressions.sandbox import shares
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.model.ids import CommitId
from reconciler.model.policy import Distribution, StrategyName
from tests.builders import spread_example, subsets
from tests.builders.cluster_shares import picture

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "how-to" / "spread.md").read_text()
LAYOUT = CHECKOUT / "repo-layout"


@pytest.mark.parametrize(
    ("place", "strategy", "scorers"),
    [
        (0, StrategyName.WEIGHTED, 0),
        (1, StrategyName.ORDERED, 3),
        (2, StrategyName.BALANCED, 0),
        (3, StrategyName.BALANCED, 1),
    ],
)
def test_each_policy_it_shows_is_in_force_without_a_complaint(place: int, strategy: StrategyName, scorers: int) -> None:
    *policies, _ = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    policy = policies[place]
    files = {
        path.relative_to(LAYOUT).as_posix(): path.read_bytes()
        for path in LAYOUT.rglob("*.yaml")
        if path.parent.name != "policies"
    }
    others = (LAYOUT / "policies" / "serving.yaml").read_text().replace("  - vllm\n", "")
    parsed = {**files, "policies/a.yaml": policy.encode(), "policies/b.yaml": others.encode()}
    desired = assemble(CommitId(""), {path: parse_file(data) for path, data in parsed.items()})
    assert desired.problems == ()
    assert (strategy, scorers) in {
        (each.distribution.strategy, len(each.scoring)) for each in desired.policies.values()
    }


def test_the_picture_is_what_comes_of_its_clusters() -> None:
    assert picture() in blocks()


def test_the_picture_of_subsets_is_what_comes_of_them() -> None:
    assert subsets.picture() in blocks()


def test_the_commit_it_shows_was_made_in_the_story_of_weights() -> None:
    (shown,) = [block for block in blocks() if block.startswith("burst(")]
    assert shown in (CHECKOUT / "tests" / "golden" / "weighted" / "expected" / "log.txt").read_text()


def test_the_shares_of_two_roles_are_what_comes_of_them() -> None:
    header, *rows = re.findall(r"^\| (\w+) \| (\d) \| (\d) \|$", PAGE, re.MULTILINE)
    assert rows
    assert [shares(int(total), [*map(int, header[1:])]) for total, *_ in rows] == [
        [int(one), int(other)] for _, one, other in rows
    ]


def test_what_comes_home_first_is_said_as_commits_say_it() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (.+) first \|$", PAGE, re.MULTILINE))
    assert {*rows} == {*StrategyName}
    for strategy in StrategyName:
        said = returns(Distribution(strategy=strategy))
        assert rows[strategy] in said
        assert said.endswith("first")


def test_what_a_subset_changes_is_what_comes_of_its_subset() -> None:
    (shown,) = re.findall(r"^```diff\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown == spread_example.difference()
    assert spread_example.complaint() in [" ".join(block.split()) for block in blocks()]


def blocks() -> list[str]:
    return re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
