"""Names of servers, looked up so that none waits for another."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import Future
from threading import Thread
from typing import Any


class NamingLoop(asyncio.SelectorEventLoop):
    """An event loop that gives each look-up of a name a thread of its own.

    asyncio has a few threads for all, and a name server that does not answer keeps each that asks it for many seconds:
    the names of some clusters would be in the way of all others. A connector asks for a name once at a time, so there
    are no more threads than servers. The end of the process waits for none of them.
    """

    async def getaddrinfo(self, host: Any, port: Any, **kind: Any) -> Any:
        """Look a name up as `socket.getaddrinfo` does."""
        answer: Future[Any] = Future()
        answer.set_running_or_notify_cancel()  # who asks may give up, the look-up itself cannot

        def look_up() -> None:
            try:
                answer.set_result(socket.getaddrinfo(host, port, **kind))
            except Exception as error:  # noqa: BLE001 - whoever asks gets it
                answer.set_exception(error)

        Thread(target=look_up, name=f"name {host}", daemon=True).start()
        return await asyncio.wrap_future(answer, loop=self)
