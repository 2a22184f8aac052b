"""What this process has done since it began: passes, pushes, changes, bugs, and calls of its API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from time import perf_counter
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from reconciler import __version__
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.daemon.loop import PassResult
from reconciler.daemon.metrics.rollout_delays import Milestone, RolloutDelays
from reconciler.daemon.phases import PassPhase
from reconciler.model.events.event import Event, Push
from reconciler.model.events.event_kind import OF_NOTIFICATIONS, EventKind
from reconciler.model.outward_call import NO_ANSWER, OutwardCall, Peer
from reconciler.ports import EventSink

_PASS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
_WAIT = (5, 10, 30, 60, 120, 300, 600, 1800, 3600)
_CALL = (0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
"""Upper bounds of buckets, in seconds."""


class ProcessMetrics(EventSink):
    """Counts what a daemon does. Safe to use from several threads."""

    def __init__(
        self,
        *,
        output_branch: str,
        orders: Callable[[], int],
        bugs: Callable[[], int],
        lost: Callable[[], bool] = lambda: False,
        alarm: Callable[[], bool] = lambda: False,
    ) -> None:
        """Begin at 0.

        `orders` tells how many orders of callers wait, `bugs` how many bugs were met, `lost` whether a branch lacks
        commits that it had, and `alarm` whether the remote shows another host key.
        """
        self._output_branch = output_branch
        self.registry = registry = CollectorRegistry()

        def histogram(name: str, help_text: str, buckets: Sequence[float], *labels: str) -> Histogram:
            return Histogram(f"overspill_{name}", help_text, labels, buckets=buckets, registry=registry)

        Gauge("overspill_build_info", "1, with the version.", ["version"], registry=registry).labels(__version__).set(1)
        waiting = Gauge("overspill_orders_waiting", "Orders of callers of the API that wait.", registry=registry)
        waiting.set_function(orders)
        registry.register(_Bugs(bugs))
        for name, help_text, holds in (
            (
                "branch_lost",
                "Whether a branch of the remote lacks commits that it had, so that nothing is written.",
                lost,
            ),
            ("host_key_changed", "Whether the remote shows another host key, so that nothing is sent to it.", alarm),
        ):
            Gauge(f"overspill_{name}", help_text, registry=registry).set_function(holds)
        self._passes = Counter("overspill_passes", "Passes by result.", ["result"], registry=registry)
        self._pass = histogram("pass_duration_seconds", "Time that a pass takes.", _PASS)
        self._phase = histogram("pass_phase_duration_seconds", "Time that a phase of a pass takes.", _PASS, "phase")
        self._events = Counter(
            "overspill_events", "Events of workloads and requests by kind.", ["kind"], registry=registry
        )
        self._commits = Counter("overspill_commits", "Commits pushed to the output branch.", registry=registry)
        self._push = histogram(
            "push_duration_seconds", "Time from a decision to the remote's confirmation of its commits.", _PASS
        )
        self._delay = histogram(
            "commit_delay_seconds",
            "Time from the first missing replica to the commit that places more; the exemplar is the commit.",
            _WAIT,
            "workspace",
        )
        since = "Time from the first missing replica until the burst that serves it is"
        self._rollouts = RolloutDelays()
        self._milestones = {
            Milestone.APPLIED: histogram(
                "apply_delay_seconds", f"{since} applied; the exemplar is the commit.", _WAIT, "workspace"
            ),
            Milestone.READY: histogram(
                "ready_delay_seconds", f"{since} ready; the exemplar is the commit.", _WAIT, "workspace"
            ),
        }
        self._git = Counter(
            "overspill_git_calls",
            "Calls of the fleet repository's remote by command and result; a rejected push is a conflict.",
            ["command", "result"],
            registry=registry,
        )
        self._kubernetes = Counter(
            "overspill_kubernetes_requests",
            "Requests to API servers; the code is none where no answer came.",
            ["cluster", "verb", "code"],
            registry=registry,
        )
        self._prometheus = Counter(
            "overspill_prometheus_queries",
            "Queries to Prometheus; the code is none where no answer came.",
            ["code"],
            registry=registry,
        )
        self._slurm = Counter(
            "overspill_slurm_queries",
            "Requests to Slurm's REST API; the code is none where no answer came.",
            ["code"],
            registry=registry,
        )
        self._calls = histogram(
            "http_request_duration_seconds", "Time until a call is answered.", _CALL, "method", "route", "code"
        )
        self.backlogs: Callable[[], Iterable[DeliveryBacklog]] = tuple
        registry.register(_Backlogs(self))
        self._sent = Counter(
            "overspill_notifications_sent", "Events that a receiver was told of.", ["receiver"], registry=registry
        )
        self._unsent = Counter(
            "overspill_notification_failures", "Tries to tell a receiver that failed.", ["receiver"], registry=registry
        )
        for result in PassResult:
            self._passes.labels(result)
        for kind in EventKind:
            if kind in OF_NOTIFICATIONS:
                continue
            self._events.labels(kind.replace(" ", "_"))

    def count_pass(self, result: PassResult, seconds: float) -> None:
        """Count a pass that has ended."""
        self._passes.labels(result).inc()
        self._pass.observe(seconds)

    @contextmanager
    def phase(self, phase: PassPhase) -> Iterator[None]:
        """Measure a phase of a pass, also of one that fails."""
        began = perf_counter()
        try:
            yield
        finally:
            self._phase.labels(phase).observe(perf_counter() - began)

    @contextmanager
    def call(self, call: OutwardCall) -> Iterator[Callable[[str], None]]:
        """Count a call to a system outside once it is answered or has failed."""
        codes = [NO_ANSWER]
        try:
            yield codes.append
        finally:
            code = codes[-1]
            match call.peer:
                case Peer.GIT:
                    self._git.labels(call.verb, "error" if code == NO_ANSWER else code).inc()
                case Peer.KUBERNETES:
                    self._kubernetes.labels(call.target, call.verb, code).inc()
                case Peer.PROMETHEUS:
                    self._prometheus.labels(code).inc()
                case Peer.SLURM:
                    self._slurm.labels(code).inc()

    def follow(self, inputs: PassInput) -> None:
        """Measure how far the bursts of this process have come by the look of a pass."""
        for arrival in self._rollouts.follow(inputs):
            self._milestones[arrival.milestone].labels(str(arrival.workload.workspace)).observe(
                arrival.delay.total_seconds(), exemplar={"commit": arrival.commit[:12]}
            )

    def count_call(self, method: str, route: str, code: int, seconds: float) -> None:
        """Count a call of the API by the path of its route, in which parameters are names in braces."""
        self._calls.labels(method, route, str(code)).observe(seconds)

    def count_deliveries(self, receiver: str, *, sent: int = 0, failed: int = 0) -> None:
        """Count events that a receiver was told of, and tries that failed."""
        self._sent.labels(receiver).inc(sent)
        self._unsent.labels(receiver).inc(failed)

    def watch_deliveries(self, backlogs: Callable[[], Iterable[DeliveryBacklog]]) -> None:
        """Show what waits for each receiver."""
        self.backlogs = backlogs

    def publish(self, events: Sequence[Event], pushes: Sequence[Push]) -> None:
        """Count the events of a pass and the commits of its push."""
        self._rollouts.note(events)
        for event in events:
            self._events.labels(event.kind.replace(" ", "_")).inc()
            if event.waited is not None and event.workload is not None and event.commit is not None:
                self._delay.labels(str(event.workload.workspace)).observe(
                    event.waited.total_seconds(), exemplar={"commit": event.commit[:12]}
                )
        for push in pushes:
            if push.branch == self._output_branch:
                self._commits.inc(push.commits)
                self._push.observe(push.took.total_seconds(), exemplar={"commit": push.new[:12]})


class DeliveryBacklog(Protocol):
    """What waits for a receiver of notifications."""

    @property
    def receiver(self) -> str:
        """Its name."""
        ...

    @property
    def waiting(self) -> int:
        """Number of events."""
        ...

    @property
    def oldest(self) -> datetime | None:
        """When the first of them happened; None for none."""
        ...


class _Backlogs(Collector):
    """Shows the events that wait, and since when the first of them does."""

    def __init__(self, process: ProcessMetrics) -> None:
        self._process = process

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges."""
        waiting = GaugeMetricFamily(
            "overspill_notifications_waiting", "Events that a receiver has yet to be told of.", labels=["receiver"]
        )
        oldest = GaugeMetricFamily(
            "overspill_notifications_oldest_timestamp_seconds",
            "When the first of them happened; no sample while none waits.",
            labels=["receiver"],
        )
        for backlog in self._process.backlogs():
            waiting.add_metric([backlog.receiver], backlog.waiting)
            if backlog.oldest is not None:
                oldest.add_metric([backlog.receiver], backlog.oldest.timestamp())
        yield from (waiting, oldest)


class _Bugs(Collector):
    """Counts bugs as the loop does."""

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count

    def collect(self) -> Iterator[Metric]:
        """Yield the counter."""
        yield CounterMetricFamily("overspill_bugs", "Bugs that were met, each once.", value=self._count())
