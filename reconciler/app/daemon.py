"""The daemon: the loop of passes, and all that is fed by it."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

import structlog

from reconciler.adapters import logs
from reconciler.adapters.alarms import Alarms
from reconciler.adapters.engine_webhooks import EndpointReport, EngineWebhooks
from reconciler.adapters.git import GitRepository
from reconciler.adapters.helm.chart_queue import ChartQueue
from reconciler.adapters.helm.rendering import Helm
from reconciler.adapters.logs import EventLog
from reconciler.adapters.notification.couriers import Couriers
from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.adapters.observations.views import ChartsView, JoinedView
from reconciler.adapters.traces import open_traces
from reconciler.app.http_server import http_server
from reconciler.app.proposals import proposal_desk
from reconciler.app.receivers import sender
from reconciler.app.world import (
    GARBAGE,
    WITHOUT_OBSERVATIONS,
    asked_gpu_use,
    committer,
    make_memory,
    make_world,
    observation_files,
    open_recording,
    open_repository,
    other_repositories,
    signal_services,
    watched_clusters,
)
from reconciler.bulkhead import Seam, attempt
from reconciler.core.decide.approval import uses_approval
from reconciler.daemon.announce import Announcer
from reconciler.daemon.answers.desk import AnswerDesk
from reconciler.daemon.bug_log import BUGS
from reconciler.daemon.loop import OBSERVATION, Loop, PassResult, handle_signals
from reconciler.daemon.metrics.process_metrics import ProcessMetrics
from reconciler.daemon.orders.order_queue import OrderQueue
from reconciler.daemon.pass_runner import PassRunner
from reconciler.daemon.phases import Measure, PassPhase, unmeasured
from reconciler.daemon.proposals.follower import ProposalFollower
from reconciler.daemon.reconcile import Outcome, World
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.daemon.sweeper import Sweeper, SweepWorld
from reconciler.environment import PREFIX
from reconciler.errors import Bug, Transient
from reconciler.model.outward_call import OutwardCall
from reconciler.model.units import format_duration
from reconciler.ports import MeasureCall, Repository, Wake
from reconciler.settings import Settings
from reconciler.text.redaction import without_query

LAST_WORDS = timedelta(seconds=2)
"""How long a stopping daemon waits for the webhooks of the last push. Engines poll as well."""

LOOK_AT_FILES = timedelta(seconds=1)
"""Interval at which the times of observation files are checked; to a user a second is immediate."""

WITHOUT_CALLERS = (
    "nobody may call the API: without tokens --listen answers for its health, and takes pushes that bear a secret"
    f" (make a token with `overspill token`, and name its file in {PREFIX}API_TOKENS_FILE)"
)

_EVERY_INTERFACE = frozenset({"0.0.0.0", "[::]"})  # noqa: S104 - what a person asked for

log = structlog.get_logger("overspill")


def serve(settings: Settings) -> None:
    """Run the daemon until a signal ends it."""
    gc.set_threshold(GARBAGE)
    ring = logs.LogRing()
    logs.configure(settings.log_format, sys.stdout, colour=settings.colour and sys.stdout.isatty(), ring=ring)
    for problem in settings.warnings:
        log.warning("setting", line=str(problem))
    with ExitStack() as stack:
        wake: Wake = lambda reason: loop.wake(reason)  # noqa: E731, PLW0108 - the loop is made below
        queue = OrderQueue(wake)
        process = ProcessMetrics(
            output_branch=settings.output_branch,
            orders=lambda: len(queue),
            bugs=lambda: loop.vitals().bugs,
            lost=lambda: loop.vitals().lost,
            alarm=lambda: loop.vitals().alarm,
        )
        traces = stack.enter_context(closing(open_traces(settings.traces)))
        measure = partial(_measured, process.call, traces.call)
        repository = stack.enter_context(open_repository(settings, measure, ended=lambda: loop.is_stopping))
        charts = stack.enter_context(closing(ChartQueue(Helm(), wake=wake)))
        pushed, files = PushedObservations(), observation_files(settings)
        clusters = stack.enter_context(watched_clusters(settings, timedelta(), wake, measure))
        webhooks = EngineWebhooks(settings.notify, report=_log_endpoint)
        proposals = ProposalFollower(
            partial(proposal_desk, settings), queue.submit, is_used=lambda: _uses_approval(latest)
        )
        couriers = _couriers(settings, repository, process)
        services = stack.enter_context(signal_services(settings, timedelta(), wake, measure))
        gpu_use = stack.enter_context(asked_gpu_use(settings, timedelta(), wake, measure))
        others = stack.enter_context(other_repositories(settings, timedelta(), wake))
        world = replace(
            make_world(
                settings,
                repository,
                JoinedView(ChartsView(charts=charts), *files, pushed, *clusters, *services, others),
                charts,
                (EventLog(), webhooks, couriers, process, proposals),
            ),
            recording=stack.enter_context(open_recording(settings)),
            measure=partial(_measured_phase, process.phase, traces.phase),
            gpu_use=gpu_use,
        )
        memory = make_memory(repository, report=lambda line: log.debug("ledger cache", line=line))
        stack.callback(memory.branch.keep)
        alarms = Alarms(wake)
        latest = LatestSnapshot(memory.branch)
        announcer = Announcer(source_branch=settings.source_branch, sinks=world.sinks)

        def tell(outcome: Outcome) -> None:
            _tell(announcer, couriers, repository, outcome)
            process.follow(outcome.decision.inputs)

        runner = PassRunner(world, memory, queue, latest)
        sweeper = stack.enter_context(_running_sweeper(latest, settings, world, webhooks))

        def traced_pass(*, fetch: bool) -> Outcome:
            with traces.whole_pass():
                return runner(fetch=fetch)

        loop: Loop[Outcome] = Loop(
            traced_pass,
            clock=world.clock,
            alarm=alarms,
            tell=tell,
            maintain=repository.maintain,
            keep=memory.branch.keep,
            random=random.random,
            count=partial(_count_pass, process, sweeper),
            poll=settings.poll_interval,
        )
        stack.enter_context(handle_signals(loop))
        for view in files:
            alarms.watch(view.changed, every=LOOK_AT_FILES, reason=OBSERVATION)
        answers = stack.enter_context(
            closing(
                AnswerDesk(
                    latest,
                    partial(open_repository, settings),
                    charts=charts,
                    clock=world.clock,
                    author=world.author,
                    output_branch=world.output_branch,
                )
            )
        )
        address = stack.enter_context(
            http_server(
                settings,
                pushed,
                loop,
                queue=queue,
                latest=latest,
                shelf=repository.shelf,
                answers=answers,
                process=process,
                traces=traces,
                log_lines=lambda: ring.lines,
            )
        )
        stack.callback(queue.close)
        _log_start(settings, address, observes=bool(files or clusters))
        proposals.start()
        stack.callback(proposals.close)
        alarms.start()
        stack.callback(alarms.stop)
        loop.run()
        queue.close()
        _flush_webhooks(webhooks)
        couriers.close(LAST_WORDS)
    log.info("stopped")


@contextmanager
def _running_sweeper(
    latest: LatestSnapshot, settings: Settings, world: World, webhooks: EngineWebhooks
) -> Iterator[Sweeper]:
    """Have what has lapsed ended where passes do not in time."""
    open_world = partial(_sweep_world, settings, world, webhooks)
    with closing(Sweeper(latest, open_world, clock=world.clock, random=random.random)) as sweeper:
        sweeper.start()
        yield sweeper


def _count_pass(process: ProcessMetrics, sweeper: Sweeper, result: PassResult, seconds: float) -> None:
    """Count a pass, and let the sweeper know how long a good one takes."""
    process.count_pass(result, seconds)
    if result is PassResult.OK:
        sweeper.note_pass(seconds)


@contextmanager
def _sweep_world(settings: Settings, world: World, webhooks: EngineWebhooks) -> Iterator[SweepWorld]:
    """Open the repository once more, for a sweep in a thread of its own: it sees no cluster and renders nothing."""
    with open_repository(settings) as repository:
        sweeping = replace(
            world,
            repository=repository,
            clusters=JoinedView(),
            sinks=(EventLog(), webhooks),
            recording=None,
            measure=unmeasured,
            gpu_use=None,
        )
        yield SweepWorld(world=sweeping, memory=make_memory(repository))


def _uses_approval(latest: LatestSnapshot) -> bool:
    """Return whether the last pass had anything to do with approvals; False before the first one."""
    with suppress(Transient):
        return uses_approval(latest.read().decision.inputs)
    return False


def _couriers(settings: Settings, repository: GitRepository, process: ProcessMetrics) -> Couriers:
    """Make the couriers of the fleet's Notifications, whose deliveries are counted."""
    couriers = Couriers(
        repository,
        repository.deliveries,
        committer(settings),
        partial(sender, settings),
        count=process.count_deliveries,
    )
    process.watch_deliveries(couriers.backlogs)
    return couriers


