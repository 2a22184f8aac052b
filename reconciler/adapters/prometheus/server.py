"""One Prometheus server, or anything that speaks its query interface: Thanos, Mimir, VictoriaMetrics."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from datetime import timedelta
from urllib.parse import urlencode, urlsplit

from reconciler.core.observe.prometheus import refusal, value
from reconciler.errors import InvalidInput, Transient
from reconciler.model.workload import Json
from reconciler.text.findings import shortened

_MOST = 1 << 20
"""Bytes of one answer; an answer of one value has a few hundred."""
_FAILURES = (OSError, http.client.HTTPException, UnicodeError)
"""What asking may raise; the last for a host that is no name at all."""
_REFUSED = (http.HTTPStatus.BAD_REQUEST, http.HTTPStatus.UNPROCESSABLE_ENTITY)
"""What Prometheus says to a query that cannot be right."""


class PrometheusServer:
    """Asks instant queries over one connection that is kept. Not safe to use from several threads.

    Redirects are not followed: the token is for this address and for no other. Certificates are checked against the
    system's authorities, or those of ``SSL_CERT_FILE``.
    """

    def __init__(self, url: str, *, token: str = "", patience: timedelta = timedelta(seconds=10)) -> None:
        parts = urlsplit(url)
        self._host = parts.netloc
        self._secure = parts.scheme == "https"
        self._path = parts.path.rstrip("/") + "/api/v1/query"
        self._patience = patience.total_seconds()
        self._headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, query: str) -> float:
        """Return the one value of a query now.

        Raises InvalidInput when the query or its answer is wrong, and Transient when nobody answers or the server does
        not let us ask.
        """
        status, reason, body = self._get(f"{self._path}?{urlencode({'query': query})}")
        answer = _json(body)
        if status == http.HTTPStatus.OK and answer is not None:
            return value(answer)
        told = refusal(answer)
        if told and (status in _REFUSED or "timeout" in told):
            raise InvalidInput(shortened(told, 300))
        raise Transient(_trouble(status, reason))

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _get(self, target: str) -> tuple[int, str, bytes]:
        """Ask once, and once more where a kept connection turns out to be gone."""
        kept = self._connection is not None
        try:
            return self._try(target)
        except (http.client.RemoteDisconnected, ConnectionError) as error:
            self.close()
            if not kept:
                raise Transient(_told(error)) from error
        except _FAILURES as error:
            self.close()
            raise Transient(_told(error)) from error
        try:
            return self._try(target)
        except _FAILURES as error:
            self.close()
            raise Transient(_told(error)) from error

    def _try(self, target: str) -> tuple[int, str, bytes]:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.request("GET", target, headers=self._headers)
        response = self._connection.getresponse()
        body = self._read(response)
        if len(body) > _MOST or response.will_close:
            self.close()
        return response.status, response.reason, body

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        """Read a body, which may take as long as a connection may be silent: one that drips would keep us for ever."""
        end = time.monotonic() + self._patience
        body = b""
        while len(body) <= _MOST and (part := response.read1(_MOST + 1)):
            body += part
            if time.monotonic() > end:
                raise TimeoutError
        return body if len(body) > _MOST else body + response.read()  # which raises what an answer cut off does

    def _connect(self) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, timeout=self._patience, context=context)
        return http.client.HTTPConnection(self._host, timeout=self._patience)


def _json(body: bytes) -> Json:
    """Read a body; None for what is no JSON, or cut off."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _told(error: Exception) -> str:
    """Say in a few words why nobody answered, the same at each try."""
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message} (try SSL_CERT_FILE)"
    said = (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__
    return shortened(said[:1].lower() + said[1:], 200)


def _trouble(status: int, reason: str) -> str:
    """Say what an answer that is none comes from."""
    said = f"it answers {status} {shortened(reason, 60)}".rstrip()
    if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
        return f"{said} (is OVERSPILL_PROMETHEUS_TOKEN right?)"
    if http.HTTPStatus.MULTIPLE_CHOICES <= status < http.HTTPStatus.BAD_REQUEST:
        return f"{said}, which is not followed (try the address that it leads to)"
    if status in (http.HTTPStatus.NOT_FOUND, http.HTTPStatus.OK):
        return f"{said}, not as Prometheus does (is the address right?)"
    return said
