"""One session with an API server for a command: its questions have one limit together, and then it ends.

Whatever the server is and sends, the command gets an answer or a Transient.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from reconciler.adapters.kube.answers import Expired
from reconciler.adapters.kube.login import KubeconfigLogin
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.adapters.kube.view import NamingLoop
from reconciler.errors import Transient
from reconciler.model.policy import Connection
from reconciler.model.workload import Json

T = TypeVar("T")

PATIENCE = 20.0
"""Seconds for all answers of an API server, its login plugin included."""
_PAGE = 500
"""Objects of a page, as kubectl has it."""


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run the sessions of a command to their end."""
    with asyncio.Runner(loop_factory=NamingLoop) as runner:
        return runner.run(coroutine)


async def ask(
    kubeconfig: Path, connection: Connection, call: Callable[[ApiServer], Coroutine[Any, Any, T]], patience: float
) -> T:
    """Log in to an API server, and ask it. Raises Transient where no answer comes of it in time."""
    server = ApiServer(KubeconfigLogin(connection, kubeconfig), WatchTiming(), moved=lambda: None)
    try:
        async with asyncio.timeout(patience):
            return await call(server)
    except TimeoutError as error:
        raise Transient(f"gave no answer in {patience:g} s") from error
    except Transient as error:
        if isinstance(error.__cause__, TimeoutError):  # the limit of one question, which is as long, came first
            raise Transient(f"gave no answer in {patience:g} s") from error
        raise
    except Expired as error:
        raise Transient("changed too much while it was read (try again)") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Transient("sent what no API server sends (is it one?)") from error
    finally:
        await server.close()


async def list_objects(
    server: ApiServer, path: str, query: Mapping[str, object], patience: float, *, metadata_only: bool = False
) -> AsyncGenerator[Json, None]:
    """Yield all objects of a list, page by page; with `metadata_only` without their values."""
    token = ""
    while True:
        asked = {**query, "limit": _PAGE, **({"continue": token} if token else {})}
        page = await server.get(path, asked, within=patience, metadata_only=metadata_only)
        for item in page["items"]:
            yield item
        token = page["metadata"].get("continue") or ""
        if not token:
            return
