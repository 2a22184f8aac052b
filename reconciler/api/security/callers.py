"""Authentication and roles of callers, before every route of the management API."""

from __future__ import annotations

import ipaddress
import math
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from threading import Lock

from fastapi import APIRouter, Depends, Request, Security
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool

from reconciler.access.oidc import Issuer, caller_of_claims
from reconciler.access.rate_limit import Buckets, Rate, parse_rate
from reconciler.access.rights import PREFIX, Access, AccessRole, Caller, NotAdmitted, caller_of_token, has_role
from reconciler.api.refusal import HttpError, error_responses
from reconciler.errors import Transient
from reconciler.model.ids import WorkspaceName
from reconciler.model.workload import Json
from reconciler.ports import Clock
from reconciler.text.findings import shortened

DEFAULT_RATE = "50/s"
_FAILURES = Rate(per_second=1 / 6, burst=10)
"""Failed logins of one address, which cannot guess 256 bits, but cost work."""
_AGAIN = 5
"""Seconds after which a client may try again while the issuer is away."""
NO_WAY_IN = "no tokens and no issuer are configured"
WAY_OUT = "set OVERSPILL_API_TOKENS_FILE or OVERSPILL_OIDC_ISSUER and start again"
_BEARER = HTTPBearer(auto_error=False, scheme_name="bearer", description="A token of ours, or one of the OIDC issuer.")


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerLogin:
    """An OpenID Connect issuer, and the check of its signatures."""

    issuer: Issuer
    claims: Callable[[str], Mapping[str, Json]]
    """Returns the claims of a token. Raises NotAdmitted for a token that the issuer has not signed, and Transient while
    its keys are unknown."""


