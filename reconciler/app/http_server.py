"""The HTTP server of the daemon: API, page and logins."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.adapters.traces import Traces
from reconciler.daemon.answers.desk import AnswerDesk
from reconciler.daemon.loop import Loop
from reconciler.daemon.metrics.process_metrics import ProcessMetrics
from reconciler.daemon.orders.order_queue import OrderQueue
from reconciler.daemon.reconcile import Outcome
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.environment import PREFIX
from reconciler.ports import OutputFiles
from reconciler.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from reconciler.access.rights import Access
    from reconciler.adapters.access.oidc_client import OidcPages
    from reconciler.api.backend import Backend
    from reconciler.api.security.callers import Callers, IssuerLogin
    from reconciler.web.live import LiveStreams

_TURN = 0.001
"""Seconds after which a computing thread yields to another, so that a pass does not delay the API."""


@contextmanager
def http_server(
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
