"""One API server: how it is reached, and its answers as JSON."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from kubernetes.aio.client import ApiClient

from reconciler.adapters.kube.answers import Moved, Silent, Unauthorized, body, check
from reconciler.adapters.kube.login import Login, error_line
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.errors import Transient
from reconciler.model.workload import Json

_LONGEST_EVENT = 16 << 20
"""Bytes of one event; etcd holds no object a tenth as large."""


@dataclass(slots=True)
class _Session:
    """One login, and how many requests are under way over it; closed once it is not the latest and has none."""

    client: ApiClient
    stamp: object
    requests: int = 0
    since: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """A login that led nowhere: so many times in a row, and not to be tried again before a moment of the loop."""

    stamp: object
    error: Transient
    times: int
    until: float


class ApiServer:
    """Answers of one API server as raw JSON.

    The connection is made at the first question, and made anew when the login has changed or the server takes the
    credentials no longer; what is under way over the old one goes on. A login that led nowhere is tried again, by all
    who ask, only after a while or when it has changed: logging in may take a program of its own. All methods raise
    Transient, a kind of it, or Expired, and nothing else on purpose.

    It is one and the same server for ever. When the login leads to another one, `moved` is called, once, and nothing is
    asked any more.
    """

    def __init__(self, login: Login, pace: WatchTiming, moved: Callable[[], None]) -> None:
        self._login = login
        self._pace = pace
        self._moved = moved
        self._identity: object = None
        self._left = False
        self._session: _Session | None = None
        self._refusal: _Refusal | None = None
        self._opening = asyncio.Lock()

    async def get(self, path: str, query: Mapping[str, object], *, within: float) -> Json:
        """Ask for one document; `within` is the time that the whole answer may take."""
        timeout = aiohttp.ClientTimeout(total=within, connect=self._pace.connect)
        async with self._answer(path, query, timeout) as response:
            return json.loads(await body(response))

    async def watch(self, path: str, query: Mapping[str, object]) -> AsyncGenerator[Json, None]:
        """Ask for a watch and yield its events as they come, after a first None that says it stands.

        It ends when the server ends it, and raises Transient when it breaks off, or Silent when it says nothing for too
        long.
        """
        timeout = aiohttp.ClientTimeout(total=None, connect=self._pace.connect, sock_read=self._pace.silence)
        rest = b""
        async with self._answer(path, query, timeout) as response:
            yield None
            async for chunk in _raise_silent(response.content.iter_any()):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield json.loads(line)
                if len(rest) > _LONGEST_EVENT:
                    raise Transient("sent an event of over 16 MiB")

    def trouble(self) -> str:
        """Say why there is no way in, where that is known without trying."""
        return self._login.trouble()

    async def renewed(self) -> bool:
        """Tell whether there is another login than the one in use, or none in use at all."""
        return self._session is None or self._session.stamp != await self._login.stamp()

    async def close(self) -> None:
        """Close the connection, when nothing is asked any more."""
        if self._session is not None:
            await self._drop(self._session)

    async def _request(
        self, session: _Session, path: str, query: Mapping[str, object], times: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        with _logging_in():  # a token may be fetched anew
            method, url, headers, *_ = await session.client.param_serialize(
                "GET", path, None, list(query.items()), {"Accept": "application/json"}, auth_settings=["BearerToken"]
            )
        answer = await session.client.call_api(method, url, headers, _request_timeout=times)
        response: aiohttp.ClientResponse = answer.response
        return response

    @asynccontextmanager
    async def _answer(
        self, path: str, query: Mapping[str, object], times: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Ask, and yield an answer that is no error. What goes wrong while it is read is told apart here as well."""
        session = await self._latest()
        session.requests += 1
        try:
            async with await self._request(session, path, query, times) as response:
                try:
                    await check(response)
                    yield response
                finally:
                    _hang_up(response)
        except Unauthorized as refused:
            error = Unauthorized(f"{refused} ({self._login.remedy()})")
            if session is self._session:  # and not a later one already
                self._session = None
                if time.monotonic() - session.since < self._pace.longest_backoff:
                    self._refused(session.stamp, error)  # what was good for long has expired, and is renewed at once
            raise error from refused
        except TimeoutError as error:
            raise Transient("did not answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Transient(f"cannot be reached: {error_line(error)}") from error
        except ValueError as error:  # JSON that was cut off
            raise Transient("sent what is not JSON") from error
        finally:
            session.requests -= 1
            if session is not self._session and not session.requests:
                await session.client.close()

    async def _latest(self) -> _Session:
        async with self._opening:
            with _logging_in():
                stamp = await self._login.stamp()
            if self._session is not None and self._session.stamp != stamp:
                await self._drop(self._session)
            if self._session is None:
                refusal = self._refusal
                if refusal is not None and refusal.stamp == stamp and time.monotonic() < refusal.until:
                    raise type(refusal.error)(str(refusal.error))
                try:
                    self._session = await self._open(stamp)
                except Transient as error:
                    self._refused(stamp, error)
                    raise
            return self._session

    def _refused(self, stamp: object, error: Transient) -> None:
        """Let nobody try a login again for a while, longer each time."""
        last = self._refusal
        young = last is not None and last.stamp == stamp and time.monotonic() < last.until + self._pace.longest_backoff
        times = last.times + 1 if last is not None and young else 1
        until = time.monotonic() + self._pace.backoff(times)
        self._refusal = _Refusal(stamp=stamp, error=error, times=times, until=until)

    async def _open(self, stamp: object) -> _Session:
        with _logging_in():
            async with self._login.configuration() as configuration:
                try:
                    self._recognize(_identity(configuration))
                    configuration.trace_configs = [_refuse_redirects()]
                    return _Session(ApiClient(configuration), stamp)
                except (OSError, ValueError) as error:  # a certificate that is none
                    raise Transient(f"cannot be connected to: {error_line(error)}") from error

    def _recognize(self, identity: object) -> None:
        """Make sure that it is the server that it was: versions of one mean something else at another."""
        if self._identity is None:
            self._identity = identity
        if identity == self._identity:
            return
        if not self._left:
            self._left = True
            self._moved()
        raise Moved("is another server now")

    async def _drop(self, session: _Session) -> None:
        """Use a login no longer."""
        self._session = None
        if not session.requests:
            await session.client.close()


@contextmanager
def _logging_in() -> Iterator[None]:
    """Make a Transient of all that goes wrong: logging in runs code of others, which raises what it likes.

    What it says may be secret.
    """
    try:
        yield
    except Transient:
        raise
    except Exception as error:
        cause = error.strerror if isinstance(error, OSError) else None
        raise Transient(f"cannot be logged in to: {cause or type(error).__name__}") from error


async def _raise_silent(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Tell the silence of a watch from a connection that does not come about."""
    try:
        async for chunk in chunks:
            yield chunk
    except TimeoutError as error:
        raise Silent("says nothing") from error


def _identity(configuration: Any) -> object:
    """Tell one server from another: by its address, the name that it goes by there, and who vouches for it."""
    authority = configuration.ca_cert_data or configuration.ssl_ca_cert
    if authority and not configuration.ca_cert_data:
        authority = Path(authority).read_bytes()
    return configuration.host, configuration.tls_server_name, authority


def _refuse_redirects() -> aiohttp.TraceConfig:
    """Follow no redirect: no API server sends any, and it could lead to what only we can reach."""
    tracing = aiohttp.TraceConfig()
    tracing.on_request_redirect.append(_refuse)
    return tracing


async def _refuse(_session: object, _context: object, asked: aiohttp.TraceRequestRedirectParams) -> None:
    asked.response.close()
    try:
        target = urlsplit(urljoin(str(asked.url), asked.response.headers.get("Location", "")))
        location = f"{target.scheme}://{target.netloc.rpartition('@')[2]}{target.path}"[:300]
    except ValueError:
        location = "an address that is none"
    raise Transient(f"redirects to {location}")


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """Break a connection off on which more would come; TLS would go on until the server has agreed to its end."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
