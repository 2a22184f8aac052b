"""Play a long run and print its figures; the exit code is 1 where an invariant does not hold, whatever the times."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import not_
from pathlib import Path

from tests.e2e import control_plane
from tests.e2e.api_server import Refused
from tests.e2e.long_run import clock, demand, faults
from tests.e2e.long_run.clock import ShiftedClock
from tests.e2e.long_run.daemon import Daemon
from tests.e2e.long_run.demand import DemandPlayer
from tests.e2e.long_run.faults import FaultPlayer
from tests.e2e.long_run.journal import Journal
from tests.e2e.long_run.kinds_of_faults import kinds
from tests.e2e.long_run.report import Report
from tests.e2e.long_run.scale import Order, Scale, read_order
from tests.e2e.long_run.stage import WINDOW, Stage, stage
from tests.e2e.long_run.verdict import Verdict, differences, early_reverts, late_reverts
from tests.e2e.long_run.watches import Branch, PlacedObject, deployed, marked, watches
from tests.e2e.three_clusters.clusters import missing as missing_engines

SETTLE = 600.0
"""Seconds, at most, until the clusters are as the branch says.

Argo CD looks by itself every three minutes, and takes an Application that is being deleted up only with a look that
does not fail: one whose directory has gone may be passed over twice.
"""
_GLANCE = 2.0
_LAST_WORDS = 20_000


class LongRun:
    """One run on a stage that stands."""

    def __init__(self, stage: Stage, scale: Scale, daemon: Daemon, shifted: ShiftedClock | None) -> None:
        """Draw what is to happen."""
        self._stage, self._scale, self._daemon = stage, scale, daemon
        self._journal, self._branch = Journal(), Branch(stage.fleet.bare)
        self._demand = DemandPlayer(demand.schedule(scale), self._journal, stage.scale_to)
        every_kind, self._left_out = kinds(stage, daemon, shifted)
        self._faults = FaultPlayer(faults.schedule(scale, every_kind))
        self._stopped = threading.Event()
        self._unexplained: list[str] = []

    def play(self) -> Report:
        """Play demand and faults, stand still, take all demand away, and judge."""
        with self._threads():
            self._say(f"playing {self._scale.minutes:g} minutes")
            fault_thread = threading.Thread(target=self._faults.play, args=(self._stopped,))
            fault_thread.start()
            self._demand.play(self._scale.seconds, self._stopped)
            fault_thread.join()
            self._say("standing still")
            stood = self._stands_still("at the standstill", bool)
            self._say("taking all demand away")
            self._demand.end(self._stopped)
            self._stands_still("in the end", not_)
            left = self._left()
        return Report(
            scale=self._scale,
            bursts=self._journal.bursts(),
            faults=self._faults.played,
            left_out=self._left_out,
            memory=self._daemon.readings,
            commits=len(self._branch.subjects()),
            stood=len(stood),
            verdict=Verdict(
                left=left,
                late=self._late(),
                early=early_reverts(self._journal.bursts(), window=WINDOW),
                unexplained=tuple(self._unexplained),
                broken=tuple(self._broken()),
            ),
        )

    @contextmanager
    def _threads(self) -> Iterator[None]:
        """Watch and read memory meanwhile."""
        stage = self._stage
        looks = watches(self._journal, self._branch, stage.home, stage.targets)
        threads = [threading.Thread(target=watch.run, args=(self._stopped,)) for watch in looks]
        threads.append(threading.Thread(target=self._daemon.read_memory, args=(self._stopped,)))
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join()

    def _stands_still(
        self, when: str, is_reached: Callable[[tuple[PlacedObject, ...]], bool]
    ) -> tuple[PlacedObject, ...]:
        """Wait until branch and clusters agree and twice show the same; note what differs when time is up."""
        deadline, before = time.monotonic() + SETTLE, None
        branch = Branch(self._stage.fleet.bare)  # one of its own: the watch reads the other
        while True:
            placements, told = branch.placements(), self._differences(branch)
            if not told and is_reached(placements) and placements == before:
                return placements
            before = placements
            if time.monotonic() > deadline:
                names = sorted(f"{each.name} on {each.cluster}" for each in placements)
                told = told or (f"the branch has {', '.join(names) or 'no placement'}",)
                self._unexplained += [f"{when}: {each}" for each in told]
                return placements
            time.sleep(_GLANCE)

    def _differences(self, branch: Branch) -> tuple[str, ...]:
        """Compare branch and clusters; a cluster that does not answer is a difference."""
        targets = self._stage.targets
        try:
            return differences(
                branch.placements(),
                {name: marked(cluster) for name, cluster in targets.items()},
                {name: deployed(cluster) for name, cluster in targets.items()},
            )
        except (OSError, Refused) as error:
            return (f"a cluster does not answer: {error}",)

    def _left(self) -> tuple[str, ...]:
        """Name what is left on the clusters once engines have had time to take it away."""
        deadline = time.monotonic() + SETTLE
        while (left := self._stage.left()) and time.monotonic() < deadline:
            time.sleep(_GLANCE)
        return left

    def _late(self) -> tuple[str, ...]:
        bursts, played = self._journal.bursts(), self._faults.played
        return late_reverts(bursts, played, window=WINDOW, late=self._scale.late, now=time.time())

    def _broken(self) -> Iterator[str]:
        yield from self._faults.failures
        if tracebacks := self._daemon.tracebacks():
            yield f"the daemon has logged {tracebacks} tracebacks"
        if self._daemon.asks_for_nothing():
            yield "the daemon has ended by itself"
        if not any(burst.committed for burst in self._journal.bursts()):
            yield "nothing was placed: the run shows nothing"

    def _say(self, what: str) -> None:
        sys.stderr.write(f"# {time.strftime('%H:%M:%S')} {what}\n")


def play(order: Order, home: Path) -> Report:
    """Start everything, play, and stop everything."""
    scale = order.scale
    sys.stderr.write(f"# starting {scale.nodes} nodes and {scale.pods} pods in {home}\n")
    with stage(home, scale, demand.workloads(scale)) as made:
        shifted = None if clock.missing() else ShiftedClock(home / "clock")
        arguments, settings = made.daemon_settings()
        daemon = Daemon(home / "daemon", url=made.fleet.url, arguments=arguments, settings=settings, clock=shifted)
        try:
            made.remember()
            return LongRun(made, scale, daemon, shifted).play()
        except BaseException:
            sys.stderr.write(daemon.logged()[-_LAST_WORDS:])
            raise
        finally:
            daemon.stop()


def main() -> int:
    """Play, print, judge."""
    order = read_order(sys.argv[1:], os.environ)
    if reason := control_plane.missing() or missing_engines():
        sys.stdout.write(f"nothing is played: {reason}\n")
        return 0
    home = Path(tempfile.mkdtemp(prefix="overspill-long-run-"))
    report = play(order, home)
    sys.stdout.write(report.text() + "\n")
    if order.json is not None:
        order.json.write_text(report.json())
    if report.verdict.passed:
        shutil.rmtree(home, ignore_errors=True)
    else:
        sys.stdout.write(f"logs and repository: {home}\n")
    return 0 if report.verdict.passed else 1


if __name__ == "__main__":
    sys.exit(main())
