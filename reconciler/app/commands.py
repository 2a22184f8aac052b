"""What commands open: a world for one pass or for several, and single questions to clusters."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.git import GitRepository
from reconciler.adapters.helm.chart_queue import patient
from reconciler.adapters.helm.rendering import Helm
from reconciler.adapters.kubeconfig_files import kubeconfig_files
from reconciler.adapters.observations.views import ChartsView, JoinedView
from reconciler.app.receivers import trouble
from reconciler.app.world import (
    GARBAGE,
    PATIENCE,
    asked_gpu_use,
    checked_kubeconfig,
    credentials,
    make_memory,
    make_world,
    observation_files,
    open_repository,
    other_repositories,
    signal_services,
    watched_clusters,
)
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, World
from reconciler.daemon.source import SourceReader
from reconciler.errors import InvalidInput
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.policy import Connection, Desired
from reconciler.ports import ClusterView, EventSink, Repository
from reconciler.settings import Settings
from reconciler.text.targets import TextTarget, escape

if TYPE_CHECKING:
    from reconciler.core.onboarding.helm_release import HelmRelease
    from reconciler.core.onboarding.lend import LiveWorkload
    from reconciler.core.readiness.question import ServiceAccountName
    from reconciler.daemon.inspection import Surroundings


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


def _say(line: str) -> None:
    """Say on the error stream what a command waits for."""
    sys.stderr.write(escape(f"{line} ...\n", TextTarget.TERMINAL))
    sys.stderr.flush()


@contextmanager
def _connected(settings: Settings, sinks: tuple[EventSink, ...]) -> Iterator[tuple[World, Memory]]:
    with open_repository(settings) as repository, _observing(settings, repository, sinks) as world:
        memory = make_memory(repository)
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
        closing(patient(Helm(), _say)) as charts,
        watched_clusters(settings, PATIENCE) as clusters,
        signal_services(settings, PATIENCE) as services,
        asked_gpu_use(settings, PATIENCE) as gpu_use,
        other_repositories(settings, PATIENCE) as others,
    ):
        views: list[ClusterView] = [
            ChartsView(charts=charts),
            *observation_files(settings),
            *clusters,
            *services,
            others,
        ]
        yield replace(make_world(settings, repository, JoinedView(*views), charts, sinks), gpu_use=gpu_use)


@contextmanager
def notifying(settings: Settings) -> Iterator[tuple[World, Memory, GitRepository]]:
    """Open the repository for a command about receivers of Notifications, and look at no cluster."""
    with open_repository(settings) as repository, closing(patient(Helm(), _say)) as charts:
        memory = make_memory(repository)
        yield make_world(settings, repository, JoinedView(), charts, ()), memory, repository
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
    with open_repository(settings) as repository, closing(patient(Helm(), _say)) as charts:
        kubeconfig = checked_kubeconfig(settings)
        from reconciler.adapters.daemon_call import DaemonCall  # noqa: PLC0415 - for one command alone
        from reconciler.adapters.git import checkout  # noqa: PLC0415 - for one command alone
        from reconciler.adapters.git_host import GitHost  # noqa: PLC0415 - for one command alone
        from reconciler.adapters.kube import KubeInquiry  # noqa: PLC0415 - slow to import, and few commands need it
        from reconciler.adapters.kube.kubeconfig import hidden_contexts  # noqa: PLC0415 - slow to import as well
        from reconciler.adapters.webhook_call import reach  # noqa: PLC0415 - for one command alone
        from reconciler.daemon.inspection import ReceiverTrial, Surroundings  # noqa: PLC0415 - for one command alone

        memory = make_memory(repository)
        around = Surroundings(
            url=settings.repo,
            signs=settings.signing_key is not None,
            rehearsal=repository,
            host=GitHost(
                settings.repo,
                credentials(settings),
                timeout=PATIENCE.total_seconds(),
                signed=settings.signing_key is not None,
            ),
            servers=KubeInquiry(kubeconfig, clock=SystemClock(), patience=PATIENCE, plugins=settings.login_plugins),
            endpoints=settings.notify,
            reach=partial(reach, timeout=PATIENCE.total_seconds()),
            account=account,
            kubeconfig=() if kubeconfig is None else tuple(map(str, kubeconfig_files(kubeconfig))),
            hidden=tuple((str(each.path), each.context, each.message) for each in hidden_contexts(kubeconfig)),
            versions=lambda: {"git": checkout.version(), "helm": charts.version()},
            receivers=ReceiverTrial(
                trouble=partial(trouble, settings),
                deliveries=repository.deliveries,
                has_secrets=settings.notification_secrets is not None,
            ),
            daemon=daemon and DaemonCall(daemon[0], authorities=daemon[1], timeout=PATIENCE, clock=SystemClock()),
        )
        yield make_world(settings, repository, JoinedView(*observation_files(settings)), charts, ()), memory, around
        memory.branch.keep()
