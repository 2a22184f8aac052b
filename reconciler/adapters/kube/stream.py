"""A resource of one cluster: listed page by page, then watched.

A stream finds the version of the API group that the server has, and passes pages and events to its sink.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Protocol

import structlog

from reconciler.adapters.kube.answers import Expired, Forbidden, NotServed, Silent, TooLong, reason_text
from reconciler.adapters.kube.kept_objects import TooMuchKept, too_many
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.core.observe.kubernetes.resources import CompanionResource, CustomResource, Watched, rights
from reconciler.core.workloads.object_identity import why_unidentified
from reconciler.core.workloads.watch import Effect, key_of
from reconciler.errors import Transient
from reconciler.model.bounds import CLUSTER_OBJECTS
from reconciler.model.workload import Json
from reconciler.text.wording import conjugate, count


class Sink(Protocol):
    """The receiver of a stream's pages and events."""

    def page(self, resource: Watched, items: list[Json], seen: set[str]) -> None:
        """Apply a page of a list, and add its keys to `seen`."""
        ...

    def listed(self, resource: Watched, seen: set[str]) -> None:
        """Note that a list is complete: all other objects are gone."""
        ...

    def refused(self, resource: Watched) -> None:
        """Note that RBAC forbids an optional resource: its objects are unknown from now on."""
        ...

    def event(self, resource: Watched, type_: str, raw: Json) -> None:
        """Apply one event of a watch."""
        ...

    def heard(self) -> None:
        """Note a sign of life of the cluster."""
        ...


async def served_at(server: ApiServer, resource: Watched, within: float) -> tuple[str, ...]:
    """Return the paths that list a resource, that of the server's preferred version first.

    A server shows its versions to every account (Kubernetes' role system:discovery). Raises NotServed where it has no
    such group.
    """
    group = await server.get(f"/apis/{resource.group}", {}, within=within)
    group = group if isinstance(group, dict) else {}
    listed = group.get("versions")
    entries = [group.get("preferredVersion"), *(listed if isinstance(listed, list) else ())][:_VERSIONS]
    named = (entry.get("version") for entry in entries if isinstance(entry, dict))
    versions = tuple(dict.fromkeys(name for name in named if isinstance(name, str) and _VERSION.fullmatch(name)))
    if not versions:
        raise NotServed(f"/apis/{resource.group} names no version")
    return CustomResource(resource.group, versions, resource.plural, resource.kind).paths()


log = structlog.get_logger()
_GONE = 410
_VERSIONS = 20
"""Versions of a group that are tried."""
_VERSION = re.compile(r"[a-z][-a-z0-9]{0,62}")
_LONGEST_TOKEN = 8 << 10
"""Characters of a resourceVersion, or of the token of a next page, which goes into an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The objects of a resource to watch."""

    namespace: str = ""
    """Their namespace; empty for all."""
    selector: str = ""
    """Their label selector; empty for all."""
    name: str = ""
    """The name of the only one; empty for all."""
    page: int | None = None
    """Objects on a page of a resource whose objects are large."""


