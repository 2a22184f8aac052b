"""The wait before a call is tried again."""

from __future__ import annotations

from reconciler.backoff import LONGEST_QUIET, backoff, quiet


def test_back_off_doubles_up_to_its_bound_and_is_jittered_over_its_upper_half() -> None:
    bounds = {"first": 1.0, "longest": 60.0}
    assert [backoff(failures, **bounds, luck=0) for failures in range(1, 9)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert [backoff(failures, **bounds, luck=0.5) for failures in (1, 2, 8)] == [0.75, 1.5, 45]
    assert backoff(10_000, **bounds, luck=0) == 30


def test_server_that_limits_the_rate_is_never_asked_sooner_than_it_said() -> None:
    for asked in (0.5, 30, 3600):
        waits = [quiet(failures, asked=asked, luck=luck) for failures in range(1, 60) for luck in (0, 0.5, 0.999)]
        assert min(waits) == asked
        assert max(waits) <= max(2 * asked, LONGEST_QUIET)
        assert quiet(2, asked=asked, luck=0) >= quiet(1, asked=asked, luck=0)
