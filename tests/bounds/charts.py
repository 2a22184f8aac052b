"""Charts at their bounds, rendered by a program in the place of helm."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event

from reconciler.adapters.helm.chart_queue import ChartQueue
from reconciler.adapters.helm.rendering import ChartManifests, Helm
from reconciler.errors import Pending, Transient
from reconciler.model.bounds import (
    CHART_CACHE,
    CHART_DEPTH,
    CHART_FILE,
    CHART_MEMORY,
    CHART_OBJECTS,
    CHART_OUTPUT,
    CHART_PROCESSES,
    CHART_SECONDS,
    CHART_VALUES,
    CHARTS_AWAITED,
    CHARTS_KEPT,
    CHARTS_WAITING,
)
from reconciler.model.ids import WorkspaceName
from reconciler.model.workload import HelmConfig
from tests.adapters.test_chart_queue import BEE, LLM, StandIn, stack
from tests.bounds.experiment import Experiment, experiment

_READY = 30


class _Program:
    """Helms that are Python scripts; each becomes the first helm on the PATH."""

    def __init__(self, place: Path) -> None:
        self._place, self._number = place, 0

    def helm(self, script: str, **options: int) -> Helm:
        self._number += 1
        file = self._place / str(self._number) / "helm"
        file.parent.mkdir()
        file.write_text(f"#!{sys.executable} -IS\nimport os, sys, time\n{script}\n")
        file.chmod(0o755)
        os.environ["PATH"] = f"{file.parent}:{os.environ['PATH']}"
        helm = Helm(**{"limit": 16 << 30, **options})
        assert helm.available()
        return helm

    def tried(self, fits: str, too_much: str, says: str, *, scaled: str = "", **options: int) -> Iterator[Experiment]:
        """Render by two scripts, at the bound and beyond it."""
        helms = [self.helm(script, **options) for script in (fits, too_much)]
        try:
            yield Experiment(at=lambda: _render(helms[0]), beyond=lambda: _render(helms[1]), says=says, scaled=scaled)
        finally:
            for helm in helms:
                helm.close()


def _render(helm: Helm) -> str:
    return f"{len(helm.render(stack(), hooks=False, workspace=LLM).objects)} objects"


@experiment(CHART_SECONDS)
def _(place: Path) -> Iterator[Experiment]:
    yield from _Program(place).tried(
        "time.sleep(1.5); print('kind: A')",
        "time.sleep(600)",
        "helm did not end within 2 s",
        scaled="2 s",
        timeout=2,
    )


@experiment(CHART_MEMORY)
def _(place: Path) -> Iterator[Experiment]:
    grow = "held = []\nwhile len(held) < {}: held.append(b'x' * (1 << 20) + b'y')\ntime.sleep(0.1); print('kind: A')"
    yield from _Program(place).tried(
        grow.format((CHART_MEMORY.most >> 20) - 40), grow.format(4000), "helm needs more than .* of memory"
    )


@experiment(CHART_FILE)
def _(place: Path) -> Iterator[Experiment]:
    write = "with open('index', 'wb') as file:\n for _ in range({}): file.write(b'x' * (1 << 20))\nprint('kind: A')"
    yield from _Program(place).tried(
        write.format(CHART_FILE.most >> 20), write.format(1 << 20), f"a file of it is larger than {CHART_FILE}"
    )


@experiment(CHART_CACHE)
def _(place: Path) -> Iterator[Experiment]:
    script = (
        "print('kind: A'); print('held:', sum(name.startswith('part') for name in os.listdir('.')))\n"
        "for number in range({}): os.truncate(os.open(f'part{{number}}', os.O_CREAT | os.O_RDWR), 64 << 20)"
    )
    program = _Program(place)
    parts = CHART_CACHE.most >> 26
    helms = [program.helm(script.format(number)) for number in (parts - 1, parts + 1)]

    def held(helm: Helm) -> str:
        answers = [helm.render(stack(), hooks=False, workspace=LLM).objects[0]["held"] for _ in range(2)]
        return f"{answers[1]} files are left"

    def at() -> None:
        assert held(helms[0]) == f"{parts - 1} files are left"

    yield Experiment(at=at, beyond=lambda: held(helms[1]), says="^0 files are left")
    for helm in helms:
        helm.close()


@experiment(CHART_OUTPUT)
def _(place: Path) -> Iterator[Experiment]:
    yield from _Program(place).tried(
        f"print('kind: A'); print('x: ' + 'x' * {CHART_OUTPUT.most - 100})",
        "print('kind: A\\nx: ')\nwhile True: sys.stdout.write('x' * (1 << 16))",
        f"it becomes more than {CHART_OUTPUT} of manifests",
    )


@experiment(CHART_VALUES)
def _(place: Path) -> Iterator[Experiment]:
    yield from _Program(place).tried(
        f"print('kind: A'); print('x: [' + '1,' * {CHART_VALUES.most - 10} + ']')",
        "print('kind: A'); print('x: [' + '1,' * 4000000 + ']')",
        f"the manifests hold more than {CHART_VALUES.most:,} values",
    )


@experiment(CHART_DEPTH)
def _(place: Path) -> Iterator[Experiment]:
    script = "print('kind: A'); print('x: ' + '[' * {0} + ']' * {0})"
    yield from _Program(place).tried(
        script.format(CHART_DEPTH.most - 2),
        script.format(1 << 20),
        f"nested deeper than {CHART_DEPTH.most} levels",
    )


@experiment(CHART_OBJECTS)
def _(place: Path) -> Iterator[Experiment]:
    script = "print('---\\nkind: A\\n' * {})"
    yield from _Program(place).tried(
        script.format(CHART_OBJECTS.most),
        script.format(40_000),
        f"it becomes more than {CHART_OBJECTS.most:,} objects",
    )


def _ask_until(queue: ChartQueue, woken: Event, asked: HelmConfig, workspace: WorkspaceName) -> None:
    """Ask as passes do until the chart has been rendered."""
    deadline = time.monotonic() + _READY
    while time.monotonic() < deadline:
        try:
            queue.template(asked, hooks=False, workspace=workspace)
        except Pending:
            woken.wait(0.05)
            woken.clear()
        else:
            return
    raise AssertionError("it was never rendered")


@experiment(CHART_PROCESSES)
def _(place: Path) -> Iterator[Experiment]:
    program = _Program(place)
    helm = program.helm("held = b'x' * (64 << 20); time.sleep(0.2); print('kind: A')")
    at_work = _AtWork(helm)

    def together(number: int) -> str:
        at_work.most = 0
        woken = Event()
        queue = ChartQueue(at_work, wake=lambda _: woken.set())
        names = [WorkspaceName(f"w{each}") for each in range(number)]
        for name in names:
            _silent(lambda name=name: queue.template(stack(), hooks=False, workspace=name))
        for name in names:
            _ask_until(queue, woken, stack(), name)
        queue.close()
        at_work.again()
        return f"{at_work.most} at once"

    yield Experiment(
        at=lambda: together(CHART_PROCESSES.most),
        beyond=lambda: together(3 * CHART_PROCESSES.most),
        says=f"^[1-{CHART_PROCESSES.most}] at once",
    )
    helm.close()


class _AtWork(Helm):
    """Counts the helms that run at the same moment."""

    def __init__(self, helm: Helm) -> None:
        super().__init__(limit=16 << 30)
        self._helm, self.most, self._active = helm, 0, 0

    def render(self, chart: HelmConfig, *, hooks: bool, workspace: WorkspaceName) -> ChartManifests:
        self._active += 1
        self.most = max(self.most, self._active)
        try:
            return self._helm.render(chart, hooks=hooks, workspace=workspace)
        finally:
            self._active -= 1

    def again(self) -> None:
        """Run once more after a stop."""
        self._stopped = False


def _silent(ask: Callable[[], object]) -> None:
    """Ask for a chart that is not rendered yet."""
    with suppress(Pending):
        ask()


@experiment(CHARTS_WAITING)
def _(_place: Path) -> Iterator[Experiment]:
    def waiting(number: int) -> str:
        """Ask for so many charts while helm is at work, and count those that are rendered without asking again."""
        helm, woken = StandIn(), Event()
        queue = ChartQueue(helm, wake=lambda _: woken.set())
        _silent(lambda: queue.template(stack("held", number=-1), hooks=False, workspace=LLM))
        deadline = time.monotonic() + _READY
        while not helm.rendered and time.monotonic() < deadline:
            time.sleep(0.001)
        for each in range(number):
            _silent(lambda each=each: queue.template(stack("held", number=each), hooks=False, workspace=LLM))
        helm.held.set()
        most = min(number, CHARTS_WAITING.most)
        while len(helm.rendered) <= most and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.05)
        queue.close()
        return f"{len(helm.rendered) - 1} waited"

    def at() -> None:
        assert waiting(CHARTS_WAITING.most) == f"{CHARTS_WAITING.most} waited"

    yield Experiment(at=at, beyond=lambda: waiting(5 * CHARTS_WAITING.most), says=f"^{CHARTS_WAITING.most} waited")


class _Large(StandIn):
    """Renders each chart to 4 MiB of text."""

    def render(self, chart: HelmConfig, *, hooks: bool, workspace: WorkspaceName) -> ChartManifests:
        super().render(chart, hooks=hooks, workspace=workspace)
        return ChartManifests(objects=({"kind": "A", "text": "x" * (4 << 20)},), size=4 << 20)


@experiment(CHARTS_KEPT)
def _(_place: Path) -> Iterator[Experiment]:
    def kept(number: int) -> str:
        """Render a chart of another workspace and so many of one, and count what is rendered a second time."""
        helm, woken = _Large(), Event()
        queue = ChartQueue(helm, wake=lambda _: woken.set())
        _ask_until(queue, woken, stack(), BEE)
        for each in range(number):
            _ask_until(queue, woken, stack(number=each), LLM)
        before = len(helm.rendered)
        _ask_until(queue, woken, stack(), BEE)
        assert len(helm.rendered) == before, "the other workspace loses nothing"
        _ask_until(queue, woken, stack(number=0), LLM)
        queue.close()
        return f"{len(helm.rendered) - before} rendered again"

    def at() -> None:
        assert kept((CHARTS_KEPT.most >> 22) - 1) == "0 rendered again"

    yield Experiment(at=at, beyond=lambda: kept((CHARTS_KEPT.most >> 22) + 8), says="^1 rendered again")


@experiment(CHARTS_AWAITED)
def _(_place: Path) -> Iterator[Experiment]:
    def awaited(chart: HelmConfig, patience: float) -> str:
        helm = StandIn()
        queue = ChartQueue(helm, patience=patience)
        try:
            return f"{len(queue.template(chart, hooks=False, workspace=LLM))} objects"
        except (Pending, Transient) as error:
            return str(error)
        finally:
            queue.close()

    def at() -> None:
        assert awaited(stack(), CHARTS_AWAITED.most) == "1 objects"

    yield Experiment(
        at=at,
        beyond=lambda: awaited(stack("hanging"), 1),
        says="is being rendered",
        scaled="1 s",
    )
