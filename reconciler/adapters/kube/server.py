"""An API server: its session, and its answers as JSON."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from kubernetes.aio.client import ApiClient

from reconciler.adapters.kube.answers import EVENT, PAGE, Moved, Silent, Unauthorized, body, check, event_lines, parsed
from reconciler.adapters.kube.input_budget import InputBudget
from reconciler.adapters.kube.login import Login, error_line
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.core.readiness.question import ApiQuestion
from reconciler.errors import Transient
from reconciler.model.outward_call import OutwardCall, Peer
from reconciler.model.workload import Json
from reconciler.ports import MeasureCall, unmeasured_call
from reconciler.text.json_input import UnreadableJson, parse_json

_JSON = "application/json"
_METADATA = f"{_JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""What is accepted of an object whose values are nobody's business, as a Secret's."""
_METADATA_LIST = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """How a path is asked: the usual call reads JSON."""

    method: str = "GET"
    body: Json = None
    accept: str = _JSON
    content: str = _JSON


_READ = _Call()


@dataclass(slots=True)
class _Session:
    """A session of one login; closed once a newer one has replaced it and no request is open."""

    client: ApiClient
    stamp: object
    requests: int = 0
    since: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """A login that failed: how often in a row, and the loop time before which it is not tried again."""

    stamp: object
    error: Transient
    times: int
    until: float


