"""One API server: how it is reached, and its answers as JSON, with errors told apart by what they ask of us."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import load_incluster_config, load_kube_config
from kubernetes.aio.config.config_exception import ConfigException
from yaml import YAMLError

from reconciler.adapters.kube.pace import Pace
from reconciler.errors import Transient
from reconciler.model.policy import Connection
from reconciler.model.workload import Json

_GONE, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 410, 401, 403, 404
_LOGIN = 30
"""Seconds that a login plugin of the kubeconfig may take."""
_LONGEST_EVENT = 16 << 20
"""Bytes of one event; etcd holds no object a tenth as large."""


class Expired(Exception):  # noqa: N818 - it names what happened, as the API server does
    """The version to go on from is no longer known: list anew."""


class Unauthorized(Transient):
    """The credentials are not, or no longer, good: read them anew."""


class Forbidden(Transient):
    """Our rights do not reach this far."""


class NotServed(Transient):
    """There is nothing at that path: the server does not know the group, the version or the resource."""


@dataclass(slots=True)
class _Session:
    """One login, and how many questions are under way over it; closed once it is not the latest and has none."""

    client: ApiClient
    stamp: tuple[int, ...]
    questions: int = 0


class ApiServer:
    """Answers of one API server as raw JSON.

    The connection is made at the first question, and made anew when the kubeconfig has changed or the server takes the
    credentials no longer; what is under way over the old one goes on. All methods raise Transient, a kind of it,
    or Expired, and nothing else on purpose.
    """

    def __init__(self, connection: Connection, kubeconfig: Path | None, pace: Pace) -> None:
        self._connection = connection
        self._kubeconfig = kubeconfig
        self._pace = pace
        self._session: _Session | None = None
        self._opening = asyncio.Lock()

    async def get(self, path: str, query: Mapping[str, object], *, within: float) -> Json:
        """Ask for one document; `within` is the time that the whole answer may take."""
        timeout = aiohttp.ClientTimeout(total=within, connect=self._pace.connect)
        async with self._answer(path, query, timeout) as response:
            return json.loads(await response.read())

    async def watch(self, path: str, query: Mapping[str, object]) -> AsyncGenerator[Json, None]:
        """Ask for a watch and yield its events as they come, after a first None that says it stands.

        It ends when the server ends it, and raises Transient when it breaks off or is silent for too long.
        """
        timeout = aiohttp.ClientTimeout(total=None, connect=self._pace.connect, sock_read=self._pace.silence)
        rest = b""
        async with self._answer(path, query, timeout) as response:
            yield None
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield json.loads(line)
                if len(rest) > _LONGEST_EVENT:
                    raise Transient("sent an event of over 16 MiB")

    async def close(self) -> None:
        """Close the connection, when nothing is asked any more."""
        if self._session is not None:
            await self._drop(self._session)

    @asynccontextmanager
    async def _answer(
        self, path: str, query: Mapping[str, object], times: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Ask, and yield an answer that is no error. What goes wrong while it is read is told apart here as well."""
        session = await self._latest()
        session.questions += 1
        try:
            method, url, headers, *_ = await session.client.param_serialize(
                "GET", path, None, list(query.items()), {"Accept": "application/json"}, auth_settings=["BearerToken"]
            )
            answer = await session.client.call_api(method, url, headers, _request_timeout=times)
            async with answer.response as response:
                await _check(response)
                yield response
        except Unauthorized:
            if session is self._session:  # and not a later one already
                self._session = None
            raise
        except TimeoutError as error:
            raise Transient("did not answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Transient(f"cannot be reached: {_plain(error)}") from error
        except ValueError as error:  # JSON that was cut off
            raise Transient("sent what is not JSON") from error
        finally:
            session.questions -= 1
            if session is not self._session and not session.questions:
                await session.client.close()

    async def _latest(self) -> _Session:
        async with self._opening:
            stamp = self._stamp()
            if self._session is not None and self._session.stamp != stamp:
                await self._drop(self._session)
            if self._session is None:
                self._session = _Session(await self._open(), stamp)
            return self._session

    async def _drop(self, session: _Session) -> None:
        """Use a login no longer."""
        self._session = None
        if not session.questions:
            await session.client.close()

    def _stamp(self) -> tuple[int, ...]:
        """Tell one state of the kubeconfig from the next; one that is missing is like the one before."""
        if self._kubeconfig is None or self._connection.in_cluster:
            return ()
        try:
            stat = self._kubeconfig.stat()
        except OSError:
            return self._session.stamp if self._session is not None else ()
        return stat.st_mtime_ns, stat.st_size, stat.st_ino

    async def _open(self) -> ApiClient:
        """Read how to connect, from the kubeconfig or as the pod that we are, and log in where that asks for it."""
        configuration: Any = Configuration()
        try:
            if self._connection.in_cluster:
                load_incluster_config(client_configuration=configuration)
            else:
                async with asyncio.timeout(_LOGIN):  # wait_for of Python 3.11 can swallow a cancellation
                    await load_kube_config(
                        config_file=str(self._kubeconfig),
                        context=self._connection.context,
                        client_configuration=configuration,
                        persist_config=False,  # the file is the user's
                    )
            return ApiClient(configuration)
        except TimeoutError as error:
            raise Transient(f"cannot be logged in to: no answer in {_LOGIN} s") from error
        except (ConfigException, YAMLError, OSError, ValueError, KeyError, TypeError) as error:
            raise Transient(f"cannot be connected to: {_plain(error)}") from error


async def _check(response: aiohttp.ClientResponse) -> None:
    """Raise what an error status asks of us, in the server's words."""
    if response.status < 400:  # noqa: PLR2004 - where HTTP's errors begin
        return
    if response.status == _GONE:
        raise Expired
    if response.status == _UNAUTHORIZED:
        raise Unauthorized("does not take our credentials")
    told = _message(await response.read())
    if response.status == _FORBIDDEN:
        raise Forbidden(f"forbids it: {told} (apply bootstrap/rbac.yaml there)")
    if response.status == _NOT_FOUND:
        raise NotServed(f"answers 404: {told}")
    raise Transient(f"answers {response.status}: {told}")


def _message(body: bytes) -> str:
    """Find the message of a Status object; a proxy in between may have sent anything."""
    try:
        status = json.loads(body)
    except ValueError:
        return "no reason given"
    message = status.get("message") if isinstance(status, dict) else None
    return str(message)[:300] if message else "no reason given"


def _plain(error: BaseException) -> str:
    """Put an error on one short line."""
    return " ".join(str(error).split())[:300] or type(error).__name__
