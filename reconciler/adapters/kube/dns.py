"""Look-ups of server names that do not wait for each other."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import Future
from threading import Thread
from typing import Any


class NamingLoop(asyncio.SelectorEventLoop):
    """An event loop with a thread for each look-up of a name.

    asyncio shares a few threads, and a name server that does not answer blocks each for many seconds: the names of some
    clusters would block all others. A connector looks a name up once at a time, so there are at most as many threads
    as servers. The end of the process waits for none of them.
    """

    async def getaddrinfo(self, host: Any, port: Any, **kind: Any) -> Any:
        """Resolve a name as `socket.getaddrinfo` does."""
        answer: Future[Any] = Future()
        answer.set_running_or_notify_cancel()  # the caller can be cancelled, the look-up cannot

        def look_up() -> None:
            try:
                answer.set_result(socket.getaddrinfo(host, port, **kind))
            except Exception as error:  # noqa: BLE001 - the caller gets it
                answer.set_exception(error)

        Thread(target=look_up, name=f"name {host}", daemon=True).start()
        return await asyncio.wrap_future(answer, loop=self)
