"""Two daemons on one repository for minutes under load: one is enough, and two do nothing twice."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.chaos.whole_daemon import BURST, Scene, scene

_WORKLOADS = tuple(f"model-{number}" for number in range(12))
_LATE = 20
"""Seconds after its end at which a burst is gone on a machine that has other things to do."""


def run(directory: Path, number: int) -> str:
    """Run two daemons for so many seconds, while demand, people and requests come and go."""
    chance = random.Random(20261129)
    with scene(directory, _WORKLOADS) as one:
        daemons = [one.start(cache) for cache in ("first", "second")]
        for daemon in daemons:
            one.begin(daemon)
        until = time.monotonic() + number
        turns, latest = 0, 0.0
        while time.monotonic() < until:
            turns += 1
            one.missing = {name: chance.choice([0, 0, 1, 2]) for name in _WORKLOADS}
            if turns % 3 == 0:
                one.ask(chance.choice(daemons))
            if turns % 5 == 0:
                one.approve()
            time.sleep(chance.uniform(0.2, 2))
            one.see_history()
            latest = max(latest, _overdue(one))
            assert latest < _LATE, f"a burst of {BURST} s stands {latest:.1f} s after its end"
        one.settle(daemons[0], patience=180)
        codes = [daemon.end() for daemon in daemons]
        said = "".join(daemon.said() for daemon in daemons)
        assert codes == [0, 0], said[-2000:]
        assert "Traceback" not in said, said[-3000:]
        return f"{number} s, {turns} changes of demand; {one.judge()}; at most {latest:.1f} s late"


def _overdue(one: Scene) -> float:
    """Return the seconds by which the placement that should have ended first is late."""
    now, late = datetime.now(UTC), 0.0
    for text in one.placements().values():
        expires = next((line for line in text.splitlines() if "overspill.dev/expires-at:" in line), "")
        if expires:
            moment = datetime.fromisoformat(expires.partition(":")[2].strip().strip("\"'"))
            late = max(late, (now - moment).total_seconds())
    return late
