"""The world of a pass as the settings name it: repository, clusters, signals and recording, each opened and closed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import structlog

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.git import Credentials, GitRepository
from reconciler.adapters.git.signing import AllowedSigners, SigningKey
from reconciler.adapters.git.source_repositories import BOUNDS, SourceRepositories
from reconciler.adapters.kubeconfig_files import existing_kubeconfig
from reconciler.adapters.ledger_file import LedgerFile
from reconciler.adapters.observations.observation_files import FileObservations
from reconciler.adapters.recording_files import RecordingFiles
from reconciler.adapters.signals import AskedSignals, PrometheusGpuUse, PrometheusServer, SlurmServer, UnaskedSignals
from reconciler.adapters.signals.view import A, Questions, SignalServer
from reconciler.core.signals.prometheus import Query
from reconciler.core.signals.prometheus import questions as prometheus_questions
from reconciler.core.signals.slurm import PendingGpus
from reconciler.core.signals.slurm import questions as slurm_questions
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, World
from reconciler.daemon.source import SourceReader
from reconciler.model.bounds import HTTP_EXCHANGE
from reconciler.model.tree import Identity
from reconciler.ports import Charts, ClusterView, EventSink, GpuUseView, MeasureCall, Repository, Wake, unmeasured_call
from reconciler.settings import Settings

PATIENCE = timedelta(seconds=HTTP_EXCHANGE.most)
"""The time of an exchange over HTTP, and how long a command waits for clusters to be listed.

A thousand nodes with 20,000 pods take a few seconds."""

GARBAGE = 20_000
"""New objects after which Python searches for cycles: a pass makes many objects and hardly any cycle, and each search
stops all threads."""

NO_OBSERVATIONS = "no cluster can be seen, so nothing new is placed"
WITHOUT_OBSERVATIONS = (
    f"{NO_OBSERVATIONS} (pass --kubeconfig PATH or --observations PATH; `run` also takes observations by HTTP, with"
    " --listen and OVERSPILL_PUSH_TOKEN_FILE)"
)

log = structlog.get_logger("overspill")


def credentials(settings: Settings) -> Credentials:
    """Return the login to the fleet repository, which is offered to the address that the settings name alone."""
    given = Credentials(
        address="" if settings.repo_is_origin else settings.repo,
        password="" if settings.git_password_file else settings.git_password,
        password_file=settings.git_password_file,
        ssh_key=settings.ssh_key,
        known_hosts=settings.known_hosts,
    )
    return replace(given, username=settings.git_username) if settings.git_username else given


def committer(settings: Settings) -> Identity:
    """Return the author of the commits."""
    return Identity(
        name=settings.committer_name, email=settings.committer_email, former=settings.committer_former_emails
    )


def signing_key(settings: Settings) -> SigningKey | None:
    """Return the key that commits are signed with, if the settings name one."""
    if settings.signing_key is None:
        return None
    return SigningKey(key=settings.signing_key, passphrase=settings.signing_passphrase)


def allowed_signers(settings: Settings) -> AllowedSigners | None:
    """Return whose signatures the source branch has to have, if the settings name any."""
    if settings.allowed_signers is None and settings.allowed_openpgp_keys is None:
        return None
    return AllowedSigners(ssh=settings.allowed_signers, openpgp=settings.allowed_openpgp_keys)


def open_repository(
    settings: Settings,
    measure: MeasureCall = unmeasured_call,
    *,
    cache: str = "",
    ended: Callable[[], bool] = lambda: False,
) -> GitRepository:
    """Open the mirror of the fleet repository, which its user closes; `cache` names one below that of the passes.

    A fetch is given up once `ended`.
    """
    return GitRepository(
        settings.repo,
        cache=settings.cache_dir / cache,
        main_cache=settings.cache_dir,
        source_branch=settings.source_branch,
        output_branch=settings.output_branch,
        committer=committer(settings),
        credentials=credentials(settings),
        signing=signing_key(settings),
        trailers=settings.commit_trailers,
        allowed_signers=allowed_signers(settings),
        ended=ended,
        measure=measure,
    )


def make_world(
    settings: Settings, repository: Repository, clusters: ClusterView, charts: Charts, sinks: tuple[EventSink, ...]
) -> World:
    """Make the world of a pass from what is open."""
    return World(
        repository=repository,
        clusters=clusters,
        charts=charts,
        clock=SystemClock(),
        sinks=sinks,
        author=committer(settings),
        source_branch=settings.source_branch,
        output_branch=settings.output_branch,
        uptime=lambda: timedelta(seconds=time.monotonic()),
    )


def make_memory(repository: GitRepository, *, report: Callable[[str], None] = lambda _: None) -> Memory:
    """Begin without a pass, with the records of the output branch that the mirror keeps."""
    file = LedgerFile(repository.directory / "ledger", writable=repository.owns_directory, report=report)
    return Memory(source=SourceReader(repository), branch=BranchReader(repository, file))


def observation_files(settings: Settings) -> list[FileObservations]:
    """Return the directory of observation files, if the settings name one."""
    return [FileObservations(settings.observations)] if settings.observations else []


@contextmanager
def watched_clusters(
    settings: Settings, patience: timedelta, wake: Wake | None = None, measure: MeasureCall = unmeasured_call
) -> Iterator[list[ClusterView]]:
    """Watch clusters if the settings name a kubeconfig or the daemon runs in a cluster; else yield no view."""
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
def other_repositories(
    settings: Settings, patience: timedelta, wake: Wake | None = None
) -> Iterator[SourceRepositories]:
    """Read other repositories that templates are made from, with the logins for these alone."""
    login = Credentials(
        of_sources=True,
        ssh_key=settings.source_ssh_key,
        known_hosts=settings.known_hosts,
        logins_file=settings.source_logins_file,
    )

    def opened(url: str, revision: str) -> GitRepository:
        return GitRepository(
            url,
            cache=settings.cache_dir / "sources",
            source_branch=revision,
            credentials=login,
            bounds=BOUNDS,
            ended=view.is_closing,
        )

    every = settings.poll_interval
    view = SourceRepositories(opened, clock=SystemClock(), wake=wake, patience=patience, every=every)
    with closing(view):
        yield view


@contextmanager
def signal_services(
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
def asked_gpu_use(
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
def open_recording(settings: Settings) -> Iterator[RecordingFiles | None]:
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
