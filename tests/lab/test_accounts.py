"""What a run served, what it lost, and to what."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from reconciler.lab.accounts import WorkloadAccount, jain, percentile


def follow(*steps: tuple[int, int, int]) -> WorkloadAccount:
    """Play (second, missing, served) until the next step; the last one has no length."""
    account = WorkloadAccount()
    for (begin, missing, served), (end, _, _) in pairwise(steps):
        account.follow(begin, missing, served)
        account.add(begin, end, missing, served)
    account.follow(*steps[-1])
    return account


def test_replica_seconds_are_added_up() -> None:
    account = follow((0, 4, 0), (100, 4, 3), (200, 0, 0))
    assert (account.missing, account.unserved, account.served_share) == (800, 500, 0.375)


def test_who_waits_longest_is_served_first() -> None:
    account = follow((0, 2, 0), (10, 4, 0), (30, 4, 3))
    assert account.served_after == {30: 2, 20: 1}


def test_who_came_last_goes_first() -> None:
    account = follow((0, 2, 0), (10, 4, 0), (20, 2, 0), (50, 2, 2))
    assert account.served_after == {50: 2}


def test_replica_that_finds_a_ready_pod_is_served_at_once() -> None:
    account = follow((0, 1, 1), (10, 3, 2))
    assert account.served_after == {0: 2}


def test_longest_time_with_nothing_is_counted_over_changes() -> None:
    account = follow((0, 1, 0), (60, 3, 0), (100, 3, 1), (200, 3, 0), (250, 0, 0))
    assert account.longest_unserved == 100


@pytest.mark.parametrize(("shares", "index"), [([0.5, 0.5], 1.0), ([1.0, 0.0], 0.5), ([], 1.0), ([0.0, 0.0], 1.0)])
def test_jain_is_one_for_equal_shares_and_falls_with_inequality(shares: list[float], index: float) -> None:
    assert jain(shares) == index


def test_percentiles_go_by_count() -> None:
    times = Counter({10: 98, 20: 1, 600: 1})
    assert (percentile(times, 0.5), percentile(times, 0.99), percentile(times, 1.0)) == (10, 20, 600)
    assert percentile(Counter(), 0.5) is None
