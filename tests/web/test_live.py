"""Streams of open pages: as many as a caller may have, for as long as they are signed in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from fastapi import Request, Response

from reconciler.access.rate_limit import parse_rate
from reconciler.access.rights import Access, AccessRole, Caller, Token, digest
from reconciler.adapters.clock import SystemClock
from reconciler.api.refusal import HttpError
from reconciler.api.security.callers import Callers
from reconciler.web.door import Door, SignInNeeded
from reconciler.web.live import MOST, MOST_OF_CALLER, LiveStreams
from reconciler.web.session import Seal
from tests.builders.daemon import Daemon

TOKEN = "ovs_" + "a" * 43


def caller(name: str) -> Caller:
    return Caller(name=name, roles={"*": AccessRole.VIEWER}, kind="token")


async def opened(live: LiveStreams, name: str) -> AsyncIterator[bytes]:
    stream = live.stream(caller(name))
    assert await anext(stream) == b"retry: 3000\n\n"
    return stream


def test_caller_has_so_many_streams_and_takes_no_place_of_another(shared: Daemon) -> None:
    live = LiveStreams(shared.latest)

    async def story() -> None:
        held = [await opened(live, "Ann") for _ in range(MOST_OF_CALLER)]
        assert not live.has_room(caller("Ann"))
        assert [part async for part in live.stream(caller("Ann"))] == [b"retry: 30000\n\n"]
        assert live.has_room(caller("Ben"))
        await held.pop().aclose()
        assert live.has_room(caller("Ann"))

    asyncio.run(story())


def test_all_callers_have_so_many_streams_together(shared: Daemon) -> None:
    live = LiveStreams(shared.latest)

    async def story() -> None:
        held = [await opened(live, f"caller {number // MOST_OF_CALLER}") for number in range(MOST)]
        assert not live.has_room(caller("Ann"))
        await held.pop().aclose()
        assert live.has_room(caller("Ann"))

    asyncio.run(story())


def test_many_calls_end_no_stream_and_a_revoked_token_does() -> None:
    tokens = [Token(name="Ann", digest=digest(TOKEN), roles={"*": AccessRole.VIEWER})]
    clock, rate = SystemClock(), parse_rate("1/m")
    callers = Callers(clock, access=lambda: Access(tokens=tuple(tokens)), rate=rate, ticks=lambda: 0.0)
    door = Door(callers, clock, Seal())
    scope = {"type": "http", "scheme": "http", "path": "/", "server": ("a", 80), "client": ("b", 1), "headers": []}
    response = Response()
    door.sign_in_by_token(Request(scope), response, TOKEN)
    cookie = response.headers["set-cookie"].partition(";")[0]
    request = Request({**scope, "headers": [(b"cookie", cookie.encode())]})
    with pytest.raises(HttpError, match="too many calls"):
        door.enter(request)
    assert door.stays(request)
    tokens.clear()
    assert [door.stays(request) for _ in range(20)] == [False] * 20
    with pytest.raises(SignInNeeded):  # as a failed login, which none of those looks was
        door.enter(request)