def _log_start(settings: Settings, address: str, *, observes: bool) -> None:
    """Log what the daemon watches and where it listens, and warn of what is set by half."""
    log.info("watching", line=_describe_sources(settings, address))
    if address:
        log.info("page", line=f"the page is at {_page_address(settings, address)}")
    if not observes and not (address and settings.push_token):
        log.warning("no observations", line=WITHOUT_OBSERVATIONS)
    if address and not (settings.api_tokens or settings.api_tokens_file or settings.issuer):
        log.warning("no callers", line=WITHOUT_CALLERS)


@contextmanager
def _measured(count: MeasureCall, trace: MeasureCall, call: OutwardCall) -> Iterator[Callable[[str], None]]:
    """Count and trace a call to a system outside."""
    with count(call) as counted, trace(call) as traced:

        def note(code: str) -> None:
            counted(code)
            traced(code)

        yield note


@contextmanager
def _measured_phase(count: Measure, trace: Measure, phase: PassPhase) -> Iterator[None]:
    """Measure and trace a phase of a pass."""
    with count(phase), trace(phase):
        yield


def _tell(announcer: Announcer, couriers: Couriers, repository: Repository, outcome: Outcome) -> None:
    """Log what a pass has changed, and tell the receivers of Notifications of it; a bug there costs no pass."""
    announcer.tell(outcome)
    inputs = outcome.decision.inputs

    def feed() -> None:
        couriers.follow(inputs.desired, repository.tips().output)
        couriers.compare(inputs)

    bug = attempt(Seam.SINK, "Couriers", feed)
    if isinstance(bug, Bug):
        BUGS.note(bug)


