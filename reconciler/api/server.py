"""Serves an application in a thread beside the loop."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from threading import Thread
from typing import Any

import uvicorn

from reconciler.api.security.connections import Connections
from reconciler.errors import InvalidInput, OverspillError
from reconciler.model.bounds import API_CONNECTIONS, API_HEADER_SECONDS, API_REQUESTS

_START_TIME = 10.0
_STOP_TIME = 5


class HttpServer:
    """Listens from `start` to `stop`."""

    def __init__(
        self,
        app: Any,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        patience: float = API_HEADER_SECONDS.most,
        most: int = API_CONNECTIONS.most,
    ) -> None:
        """Take an ASGI application and an address; port 0 takes a free one. With `tls` only https is served.

        `patience` is the limit in seconds of a handshake and of each request's header, `most` that of connections.
        """
        self._host, self._port = host, port
        self._patience = patience
        self._connections = Connections(patience=patience, most=most, most_requests=API_REQUESTS.most)
        config = uvicorn.Config(
            app,
            ws="none",
            log_config=None,  # `logs` configures logging
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=_STOP_TIME,
        )
        config.load()
        # Outside of uvicorn's own middleware: the bounds count real addresses, before X-Forwarded-For applies.
        config.loaded_app = self._connections.limited(config.loaded_app)
        config.ssl = tls  # uvicorn takes file names only, and reads them once
        self._server = uvicorn.Server(config)
        self._socket: socket.socket | None = None
        self._thread: Thread | None = None

    @property
    def port(self) -> int:
        """The listening port, once started."""
        return int(self._socket.getsockname()[1]) if self._socket else self._port

    def start(self) -> None:
        """Start to listen, and return once requests are answered.

        Raises InvalidInput when the address is taken or not ours.
        """
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            # Bound here: uvicorn would end the process on failure.
            self._socket = socket.create_server((self._host, self._port), family=family, backlog=128)
        except OSError as error:
            why = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
            raise InvalidInput(f"listening at {self._host}:{self._port}: {why} (try another address)") from error
        # asyncio sets TCP_NODELAY on its own sockets only; without it a short answer waits 40 ms for a late ACK.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._thread = Thread(target=self._run, args=(self._socket,), name="http", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_TIME
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise OverspillError(f"listening at {self._host}:{self._port}: the server did not start")
            time.sleep(0.01)

    def _run(self, listener: socket.socket) -> None:
        with asyncio.Runner(loop_factory=lambda: _BoundedLoop(self._connections, self._patience)) as runner:
            runner.run(self._server.serve(sockets=[listener]))

    def stop(self) -> None:
        """Finish the requests in progress, within some seconds, and stop listening. A second call does nothing."""
        if self._thread is None or self._socket is None:
            return
        self._server.should_exit = True
        self._thread.join(2 * _STOP_TIME)
        self._socket.close()
        self._thread = None


class _BoundedLoop(asyncio.SelectorEventLoop):
    """An event loop that bounds connections and the time of a handshake, for which uvicorn allows a minute."""

    def __init__(self, connections: Connections, patience: float) -> None:
        super().__init__()
        self._connections = connections
        self._patience = patience

    async def create_server(self, protocol_factory: Any, *args: Any, **kwargs: Any) -> asyncio.Server:
        """Create uvicorn's server under the bounds."""
        if kwargs.get("ssl") is not None:
            kwargs["ssl_handshake_timeout"] = self._patience
        return await super().create_server(self._connections.watched(protocol_factory), *args, **kwargs)