class Callers:
    """Authenticates callers, and limits their rates. Safe to use from several threads."""

    def __init__(
        self,
        clock: Clock,
        *,
        access: Callable[[], Access] | None = None,
        login: IssuerLogin | None = None,
        rate: Rate | None = None,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the access file and an issuer. With neither, every call is refused."""
        self._clock = clock
        self._access = access
        self._login = login
        self._ticks = ticks
        self._lock = Lock()
        self._calls = Buckets(rate or parse_rate(DEFAULT_RATE))
        self._failures = Buckets(_FAILURES)

    async def admit(self, request: Request) -> None:
        """Authenticate the bearer of a request's token, as `caller_of(request)`; raises HttpError for any other.

        A worker's thread is taken only where an issuer may have to be asked: the hand-over costs more than the rest.
        """
        if self._login is None:
            self._admit(request)
        else:
            await run_in_threadpool(self._admit, request)

    def _admit(self, request: Request) -> None:
        if self.is_closed:
            raise HttpError(HTTPStatus.FORBIDDEN, f"nobody may call this: {NO_WAY_IN}", hint=WAY_OUT)
        self.admit_token(request, _token(request))

    @property
    def is_closed(self) -> bool:
        """Whether nobody can be let in, since neither tokens nor an issuer are configured."""
        return self._access is None and self._login is None

    def admit_token(self, request: Request, token: str) -> Caller:
        """Authenticate the bearer of a token, as `caller_of(request)`; raises HttpError for any other."""
        return self._let_in(request, lambda: self._caller(token))

    def admit_claims(self, request: Request, claims: Mapping[str, Json], audience: str) -> Caller:
        """Authenticate whom the issuer's claims name, whose signature was checked when they were taken.

        They were made for `audience`, our name as a client of the issuer. Raises HttpError as `admit_token`.
        """
        return self._let_in(request, lambda: self._caller_of(claims, audience))

    def knows_token(self, token: str) -> bool:
        """Return whether a token still lets its bearer in. It counts as no call and as no failed login."""
        return _is_let_in(lambda: self._caller(token))

    def knows_claims(self, claims: Mapping[str, Json], audience: str) -> bool:
        """Return whether claims still let in whom they name, as `knows_token`."""
        return _is_let_in(lambda: self._caller_of(claims, audience))

    def claims(self, token: str) -> Mapping[str, Json]:
        """Return the claims of a token that the issuer has signed. Raises NotAdmitted and Transient."""
        if self._login is None:
            raise NotAdmitted("there is no issuer", hint="log in with a token")
        return self._login.claims(token)

    @property
    def issuer(self) -> Issuer | None:
        """The issuer whose tokens are taken; None without one."""
        return None if self._login is None else self._login.issuer

    def _let_in(self, request: Request, identify: Callable[[], Caller]) -> Caller:
        """Count a call of whom `identify` names; raises HttpError where it names nobody, or too often."""
        try:
            caller = identify()
        except NotAdmitted as error:
            request.state.bearer = error.name
            self.count_failure(request)
            raise _unauthorized(str(error), error.hint, 'Bearer realm="overspill", error="invalid_token"') from error
        except Transient as error:
            raise HttpError(  # the reason stands in the log already
                HTTPStatus.SERVICE_UNAVAILABLE,
                "the keys of the issuer cannot be had",
                hint=f"try again in {_AGAIN} s",
                headers={"Retry-After": str(_AGAIN)},
            ) from error
        request.state.bearer = caller.name
        self._bound(self._calls, caller.key, "too many calls")
        request.state.caller = caller
        return caller

    def count_failure(self, request: Request) -> None:
        """Count a failed login, or a webhook's delivery that proves nothing; raises HttpError for one too many."""
        self._bound(self._failures, _client_address(request), "too many failed logins from this address")

    def _caller(self, token: str) -> Caller:
        """Return the caller of a token. Raises NotAdmitted and Transient."""
        access = self._access() if self._access is not None else Access()
        if token.startswith(PREFIX) or self._login is None:
            return caller_of_token(access, token, self._clock.now())
        claims = self._login.claims(token)
        return caller_of_claims(claims, self._login.issuer, access.rules, self._clock.now())

    def _caller_of(self, claims: Mapping[str, Json], audience: str) -> Caller:
        """Return the caller that claims for an audience name, by the roles that hold now. Raises NotAdmitted."""
        if self._login is None:
            raise NotAdmitted("there is no issuer any more", hint="log in with a token")
        access = self._access() if self._access is not None else Access()
        issuer = replace(self._login.issuer, audience=audience)
        return caller_of_claims(claims, issuer, access.rules, self._clock.now())

    def _bound(self, buckets: Buckets, caller: Hashable, message: str) -> None:
        """Count a call; raises HttpError when it exceeds the limit."""
        with self._lock:
            wait = buckets.take(caller, self._ticks())
        if wait:
            seconds = math.ceil(wait)
            raise HttpError(
                HTTPStatus.TOO_MANY_REQUESTS,
                message,
                hint=f"try again in {seconds} s",
                headers={"Retry-After": str(seconds)},
            )


def _is_let_in(identify: Callable[[], Caller]) -> bool:
    try:
        identify()
    except NotAdmitted:
        return False
    return True


def guarded_router(callers: Callers) -> APIRouter:
    """Make a router all of whose routes authenticate their caller first."""
    return APIRouter(
        dependencies=[Security(_BEARER), Depends(callers.admit)],
        responses=error_responses(
            HTTPStatus.UNAUTHORIZED,
            HTTPStatus.FORBIDDEN,
            HTTPStatus.TOO_MANY_REQUESTS,
            HTTPStatus.SERVICE_UNAVAILABLE,
        ),
    )


def caller_of(request: Request) -> Caller:
    """Return the caller of a route of a `guarded_router`."""
    caller: Caller = request.state.caller
    return caller


def require_role(caller: Caller, role: AccessRole, workspace: WorkspaceName) -> None:
    """Refuse a caller who lacks a role in a workspace.

    A caller who may not see it gets the answer for a workspace that does not exist.
    """
    if not has_role(caller, AccessRole.VIEWER, workspace):
        raise no_workspace(workspace)
    if not has_role(caller, role, workspace):
        raise HttpError(
            HTTPStatus.FORBIDDEN,
            f"{caller.name} is not {_a(role)} of the workspace {workspace}",
            hint=f"ask whoever runs Overspill for the role {role}",
        )


def no_workspace(workspace: str) -> HttpError:
    """Make the answer for a workspace that does not exist, or may not be seen."""
    return HttpError(
        HTTPStatus.NOT_FOUND,
        f"there is no workspace {shortened(workspace, 63)}",
        hint="GET /api/v1/whoami tells which ones you have a role in",
    )


def _a(role: AccessRole) -> str:
    return f"an {role}" if str(role)[0] in "EO" else f"a {role}"


def _token(request: Request) -> str:
    """Return the bearer token of a request; raises HttpError where there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        hint = f"try -H 'Authorization: Bearer {PREFIX}...'"
        raise _unauthorized("the request bears no token", hint, 'Bearer realm="overspill"')
    return token.strip()


def _unauthorized(message: str, hint: str, challenge: str) -> HttpError:
    return HttpError(HTTPStatus.UNAUTHORIZED, message, hint=hint, headers={"WWW-Authenticate": challenge})


def _client_address(request: Request) -> str:
    """Return the address of a request; of IPv6 its network, in which one client has as many addresses as it likes."""
    host = request.client.host if request.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address.packed, 64), strict=False))
    return host
