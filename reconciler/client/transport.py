"""HTTP calls to a daemon at a checked address, retried while that is safe and useful."""

from __future__ import annotations

import ipaddress
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from reconciler.backoff import Backoff
from reconciler.client.refusals import Refused, refusal
from reconciler.errors import InvalidInput, Transient
from reconciler.http_client import HttpAnswer, HttpClient, NoAnswer, UntrustedCertificate, json_object_in
from reconciler.model.units import format_duration

_EXAMPLE = "try https://overspill.example.com"


def server_address(text: str) -> str:
    """Check the address of a daemon and return it without a slash at its end.

    A path is that of a proxy. Raises InvalidInput for an invalid address, for one with a password, and for http to
    another machine, which would send the token in clear text.
    """
    try:
        parts = urlsplit(text)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port or IPv6 address
        raise _invalid_address(text) from None
    if "@" in parts.netloc:
        raise InvalidInput("the server's address holds a user or a password (try it without, and OVERSPILL_TOKEN_FILE)")
    if not whole or parts.query or parts.fragment or re.search(r"[^!-~]", text):
        raise _invalid_address(text)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise InvalidInput(f"{text}: a token is sent by https only, but to this machine (try https://{parts.netloc})")
    return text.rstrip("/")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, independent of name servers."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _invalid_address(text: str) -> InvalidInput:
    return InvalidInput(f"{text!r} is not the address of a server ({_EXAMPLE})")


_MOST = 64 << 20
"""
Most bytes of an answer: a page of a hundred placements, each with the largest body that a daemon accepts, is smaller.
"""
_LASTING = ("BranchLost",)
"""Reasons of an answer of a busy daemon that no later try changes."""
_WARNING = re.compile(r'299 \S{1,100} "([^"\\]{1,8000})"')
"""A warning as Kubernetes' API server gives it."""
_BUSY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace(Backoff):
    """Retries of a call, with a back-off in seconds that about doubles each time."""

    tries: int = 4  # including the first one
    first_backoff: float = 0.25
    longest_backoff: float = 20


class _RetryableError(Exception):
    """A failed try that may be repeated after `wait` seconds."""

    def __init__(self, why: str, *, wait: float = 0) -> None:
        super().__init__(why)
        self.wait = wait


class Transport:
    """Sends calls to one daemon over a kept connection.

    A daemon on this machine is called without a proxy. A file of authorities applies to https alone.
    """

    def __init__(self, server: str, *, token: str, ca_file: Path | None, timeout: timedelta, pace: Pace) -> None:
        self._base = server_address(server)
        self._pace = pace
        self._nameless = not token
        self.warning = ""
        """What the daemon's last answer warns of; empty for nothing."""
        secure = self._base.startswith("https:")
        self._http = HttpClient(
            timeout=timeout.total_seconds(),
            headers=_headers(token),
            authorities=ca_file if secure else None,
            authorities_from="OVERSPILL_SERVER_CA_FILE",
            proxies=secure,
        )

    def close(self) -> None:
        """Close the connection, for good."""
        self._http.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | Sequence[str]] | None = None,
        body: object = None,
        key: str = "",
        safe: bool = False,
    ) -> Mapping[str, Any]:
        """Call, and return the answer's envelope.

        Reads are tried again, and so are writes with a `key`, by which the
        daemon recognises a second try, and calls that are `safe` to repeat, whatever their method. Raises Refused when
        the daemon refuses, Transient when it gives no answer or is busy for longer than the pace has patience, and
        InvalidInput when the address is wrong.
        """
        headers = {"Idempotency-Key": key} if key else {}
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        tries = self._pace.tries if method == "GET" or key or safe else 1
        for failures in range(1, tries + 1):
            try:
                answer = self._try(method, path, params, headers, content)
                return self._envelope(f"{method} {self._base}{path}", answer)
            except Refused as error:
                error.unheard = failures > 1
                raise
            except _RetryableError as error:
                pause = max(error.wait, self._pace.backoff(failures))
                if failures == tries or pause > self._pace.longest_backoff:
                    raise Transient(f"{self._base}: {error}{_later(error.wait)}") from error
            time.sleep(pause)
        raise AssertionError("a pace has at least one try")

    def text(self, path: str) -> str:
        """Get an answer that is plain text, once. Raises as `ask` does."""
        try:
            answer = self._try("GET", path, None, {"Accept": "text/plain"}, None)
            if answer.status == HTTPStatus.OK and answer.complete:
                return answer.body.decode(errors="replace")
            self._envelope(f"GET {self._base}{path}", answer)
        except _RetryableError as error:
            raise Transient(f"{self._base}: {error}") from error
        raise InvalidInput(f"GET {self._base}{path} is not answered as Overspill does (is this its address?)")

    def _try(
        self,
        method: str,
        path: str,
        params: Mapping[str, str | Sequence[str]] | None,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> HttpAnswer:
        try:
            return self._http.send(method, self._base + path, params=params, headers=headers, body=body, limit=_MOST)
        except UntrustedCertificate as error:  # only the user can mend it
            raise InvalidInput(f"{self._base}: {error}") from error
        except NoAnswer as error:
            raise _RetryableError(str(error)) from error

    def _envelope(self, request: str, answer: HttpAnswer) -> Mapping[str, Any]:
        """Return the envelope of a good answer; raises the error of any other."""
        status = answer.status
        warned = _WARNING.fullmatch(answer.headers.get("warning", ""))
        self.warning = warned[1] if warned else ""
        if not answer.complete:
            raise InvalidInput(f"{self._base} answers with more than {_MOST >> 20} MiB (is it Overspill?)")
        if status // 100 == 2:  # noqa: PLR2004 - the class of success
            envelope = json_object_in(answer.body)
            if "statusCode" not in envelope:
                raise InvalidInput(f"{request} is not answered as Overspill does (is this its address?)")
            return envelope
        if status // 100 == 3:  # noqa: PLR2004 - the class of redirects
            location = answer.headers.get("location", "")[:200]
            raise InvalidInput(f"{request} leads to {location}, which is not followed (try --server with that address)")
        nameless = status == HTTPStatus.UNAUTHORIZED and self._nameless
        refused = refusal(status, answer.body, asked=request, nameless=nameless)
        passes = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _BUSY
        if refused.reason in _LASTING:
            self.warning = ""  # it is the same loss, and the error says so
        elif passes:
            raise _RetryableError(f"it answers {status}: {refused}", wait=answer.retry_after.total_seconds())
        raise refused


def _headers(token: str) -> dict[str, str]:
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise InvalidInput("OVERSPILL_TOKEN holds what cannot stand in a header (try the token and nothing else)")
    return {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})


def _later(wait: float) -> str:
    return f" (it asks to be left alone for {format_duration(timedelta(seconds=wait))})" if wait else ""
