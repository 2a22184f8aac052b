"""Wires the program: the only module that knows the adapter of each port.

Commands call it with `Settings`; nothing else in the program builds an adapter.
"""

from __future__ import annotations

import gc
import random
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from reconciler.adapters import logs
from reconciler.adapters.alarms import Alarms
from reconciler.adapters.clock import SystemClock
from reconciler.adapters.engine_webhooks import EndpointReport, EngineWebhooks
from reconciler.adapters.git import Credentials, GitRepository
from reconciler.adapters.git.source_repositories import SourceRepositories
from reconciler.adapters.helm.rendering import Helm
from reconciler.adapters.kubeconfig_files import existing_kubeconfig, kubeconfig_files
from reconciler.adapters.ledger_file import LedgerFile
from reconciler.adapters.logs import EventLog
from reconciler.adapters.notification.couriers import Couriers
from reconciler.adapters.notification.sender import NotTaken, Secrets, Sender
from reconciler.adapters.observations.observation_files import FileObservations
from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.adapters.observations.views import ChartsView, JoinedView
from reconciler.adapters.recording_files import RecordingFiles
from reconciler.adapters.signals import AskedSignals, PrometheusGpuUse, PrometheusServer, SlurmServer, UnaskedSignals
from reconciler.adapters.signals.view import A, Questions, SignalServer
from reconciler.adapters.traces import Traces, open_traces
from reconciler.bulkhead import Seam, attempt
from reconciler.core.decide.approval import uses_approval
from reconciler.core.signals.prometheus import Query
from reconciler.core.signals.prometheus import questions as prometheus_questions
from reconciler.core.signals.slurm import PendingGpus
from reconciler.core.signals.slurm import questions as slurm_questions
from reconciler.daemon.announce import Announcer
from reconciler.daemon.answers.desk import AnswerDesk
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.bug_log import BUGS
from reconciler.daemon.loop import OBSERVATION, Loop, handle_signals
from reconciler.daemon.metrics.process_metrics import ProcessMetrics
from reconciler.daemon.orders.order_queue import OrderQueue
from reconciler.daemon.pass_runner import PassRunner
from reconciler.daemon.phases import Measure, PassPhase
from reconciler.daemon.proposals.desk import ProposalDesk
from reconciler.daemon.proposals.follower import ProposalFollower
from reconciler.daemon.reconcile import Memory, Outcome, World
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.daemon.source import SourceReader
from reconciler.environment import PREFIX
from reconciler.errors import Bug, InvalidInput, Transient
from reconciler.model.events.notification import (
    AppriseReceiver,
    CommitStatusReceiver,
    KubernetesReceiver,
    Notification,
    WebhookReceiver,
)
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.outward_call import OutwardCall
from reconciler.model.policy import Connection, Desired
from reconciler.model.tree import Identity
from reconciler.model.units import format_duration
from reconciler.ports import (
    Charts,
    ClusterView,
    EventSink,
    GpuUseView,
    MeasureCall,
    OutputFiles,
    Repository,
    Wake,
    unmeasured_call,
)
from reconciler.settings import Settings
from reconciler.text.redaction import without_query

if TYPE_CHECKING:
    from fastapi import FastAPI

    from reconciler.access.rights import Access
    from reconciler.adapters.access.oidc_client import OidcPages
    from reconciler.api.backend import Backend
    from reconciler.api.security.callers import Callers, IssuerLogin
    from reconciler.core.onboarding.helm_release import HelmRelease
    from reconciler.core.onboarding.lend import LiveWorkload
    from reconciler.core.readiness.question import ServiceAccountName
    from reconciler.daemon.inspection import Surroundings
    from reconciler.web.live import LiveStreams

PATIENCE = timedelta(seconds=10)
"""How long a command waits for clusters to be listed; a thousand nodes with 20,000 pods take a few seconds."""

LAST_WORDS = timedelta(seconds=2)
"""How long a stopping daemon waits for the webhooks of the last push. Engines poll as well."""

_TURN = 0.001
"""Seconds after which a computing thread yields to another, so that a pass does not delay the API."""