_ALL = ListOptions()
_EVENTS = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})
_REASONS = 8
"""Reasons that are kept of objects that are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ListMetadata:
    """The metadata of a page, or of a bookmark: other types than text count as nothing."""

    version: str
    continues: str

    @classmethod
    def of(cls, metadata: Mapping[str, Json]) -> _ListMetadata:
        """Read the metadata."""
        version, continues = metadata.get("resourceVersion"), metadata.get("continue")
        if len(str(continues or "")) > _LONGEST_TOKEN or not isinstance(continues, str | None):
            raise Transient("sent a page whose token of the next one is none")
        short = isinstance(version, str) and len(version) <= _LONGEST_TOKEN
        return cls(version=str(version) if short else "", continues=continues or "")


class Stream:
    """Lists a resource, then watches it, and continues each watch where the previous watch ended.

    1. After 410 Gone, and after any error other than of the connection, the resource is listed anew. Its objects stay
       until the list is complete.
    2. A bookmark advances the resourceVersion without an event.
    3. A watch that fails before it has worked for a while does not reset the count of failures, nor does one that ends
       well, but at once and empty, twice in a row.
    4. An open watch does not prove that events arrive: a proxy may hold them back. Only an event or a bookmark proves
       it. Bookmarks come every minute, but not for a resource that has not changed since the API server started
       (Kubernetes' `Cacher.dispatchEvents`). So silence is neither failure nor proof, and the resource is listed anew
       after it. If the new list differs from the old, the watch is mute, and lists replace it until an event or a
       bookmark arrives.
    5. An optional resource that is not served has no objects. One that RBAC forbids is unknown, and its sink decides
       what stays of it. Neither is a failure, and the stream tries both again every now and then.
    """

    def __init__(
        self, server: ApiServer, resource: Watched, sink: Sink, pace: WatchTiming, options: ListOptions = _ALL
    ) -> None:
        self._server = server
        self._sink = sink
        self._pace = pace
        self._paths = resource.paths(options.namespace)
        selector = options.selector or resource.selector
        self._selected: dict[str, object] = {"labelSelector": selector} if selector else {}
        fields = f"metadata.name={options.name}" if options.name else resource.fields
        if fields:
            self._selected["fieldSelector"] = fields
        self._limit = min(options.page or pace.page, pace.page)
        self._path = ""
        self._version = ""
        self._absences = 0
        self.watched = False
        """Whether a watch has ever been open."""
        self._stood = False
        self._proven = False
        self._on_trial = False
        self._unsteady = 0
        self._empty = 0
        self._listed_at = 0.0
        self._spoke_at = -math.inf
        self._contents: int | None = None
        self._doubted = False
        self.mute = False
        """Whether a list has shown that the watch keeps changes back."""
        self.api_version = ""
        """The version of the API group that is listed."""
        self._left_out: Counter[str] = Counter()
        self.resource = resource
        self.listed = False
        self.failures = 0
        """Failures since the last answer."""
        self.trouble = ""
        """The last failure; empty without one."""
        self.refusal = ""
        """The permission that RBAC denies; empty if none."""

    @property
    def unknown(self) -> bool:
        """Whether the objects cannot be relied on; they can while a broken watch reconnects."""
        if self._absences:
            return (self.resource.gap.forbidden if self.refusal else self.resource.gap.absent) is not Effect.EMPTY
        return not self.listed or self.failures > 1

    @property
    def absent(self) -> bool:
        """Whether the API server serves no such resource."""
        return self._absences > 0 and not self.refusal

    @property
    def heard(self) -> bool:
        """Whether the objects are up to date; a resource that is not served has no objects to update."""
        return self.listed and self.failures <= 1 and not self.refusal

    @property
    def speaks(self) -> bool:
        """Whether a watch has brought an event or a bookmark within `WatchTiming.silence`."""
        return time.monotonic() - self._spoke_at <= self._pace.silence

    @property
    def behind(self) -> int:
        """Seconds since the list, while no watch since has proven to work; 0 once one has."""
        return 0 if self._proven else math.ceil(time.monotonic() - self._listed_at)

    async def run(self, failed: Callable[[], None]) -> None:
        """List and watch until cancelled; `failed` is called after each failure."""
        while True:
            began = time.monotonic()
            self._on_trial = False
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except Expired:
                self._version = ""
                if not self._stood:
                    self._on_trial = True
                    self._fail("calls too old (410) what it has only just listed")
            except Transient as error:
                if self.resource.optional and isinstance(error, Forbidden | NotServed):
                    await asyncio.sleep(self._go_without(error))
                    continue
                if isinstance(error, TooLong):
                    self._limit = max(1, self._limit // 2)
                elif isinstance(error, TooMuchKept):
                    self._version = ""
                self._fail(self._with_remedy(error))
            except Exception as error:  # an object that cannot be read must not end the stream for good
                log.exception("bug; listing anew", resource=self.resource.plural)
                self._version = ""
                self._fail(f"{self.resource.plural} cannot be read: {type(error).__name__}")
            if self.failures:
                failed()
                await asyncio.sleep(self._pace.backoff(self.failures))
            elif time.monotonic() - began < 1:  # a server that ends each watch at once must not cause a busy loop
                await asyncio.sleep(self._pace.first_backoff)

    def _fail(self, trouble: str) -> None:
        self.failures += 1
        self.trouble = trouble
        self._doubted = False  # changes may have come without a watch
        if self._on_trial:
            self._unsteady = self.failures

    def _with_remedy(self, error: Transient) -> str:
        if not isinstance(error, Forbidden):
            return str(error)
        if isinstance(self.resource, CompanionResource):
            return f"{error} (`overspill grant` gives this right)"
        file = rights(self.resource)
        way_out = f"apply {file} there" if file else f"let overspill-reader list and watch {self.resource.plural} there"
        return f"{error} ({way_out})"

    def _go_without(self, error: Forbidden | NotServed) -> float:
        """Go on without the resource, and return the seconds until the next try."""
        self._version = ""
        self._doubted = self.mute = False
        self._absences += 1
        refused, self.refusal = self.refusal, self._with_remedy(error) if isinstance(error, Forbidden) else ""
        if self._absences == 1 or bool(refused) is not bool(self.refusal):
            self.listed = True
            if self.refusal:
                self._sink.refused(self.resource)
            else:
                self._sink.listed(self.resource, set())
        self._unsteady = 0
        self._note_answer()
        return self._pace.backoff(self._absences) if self.refusal else self._pace.absent

    def _note_answer(self) -> None:
        """Reset the count of failures, but for those of unsteady watches, which a list does not disprove."""
        self.failures = self._unsteady
        if not self._unsteady:
            self.trouble = ""
        self._sink.heard()

    def _note_steady(self) -> None:
        """Record that a watch works: it has lasted for a while, or has delivered something."""
        self._on_trial, self._stood, self._unsteady, self._empty = False, True, 0, 0
        self._note_answer()

    def _note_event(self) -> None:
        """Note that a watch has brought an event or a bookmark."""
        self._proven, self.mute, self._spoke_at = True, False, time.monotonic()
        self._note_steady()

    async def _list(self) -> None:
        """List by the first served path."""
        paths = self._paths or await served_at(self._server, self.resource, self._pace.answer)
        for path in paths[:-1]:
            with suppress(NotServed):
                await self._list_at(path)
                return
        await self._list_at(paths[-1])

    async def _list_at(self, path: str) -> None:
        """List all pages; the last one has the resourceVersion to watch from."""
        self._stood = self._proven = False
        if self._absences:
            await self._try_anew(path)
        began, contents, pages = time.monotonic(), 0, 0
        self._left_out.clear()
        self.api_version = "/".join(path.partition("/namespaces/")[0].split("/")[2:]).removesuffix(
            f"/{self.resource.plural}"
        )
        seen: set[str] = set()
        query = {"limit": self._limit, **self._selected}
        while True:
            page = await self._server.get(path, query, within=self._pace.answer)
            pages += 1
            if max(len(seen), pages) > CLUSTER_OBJECTS.most:
                raise too_many(self.resource)
            with self._server.work.working():
                metadata, items = self._contents_of(page)
                self._sink.page(self.resource, items, seen)
                for raw in items:
                    contents ^= hash((key_of(raw), raw["metadata"].get("resourceVersion")))
            self._note_answer()
            await self._server.work.wait()
            if not metadata.continues:
                break
            query["continue"] = metadata.continues
        self._path, self._version = path, metadata.version
        self.listed, self._absences, self.refusal = True, 0, ""
        self.mute |= self._doubted and self._contents not in (None, contents)
        self._listed_at, self._contents, self._doubted = began, contents, False
        self._sink.listed(self.resource, seen)

    def _contents_of(self, page: Json) -> tuple[_ListMetadata, list[Json]]:
        """Return the metadata of a page, and those of its objects that can be told from others."""
        metadata = page.get("metadata") if isinstance(page, dict) else None
        items = page.get("items") if isinstance(page, dict) else None
        if not isinstance(metadata, dict) or not isinstance(items, list | None):
            raise Transient(f"sent what is no list of {self.resource.full_name}")
        whole = [raw for raw in items or () if not self._leave_out(raw)]
        return _ListMetadata.of(metadata), whole

    def _leave_out(self, raw: Json) -> bool:
        """Return whether an object has to be left out, and note why."""
        why = why_unidentified(raw)
        if why:
            self._left_out[why] += 1
            while len(self._left_out) > _REASONS:
                self._left_out.popitem()
        return bool(why)

    @property
    def left_out(self) -> str:
        """The objects of the last list, and of events since, that cannot be told from others; empty without any."""
        if not self._left_out:
            return ""
        why, _ = self._left_out.most_common(1)[0]
        number = self._left_out.total()
        return f"{count(number, 'object')} of {self.resource.full_name} {conjugate(number, 'is')} left out: {why}"

    async def _try_anew(self, path: str) -> None:
        """Check that an absent resource can be listed and watched by now, before a page of it is applied."""
        page = await self._server.get(path, {**self._selected, "limit": 1}, within=self._pace.answer)
        metadata, _ = self._contents_of(page)
        async with aclosing(self._events(path, metadata.version)) as events:
            await anext(events)

    async def _watch(self) -> None:
        """Watch until the server ends it."""
        trial = None
        try:
            async with aclosing(self._events(self._path, self._version)) as events:
                async for event in events:
                    if event is None:
                        self.watched = self._on_trial = True
                        trial = asyncio.get_running_loop().call_later(self._pace.steady, self._note_steady)
                        self._note_answer()
                    else:
                        self._take(event)
                        self._note_event()
        except Silent:
            self._proven = False
        finally:
            if trial is not None:
                trial.cancel()
                self._list_if_silent()
        if self._on_trial:
            self._empty += 1
            if self._empty > 1:
                self._version = ""
                raise Transient("ends each watch at once, with nothing in it")

    def _list_if_silent(self) -> None:
        """List anew after a watch that was open, brought nothing, and ended when the list was no longer new.

        The list counts as new for a third of `silence`: with a whole one after it, the objects are no older than an
        observation may be.
        """
        if not self._on_trial and self.behind >= self._pace.silence / 3:
            self._version, self._doubted = "", True

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
        """Apply one event of a watch, then advance the resourceVersion, so that no event is skipped after an error."""
        raw = event.get("object") if isinstance(event, dict) else None
        if not isinstance(raw, dict):
            self._version = ""
            raise Transient(f"sent what is no event of {self.resource.full_name}")
        type_ = event.get("type")
        type_ = type_ if isinstance(type_, str) and type_ in _EVENTS else ""
        if type_ == "ERROR":
            if raw.get("code") == _GONE:
                raise Expired
            self._version = ""
            raise Transient(f"ended the watch: {reason_text(raw.get('message')) or 'no reason given'}")
        if type_ not in {"", "BOOKMARK"} and not self._leave_out(raw):
            with self._server.work.working():
                self._sink.event(self.resource, type_, raw)
            self._contents = None
        metadata = raw.get("metadata")
        self._version = _ListMetadata.of(metadata).version or self._version if isinstance(metadata, dict) else ""


def describe_muted(streams: Iterable[Stream], pace: WatchTiming) -> str:
    """Describe the mute watches among some streams; empty without any."""
    names = ", ".join(sorted(stream.resource.full_name for stream in streams if stream.mute))
    sentence = (
        f"watches do not tell what changes, of {names} (does a proxy hold it back?); listed every {pace.silence:g} s"
    )
    return sentence if names else ""
