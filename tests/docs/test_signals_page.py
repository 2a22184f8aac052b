"""docs/how-to/signals.md: its policies load, and the commit that it shows is one that was made."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.model.ids import CommitId
from reconciler.model.policy import Desired
from reconciler.model.signal import DemandLevel

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "how-to" / "signals.md").read_text()
LAYOUT = CHECKOUT / "repo-layout"
SHOWN = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
POLICIES = [text for text in SHOWN if "kind: BurstPolicy" in text]


@pytest.mark.parametrize("policy", POLICIES, ids=("schedule", "forecast", "prometheus", "slurm"))
def test_each_policy_it_shows_is_in_force_without_a_complaint(policy: str) -> None:
    desired = fleet(policy)
    assert desired.problems == ()
    assert any(one.signals for one in desired.policies.values())


def test_its_partition_of_slurm_is_a_cluster_without_a_complaint() -> None:
    (partition,) = [text for text in SHOWN if text not in POLICIES]
    policy = (LAYOUT / "policies" / "serving.yaml").read_bytes()
    files = {
        path.relative_to(LAYOUT).as_posix(): path.read_bytes()
        for path in LAYOUT.rglob("*.yaml")
        if path.parent.name != "policies"
    }
    added = {"policies/serving.yaml": policy, "clusters/hpc.yaml": partition.encode()}
    desired = assemble(CommitId(""), {path: parse_file(data) for path, data in {**files, **added}.items()})
    assert desired.problems == ()
    assert [str(name) for name, cluster in desired.clusters.items() if cluster.slurm is not None] == ["hpc"]


def test_its_schedule_plans_what_the_page_says_in_its_words() -> None:
    (moment,) = re.findall(r"`overspill plan --at (\S+)` shows what a schedule will do then", PAGE)
    (begun,) = re.findall(r"`schedule office-hours plans 3 from (\S+) on`", PAGE)
    desired = fleet(POLICIES[0])
    for now, since in ((begun, begun), (moment, "2026-11-23T06:50:00Z")):
        (ask,) = [
            ask
            for policy in desired.policies.values()
            for signal in policy.signals
            for ask in signal.asks(datetime.fromisoformat(now))
        ]
        assert (ask.signal, ask.cause) == ("schedule office-hours", f"plans 3 from {since} on")


def test_its_forecast_foresees_what_the_page_says_in_its_words() -> None:
    (by,) = re.findall(r"`forecast usual foresees 6 missing until (\S+) \(3 more than now\), as at", PAGE)
    (signal,) = next(iter(each for policy in fleet(POLICIES[1]).policies.values() if (each := policy.signals)))
    now = datetime.fromisoformat(by) - timedelta(minutes=11)
    past = (DemandLevel(at=now - timedelta(days=2), missing=6), DemandLevel(at=now - timedelta(hours=1), missing=3))
    shown = re.findall(r"`(forecast usual .*?|of the last \d+ forecasts .*?)`", PAGE)
    told = re.sub(r"\d+ came true", "16 came true", signal.foresees(past, 3, now).statement)
    assert len(shown) == 2
    assert all(words in told for words in shown), told


def fleet(policy: str) -> Desired:
    """Load the recommended layout with this policy for its first template, and its own for the other."""
    files = {
        path.relative_to(LAYOUT).as_posix(): path.read_bytes()
        for path in LAYOUT.rglob("*.yaml")
        if path.parent.name != "policies"
    }
    others = (LAYOUT / "policies" / "serving.yaml").read_text().replace("  - vllm\n", "")
    parsed = {**files, "policies/a.yaml": policy.encode(), "policies/b.yaml": others.encode()}
    return assemble(CommitId(""), {path: parse_file(data) for path, data in parsed.items()})


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
