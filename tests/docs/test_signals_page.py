"""docs/signals.md: its policies load, and the commit that it shows is one that was made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.core.load import assemble, parse_file
from reconciler.model.ids import CommitId

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "signals.md").read_text()
LAYOUT = CHECKOUT / "repo-layout"
POLICIES = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("policy", POLICIES, ids=("schedule", "prometheus"))
def test_each_policy_it_shows_is_in_force_without_a_complaint(policy: str) -> None:
    files = {path.name: path.read_bytes() for path in LAYOUT.rglob("*.yaml") if path.parent.name != "policies"}
    others = (LAYOUT / "policies" / "serving.yaml").read_text().replace("  - vllm\n", "")
    parsed = {**files, "a.yaml": policy.encode(), "b.yaml": others.encode()}
    desired = assemble(CommitId(""), {path: parse_file(data) for path, data in parsed.items()})
    assert desired.problems == ()
    assert any(one.schedules or one.queries for one in desired.policies.values())


def test_the_commit_it_shows_was_made_in_the_story_of_three_signals() -> None:
    (shown,) = re.findall(r"^```text\n(resize.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown in (CHECKOUT / "tests" / "golden" / "signals" / "expected" / "log.txt").read_text()


def test_the_words_it_gives_to_each_signal_are_the_programs_own() -> None:
    log = (CHECKOUT / "tests" / "golden" / "signals" / "expected" / "log.txt").read_text().replace("\n", " ")
    for word, pattern in (
        ("schedule", r"`schedule [a-z-]+ plans \d+ from [\d:TZ-]+ on`"),
        ("prometheus", r"`prometheus [a-z-]+ is \d+, and a replica takes \d+`"),
    ):
        assert re.search(pattern, PAGE), word
        assert re.search(pattern.strip("`"), log), word
