"""HTTP requests to Prometheus, OpenID Connect issuers, webhooks of engines and daemons.

Proxies are those of HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY. Certificates are checked against a named file,
else SSL_CERT_FILE or the system's authorities. Redirects are not followed: a token is for one address alone. Cookies
are not kept. An answer is bounded in bytes, and the whole exchange in time (`http_exchange`); JSON is parsed within
bounds as well.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpcore2
import httpx2

from reconciler import __version__
from reconciler.errors import InvalidInput, Transient
from reconciler.http_exchange import BoundedTransport, Exchange, Overlong, RefusedAddress
from reconciler.model.bounds import HTTP_ANSWER_DEPTH, HTTP_ANSWER_SIZE, HTTP_ANSWER_VALUES, JsonBounds
from reconciler.text.findings import shortened
from reconciler.text.json_input import UnreadableJson, parse_json

_KEPT = 120.0
"""Seconds that an idle connection is kept: several rounds of Prometheus queries."""
_MOST_WORDS = 200
_MOST_REASON = 60
_LONGEST_WAIT = timedelta(days=1)
_SECONDS, _EPOCH = re.compile(r"[0-9]{1,9}"), re.compile(r"[0-9]{1,11}")
ANSWER = JsonBounds(size=HTTP_ANSWER_SIZE, values=HTTP_ANSWER_VALUES, depth=HTTP_ANSWER_DEPTH)
"""The bounds of any answer in JSON."""


class NoAnswer(Transient):
    """A server gave no answer; the text says why in a line without the address, the same at each try."""


class ConnectionLost(NoAnswer):
    """The server closed the connection before it answered, as servers do with idle ones."""


class UntrustedCertificate(NoAnswer):
    """No trusted authority has signed the server's certificate."""


def json_in(body: bytes) -> Any:
    """Return the JSON value of a body; None where it has none within bounds, such as a proxy's page."""
    try:
        return parse_json(body, ANSWER)
    except UnreadableJson:
        return None