class ApiServer:
    """Answers of one API server as raw JSON.

    The connection is opened at the first request, and anew when the login has changed or the server no longer accepts
    the credentials; open requests finish on the old one. A failed login is retried only after a back-off or when it has
    changed, since it may have to run a plugin. All methods raise Transient, a subclass of it, or Expired, and nothing
    else on purpose.

    `measure` measures each request until its answer begins; `target` is what it calls the server. `budget` is shared
    with the other servers of an event loop.

    The server stays the same. When the login leads to another server, `moved` is called once, and no request is sent
    any more.
    """

    def __init__(
        self,
        login: Login,
        pace: WatchTiming,
        moved: Callable[[], None],
        *,
        measure: MeasureCall = unmeasured_call,
        target: str = "",
        budget: InputBudget | None = None,
    ) -> None:
        self._measure, self._target = measure, target
        self._budget = budget or InputBudget()
        self.work = self._budget.work_credit()
        self.received = 0
        """Bytes of answers and events so far."""
        self._login = login
        self._pace = pace
        self._moved = moved
        self._identity: object = None
        self._left = False
        self._session: _Session | None = None
        self._refusal: _Refusal | None = None
        self._opening = asyncio.Lock()

    async def get(self, path: str, query: Mapping[str, object], *, within: float, metadata_only: bool = False) -> Json:
        """Get one document; `within` is the limit in seconds of the whole answer.

        With `metadata_only` it is a list, whose items come without their values.
        """
        timeout = aiohttp.ClientTimeout(total=within, connect=self._pace.connect)
        call = _Call(accept=_METADATA_LIST) if metadata_only else _READ
        async with self._answer(path, query, timeout, call) as response:
            return await self._document(response)

    async def ask(self, question: ApiQuestion, *, within: float) -> tuple[Json, datetime | None]:
        """Get the answer to one question, and the time at which the server gave it, by its own clock."""
        timeout = aiohttp.ClientTimeout(total=within, connect=self._pace.connect)
        call = _Call(accept=_METADATA) if question.metadata_only else _READ
        if question.body:
            call = _Call(method="POST", body=parse_json(question.body.encode(), PAGE))
        async with self._answer(question.path, dict(question.query), timeout, call) as response:
            date = response.headers.get("Date", "")
            try:
                moment = parsedate_to_datetime(date) if date else None
            except ValueError:
                moment = None
            return await self._document(response), moment if moment is None or moment.tzinfo else None

    async def apply(
        self, path: str, manifest: Json, *, manager: str, force: bool, dry_run: bool, within: float
    ) -> Json:
        """Apply an object by server-side apply, and return what it is then; a dry run stores nothing.

        Raises Conflicts where fields belong to other managers; with `force` they are taken over.
        """
        timeout = aiohttp.ClientTimeout(total=within, connect=self._pace.connect)
        query = {"fieldManager": manager, "force": str(force).lower(), **({"dryRun": "All"} if dry_run else {})}
        call = _Call(method="PATCH", body=manifest, content="application/apply-patch+yaml")
        async with self._answer(path, query, timeout, call) as response:
            return await self._document(response)

    async def post(self, path: str, document: Json, *, within: float) -> Json:
        """Post a document, and return the answer."""
        timeout = aiohttp.ClientTimeout(total=within, connect=self._pace.connect)
        async with self._answer(path, {}, timeout, _Call(method="POST", body=document)) as response:
            return await self._document(response)

    async def watch(self, path: str, query: Mapping[str, object]) -> AsyncGenerator[Json, None]:
        """Open a watch and yield its events, after a first None once it is open.

        It ends when the server ends it. Raises Transient when the connection breaks, Silent when no event comes in
        time.
        """
        timeout = aiohttp.ClientTimeout(total=None, connect=self._pace.connect, sock_read=self._pace.silence)
        async with self._answer(path, query, timeout) as response:
            yield None
            with self._budget.answer() as answer:
                async for chunk in _raise_silent(response.content.iter_any()):
                    self.received += len(chunk)
                    for line in event_lines(self._budget, answer, chunk):
                        with self.work.working():
                            event = parsed(line, EVENT)
                        yield event
                    await self.work.wait()

    async def _document(self, response: aiohttp.ClientResponse) -> Json:
        content = await body(response, self._budget)
        self.received += len(content)
        with self.work.working():
            return parsed(content, PAGE)

    def trouble(self) -> str:
        """Say why the login cannot work, where that is known without trying."""
        return self._login.trouble()

    async def renewed(self) -> bool:
        """Return whether the login has changed, or no session is open."""
        return self._session is None or self._session.stamp != await self._login.stamp()

    async def close(self) -> None:
        """Close the connection; no request may follow."""
        if self._session is not None:
            await self._drop(self._session)

    async def _request(
        self,
        session: _Session,
        path: str,
        query: Mapping[str, object],
        times: aiohttp.ClientTimeout,
        call: _Call,
    ) -> aiohttp.ClientResponse:
        accepted = {"Accept": call.accept, "Content-Type": call.content}
        with _logging_in():  # a token may be fetched anew
            method, url, headers, *_ = await session.client.param_serialize(
                call.method, path, None, list(query.items()), accepted, auth_settings=["BearerToken"]
            )
        with self._measure(OutwardCall(peer=Peer.KUBERNETES, verb=_verb(call, query), target=self._target)) as note:
            answer = await session.client.call_api(method, url, headers, body=call.body, _request_timeout=times)
            response: aiohttp.ClientResponse = answer.response
            note(str(response.status))
        return response

    @asynccontextmanager
    async def _answer(
        self,
        path: str,
        query: Mapping[str, object],
        times: aiohttp.ClientTimeout,
        call: _Call = _READ,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request, and yield a good answer. Errors while it is read are translated here as well."""
        session = await self._latest()
        session.requests += 1
        try:
            # A watch has no total: its head, and the body of a refusal, must not be dripped for ever.
            head = times.total or self._pace.connect + self._pace.silence
            async with asyncio.timeout(head):
                answer = await self._request(session, path, query, times, call)
            async with answer as response:
                try:
                    async with asyncio.timeout(head):
                        await check(response, self._budget)
                    yield response
                finally:
                    _hang_up(response)
        except Unauthorized as refused:
            error = Unauthorized(f"{refused} ({self._login.remedy()})")
            if session is self._session:  # unless a newer one has replaced it
                self._session = None
                if time.monotonic() - session.since < self._pace.longest_backoff:
                    self._back_off(session.stamp, error)  # credentials that worked have expired: renew them at once
            raise error from refused
        except TimeoutError as error:
            raise Transient("did not answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Transient(f"cannot be reached: {error_line(error)}") from error
        except UnreadableJson as error:
            raise Transient(f"sent what {error}") from error
        except ValueError as error:
            raise Transient("sent what is no answer of an API server") from error
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
                    self._back_off(stamp, error)
                    raise
            return self._session

    def _back_off(self, stamp: object, error: Transient) -> None:
        """Block further tries of a login for a back-off, longer each time."""
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
        """Check that the server is still the same: a resourceVersion means something else on another."""
        if self._identity is None:
            self._identity = identity
        if identity == self._identity:
            return
        if not self._left:
            self._left = True
            self._moved()
        raise Moved("is another server now")

    async def _drop(self, session: _Session) -> None:
        """Replace a session; close it if no request is open."""
        self._session = None
        if not session.requests:
            await session.client.close()


@contextmanager
def _logging_in() -> Iterator[None]:
    """Turn every error of a login into Transient, since the client and plugins raise anything.

    Its message is left out: it may hold secrets.
    """
    try:
        yield
    except Transient:
        raise
    except Exception as error:
        cause = error.strerror if isinstance(error, OSError) else None
        raise Transient(f"cannot be logged in to: {cause or type(error).__name__}") from error


async def _raise_silent(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Raise Silent for a watch without data, as opposed to the Transient of a failed connection."""
    try:
        async for chunk in chunks:
            yield chunk
    except TimeoutError as error:
        raise Silent("says nothing") from error


def _verb(call: _Call, query: Mapping[str, object]) -> str:
    """Return the verb of a request, as Kubernetes' own audit log has it."""
    if call.method != "GET":
        return {"POST": "create", "PATCH": "patch"}[call.method]
    return "watch" if "watch" in query else "list" if "limit" in query else "get"


def _identity(configuration: Any) -> object:
    """Return the identity of a server: address, TLS server name and certificate authority."""
    authority = configuration.ca_cert_data or configuration.ssl_ca_cert
    if authority and not configuration.ca_cert_data:
        authority = Path(authority).read_bytes()
    return configuration.host, configuration.tls_server_name, authority


def _refuse_redirects() -> aiohttp.TraceConfig:
    """Refuse redirects: API servers send none, and one could lead to an address that only this pod can reach."""
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
    """Abort a connection with unread data; TLS would wait for the server's close otherwise."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
