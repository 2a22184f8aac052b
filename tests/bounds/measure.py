"""Measures an experiment in a process of its own: time, CPU and memory, also those of the processes that it starts."""

from __future__ import annotations

import ctypes
import gc
import re
import resource
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Timer
from typing import Any

import structlog

from reconciler.model.bounds import InputBound
from tests.bench.peak import peak
from tests.bounds.experiment import BESIDE_PASSES, EXPERIMENTS, Experiment
from tests.bounds.neighbour import Neighbour

_EVERY = 0.02
"""Seconds between two looks at the memory of child processes."""
_LONGEST = 180.0
"""Seconds after which an experiment counts as one that hangs."""
_LATEST = 60.0
"""Seconds for which the input is read beside the neighbour's burst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What reading one input took."""

    seconds: float
    cpu: float
    """Seconds of processors, those of child processes among them."""
    memory: float
    """MB above what the process had before, with the child processes at the same moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The outcome of one experiment."""

    most: int
    """The bound when it was measured."""
    at: Cost
    beyond: Cost
    said: str
    late: float | None
    """Seconds by which another burst was ended too late beside it; None where the daemon does not read the input."""
    scaled: str


def from_document(document: dict[str, Any]) -> Measured:
    """Read what `dataclasses.asdict` made of it."""
    return Measured(**{**document, "at": Cost(**document["at"]), "beyond": Cost(**document["beyond"])})


class ExperimentError(AssertionError):
    """An experiment did not go as the table says."""


def measure(name: str, bound: InputBound) -> Measured:
    """Run the experiment of a bound in a process that is forked from this one. Raises ExperimentError."""
    context = get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(name, bound, theirs))
    process.start()
    theirs.close()
    killer = Timer(_LONGEST, process.kill)
    killer.start()
    children, answer = 0.0, None
    try:
        while True:
            if not ours.poll(_EVERY):
                children = max(children, sum(map(_resident, _descendants(str(process.pid)))))
                continue
            answer = ours.recv()
            if answer is not None:
                break
            ours.send(children)
            children = 0.0
    except EOFError:
        raise ExperimentError(f"{name}: its process was killed, or hung for {_LONGEST:g} s") from None
    finally:
        killer.cancel()
        process.kill()
        process.join()
    if isinstance(answer, str):
        raise ExperimentError(f"{name}: {answer}")
    return from_document(answer)


def _child(name: str, bound: InputBound, parent: Connection) -> None:
    """Measure, and send the outcome as a mapping, or what went wrong as a text."""
    structlog.configure(processors=[_drop])
    try:
        with tempfile.TemporaryDirectory() as directory, EXPERIMENTS[name](Path(directory)) as tried:
            said: list[str] = []
            at = _cost(tried.at, parent)
            beyond = _cost(lambda: said.append(_given_up(tried)), parent)
            late = _late_beside(tried) if bound.input in BESIDE_PASSES else None
            outcome = {
                "most": bound.most,
                "at": asdict(at),
                "beyond": asdict(beyond),
                "said": said[0],
                "late": late,
                "scaled": tried.scaled,
            }
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told with the name of the bound
        parent.send("".join(traceback.format_exception(error)[-3:]))
    else:
        parent.send(outcome)


def _drop(_logger: object, _method: str, _event: object) -> Any:
    raise structlog.DropEvent


def _given_up(tried: Experiment) -> str:
    """Read the input beyond the bound, and return what was said. Raises AssertionError for anything else."""
    try:
        said = str(tried.beyond())
    except Exception as error:  # noqa: BLE001 - its text is what is looked at
        said = f"{type(error).__name__}: {error}"
    if re.search(tried.says, said) is None:
        raise AssertionError(f"beyond the bound it says {said[:300]!r}, not {tried.says!r}")
    return said


def _cost(read: Callable[[], object], parent: Connection) -> Cost:
    """Run and measure. The parent sends the most memory that child processes have had since it was asked last."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free goes back, so that what is taken shows
    _asked(parent)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, began, worked = peak(), time.monotonic(), _cpu()
    read()
    took, cpu = time.monotonic() - began, _cpu() - worked
    memory = peak() - before + _asked(parent)
    return Cost(seconds=round(took, 2), cpu=round(cpu, 2), memory=round(memory, 1))


def _asked(parent: Connection) -> float:
    parent.send(None)
    children: float = parent.recv()
    return children


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _late_beside(tried: Experiment) -> float:
    """Read the input beyond the bound again and again until the neighbour's burst is ended."""
    neighbour = Neighbour()
    deadline = time.monotonic() + _LATEST
    ended = neighbour.start()
    try:
        while not ended.is_set() and time.monotonic() < deadline:
            _given_up(tried)
            time.sleep(0.001)
    finally:
        late = neighbour.close()
    return round(late, 1)


def _descendants(process: str) -> Iterator[str]:
    """Yield the ids of all processes below one."""
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield child
                yield from _descendants(child)


def _resident(process: str) -> float:
    """Return the memory of a process in MB; 0 once it has ended, and before it has become another program."""
    with suppress(OSError):
        if Path(f"/proc/{process}/cmdline").read_bytes() == Path("/proc/self/cmdline").read_bytes():
            return 0.0
        status: dict[str, Any] = dict(
            line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines() if ":" in line
        )
        if "VmRSS" in status:
            return int(status["VmRSS"].split()[0]) / 1024
    return 0.0