def json_object_in(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object of a body; an empty one where it has none."""
    value = json_in(body)
    return value if isinstance(value, Mapping) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """The answer to one request, as far as it was read."""

    status: int
    reason: str
    """At most 60 printable characters of the server's own words."""
    headers: Mapping[str, str]  # names in any case
    body: bytes = field(repr=False)
    complete: bool  # false for a body that was cut at the limit

    @property
    def json(self) -> Any:
        """The JSON value of the body; None where it has none, or not all of it was read."""
        return json_in(self.body) if self.complete else None

    @property
    def retry_after(self) -> timedelta:
        """The time that the server asks to be left alone, a day at most; zero where it asks for none.

        Retry-After has seconds or a date, which counts from the server's own; GitHub's and GitLab's limits may have
        the end of their window alone, in seconds since 1970 (docs.github.com/rest/using-the-rest-api).
        """
        asked, now = self.headers.get("retry-after", ""), _moment(self.headers.get("date", ""))
        if _SECONDS.fullmatch(asked):
            wait = timedelta(seconds=int(asked))
        elif end := _moment(asked) or (_window_end(self.headers) if self._limits_rate else None):
            wait = end - now if now else timedelta()
        else:
            wait = timedelta()
        return min(max(wait, timedelta()), _LONGEST_WAIT)

    @property
    def asks_for_quiet(self) -> bool:
        """Whether a call was refused for its rate, or the server asks to be left alone."""
        busy = self.status in (HTTPStatus.FORBIDDEN, HTTPStatus.SERVICE_UNAVAILABLE)
        return self._limits_rate or (busy and "retry-after" in self.headers)

    @property
    def _limits_rate(self) -> bool:
        """Whether it refuses a call for its rate; GitHub answers 403 as well."""
        spent = self.status == HTTPStatus.FORBIDDEN and self.headers.get("x-ratelimit-remaining") == "0"
        return spent or self.status == HTTPStatus.TOO_MANY_REQUESTS


def _moment(text: str) -> datetime | None:
    """Return the moment of a date in a header; None for anything else."""
    try:
        moment = parsedate_to_datetime(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _window_end(headers: Mapping[str, str]) -> datetime | None:
    end = headers.get("x-ratelimit-reset") or headers.get("ratelimit-reset", "")
    return datetime.fromtimestamp(int(end), UTC) if _EPOCH.fullmatch(end) else None


class HttpClient:
    """Sends requests over connections that are kept. Safe to use from several threads."""

    def __init__(
        self,
        *,
        timeout: float,
        headers: Mapping[str, str] | None = None,
        authorities: Path | None = None,
        authorities_from: str = "SSL_CERT_FILE",
        proxies: bool = True,
    ) -> None:
        """Take a time-out in seconds and the headers of every request.

        `authorities` is a PEM file and `authorities_from` the setting that names it. Raises InvalidInput for a file
        without certificates and for a proxy that cannot be used.
        """
        self._timeout = timeout
        self._authorities_from = authorities_from
        context = _tls(authorities, authorities_from)
        try:
            self._transport = BoundedTransport(context, proxies=proxies, kept=_KEPT)
            self._client = httpx2.Client(
                # Identity: bytes are counted on arrival, and a compressed body could expand a thousandfold.
                headers={"Accept-Encoding": "identity", "User-Agent": f"overspill/{__version__}", **(headers or {})},
                # A jar keeps whatever is set for as long as it lives, and sends all of it.
                cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=())),
                transport=self._transport,
                trust_env=False,
                follow_redirects=False,
            )
        except (ValueError, httpx2.InvalidURL) as error:
            message = f"HTTPS_PROXY, HTTP_PROXY or ALL_PROXY: {_first_line(error)}"
            raise InvalidInput(f"{message} (try the http:// or https:// address of a proxy)") from error

    def __enter__(self) -> Self:
        """Return the client, to be closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close all connections, for good."""
        self._client.close()

    def send(
        self,
        method: str,
        url: str,
        *,
        limit: int,
        params: Mapping[str, str | Sequence[str]] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
        refuse: Callable[[str, bool], str] | None = None,
    ) -> HttpAnswer:
        """Send one request, and read at most `limit` bytes of its answer.

        `timeout` is in seconds, for the whole exchange. `refuse` says why nothing may be sent to the IP address that a
        name has led to, before anything connects to it, and is told whether it is one of this machine's own; it is
        empty where it may, and is not asked about proxies. Raises NoAnswer.
        """
        patience = self._timeout if timeout is None else timeout
        exchange = Exchange(deadline=time.monotonic() + patience, refuse=refuse)
        try:
            request = self._client.build_request(
                method, url, params=params, headers=headers, content=body, timeout=patience
            )
            exchange.host = request.url.raw_host.decode("ascii")
            request.extensions["trace"] = exchange.follow
            with self._transport.within(exchange):
                response = self._client.send(request, stream=True)
                try:
                    content = b"".join(_read_bounded(response, limit, exchange))
                finally:
                    response.close()
        except (
            *(httpx2.HTTPError, httpx2.InvalidURL, httpcore2.NetworkError, httpcore2.TimeoutException),
            *(httpcore2.ProtocolError, httpcore2.ProxyError, httpcore2.UnsupportedProtocol),
            *(Overlong, RefusedAddress, OSError, ValueError),
        ) as error:
            raise _no_answer(error, self._authorities_from) from error
        return HttpAnswer(
            status=response.status_code,
            reason=shortened(response.reason_phrase, _MOST_REASON),
            headers=response.headers,
            body=content[:limit],
            complete=len(content) <= limit,
        )


def _tls(authorities: Path | None, setting: str) -> ssl.SSLContext:
    """Load the authorities. Raises InvalidInput."""
    try:
        return httpx2.create_ssl_context() if authorities is None else ssl.create_default_context(cafile=authorities)
    except OSError as error:
        problem = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise InvalidInput(
            f"reading {authorities or 'SSL_CERT_FILE'}: {problem} (try {setting} with the PEM file of an authority)"
        ) from error


def _read_bounded(response: httpx2.Response, limit: int, exchange: Exchange) -> Iterator[bytes]:
    """Read a body up to `limit`."""
    size = 0
    for part in response.iter_raw() if limit else ():
        yield part
        size += len(part)
        if size > limit:
            return
        exchange.took(len(part))


def _no_answer(error: Exception, authorities_from: str) -> NoAnswer:
    """Return the reason of a missing answer, from the causes that httpx wraps."""
    if isinstance(error, httpcore2.ProxyError):
        return NoAnswer(f"the proxy does not let us through: {_first_line(error)}")
    if isinstance(error, httpcore2.ReadError | httpcore2.WriteError | httpcore2.RemoteProtocolError):
        return ConnectionLost(_first_line(error))
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            reason = cause.verify_message.rstrip(".")
            return UntrustedCertificate(
                f"its certificate is not trusted: {reason} ({authorities_from} may name its authority)"
            )
        if isinstance(cause, TimeoutError | httpcore2.TimeoutException):
            return NoAnswer("it does not answer in time")
        if isinstance(cause, OSError) and cause.strerror:
            return NoAnswer(_lower_first(cause.strerror))
    return NoAnswer(_first_line(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return _lower_first(lines[0] if lines else type(error).__name__)


def _lower_first(text: str) -> str:
    return shortened(text[:1].lower() + text[1:], _MOST_WORDS)
