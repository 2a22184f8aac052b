"""What the picture tells of a commit is read from git log."""

from __future__ import annotations

from datetime import UTC, datetime

from reconciler.demo.branch_log import LandedCommit, read_log

BURST = """\
6 pods unschedulable on worker-1
for 7s.

It is cheap there.

Overspill-Placement: llm/vllm-4ee14e64
Overspill-Expires: 2026-11-20T09:19:59Z
"""


def log(*entries: tuple[str, ...]) -> str:
    return "".join("\0" + "\x1f".join(entry) for entry in entries)


def test_a_burst_has_its_reasons_its_placement_and_its_end() -> None:
    assert read_log(log(("4ee14e6", "Overspill", "1795000000", "burst(llm/vllm): 2 replicas", BURST))) == (
        LandedCommit(
            id="4ee14e6",
            author="Overspill",
            at=1795000000,
            subject="burst(llm/vllm): 2 replicas",
            reasons=("6 pods unschedulable on worker-1 for 7s.", "It is cheap there."),
            placement="vllm-4ee14e64",
            expires=datetime(2026, 11, 20, 9, 19, 59, tzinfo=UTC),
        ),
    )


def test_a_revert_by_hand_has_no_reason_and_no_placement() -> None:
    (commit,) = read_log(log(("1f", "Ann", "1", 'Revert "burst"', "This reverts commit 4ee14e64.\n")))
    assert (commit.author, commit.reasons, commit.placement, commit.expires) == ("Ann", (), "", None)


def test_an_empty_log_has_no_commits() -> None:
    assert read_log("") == ()
