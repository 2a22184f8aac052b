"""Authentication and certificate as the settings have them. Called by `app` alone, which builds everything else."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from reconciler.access.rights import Access
from reconciler.adapters.access_file import AccessFileWatcher
from reconciler.api.security.callers import Callers, IssuerLogin
from reconciler.api.security.tls import Certificate
from reconciler.core.schema.access import read_access
from reconciler.environment import PREFIX
from reconciler.ports import Clock
from reconciler.settings import Settings


def callers(settings: Settings, clock: Clock) -> Callers:
    """Build the authentication of callers. Raises InvalidInput for a broken list of tokens."""
    return Callers(clock, access=_access(settings), login=_login(settings), rate=settings.api_rate)


def certificate(settings: Settings) -> ssl.SSLContext | None:
    """Read the certificate, if one is set. Raises InvalidInput when it cannot be used."""
    return None if settings.certificate is None else Certificate(*settings.certificate).context


def _access(settings: Settings) -> Callable[[], Access] | None:
    if settings.api_tokens_file is not None:
        return AccessFileWatcher(settings.api_tokens_file)
    if not settings.api_tokens:
        return None
    access = read_access(settings.api_tokens.encode(), f"{PREFIX}API_TOKENS")
    return lambda: access


def _login(settings: Settings) -> IssuerLogin | None:
    if settings.issuer is None:
        return None
    from reconciler.adapters.oidc import OpenIdProvider  # noqa: PLC0415 - brings cryptography along, slow to import

    provider = OpenIdProvider(settings.issuer.url, authorities=settings.issuer_authorities)
    return IssuerLogin(issuer=settings.issuer, claims=provider.claims)
