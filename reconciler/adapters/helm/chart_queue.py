"""Charts rendered in the background, in turn by workspace: no pass waits for helm or for a repository.

A pass asks for the charts of its placements. What has not been rendered yet is `Pending`, and put into the queue of its
workspace; once it is rendered, or has failed, the daemon is woken and asks again. Few helms run at a time, one for a
workspace at most, and the workspace that was served longest ago comes first: charts that hang or are many cost their
own workspace time, and no other. What was rendered is a function of the chart, its version and its values, so losing
it, as on a restart, costs time alone.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from threading import Condition, Thread
from time import monotonic
from typing import NamedTuple

from reconciler.adapters.helm.rendering import ChartManifests, Helm
from reconciler.backoff import Backoff
from reconciler.errors import InvalidInput, Pending, Transient
from reconciler.model.bounds import CHARTS_AWAITED, CHARTS_KEPT, CHARTS_WAITING
from reconciler.model.ids import WorkspaceName
from reconciler.model.workload import HelmConfig, Json
from reconciler.ports import Wake

WOKEN_BY = "observation"
AGAIN = Backoff(first_backoff=20, longest_backoff=300)
"""Wait before a chart is rendered again that could not be: it may have been mended, or its repository be back."""
_LAST = 2
"""Seconds for the threads to end once every helm has been killed."""
_SILENT = 2
"""Seconds that a command waits before it says what for."""


class _RenderingKey(NamedTuple):
    """What a rendering depends on."""

    workspace: WorkspaceName
    digest: str


class _ChartOrigin(NamedTuple):
    """Where a chart comes from: what is away, or hangs, is so whatever the values are."""

    workspace: WorkspaceName
    repository: str
    chart: str
    version: str


@dataclass(slots=True, kw_only=True)
class _Trouble:
    """Failures in a row, and when the next try is due, on the monotonic clock."""

    error: Exception
    failures: int
    due: float


@dataclass(slots=True, kw_only=True)
class _Rendering:
    """One chart with its values: waiting, being rendered, rendered, or failed."""

    chart: HelmConfig
    hooks: bool
    place: _ChartOrigin
    manifests: ChartManifests | None = None
    trouble: _Trouble | None = None
    waits: bool = False
    """Whether it waits for its turn, or helm renders it now."""


class ChartQueue:
    """Renders charts in the background (a `ports.Charts`).

    `wake` is called when an answer is there. With `patience` seconds in all, a command that has no next pass waits for
    its answers, and `report` is told what for.
    """

    def __init__(
        self,
        helm: Helm,
        *,
        wake: Wake | None = None,
        patience: float = 0,
        report: Callable[[str], None] = lambda _: None,
        again: Backoff = AGAIN,
    ) -> None:
        self._helm = helm
        self._wake = wake
        self._patience = patience
        self._deadline: float | None = None
        self._report = report
        self._again = again
        self._changed = Condition()
        self._renderings: OrderedDict[_RenderingKey, _Rendering] = OrderedDict()
        self._away: dict[_ChartOrigin, _Trouble] = {}
        self._waiting: dict[WorkspaceName, OrderedDict[_RenderingKey, None]] = {}
        self._served: dict[WorkspaceName, int] = {}
        self._turn = 0
        self._active: set[WorkspaceName] = set()
        self._threads: list[Thread] = []
        self._closing = False

    def available(self) -> bool:
        """Return whether helm is installed."""
        return self._helm.available()

    def version(self) -> str:
        """Return the version of helm; empty where it is not installed or does not tell it."""
        return self._helm.version()

    def template(self, chart: HelmConfig, *, hooks: bool, workspace: WorkspaceName) -> tuple[Mapping[str, Json], ...]:
        """Return the objects of a chart if it has been rendered.

        Raises Pending while it is not, and what `Helm.render` raises where that failed: the failure stands until a
        later try succeeds.
        """
        self._helm.check(chart)
        key, place = _RenderingKey(workspace, _digest(chart, hooks=hooks)), _place(chart, workspace)
        with self._changed:
            rendering = self._renderings.setdefault(key, _Rendering(chart=chart, hooks=hooks, place=place))
            self._renderings.move_to_end(key)
            self._ask(key, rendering)
            if self._patience and self._trouble(rendering) is None:
                self._await(rendering)
            if rendering.manifests is not None:
                return rendering.manifests.objects
            trouble = self._trouble(rendering)
            if trouble is not None:
                raise trouble.error.with_traceback(None)
            raise Pending(f"chart {chart.name!r} is being rendered")

    def close(self) -> None:
        """Kill what runs and render nothing more. A second call does nothing."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._helm.stop()
        for thread in self._threads:
            thread.join(_LAST)
        self._helm.close()

    def _trouble(self, rendering: _Rendering) -> _Trouble | None:
        """Return why there is no answer: of these values, or of where the chart comes from."""
        if rendering.manifests is not None:
            return None
        return rendering.trouble or self._away.get(rendering.place)

    def _ask(self, key: _RenderingKey, rendering: _Rendering) -> None:
        """Put a rendering into its queue, unless it has its answer or its next try is not due."""
        trouble = self._trouble(rendering)
        if rendering.manifests is not None or (trouble is not None and monotonic() < trouble.due):
            return
        queue = self._waiting.setdefault(key.workspace, OrderedDict())
        if not rendering.waits:
            rendering.waits = True
            queue[key] = None
            while len(queue) > CHARTS_WAITING.most:  # the next pass asks again
                oldest, _ = queue.popitem(last=False)
                self._renderings[oldest].waits = False
            if len(self._threads) < self._helm.at_once and not self._closing:
                thread = Thread(target=self._work, name=f"charts-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify()
        elif key in queue:
            queue.move_to_end(key)

    def _await(self, rendering: _Rendering) -> None:
        """Wait for an answer, as long as the patience of the command lasts."""
        if self._deadline is None:
            self._deadline = monotonic() + self._patience
        for wait in (_SILENT, self._patience):
            left = max(0.0, self._deadline - monotonic())
            if self._changed.wait_for(lambda: not rendering.waits or self._closing, min(left, wait)):
                return
            if wait == _SILENT and left > _SILENT:
                self._report(f"rendering chart {rendering.chart.name!r} of {rendering.place.repository}")

    def _work(self) -> None:
        """Render what waits, until closed."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._next() is not None)
                workspace = self._next()
                if self._closing or workspace is None:
                    return
                # The newest wish first: it is what passes still ask for.
                key, _ = self._waiting[workspace].popitem()
                rendering = self._renderings[key]
                self._active.add(workspace)
                self._turn += 1
                self._served[workspace] = self._turn
            try:
                answer: ChartManifests | Exception = self._helm.render(
                    rendering.chart, hooks=rendering.hooks, workspace=workspace
                )
            except MemoryError:
                answer = InvalidInput(f"rendering chart {rendering.chart.name!r}: its manifests need too much memory")
            except Exception as error:  # noqa: BLE001 -- it is raised where the chart was asked for
                answer = error
            with self._changed:
                self._active.discard(workspace)
                self._note(key, rendering, answer)
                self._changed.notify_all()
            if self._wake is not None and not self._closing:
                self._wake(WOKEN_BY)

    def _next(self) -> WorkspaceName | None:
        """Return the workspace whose turn it is; None where nothing waits that may be rendered now."""
        ready = (name for name, queue in self._waiting.items() if queue and name not in self._active)
        return min(ready, key=lambda name: (self._served.get(name, 0), name), default=None)

    def _note(self, key: _RenderingKey, rendering: _Rendering, answer: ChartManifests | Exception) -> None:
        """Keep an answer, within the bounds of what is kept."""
        rendering.waits = False
        if isinstance(answer, ChartManifests):
            rendering.manifests, rendering.trouble = answer, None
            self._away.pop(rendering.place, None)
        else:
            before = self._trouble(rendering)
            failures = 1 if before is None else before.failures + 1
            due = monotonic() + self._again.backoff(failures)
            trouble = _Trouble(error=answer, failures=failures, due=due)
            if isinstance(answer, Transient):
                self._away[rendering.place] = trouble
                rendering.trouble = None
            else:
                rendering.trouble = trouble
                self._away.pop(rendering.place, None)
        self._drop_excess(key)

    def _drop_excess(self, newest: _RenderingKey) -> None:
        """Drop what was asked for longest ago: of a workspace with too many, and of the one that holds most bytes."""
        own = [key for key in self._renderings if key.workspace == newest.workspace]
        idle = [key for key in own if not self._renderings[key].waits and key != newest]
        for key in idle[: max(0, len(own) - 2 * CHARTS_WAITING.most)]:
            del self._renderings[key]
        places = {rendering.place for rendering in self._renderings.values()}
        self._away = {place: trouble for place, trouble in self._away.items() if place in places}
        sizes: dict[WorkspaceName, int] = {}
        for key, rendering in self._renderings.items():
            if rendering.manifests is not None:
                sizes[key.workspace] = sizes.get(key.workspace, 0) + rendering.manifests.size
        while sum(sizes.values()) > CHARTS_KEPT.most:
            largest = max(sizes, key=lambda name: (sizes[name], name))
            oldest = next(
                key
                for key, rendering in self._renderings.items()
                if key.workspace == largest and rendering.manifests is not None
            )
            dropped = self._renderings.pop(oldest).manifests
            sizes[largest] -= dropped.size if dropped is not None else 0


def patient(helm: Helm, report: Callable[[str], None] = lambda _: None) -> ChartQueue:
    """Return the charts of a command, which has no next pass to wait for."""
    return ChartQueue(helm, patience=CHARTS_AWAITED.most, report=report)


def _digest(chart: HelmConfig, *, hooks: bool) -> str:
    """Return a digest of all that a rendering depends on."""
    text = json.dumps({**asdict(chart), "hooks": hooks}, sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()


def _place(chart: HelmConfig, workspace: WorkspaceName) -> _ChartOrigin:
    return _ChartOrigin(workspace, chart.repo_url, chart.chart, chart.version)
