"""Logging in runs code of others, and whatever that raises, the server is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
import structlog
from kubernetes.aio.client import Configuration

from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.tasks import cancel, send_heartbeats
from reconciler.errors import Transient
from reconciler.model.workload import Json
from tests.builders.watched_clusters import QUICK, Fleet

SECRET = "open-" + "sesame"


class OddDoor:
    """Lets nobody in as long as it has something else to raise."""

    def __init__(self, url: str, *, at_stamp: Exception | None = None, at_login: Exception | None = None) -> None:
        self.at_stamp, self.at_login = at_stamp, at_login
        self._url = url

    async def stamp(self) -> object:
        if self.at_stamp is not None:
            raise self.at_stamp
        return ()

    def remedy(self) -> str:
        return ""

    def trouble(self) -> str:
        return ""

    @asynccontextmanager
    async def configuration(self) -> AsyncIterator[Configuration]:
        if self.at_login is not None:
            raise self.at_login
        yield Configuration(host=self._url)


class OddServer(ApiServer):
    """Raises what nobody has thought of, three times."""

    failures = 0

    async def get(self, path: str, query: Mapping[str, object], *, within: float) -> Json:
        if self.failures < 3:
            self.failures += 1
            raise RecursionError
        return await super().get(path, query, within=within)


def server(door: OddDoor, kind: type[ApiServer] = ApiServer) -> ApiServer:
    return kind(door, QUICK, lambda: None)


@pytest.mark.parametrize("error", [KeyError(SECRET), RuntimeError(SECRET), AttributeError(SECRET)])
@pytest.mark.parametrize("where", ["at_stamp", "at_login"])
def test_whatever_a_login_raises_is_tried_again_and_not_quoted(clusters: Fleet, where: str, error: Exception) -> None:
    door = OddDoor(clusters.one.url, **{where: error})
    with pytest.raises(Transient) as told:
        asyncio.run(server(door).get("/version", {}, within=1))
    assert str(told.value) == f"cannot be logged in to: {type(error).__name__}"


def test_disk_that_is_full_is_told_as_such(clusters: Fleet) -> None:
    door = OddDoor(clusters.one.url, at_login=OSError(28, "No space left on device"))
    with pytest.raises(Transient, match="cannot be logged in to: No space left on device"):
        asyncio.run(server(door).get("/version", {}, within=1))


async def life(one: ApiServer, door: OddDoor) -> None:
    """Wait for a sign of life that comes after the login has been mended."""
    heard = asyncio.Event()
    beat = asyncio.create_task(send_heartbeats(one, QUICK, heard.set))
    await asyncio.sleep(0.3)
    door.at_login = None
    try:
        async with asyncio.timeout(2):
            await heard.wait()
    finally:
        await cancel([beat])
        await one.close()


def test_signs_of_life_are_asked_for_after_an_odd_login(clusters: Fleet) -> None:
    door = OddDoor(clusters.one.url, at_login=KeyError("token"))
    asyncio.run(life(server(door), door))


def test_signs_of_life_survive_a_bug_which_is_told_once(clusters: Fleet) -> None:
    door = OddDoor(clusters.one.url)
    with structlog.testing.capture_logs() as lines:
        asyncio.run(life(server(door, OddServer), door))
    assert [line["event"] for line in lines] == ["bug; asking goes on"]
