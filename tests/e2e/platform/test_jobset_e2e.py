"""JobSet's own controller on both clusters, with Kueue, which holds its sets: an example as released is lent whole."""

from __future__ import annotations

from tests.e2e.platform.controllers import JOB_SET, QUEUED, example
from tests.e2e.platform.queues import admitted, is_held, open_queue, waits
from tests.e2e.platform.two_clusters import Lender

CONTROLLERS = QUEUED
NAMESPACE = "batch"
EXAMPLE = "site/static/examples/simple/paralleljobs.yaml"
"""A job of four workers and one of a driver."""

PODS = 5
DEFAULT = "default"
"""The queue of this name takes what names none, as the example does."""


LACK = f"insufficient quota for pods in flavor {NAMESPACE}"


def test_a_set_runs_whole_elsewhere_and_its_end_is_carried_home(lender: Lender) -> None:
    home, away = lender.home, lender.away
    open_queue(lender, home, DEFAULT, {"pods": "4"})
    open_queue(lender, away, DEFAULT, {"pods": "8"})
    lender.apply(example(JOB_SET, EXAMPLE))
    held = waits(home, NAMESPACE, "paralleljobs", LACK)
    lender.until_at(home, held, "the set does not wait")
    lender.lend("jobset/paralleljobs")
    with lender.daemon():
        burst = "burst(llm/paralleljobs): 1 replica on away"
        lender.until_committed(burst)
        assert f"kueue {DEFAULT} {LACK}" in lender.told()
        lender.until_at(away, lambda: len(lender.running(away)) == PODS, "the set does not run away")
        lender.until_at(away, admitted(away, NAMESPACE, "paralleljobs"), "Kueue does not say that it is admitted")
        assert not lender.pods(home)
        lender.end_pods(away)
        lender.until_committed(burst, f'Revert "{burst}')
        assert "was complete at" in lender.told()  # its pods or the set itself, whichever is heard first
        lender.until_at(away, lambda: not lender.pods(away), "the set is still away")
        lender.until_at(home, held, "the set does not wait any more")
        lender.until_answered(("explain", "llm/paralleljobs"), is_held)
