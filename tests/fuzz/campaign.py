"""Goes through the targets in turn until the CPU time is over, and keeps one input of each kind of finding."""

from __future__ import annotations

import random
import re
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from structlog.testing import capture_logs

from reconciler import bulkhead
from reconciler.errors import Bug, OverspillError
from tests.fuzz.answers import answering
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS, make_call, serving

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


@dataclass(slots=True)
class FuzzFinding:
    """An exception that was not raised on purpose."""

    target: str
    error: str
    trace: str
    example: str
    times: int = 1

    def __str__(self) -> str:
        return f"{self.target}: {self.error} ({self.times} times)\n{self.trace}\ninput: {self.example}"


@contextmanager
def contained_bugs() -> Iterator[list[Bug]]:
    """Keep every bug that a bulkhead contains meanwhile."""
    bugs: list[Bug] = []
    describe = bulkhead.bug_of

    def keep(seam: bulkhead.Seam, item: object, error: Exception) -> Bug:
        bug = describe(seam, item, error)
        bugs.append(bug)
        return bug

    bulkhead.bug_of = keep
    try:
        yield bugs
    finally:
        bulkhead.bug_of = describe


def campaign(
    cpu_seconds: float, *, seed: int, only: Sequence[str] | None = None, inputs: int | None = None
) -> tuple[Counter[str], dict[str, FuzzFinding]]:
    """Fuzz for some CPU time of this process, or for a number of `inputs` of each target.

    Returns the inputs tried by target, and the findings by target, exception and innermost frame of ours.
    """
    tried: Counter[str] = Counter()
    findings: dict[str, FuzzFinding] = {}
    with contained_bugs() as bugs, capture_logs(), serving() as call, answering() as asked:
        targets = [*TARGETS, *asked, Target(name="http", make=make_call, run=call)]
        targets = [target for target in targets if only is None or target.name in only]
        until, spent = time.process_time() + cpu_seconds, {target.name: 0.0 for target in targets}
        with suppress(KeyboardInterrupt):  # an interrupted campaign tells what it has tried until then
            while time.process_time() < until and (inputs is None or min(tried[t.name] for t in targets) < inputs):
                target = (
                    min(targets, key=lambda target: (spent[target.name], target.name))
                    if inputs is None
                    else min(targets, key=lambda target: (tried[target.name], target.name))
                )
                number = tried[target.name]
                tried[target.name] += 1
                began = time.process_time()
                made = target.make(random.Random(f"{seed} {target.name} {number}"))
                _try(target, made, bugs, findings)
                spent[target.name] += time.process_time() - began
    return tried, findings


def _try(target: Target, made: object, bugs: list[Bug], findings: dict[str, FuzzFinding]) -> None:
    bugs.clear()
    try:
        target.run(made)
    except OverspillError:
        pass
    except Exception as error:  # noqa: BLE001 - what it looks for
        _keep(target, f"{type(error).__name__}: {error}", traceback.format_exc(limit=-30), made, findings)
    if not target.contained:
        for bug in bugs:
            _keep(target, f"contained, {bug.error}", bug.trace, made, findings)


def _keep(target: Target, error: str, trace: str, made: object, findings: dict[str, FuzzFinding]) -> None:
    frames = [frame for frame in _FRAME.findall(trace) if "/reconciler/" in frame[0] and "bulkhead" not in frame[0]]
    where = frames[-1] if frames else ("?", "?", "?")
    key = f"{target.name} {error.partition(':')[0]} {where}"
    if key in findings:
        findings[key].times += 1
    else:
        findings[key] = FuzzFinding(
            target=target.name, error=error[:400], trace=trace[-3000:], example=repr(made)[:3000]
        )