LOOK_AT_FILES = timedelta(seconds=1)
"""Interval at which the times of observation files are checked; to a user a second is immediate."""

_EVERY_INTERFACE = frozenset({"0.0.0.0", "[::]"})  # noqa: S104 - what a person asked for

log = structlog.get_logger("overspill")

GARBAGE = 20_000
"""New objects after which Python searches for cycles: a pass makes many objects and hardly any cycle, and each search
stops all threads."""


@contextmanager
def connected(settings: Settings, *sinks: EventSink) -> Iterator[tuple[World, Memory]]:
    """Open the repository and the observations for one command, and close them afterwards.

    Events go to `sinks` alone, and not to the log: a command prints its results. Within `kept_open` they stay open.
    """
    kept = _KEPT.get()
    if kept is None:
        with _connected(settings, sinks) as opened:
            yield opened
        return
    if settings not in kept.settings:
        kept.settings.append(settings)
        kept.opened.append(kept.stack.enter_context(_connected(settings, sinks)))
    world, memory = kept.opened[kept.settings.index(settings)]
    yield world, Memory(source=memory.source, branch=memory.branch)  # each look is judged by itself


@contextmanager
def _connected(settings: Settings, sinks: tuple[EventSink, ...]) -> Iterator[tuple[World, Memory]]:
    with _open_repository(settings) as repository, _observing(settings, repository, sinks) as world:
        memory = _memory(repository)
        yield world, memory
        memory.branch.keep()


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptOpen:
    """The repositories and observations that several looks of one command share."""

    stack: ExitStack
    settings: list[Settings] = field(default_factory=list)
    opened: list[tuple[World, Memory]] = field(default_factory=list)
    """By the position of their settings."""


_KEPT = ContextVar[_KeptOpen | None]("kept_open", default=None)


@contextmanager
def kept_open() -> Iterator[None]:
    """Keep open what `connected` opens, for a command that looks again and again; close it all at the end."""
    with ExitStack() as stack:
        token = _KEPT.set(_KeptOpen(stack=stack))
        stack.callback(_KEPT.reset, token)
        yield


@contextmanager
def trying(settings: Settings, repository: Repository) -> Iterator[tuple[World, Memory]]:
    """Open the observations for a command that tries files before they are committed anywhere."""
    with _observing(settings, repository, ()) as world:
        yield world, Memory(source=SourceReader(repository), branch=BranchReader(repository))


@contextmanager
def _observing(settings: Settings, repository: Repository, sinks: tuple[EventSink, ...]) -> Iterator[World]:
    """Open all sources of observations, each as far as the settings name it."""
    gc.set_threshold(GARBAGE)
    with (
        closing(Helm()) as charts,
        _clusters(settings, PATIENCE) as clusters,
        _services(settings, PATIENCE) as services,
        _gpu_use(settings, PATIENCE) as gpu_use,
        _other_repositories(settings, PATIENCE) as others,
    ):
        views: list[ClusterView] = [ChartsView(charts=charts), *_files(settings), *clusters, *services, others]
        yield replace(_world(settings, repository, JoinedView(*views), charts, sinks), gpu_use=gpu_use)


@contextmanager
def notifying(settings: Settings) -> Iterator[tuple[World, Memory, GitRepository]]:
    """Open the repository for a command about receivers of Notifications, and look at no cluster."""
    with _open_repository(settings) as repository, closing(Helm()) as charts:
        memory = _memory(repository)
        yield _world(settings, repository, JoinedView(), charts, ()), memory, repository
        memory.branch.keep()


def live_workload(
    settings: Settings, desired: Desired, primary: ClusterName, wanted: tuple[WorkloadKind, str, str]
) -> LiveWorkload:
    """Read a workload, by its kind, namespace and name, from the cluster that runs it.

    Raises InvalidInput where there is none, or no login to the cluster, and Transient where it does not answer.
    """
    from reconciler.adapters.kube.live.objects import read_live_workload  # noqa: PLC0415 - slow to import

    kubeconfig, connection = _way_to(settings, desired, primary, "kubectl get KIND NAME -o yaml")
    return read_live_workload(kubeconfig, primary, connection, wanted, desired.kinds)