def _log_endpoint(report: EndpointReport) -> None:
    """Log that an engine cannot be told of pushes, or that it can be again."""
    if report.why:
        line = f"{report.endpoint} cannot be told of pushes, and sees them when it polls: {report.why}"
        log.warning("cannot notify", line=line)
    else:
        log.info("notifying again", line=f"{report.endpoint} is told of pushes again", failed_tries=report.tries)


def _flush_webhooks(webhooks: EngineWebhooks) -> None:
    """Deliver the webhooks of the last push, within limits."""
    for problem in webhooks.close(LAST_WORDS):
        log.warning("not notified", line=str(problem))


def _page_address(settings: Settings, address: str) -> str:
    """Return where a browser reaches the page: on this machine, where the daemon listens on every interface."""
    if settings.page_url:
        return settings.page_url
    scheme = "https" if settings.certificate else "http"
    host, _, port = address.rpartition(":")
    return f"{scheme}://{'localhost' if host in _EVERY_INTERFACE else host}:{port}/"


def _describe_sources(settings: Settings, address: str) -> str:
    """Describe the repository and the sources of observations on one line."""
    parts = [
        f"watching {logs.redact(without_query(settings.repo))}: {settings.source_branch} -> {settings.output_branch}",
        f"observations from {settings.observations}" if settings.observations else "",
        f"clusters of {settings.kubeconfig}" if settings.kubeconfig else "",
        f"signals from {settings.prometheus}" if settings.prometheus else "",
        f"signals from {settings.slurm}" if settings.slurm else "",
        f"polling every {format_duration(settings.poll_interval)}",
        f"listening at {address}{' with TLS' if settings.certificate else ''}" if address else "",
        f"telling {', '.join(map(str, settings.notify))}" if settings.notify else "",
        f"recording to {settings.record}" if settings.record else "",
    ]
    return f"{', '.join(part for part in parts if part)}, Ctrl-C stops it"
