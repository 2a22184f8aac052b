"""The figures of a run, as a table and as JSON."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from tests.e2e.long_run.daemon import MemoryReading
from tests.e2e.long_run.faults import PlayedFault
from tests.e2e.long_run.journal import Burst
from tests.e2e.long_run.scale import Scale
from tests.e2e.long_run.verdict import Verdict

_COLUMNS = 10
STEPS = ("signal to commit", "commit to applied", "applied to running", "demand gone to revert", "revert to gone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that a run has shown."""

    scale: Scale
    bursts: Sequence[Burst]
    faults: Sequence[PlayedFault]
    left_out: Sequence[str]
    """Kinds of faults that could not be played here, and why."""
    memory: Sequence[MemoryReading]
    commits: int
    stood: int
    """Placements that stood when nothing moved any more, before the last demand went."""
    verdict: Verdict

    def text(self) -> str:
        """Write the table."""
        return "\n".join(self._lines())

    def json(self) -> str:
        """Write the figures for programs."""
        figures = {
            "scale": asdict(self.scale),
            "bursts": len(self.placed()),
            "risen": len(self.bursts),
            "commits": self.commits,
            "stood": self.stood,
            "seconds": {
                step: {"number": len(times)} | {f"p{each}": percentile(times, each) for each in (50, 99) if times}
                for step, times in latencies(self.bursts).items()
            },
            "faults": dict(Counter(fault.name for fault in self.faults)),
            "left out": list(self.left_out),
            "memory": [round(megabytes) for megabytes in over_time(self.memory)],
            "verdict": {**asdict(self.verdict), "passed": self.verdict.passed},
        }
        return json.dumps(figures, indent=2) + "\n"

    def placed(self) -> tuple[Burst, ...]:
        """Return the bursts that were placed; others fell before they were."""
        return tuple(burst for burst in self.bursts if burst.committed)

    def _lines(self) -> Iterator[str]:
        scale, verdict = self.scale, self.verdict
        yield f"{scale.nodes} nodes, {scale.pods} pods of others, {scale.minutes:g} minutes, seed {scale.seed}"
        yield f"{'bursts':<24}{len(self.placed())} placed of {len(self.bursts)} rises, in {self.commits} commits"
        yield f"{'seconds':<24}{'number':>8}{'P50':>8}{'P99':>8}"
        for step, times in latencies(self.bursts).items():
            shown = f"{percentile(times, 50):>8.1f}{percentile(times, 99):>8.1f}" if times else f"{'-':>8}{'-':>8}"
            yield f"  {step:<22}{len(times):>8}{shown}"
        played = Counter(fault.name for fault in self.faults)
        yield f"{'faults':<24}{len(self.faults)} played"
        for name, number in sorted(played.items()):
            away = sum(fault.ended - fault.began for fault in self.faults if fault.name == name)
            yield f"  {name:<38}{number:>4} times, {away:.0f} s"
        for each in self.left_out:
            yield f"  left out: {each}"
        starts = len({reading.process for reading in self.memory})
        shown = " ".join(f"{megabytes:.0f}" for megabytes in over_time(self.memory))
        yield f"{'memory of the daemon':<24}{shown} MB, over time and {starts} starts"
        yield f"{'stood at the standstill':<24}{self.stood} placements"
        for name, sentences in (
            ("objects left", verdict.left),
            ("reverts late", verdict.late),
            ("reverts early", verdict.early),
            ("not explained by git", verdict.unexplained),
            ("broken", verdict.broken),
        ):
            yield f"{name:<24}{len(sentences)}"
            yield from (f"  {sentence}" for sentence in sentences)
        yield "passed" if verdict.passed else "FAILED"


def latencies(bursts: Iterable[Burst]) -> Mapping[str, list[float]]:
    """Return the seconds of each step, one for each burst and cluster; steps that a burst never took are left out."""
    times: dict[str, list[float]] = {step: [] for step in STEPS}
    for burst in bursts:
        if burst.short is not None and burst.committed:
            times[STEPS[0]].append(max(0.0, min(burst.committed.values()) - burst.short))
        for cluster, committed in burst.committed.items():
            applied, running = burst.applied.get(cluster), burst.running.get(cluster)
            reverted, gone = burst.reverted.get(cluster), burst.gone.get(cluster)
            if applied is not None:
                times[STEPS[1]].append(max(0.0, applied - committed))
            if applied is not None and running is not None:
                times[STEPS[2]].append(running - applied)
            if reverted is not None and burst.fallen is not None and reverted >= burst.fallen:
                times[STEPS[3]].append(reverted - max(burst.fallen, committed))
            if reverted is not None and gone is not None:
                times[STEPS[4]].append(max(0.0, gone - reverted))
    return times


def percentile(times: Sequence[float], percent: int) -> float:
    """Return the least time that so many of a hundred do not exceed."""
    return sorted(times)[max(0, math.ceil(len(times) * percent / 100) - 1)]


def over_time(readings: Sequence[MemoryReading]) -> tuple[float, ...]:
    """Return the highest memory in each tenth of the readings, in megabytes."""
    parts = min(_COLUMNS, len(readings))
    bounds = [len(readings) * part // parts for part in range(parts + 1)] if parts else [0]
    return tuple(max(reading.megabytes for reading in readings[begin:end]) for begin, end in pairwise(bounds))
