"""One resource of one cluster, kept in step: listed page by page, then watched for ever."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Protocol

import structlog

from reconciler.adapters.kube.answers import Expired, Forbidden, NotServed, TooLong
from reconciler.adapters.kube.pace import Pace
from reconciler.adapters.kube.server import ApiServer
from reconciler.core.kubernetes.resources import FLUX, Resource
from reconciler.errors import Transient
from reconciler.model.workload import Json

log = structlog.get_logger()
_GONE = 410


class Sink(Protocol):
    """Takes what a stream brings."""

    def page(self, resource: Resource, items: list[Json], seen: set[str]) -> None:
        """Take a page of a list, and add what it names to `seen`."""
        ...

    def listed(self, resource: Resource, seen: set[str]) -> None:
        """Take note that a list is complete: what it does not name is gone."""
        ...

    def event(self, resource: Resource, type_: str, raw: Json) -> None:
        """Take one change."""
        ...

    def heard(self) -> None:
        """Take note that the cluster gave a sign of life."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which objects of a resource are looked at: those of one namespace, and with some label; both empty for all.

    `page` is how many of them are asked for at once, where they are larger than others.
    """

    namespace: str = ""
    selector: str = ""
    page: int | None = None


_ALL = Scope()
_RIGHTS = {
    **dict.fromkeys(FLUX, "bootstrap/rbac-flux.yaml"),
    Resource.APPLICATIONS: "bootstrap/rbac-argocd.yaml",
    Resource.SECRETS: "bootstrap/rbac-argocd-logins.yaml",
}


def rights(resource: Resource) -> str:
    """Name the file of the layout that gives us the right to look at a resource."""
    return _RIGHTS.get(resource, "bootstrap/rbac.yaml")


class Stream:
    """Lists a resource, then watches it from there, and again from where a watch has ended.

    After 410 Gone, and after any error that is not about the connection, it lists anew; what is known stays until the
    list is complete. A bookmark moves the version on without an event. `failures` counts what went wrong since the last
    answer, `trouble` is the last of it; a watch that ends badly before it has shown that it works goes on counting.

    An optional resource that is not served, or that we may not list and watch, is listed as having no objects, which is
    no failure, and is asked for again every now and then; `refusal` says what we may not. `watched` tells that a watch
    has stood at some time.
    """

    def __init__(self, server: ApiServer, resource: Resource, sink: Sink, pace: Pace, scope: Scope = _ALL) -> None:
        self._server = server
        self._sink = sink
        self._pace = pace
        self._paths = resource.paths(scope.namespace)
        self._selected: dict[str, object] = {"labelSelector": scope.selector} if scope.selector else {}
        self._limit = min(scope.page or pace.page, pace.page)
        self._path = self._paths[0]
        self._version = ""
        self._lacks = 0
        self.watched = False
        self._proven = False
        self._on_trial = False
        self._unsteady = 0
        self.resource = resource
        self.listed = False
        self.failures = 0
        self.trouble = ""
        self.refusal = ""

    @property
    def known(self) -> bool:
        """Tell whether what is known can be relied on: a watch that breaks and comes back at once changes nothing."""
        return self.listed and self.failures <= 1 and not self._lacks

    @property
    def heard(self) -> bool:
        """Tell whether it is known what there is; where the resource is not served, that is nothing."""
        return self.listed and self.failures <= 1 and not self.refusal

    async def run(self, failed: Callable[[], None]) -> None:
        """Go on until cancelled; `failed` is called after each failure."""
        while True:
            began = time.monotonic()
            self._on_trial = False
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except Expired:
                self._version = ""
                if not self._proven:
                    self._on_trial = True
                    self._fail("calls too old (410) what it has only just listed")
            except Transient as error:
                if self.resource.optional and isinstance(error, Forbidden | NotServed):
                    await asyncio.sleep(self._lack(error))
                    continue
                if isinstance(error, TooLong):
                    self._limit = max(1, self._limit // 2)
                self._fail(self._told(error))
            except Exception as error:  # one object that we cannot read must not end the watch for good
                log.exception("bug; listing anew", resource=self.resource.plural)
                self._version = ""
                self._fail(f"{self.resource.plural} cannot be read: {type(error).__name__}")
            if self.failures:
                failed()
                await asyncio.sleep(self._pace.backoff(self.failures))
            elif time.monotonic() - began < 1:  # a server that ends each watch at once must not make us spin
                await asyncio.sleep(self._pace.first_backoff)

    def _fail(self, trouble: str) -> None:
        self.failures += 1
        self.trouble = trouble
        if self._on_trial:
            self._unsteady = self.failures

    def _told(self, error: Transient) -> str:
        return f"{error} (apply {rights(self.resource)} there)" if isinstance(error, Forbidden) else str(error)

    def _lack(self, error: Forbidden | NotServed) -> float:
        """Go on without the resource, and return for how many seconds."""
        self._version = ""
        self._lacks += 1
        refused, self.refusal = self.refusal, self._told(error) if isinstance(error, Forbidden) else ""
        if self._lacks == 1 or (refused and not self.refusal):
            self.listed = True
            self._sink.listed(self.resource, set())
        self._unsteady = 0
        self._answered()
        return self._pace.backoff(self._lacks) if self.refusal else self._pace.absent

    def _answered(self) -> None:
        """Begin to count anew; what no watch has disproved yet is not made good by a list."""
        self.failures = self._unsteady
        if not self._unsteady:
            self.trouble = ""
        self._sink.heard()

    def _prove(self) -> None:
        """Take note that a watch works: it has lasted for a while, or has brought something."""
        self._on_trial, self._proven, self._unsteady = False, True, 0
        self._answered()

    async def _list(self) -> None:
        """List in the newest version of the API that is served."""
        for path in self._paths[:-1]:
            with suppress(NotServed):
                await self._list_at(path)
                return
        await self._list_at(self._paths[-1])

    async def _list_at(self, path: str) -> None:
        """List all pages; the last one says from which version to watch."""
        self._proven = False
        if self._lacks:
            await self._try(path)
        seen: set[str] = set()
        query = {"limit": self._limit, **self._selected}
        while True:
            page = await self._server.get(path, query, within=self._pace.answer)
            metadata = page.get("metadata") or {}
            self._sink.page(self.resource, page.get("items") or [], seen)
            self._answered()
            if not metadata.get("continue"):
                break
            query["continue"] = metadata["continue"]
        self._path, self._version = path, metadata.get("resourceVersion") or ""
        self.listed, self._lacks, self.refusal = True, 0, ""
        self._sink.listed(self.resource, seen)

    async def _try(self, path: str) -> None:
        """See whether what was missing can be listed and watched now, before anything of it is taken in."""
        page = await self._server.get(path, {**self._selected, "limit": 1}, within=self._pace.answer)
        version = (page.get("metadata") or {}).get("resourceVersion") or ""
        async with aclosing(self._events(path, version)) as events:
            await anext(events)

    async def _watch(self) -> None:
        """Watch until the server ends it."""
        trial = None
        try:
            async with aclosing(self._events(self._path, self._version)) as events:
                async for event in events:
                    if event is None:
                        self.watched = self._on_trial = True
                        trial = asyncio.get_running_loop().call_later(self._pace.steady, self._prove)
                        self._answered()
                    else:
                        self._take(event)
                        self._prove()
        finally:
            if trial is not None:
                trial.cancel()

    def _events(self, path: str, version: str) -> AsyncGenerator[Json, None]:
        lasting = self._pace.watch * random.uniform(0.9, 1)  # noqa: S311 - spreads load, keeps no secret
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": max(1, int(lasting)),
            **self._selected,
        }
        return self._server.watch(path, query)

    def _take(self, event: Json) -> None:
        """Take one event of a watch. Only what has been taken in is gone on from."""
        type_, raw = event.get("type"), event.get("object") or {}
        if type_ == "ERROR":
            if raw.get("code") == _GONE:
                raise Expired
            self._version = ""
            raise Transient(f"ended the watch: {raw.get('message') or 'no reason given'}")
        if type_ != "BOOKMARK":
            self._sink.event(self.resource, type_, raw)
        self._version = (raw.get("metadata") or {}).get("resourceVersion") or self._version
