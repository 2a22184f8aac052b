"""One call to a daemon over HTTP, tried again for as long as that is safe and of use."""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx2

from reconciler import __version__
from reconciler.client.address import server_address
from reconciler.client.refusals import Refused, mapping, refusal
from reconciler.errors import InvalidInput, Transient
from reconciler.model.backoff import backoff
from reconciler.model.units import format_duration

_MOST = 64 << 20
"""Bytes of one answer: a page of a hundred placements whose bodies are as large as a daemon takes them, and less."""
_BUSY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often a call is tried, and how many seconds lie between: about twice as many each time."""

    tries: int = 4
    first_backoff: float = 0.25
    longest_backoff: float = 20

    def backoff(self, failures: int) -> float:
        """Draw the wait in seconds after so many failures in a row."""
        luck = random.random()  # noqa: S311 - spreads load, keeps no secret
        return backoff(failures, first=self.first_backoff, longest=self.longest_backoff, luck=luck)


class _AgainError(Exception):
    """A try that failed and may be repeated, not before `wait` seconds have passed."""

    def __init__(self, why: str, *, wait: float = 0) -> None:
        super().__init__(why)
        self.wait = wait


class Transport:
    """Sends calls to one daemon over a connection that is kept.

    Redirects are not followed: the token is for this address and for no other. Proxies are those of the environment,
    except for a daemon on this machine. Certificates are checked against the system's authorities, or those of a file.
    """

    def __init__(self, server: str, *, token: str, ca_file: Path | None, timeout: timedelta, pace: Pace) -> None:
        self._base = server_address(server)
        self._pace = pace
        self._patience = timeout.total_seconds()
        secure = self._base.startswith("https:")
        self._http = httpx2.Client(
            headers=_headers(token),
            verify=_authorities(ca_file) if ca_file is not None and secure else True,
            timeout=self._patience,
            follow_redirects=False,
            trust_env=secure,
        )

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object = None,
        key: str = "",
        safe: bool = False,
    ) -> Mapping[str, Any]:
        """Call, and return the answer's envelope.

        Reads are tried again, and so are writes with a `key`, by which the daemon knows that they are the same, and
        what is `safe` to do twice, whatever its method. Raises Refused when the daemon refuses, Transient when
        nobody answers or it is busy for longer than the pace has patience, and InvalidInput when the address is wrong.
        """
        headers = {"Idempotency-Key": key} if key else {}
        request = self._http.build_request(method, self._base + path, params=params, json=body, headers=headers)
        tries = self._pace.tries if method == "GET" or key or safe else 1
        for failures in range(1, tries + 1):
            try:
                return self._try(request)
            except Refused as error:
                error.unheard = failures > 1
                raise
            except _AgainError as error:
                pause = max(error.wait, self._pace.backoff(failures))
                if failures == tries or pause > self._pace.longest_backoff:
                    raise Transient(f"{self._base}: {error}{_later(error.wait)}") from error
            time.sleep(pause)
        raise AssertionError("a pace has at least one try")

    def _try(self, request: httpx2.Request) -> Mapping[str, Any]:
        try:
            response = self._http.send(request, stream=True)
            try:
                body = b"".join(self._parts(response))
            finally:
                response.close()
        except httpx2.TimeoutException as error:
            raise _AgainError("it does not answer in time") from error
        except httpx2.RequestError as error:
            raise _unreached(self._base, error) from error
        return _answer(request, response, body)

    def _parts(self, response: httpx2.Response) -> Iterator[bytes]:
        """Read a body, which may take as long as a connection may be silent: one that drips would keep us for ever."""
        end, size = time.monotonic() + self._patience, 0
        for part in response.iter_bytes():
            size += len(part)
            if size > _MOST:
                raise InvalidInput(f"{self._base} answers with more than {_MOST >> 20} MiB (is it Overspill?)")
            if time.monotonic() > end:
                raise _AgainError("it does not answer in time")
            yield part


def _answer(request: httpx2.Request, response: httpx2.Response, body: bytes) -> Mapping[str, Any]:
    """Return the envelope of a good answer, and raise what any other comes to."""
    status, asked = response.status_code, f"{request.method} {request.url.copy_with(query=None)}"
    if response.is_success:
        answer = mapping(body)
        if "statusCode" not in answer:
            raise InvalidInput(f"{asked} is not answered as Overspill does (is this its address?)")
        return answer
    if response.is_redirect:
        leads = response.headers.get("location", "")[:200]
        raise InvalidInput(f"{asked} leads to {leads}, which is not followed (try --server with that address)")
    nameless = status == HTTPStatus.UNAUTHORIZED and "Authorization" not in request.headers
    told = refusal(status, body, asked=asked, nameless=nameless)
    if response.is_server_error or status in _BUSY:
        raise _AgainError(f"it answers {status}: {told}", wait=_retry_after(response))
    raise told


def _headers(token: str) -> dict[str, str]:
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise InvalidInput("OVERSPILL_TOKEN holds what cannot stand in a header (try the token and nothing else)")
    headers = {"Accept": "application/json", "User-Agent": f"overspill/{__version__}"}
    return headers | ({"Authorization": f"Bearer {token}"} if token else {})


def _authorities(file: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=file)
    except (OSError, ssl.SSLError) as error:
        told = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise InvalidInput(f"reading {file}: {told} (try the PEM file of the authority that signed it)") from error


def _unreached(base: str, error: httpx2.RequestError) -> Exception:
    """Tell what keeps us from a server: a certificate is for a person to look at, the rest may pass."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = cause.verify_message.rstrip(".")
            return InvalidInput(f"{base}: its certificate is not trusted: {why} (try OVERSPILL_SERVER_CA_FILE)")
        cause = cause.__cause__ or cause.__context__
    return _AgainError(f"it cannot be reached: {error}".rstrip(": "))


def _retry_after(response: httpx2.Response) -> float:
    """Read for how many seconds the daemon asks us to stay away; dates are not read."""
    told = response.headers.get("retry-after", "")
    return float(told) if told.isdecimal() and len(told) < 6 else 0  # noqa: PLR2004 - a day has five digits


def _later(wait: float) -> str:
    return f" (it asks to be left alone for {format_duration(timedelta(seconds=wait))})" if wait else ""