def live_release(settings: Settings, desired: Desired, primary: ClusterName, wanted: tuple[str, str]) -> HelmRelease:
    """Read a Helm release, by its namespace and name, from the cluster that runs it; errors as in `live_workload`."""
    from reconciler.adapters.kube.live.release import read_live_release  # noqa: PLC0415 - slow to import

    kubeconfig, connection = _way_to(settings, desired, primary, "helm get manifest RELEASE")
    return read_live_release(kubeconfig, primary, connection, wanted)


def _way_to(settings: Settings, desired: Desired, primary: ClusterName, printing: str) -> tuple[Path, Connection]:
    """Return the login to a cluster. Raises InvalidInput where there is none; `printing` prints what may replace it."""
    kubeconfig = checked_kubeconfig(settings)
    connection = desired.clusters[primary].connection or Connection(context=primary)
    if kubeconfig is None or not connection.context:
        raise InvalidInput(
            f"no kubeconfig leads to cluster {primary} (pass --kubeconfig PATH, or --filename with what"
            f" `{printing}` prints)"
        )
    return kubeconfig, connection


@contextmanager
def inspected(
    settings: Settings, account: ServiceAccountName | None, daemon: tuple[str, Path | None] | None
) -> Iterator[tuple[World, Memory, Surroundings]]:
    """Open the repository for `overspill doctor`, with single questions to clusters in place of watches.

    `daemon` is the address of a daemon that runs, and a file of authorities for its certificate.
    """
    with _open_repository(settings) as repository, closing(Helm()) as charts:
        kubeconfig = checked_kubeconfig(settings)
        from reconciler.adapters.daemon_call import DaemonCall  # noqa: PLC0415 - for one command alone
        from reconciler.adapters.git import checkout  # noqa: PLC0415 - for one command alone
        from reconciler.adapters.git_host import GitHost  # noqa: PLC0415 - for one command alone
        from reconciler.adapters.kube import KubeInquiry  # noqa: PLC0415 - slow to import, and few commands need it
        from reconciler.adapters.kube.kubeconfig import hidden_contexts  # noqa: PLC0415 - slow to import as well
        from reconciler.adapters.webhook_call import reach  # noqa: PLC0415 - for one command alone
        from reconciler.daemon.inspection import ReceiverTrial, Surroundings  # noqa: PLC0415 - for one command alone

        memory = _memory(repository)
        around = Surroundings(
            url=logs.redact(without_query(settings.repo)),
            rehearsal=repository,
            host=GitHost(settings.repo, _credentials(settings), timeout=PATIENCE.total_seconds()),
            servers=KubeInquiry(kubeconfig, clock=SystemClock(), patience=PATIENCE, plugins=settings.login_plugins),
            endpoints=settings.notify,
            reach=partial(reach, timeout=PATIENCE.total_seconds()),
            account=account,
            kubeconfig=() if kubeconfig is None else tuple(map(str, kubeconfig_files(kubeconfig))),
            hidden=tuple((str(each.path), each.context, each.message) for each in hidden_contexts(kubeconfig)),
            versions=lambda: {"git": checkout.version(), "helm": charts.version()},
            receivers=ReceiverTrial(
                trouble=partial(_trouble, settings),
                deliveries=repository.deliveries,
                has_secrets=settings.notification_secrets is not None,
            ),
            daemon=daemon and DaemonCall(daemon[0], authorities=daemon[1], timeout=PATIENCE, clock=SystemClock()),
        )
        yield _world(settings, repository, JoinedView(*_files(settings)), charts, ()), memory, around
        memory.branch.keep()


def proposal_desk(settings: Settings) -> ProposalDesk:
    """Open a desk with a mirror of its own, which its user closes."""
    from reconciler.adapters.pull_requests import HostPullRequests  # noqa: PLC0415 - where bursts are approved alone

    repository = _open_repository(replace(settings, cache_dir=settings.cache_dir / "proposals"))
    return ProposalDesk(
        repository=repository,
        branch=BranchReader(repository),
        pull_requests=HostPullRequests(settings.repo, _credentials(settings), timeout=PATIENCE.total_seconds()),
        clock=SystemClock(),
        author=_committer(settings),
        output_branch=settings.output_branch,
    )


