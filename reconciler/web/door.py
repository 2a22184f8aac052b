"""The way in: who is signed in, how one signs in and out, and whether a form was sent by our own page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from urllib.parse import urlsplit

from fastapi import Request, Response

from reconciler.access.rights import PREFIX, Caller, NotAdmitted
from reconciler.adapters.access.oidc_client import OidcPages
from reconciler.api.refusal import HttpError
from reconciler.api.security.callers import NO_WAY_IN, WAY_OUT, Callers
from reconciler.errors import Transient
from reconciler.model.workload import Json
from reconciler.ports import Clock
from reconciler.web.session import LoginAttempt, Seal, Session, is_same, new_attempt, unguessable

CALLBACK = "/login/callback"
"""The address that the issuer sends people back to."""
_NAMES = ("iss", "sub", "email", "email_verified", "name", "preferred_username")
_MOST_TARGET = 2000
_OURS = frozenset({"same-origin", "none"})


class SignInNeeded(Exception):  # noqa: N818 - it is an answer
    """Nobody is signed in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Somebody who is signed in."""

    caller: Caller
    session: Session


class Door:
    """Lets people in. Safe to use from several threads."""

    def __init__(
        self, callers: Callers, clock: Clock, seal: Seal, *, issuer: OidcPages | None = None, address: str = ""
    ) -> None:
        """Take the API's callers, and the pages of an issuer where people may log in with it.

        `address` is where browsers reach the page, if it is not where requests say.
        """
        self._callers, self._clock, self._seal = callers, clock, seal
        self.issuer = issuer
        self._address = address.rstrip("/")

    @property
    def obstacle(self) -> str:
        """Why nobody can sign in, and the way out; empty where people can."""
        return f"Nobody can sign in: {NO_WAY_IN} ({WAY_OUT})." if self._callers.is_closed else ""

    # who is there

    def enter(self, request: Request) -> Visit:
        """Return who is signed in. Raises SignInNeeded, and HttpError as the API does."""
        session = self._session(request)
        if session is None:
            raise SignInNeeded
        try:
            return Visit(caller=self._caller(request, session), session=session)
        except HttpError as error:
            if error.status is HTTPStatus.UNAUTHORIZED:
                raise SignInNeeded from error
            raise

    def stays(self, request: Request) -> bool:
        """Return whether whoever has entered is still signed in. It is no call, so many calls sign nobody out."""
        session = self._session(request)
        if session is None:
            return False
        if session.claims is not None and self.issuer is not None:
            return self._callers.knows_claims(session.claims, self.issuer.client.id)
        return self._callers.knows_token(session.token)

    def _session(self, request: Request) -> Session | None:
        return self._seal.open_session(request.cookies.get(self._cookie(request), ""), self._clock.now())

    def _caller(self, request: Request, session: Session) -> Caller:
        if session.claims is not None and self.issuer is not None:
            return self._callers.admit_claims(request, session.claims, self.issuer.client.id)
        return self._callers.admit_token(request, session.token)

    # forms

    def check_form(self, request: Request, session: Session, given: str) -> None:
        """Refuse a form that our page has not sent."""
        if not is_same(given, session.csrf):
            raise HttpError(
                HTTPStatus.FORBIDDEN, "the form is not one of your session", hint="open the page again, and try again"
            )
        self.check_origin(request)

    def check_origin(self, request: Request) -> None:
        """Refuse a request that another site has made a browser send."""
        origin = request.headers.get("origin", "")
        site = request.headers.get("sec-fetch-site", "same-origin")
        hosts = {request.headers.get("host", ""), urlsplit(self._address).netloc} - {""}
        # A page that tells nobody where it is from has the origin null; such a one is never ours.
        if site not in _OURS or (origin and urlsplit(origin).netloc not in hosts):
            raise HttpError(HTTPStatus.FORBIDDEN, "the form was sent by another site", hint="open the page here")

    def form_token(self, request: Request) -> str:
        """Return the token of the login form of a browser, whose cookie has it; a new one where it has none."""
        return request.cookies.get(self._name(request, "form"), "") or unguessable()

    def keep_form_token(self, request: Request, response: Response, token: str) -> None:
        """Let the browser keep the token of the login form."""
        self._set(request, response, self._name(request, "form"), token, same_site="strict")

    def check_login(self, request: Request, given: str) -> None:
        """Refuse a login form that the browser has not had from us: somebody else's account is no place to work in."""
        if not is_same(given, request.cookies.get(self._name(request, "form"), "")):
            raise HttpError(HTTPStatus.FORBIDDEN, "the login form is too old", hint="try again; cookies have to be on")
        self.check_origin(request)

    # in and out

    def sign_in_by_token(self, request: Request, response: Response, token: str) -> Caller:
        """Sign in the bearer of a token. Raises HttpError 401 for an unknown one."""
        if not token.startswith(PREFIX):
            self._callers.count_failure(request)
            raise HttpError(HTTPStatus.UNAUTHORIZED, "that is no token of Overspill", hint=f"one begins with {PREFIX}")
        caller = self._callers.admit_token(request, token)
        self._begin(request, response, Session(csrf=unguessable(), token=token, began_at=self._clock.now()))
        return caller

    def begin_login(self, request: Request, target: str) -> tuple[LoginAttempt, str]:
        """Begin a login by the issuer, and return the address of its page. Raises HttpError 503 while it is away."""
        if self.issuer is None:
            raise HttpError(HTTPStatus.NOT_FOUND, "there is no issuer to log in with", hint="log in with a token")
        attempt = new_attempt(target)
        try:
            address = self.issuer.login_address(
                redirect=self._redirect(request),
                state=attempt.state,
                nonce=attempt.nonce,
                challenge=attempt.challenge,
            )
        except Transient as error:
            raise HttpError(
                HTTPStatus.SERVICE_UNAVAILABLE, "the issuer does not answer", hint="try again, or log in with a token"
            ) from error
        return attempt, address

    def keep_attempt(self, request: Request, response: Response, attempt: LoginAttempt) -> None:
        """Let the browser keep a login under way; it comes back from the issuer's site, so Strict would lose it."""
        sealed = self._seal.seal_attempt(attempt, self._clock.now())
        self._set(request, response, self._name(request, "login"), sealed, same_site="lax", seconds=600)

    def finish_login(self, request: Request, response: Response, state: str, code: str) -> str:
        """Sign in whom the issuer sends back, and return the page to go on with. Raises HttpError."""
        now = self._clock.now()
        attempt = self._seal.open_attempt(request.cookies.get(self._name(request, "login"), ""), now)
        if self.issuer is None or attempt is None or not is_same(state, attempt.state) or not code:
            self._callers.count_failure(request)
            raise HttpError(HTTPStatus.UNAUTHORIZED, "the login was not begun here, or is too old", hint="log in again")
        try:
            token = self.issuer.token(code, redirect=self._redirect(request), verifier=attempt.verifier)
            claims = self._claims(token, attempt)
            session = Session(csrf=unguessable(), claims=self._kept(claims, now), began_at=now)
            self._callers.admit_claims(request, claims, self.issuer.client.id)
            self._begin(request, response, session)
        except NotAdmitted as error:
            self._callers.count_failure(request)
            raise HttpError(HTTPStatus.UNAUTHORIZED, str(error), hint=error.hint) from error
        except Transient as error:
            raise HttpError(
                HTTPStatus.SERVICE_UNAVAILABLE, "the issuer does not answer", hint="log in again"
            ) from error
        response.delete_cookie(self._name(request, "login"), path="/")
        return attempt.target

    def _claims(self, token: str, attempt: LoginAttempt) -> Mapping[str, Json]:
        """Return the claims of a token that was made for this login. Raises NotAdmitted and Transient."""
        claims = self._callers.claims(token)
        if not is_same(str(claims.get("nonce", "")), attempt.nonce):
            raise NotAdmitted("the issuer's answer is to another login", hint="log in again")
        return claims

    def sign_out(self, request: Request, response: Response) -> None:
        """Forget who is signed in."""
        response.delete_cookie(self._cookie(request), path="/", secure=self._is_secure(request), httponly=True)

    def _kept(self, claims: Mapping[str, Json], now: datetime) -> Mapping[str, Json]:
        """Return the claims that a session keeps: whom they name and which groups, for as long as it lasts.

        The ID token itself holds for minutes at many issuers. The roles of the groups are looked up anew each time.
        """
        issuer = self._callers.issuer
        names = {*_NAMES, issuer.name_claim, issuer.groups_claim} - {""} if issuer is not None else {*_NAMES}
        kept = {name: value for name, value in claims.items() if name in names}
        client = "" if self.issuer is None else self.issuer.client.id
        return {**kept, "aud": client, "exp": int((now + self._seal.lasting).timestamp())}

    def _begin(self, request: Request, response: Response, session: Session) -> None:
        try:
            sealed = self._seal.seal_session(session)
        except ValueError as error:
            raise HttpError(
                HTTPStatus.FORBIDDEN,
                "the issuer lists too many groups for a cookie",
                hint="have it list those of Overspill alone, or log in with a token",
            ) from error
        seconds = int(self._seal.lasting.total_seconds())
        self._set(request, response, self._cookie(request), sealed, same_site="strict", seconds=seconds)

    # cookies

    def _redirect(self, request: Request) -> str:
        return f"{self._address or str(request.base_url).rstrip('/')}{CALLBACK}"

    def _is_secure(self, request: Request) -> bool:
        return self._address.startswith("https:") or request.url.scheme == "https"

    def _cookie(self, request: Request) -> str:
        return self._name(request, "session")

    def _name(self, request: Request, name: str) -> str:
        """Name a cookie. With the prefix, browsers take it over https from this very host alone (RFC 6265bis)."""
        return f"__Host-overspill-{name}" if self._is_secure(request) else f"overspill-{name}"

    def _set(
        self, request: Request, response: Response, name: str, value: str, *, same_site: str, seconds: int | None = None
    ) -> None:
        response.set_cookie(
            name,
            value,
            max_age=seconds,
            path="/",
            secure=self._is_secure(request),
            httponly=True,
            samesite="lax" if same_site == "lax" else "strict",
        )


def safe_target(text: str) -> str:
    """Return a page of ours to go on with: an address of another site, or none at all, leads to the first page."""
    ours = text.startswith("/") and not text.startswith(("//", "/\\", "/log")) and text.isprintable()
    return text if ours and "\\" not in text and len(text) <= _MOST_TARGET else "/"