def _uses_approval(latest: LatestSnapshot) -> bool:
    """Tell whether the last pass had anything to do with approvals; False before the first one."""
    with suppress(Transient):
        return uses_approval(latest.read().decision.inputs)
    return False


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
            output_branch=settings.output_branch, orders=lambda: len(queue), bugs=lambda: loop.vitals().bugs
        )
        traces = stack.enter_context(closing(open_traces(settings.traces)))
        measure = partial(_measured, process.call, traces.call)
        repository = stack.enter_context(_open_repository(settings, measure))
        charts = stack.enter_context(closing(Helm()))
        pushed, files = PushedObservations(), _files(settings)
        clusters = stack.enter_context(_clusters(settings, timedelta(), wake, measure))
        webhooks = EngineWebhooks(settings.notify, report=_log_endpoint)
        proposals = ProposalFollower(
            partial(proposal_desk, settings), queue.submit, is_used=lambda: _uses_approval(latest)
        )
        couriers = _couriers(settings, repository, process)
        services = stack.enter_context(_services(settings, timedelta(), wake, measure))
        gpu_use = stack.enter_context(_gpu_use(settings, timedelta(), wake, measure))
        others = stack.enter_context(_other_repositories(settings, timedelta(), wake))
        world = replace(
            _world(
                settings,
                repository,
                JoinedView(ChartsView(charts=charts), *files, pushed, *clusters, *services, others),
                charts,
                (EventLog(), webhooks, couriers, process, proposals),
            ),
            recording=stack.enter_context(_recording(settings)),
            measure=partial(_measured_phase, process.phase, traces.phase),
            gpu_use=gpu_use,
        )
        memory = _memory(repository, report=lambda line: log.debug("ledger cache", line=line))
        stack.callback(memory.branch.keep)
        alarms = Alarms(wake)
        latest = LatestSnapshot(memory.branch)
        announcer = Announcer(source_branch=settings.source_branch, sinks=world.sinks)

        def tell(outcome: Outcome) -> None:
            _tell(announcer, couriers, repository, outcome)
            process.follow(outcome.decision.inputs)

        runner = PassRunner(world, memory, queue, latest)

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
            count=process.count_pass,
            poll=settings.poll_interval,
        )
        stack.enter_context(handle_signals(loop))
        for view in files:
            alarms.watch(view.changed, every=LOOK_AT_FILES, reason=OBSERVATION)
        answers = AnswerDesk(
            latest,
            partial(_open_repository, settings),
            charts=stack.enter_context(closing(Helm())),
            clock=world.clock,
            author=world.author,
        )
        stack.callback(answers.close)
        address = stack.enter_context(
            _http_server(
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


def _couriers(settings: Settings, repository: GitRepository, process: ProcessMetrics) -> Couriers:
    """Make the couriers of the fleet's Notifications, whose deliveries are counted."""
    couriers = Couriers(
        repository,
        repository.deliveries,
        _committer(settings),
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


def _log_remark(remark: str) -> None:
    """Log that a part of a receiver is not told, and will not be."""
    log.warning("not notified", line=remark)


def sender(
    settings: Settings, notification: Notification, desired: Desired, remark: Callable[[str], None] = _log_remark
) -> Sender:
    """Make the way to the receiver of a Notification; `remark` gets what it leaves out for good.

    Raises InvalidInput for a kubeconfig that is no file.
    """
    from reconciler.adapters.notification.apprise_message import AppriseSender  # noqa: PLC0415 - for few fleets
    from reconciler.adapters.notification.commit_status import CommitStatusSender  # noqa: PLC0415 - for few fleets
    from reconciler.adapters.notification.kubernetes import KubernetesSender  # noqa: PLC0415 - for few fleets
    from reconciler.adapters.notification.webhook import WebhookSender  # noqa: PLC0415 - for few fleets

    secret = partial(Secrets(settings.notification_secrets).read, notification.secret)
    clock, timeout = SystemClock(), PATIENCE.total_seconds()
    match notification.receiver:
        case AppriseReceiver():
            return AppriseSender(secret, fleet=desired.fleet.name)
        case WebhookReceiver(url=url):
            confined = notification.owner is not None
            return WebhookSender(url, secret, fleet=desired.fleet.name, clock=clock, timeout=timeout, confined=confined)
        case CommitStatusReceiver():
            token = secret if notification.secret else None
            return CommitStatusSender(settings.repo, _credentials(settings), token, remark=remark, timeout=timeout)
        case KubernetesReceiver():
            kubeconfig = checked_kubeconfig(settings)
            return KubernetesSender(desired, kubeconfig, remark=remark, clock=clock, timeout=timeout)


def _trouble(settings: Settings, notification: Notification, desired: Desired) -> str:
    """Say why nothing could be sent to a receiver; empty where something could be."""
    try:
        sender(settings, notification, desired).ready()
    except (NotTaken, InvalidInput) as error:
        return str(error)
    return ""


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


NO_OBSERVATIONS = "no observations: every cluster counts as unseen and nothing new is placed"
WITHOUT_OBSERVATIONS = (
    f"{NO_OBSERVATIONS} (pass --kubeconfig PATH or --observations PATH, or to `run` --listen and a push token)"
)

WITHOUT_CALLERS = (
    "nobody may call the API: without tokens --listen answers for its health, and takes pushes that bear a secret"
    f" (make a token with `overspill token`, and name its file in {PREFIX}API_TOKENS_FILE)"
)


@contextmanager
def _http_server(
    settings: Settings,
    pushed: PushedObservations,
    loop: Loop[Outcome],
    *,
    queue: OrderQueue,
    latest: LatestSnapshot,
    shelf: OutputFiles,
    answers: AnswerDesk,
    process: ProcessMetrics,
    traces: Traces,
    log_lines: Callable[[], Sequence[str]],
) -> Iterator[str]:
    """Serve the HTTP API if the settings have an address, and yield it; empty without."""
    if settings.listen is None:
        yield ""
        return
    from reconciler.api.app import create_app  # noqa: PLC0415 - FastAPI is slow to import
    from reconciler.api.backend import Backend  # noqa: PLC0415 - FastAPI is slow to import
    from reconciler.api.server import HttpServer  # noqa: PLC0415 - uvicorn is slow to import

    sys.setswitchinterval(_TURN)
    callers = _callers(settings)
    backend = Backend(
        latest=latest,
        shelf=shelf,
        queue=queue,
        answers=answers,
        strict=settings.strict_egs_api,
        source_branch=settings.source_branch,
        output_branch=settings.output_branch,
    )
    application = create_app(
        pushed=pushed,
        wake=loop.wake,
        clock=SystemClock(),
        vitals=loop.vitals,
        branches=(settings.source_branch, settings.output_branch),
        push_token=settings.push_token,
        webhook_secret=settings.webhook_secret,
        callers=callers,
        backend=backend,
        process=process,
        traces=traces,
        log_lines=log_lines,
    )
    live = _install_page(settings, application, backend, callers)
    tls = _certificate(settings)
    server = HttpServer(application, host=settings.listen.host, port=settings.listen.port, tls=tls)
    server.start()
    try:
        host = f"[{settings.listen.host}]" if ":" in settings.listen.host else settings.listen.host
        yield f"{host}:{server.port}"
    finally:
        live.close()
        server.stop()


def _install_page(settings: Settings, application: FastAPI, backend: Backend, callers: Callers) -> LiveStreams:
    """Add the page for browsers to the API."""
    from reconciler.web.lab import LabReports  # noqa: PLC0415 - for the page alone
    from reconciler.web.session import Seal  # noqa: PLC0415 - brings cryptography along, slow to import
    from reconciler.web.site import install  # noqa: PLC0415 - FastAPI is slow to import

    return install(
        application,
        backend=backend,
        callers=callers,
        clock=SystemClock(),
        seal=Seal(settings.page_secret, lasting=settings.page_session),
        issuer=_issuer_pages(settings),
        address=settings.page_url,
        reports=LabReports(settings.lab_reports),
    )


def _issuer_pages(settings: Settings) -> OidcPages | None:
    """Return the issuer's pages, where we are a client of it and people may log in to the page there."""
    if settings.issuer is None or not settings.issuer_client:
        return None
    from reconciler.adapters.access.oidc_client import OidcClient, OidcPages  # noqa: PLC0415 - for the page alone

    client = OidcClient(id=settings.issuer_client, secret=settings.issuer_client_secret)
    return OidcPages(settings.issuer.url, client, authorities=settings.issuer_authorities)


def _callers(settings: Settings) -> Callers:
    """Build the authentication of API callers. Raises InvalidInput for a broken list of tokens."""
    from reconciler.api.security.callers import Callers  # noqa: PLC0415 - FastAPI is slow to import

    return Callers(SystemClock(), access=_access(settings), login=_login(settings), rate=settings.api_rate)


def _access(settings: Settings) -> Callable[[], Access] | None:
    from reconciler.adapters.access.access_file import AccessFileWatcher  # noqa: PLC0415 - for the HTTP API alone
    from reconciler.core.schema.access import read_access  # noqa: PLC0415 - for the HTTP API alone

    if settings.api_tokens_file is not None:
        return AccessFileWatcher(settings.api_tokens_file)
    if not settings.api_tokens:
        return None
    access = read_access(settings.api_tokens.encode(), f"{PREFIX}API_TOKENS")
    return lambda: access


def _login(settings: Settings) -> IssuerLogin | None:
    if settings.issuer is None:
        return None
    from reconciler.adapters.access.oidc import OpenIdProvider  # noqa: PLC0415 - brings cryptography along, slow to import
    from reconciler.api.security.callers import IssuerLogin  # noqa: PLC0415 - FastAPI is slow to import

    provider = OpenIdProvider(settings.issuer.url, authorities=settings.issuer_authorities)
    return IssuerLogin(issuer=settings.issuer, claims=provider.claims)


def _certificate(settings: Settings) -> ssl.SSLContext | None:
    """Read the certificate of the HTTP server, if one is set. Raises InvalidInput for an unusable one."""
    if settings.certificate is None:
        return None
    from reconciler.api.security.tls import Certificate  # noqa: PLC0415 - for the HTTP API alone

    return Certificate(*settings.certificate).context


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


def _credentials(settings: Settings) -> Credentials:
    given = Credentials(
        password="" if settings.git_password_file else settings.git_password,
        password_file=settings.git_password_file,
        ssh_key=settings.ssh_key,
        known_hosts=settings.known_hosts,
    )
    return replace(given, username=settings.git_username) if settings.git_username else given


def _open_repository(settings: Settings, measure: MeasureCall = unmeasured_call) -> GitRepository:
    return GitRepository(
        settings.repo,
        cache=settings.cache_dir,
        source_branch=settings.source_branch,
        output_branch=settings.output_branch,
        committer=_committer(settings),
        credentials=_credentials(settings),
        measure=measure,
    )


def _world(
    settings: Settings, repository: Repository, clusters: ClusterView, charts: Charts, sinks: tuple[EventSink, ...]
) -> World:
    return World(
        repository=repository,
        clusters=clusters,
        charts=charts,
        clock=SystemClock(),
        sinks=sinks,
        author=_committer(settings),
        source_branch=settings.source_branch,
        output_branch=settings.output_branch,
        uptime=lambda: timedelta(seconds=time.monotonic()),
    )


def _memory(repository: GitRepository, *, report: Callable[[str], None] = lambda _: None) -> Memory:
    file = LedgerFile(repository.directory / "ledger", writable=repository.owns_directory, report=report)
    return Memory(source=SourceReader(repository), branch=BranchReader(repository, file))


def _files(settings: Settings) -> list[FileObservations]:
    return [FileObservations(settings.observations)] if settings.observations else []


@contextmanager
def _clusters(
    settings: Settings, patience: timedelta, wake: Wake | None = None, measure: MeasureCall = unmeasured_call
) -> Iterator[list[ClusterView]]:
    """Watch clusters if the settings name a kubeconfig or the daemon runs in a cluster; else return None."""
    if settings.kubeconfig is None and not settings.in_cluster:
        yield []
        return
    kubeconfig = checked_kubeconfig(settings)
    from reconciler.adapters.kube import KubeObservations  # noqa: PLC0415 - slow to import, and few commands need it

    view = KubeObservations(
        kubeconfig,
        clock=SystemClock(),
        wake=wake,
        patience=patience,
        plugins=settings.login_plugins,
        measure=measure,
    )
    with closing(view):
        yield [view]


def checked_kubeconfig(settings: Settings) -> Path | None:
    """Return the kubeconfig of the settings. Raises InvalidInput where it is no file."""
    return None if settings.kubeconfig is None else existing_kubeconfig(settings.kubeconfig)


@contextmanager
def _other_repositories(
    settings: Settings, patience: timedelta, wake: Wake | None = None
) -> Iterator[SourceRepositories]:
    """Read other repositories that templates are made from; only those on the same host get the fleet's login."""
    host = urlsplit(settings.repo).netloc.rpartition("@")[2] if settings.repo else ""

    def opened(url: str, revision: str) -> GitRepository:
        credentials = _credentials(settings)
        if not host or urlsplit(url).netloc.rpartition("@")[2] != host:
            credentials = replace(credentials, password="", password_file=None)
        cache = settings.cache_dir / "sources"
        return GitRepository(url, cache=cache, source_branch=revision, credentials=credentials)

    every = settings.poll_interval
    view = SourceRepositories(opened, clock=SystemClock(), wake=wake, patience=patience, every=every)
    with closing(view):
        yield view


@contextmanager
def _services(
    settings: Settings, patience: timedelta, wake: Wake | None = None, measure: MeasureCall = unmeasured_call
) -> Iterator[tuple[ClusterView, ...]]:
    """Ask the services that policies take signals from; one that the settings do not name is warned of."""
    with ExitStack() as stack:

        def ask(server: SignalServer[A], source: str, questions: Questions[A], every: timedelta) -> ClusterView:
            view = AskedSignals(
                server,
                source=source,
                questions=questions,
                clock=SystemClock(),
                wake=wake,
                patience=patience,
                every=every,
            )
            return stack.enter_context(closing(view))

        prometheus: ClusterView
        if settings.prometheus:
            prometheus_server = PrometheusServer(settings.prometheus, token=settings.prometheus_token, measure=measure)
            prometheus = ask(prometheus_server, "Prometheus", prometheus_questions, settings.prometheus_interval)
        else:
            hint = "try --prometheus http://prometheus.monitoring:9090"
            prometheus = UnaskedSignals(Query, source="Prometheus", hint=hint)
        slurm: ClusterView
        if settings.slurm:
            slurm_server = SlurmServer(
                settings.slurm, user=settings.slurm_user, token_file=settings.slurm_token_file, measure=measure
            )
            slurm = ask(slurm_server, "Slurm", slurm_questions, settings.slurm_interval)
        else:
            slurm = UnaskedSignals(PendingGpus, source="Slurm", hint="try --slurm https://slurm.example.com:6820")
        yield prometheus, slurm


@contextmanager
def _gpu_use(
    settings: Settings, patience: timedelta, wake: Wake | None = None, measure: MeasureCall = unmeasured_call
) -> Iterator[GpuUseView | None]:
    """Ask the Prometheus of the settings, if they name one, which GPUs are used."""
    if not settings.prometheus:
        yield None
        return
    server = PrometheusServer(settings.prometheus, token=settings.prometheus_token, measure=measure)
    view = PrometheusGpuUse(
        server,
        label=settings.prometheus_cluster_label,
        clock=SystemClock(),
        wake=wake,
        patience=patience,
        every=settings.prometheus_interval,
    )
    with closing(view):
        yield view


@contextmanager
def _recording(settings: Settings) -> Iterator[RecordingFiles | None]:
    """Open the recording of passes, if the settings name a directory for it."""
    if settings.record is None:
        yield None
        return
    recording = RecordingFiles(
        settings.record,
        max_size=settings.record_max_size,
        max_age=settings.record_max_age,
        report=lambda line: log.warning("recording", line=line),
    )
    with closing(recording):
        yield recording


def _committer(settings: Settings) -> Identity:
    return Identity(name=settings.committer_name, email=settings.committer_email)
