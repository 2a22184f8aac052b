"""The routes of the page: one for each view, for each action, for signing in and out, and for what browsers load."""

from __future__ import annotations

import re
from asyncio import timeout
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, StreamingResponse
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from reconciler import __version__
from reconciler.access.rights import EVERYWHERE, AccessRole
from reconciler.adapters.access.oidc_client import OidcPages
from reconciler.api import orders
from reconciler.api.asking import OneAtATime
from reconciler.api.backend import Backend
from reconciler.api.body import read_body
from reconciler.api.refusal import BUG, HttpError
from reconciler.api.security.callers import Callers, require_role
from reconciler.api.snapshot_cache import SnapshotCache
from reconciler.daemon.answers.desk import Occupied, RecentCommits
from reconciler.errors import Conflict, Transient
from reconciler.model.ids import WorkspaceName
from reconciler.ports import Clock
from reconciler.text.gpu_cells import GpuUse
from reconciler.web import clusters, money, now, timeline, why
from reconciler.web.actions.action import Desk
from reconciler.web.actions.action_page import action_page, commit_of, order_of
from reconciler.web.branch_cache import BranchCache
from reconciler.web.door import CALLBACK, Door, SignInNeeded, Visit, safe_target
from reconciler.web.lab import LabReports
from reconciler.web.live import LiveStreams
from reconciler.web.pages import HEADERS, REPORT_POLICY, Assets, Pages
from reconciler.web.session import Seal
from reconciler.web.viewer import Viewer

_VIEWS = (
    ("now", "/", "Now"),
    ("clusters", "/clusters", "Clusters"),
    ("time", "/time", "Time"),
    ("why", "/why", "Why"),
    ("money", "/money", "Money"),
    ("lab", "/lab", "Lab"),
)
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_MOST_FIND = 100
_FORM_SECONDS = 10
_PASSING = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
"""Errors after which the same page is asked for again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What the routes share."""

    backend: Backend
    clock: Clock
    door: Door
    pages: Pages
    assets: Assets
    live: LiveStreams
    reports: LabReports
    branch: BranchCache
    desk: Desk
    index: SnapshotCache[now.NowIndex]

    def viewer(self, visit: Visit) -> Viewer:
        """Return whoever looks, at the newest snapshot. Raises HttpError 503 before the first pass."""
        return Viewer(caller=visit.caller, snapshot=self.backend.snapshot())

    def show(
        self, request: Request, visit: Visit, template: str, values: Mapping[str, Any], status: int = HTTPStatus.OK
    ) -> Response:
        """Answer with a view."""
        common = {
            "views": [view for view in _VIEWS if view[0] != "lab" or _sees_lab(visit)],
            "current": template.partition(".")[0],
            "caller": visit.caller,
            "csrf": visit.session.csrf,
            "address": _address(request),
            "version": __version__,
            "branch": self.backend.output_branch,
            "stopped": self._losses(visit),
        }
        return self.pages.render(template, {**common, **values}, status)

    def _losses(self, visit: Visit) -> tuple[str, ...]:
        """Say why nothing is written, if that is known; nothing before the first pass."""
        with suppress(HttpError):
            return self.viewer(visit).losses
        return ()

    def error(self, request: Request, error: HttpError) -> Response:
        """Answer with an error as a page."""
        values = {
            "status": int(error.status),
            "phrase": error.status.phrase,
            "message": error.message,
            "hint": error.hint,
            "problems": [str(problem) for problem in error.problems],
            "again": _address(request) if request.method == "GET" and error.status in _PASSING else "",
        }
        return self.pages.render("error.html", values, error.status, error.headers)


def install(
    app: FastAPI,
    *,
    backend: Backend,
    callers: Callers,
    clock: Clock,
    seal: Seal,
    issuer: OidcPages | None = None,
    address: str = "",
    reports: LabReports | None = None,
) -> LiveStreams:
    """Add the page to the application of the API, and return the streams to be closed before the server stops."""
    assets = Assets()
    site = Site(
        backend=backend,
        clock=clock,
        door=Door(callers, clock, seal, issuer=issuer, address=address),
        pages=Pages(assets),
        assets=assets,
        live=LiveStreams(backend.latest),
        reports=reports or LabReports(None),
        branch=BranchCache(backend.answers, backend.latest, clock),
        desk=Desk(backend=backend, busy=OneAtATime()),
        index=SnapshotCache(now.NowIndex.of),
    )
    page_route = _page_route(site)
    _tell_bugs(app, site, page_route)
    routes = APIRouter(include_in_schema=False, route_class=page_route)
    _add_present_views(routes, site)
    _add_past_views(routes, site)
    _add_actions(routes, site)
    _add_door(routes, site)
    _add_assets(routes, site)
    app.include_router(routes)
    return site.live


def _page_route(site: Site) -> type[APIRoute]:
    """Return the class of routes whose errors are pages, and which lead to the login where nobody is signed in."""

    class PageRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            answer = super().get_route_handler()

            async def handle(request: Request) -> Response:
                try:
                    return await answer(request)
                except SignInNeeded:
                    target = _address(request) if request.method == "GET" else "/"
                    where = f"/login?next={quote(target)}" if target != "/" else "/login"
                    return RedirectResponse(where, HTTPStatus.SEE_OTHER, headers=dict(HEADERS))
                except HttpError as error:
                    return site.error(request, error)
                except RequestValidationError:
                    return site.error(
                        request, HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, "the address is not one of this page")
                    )
                except (Transient, Conflict) as error:  # why stands in the log of passes
                    message = str(error) if isinstance(error, Occupied) else "the repository cannot be read now"
                    status, headers = HTTPStatus.SERVICE_UNAVAILABLE, {"Retry-After": "2"}
                    return site.error(request, HttpError(status, message, hint="try again", headers=headers))

            return handle

    return PageRoute


def _tell_bugs(app: FastAPI, site: Site, page_route: type[APIRoute]) -> None:
    """Answer with a page where a page meets a bug, which the API's handler logs."""
    answer_of_api = app.exception_handlers[Exception]

    async def bug(request: Request, error: Exception) -> Response:
        answer = answer_of_api(request, error)
        answer = answer if isinstance(answer, Response) else await answer
        if not isinstance(request.scope.get("route"), page_route):
            return answer
        return site.error(request, HttpError(HTTPStatus.INTERNAL_SERVER_ERROR, BUG))

    app.add_exception_handler(Exception, bug)


def _address(request: Request) -> str:
    """Return the path and query of a request."""
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path


def _found(text: str) -> str:
    return text.strip()[:_MOST_FIND]


# views


def _add_present_views(routes: APIRouter, site: Site) -> None:
    @routes.get("/")
    def now_page(request: Request, page: int = 1, requests: int = 1, find: str = "", workspace: str = "") -> Response:
        visit = site.door.enter(request)
        viewer = site.viewer(visit)
        index = site.index.of(viewer.snapshot)
        view = now.now_view(
            viewer, index, number=page, requests=requests, find=_found(find), workspace=_found(workspace)
        )
        values = {
            "view": view,
            "workspaces": now.workspaces_of(viewer, index),
            "may_request": any(map(viewer.offers_edit, viewer.editable)),
            "standings": now.Standing,
        }
        return site.show(request, visit, "now.html", values)

    @routes.get("/clusters")
    def clusters_page(request: Request, page: int = 1, find: str = "") -> Response:
        visit = site.door.enter(request)
        view = clusters.clusters_view(site.viewer(visit), number=page, find=_found(find))
        return site.show(request, visit, "clusters.html", {"view": view, "uses": [*GpuUse]})

    @routes.get("/why")
    def why_page(request: Request, workload: str = "", commit: str = "", done: str = "", page: int = 1) -> Response:
        visit = site.door.enter(request)
        viewer = site.viewer(visit)
        values: dict[str, Any] = {
            "of_workload": None,
            "of_commit": None,
            "done": bool(done),
            "now_at": viewer.snapshot.decision.inputs.now,
        }
        if commit:
            values["of_commit"] = _commit(site, viewer, commit)
            workload = workload or values["of_commit"].workload
        if workload:
            workspace, _, name = workload.partition("/")
            try:
                require_role(visit.caller, AccessRole.VIEWER, WorkspaceName(workspace))
                values["of_workload"] = why.why_workload(viewer, WorkspaceName(workspace), name, number=page)
            except HttpError:
                if not commit:
                    raise
        index = site.index.of(viewer.snapshot)
        names = (row.workload for row in index.figures if viewer.may_see(row.workload.workspace))
        values["workloads"] = sorted({str(name) for name, _ in zip(names, range(_MOST_NAMES), strict=False)})
        values["workload"] = workload
        values["commits"] = () if commit or workload else _recent(site, viewer)
        return site.show(request, visit, "why.html", values)


def _add_past_views(routes: APIRouter, site: Site) -> None:
    @routes.get("/time")
    def time_page(request: Request, at: str = "", span: str = "6h", workload: str = "") -> Response:
        visit = site.door.enter(request)
        viewer = site.viewer(visit)
        span = span if span in timeline.SPANS else "6h"
        moment = site.clock.now()
        at = at if _COMMIT.fullmatch(at) else ""
        log = _log(site, viewer, at)
        view = timeline.timeline_view(viewer, log, moment, span=span, at=at, workload=_found(workload))
        values = {
            "view": view,
            "spans": tuple(timeline.SPANS),
            "workload": _found(workload),
            "measures": {"width": timeline.WIDTH, "left": timeline.LEFT, "lane": timeline.LANE},
            "query": lambda **changes: _query({"span": span, "at": at, "workload": _found(workload)}, changes),
            "unknown": at if at and view.at is None else "",
        }
        return site.show(request, visit, "time.html", values)

    @routes.get("/money")
    def money_page(request: Request) -> Response:
        visit = site.door.enter(request)
        viewer = site.viewer(visit)
        try:
            answer = site.branch.costs(visit.caller, money.first_month(site.clock.now()))
        except Conflict as error:
            raise HttpError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "the repository does not hold the commits since then",
                hint="try again; if it goes on, a branch was rewritten",
            ) from error
        return site.show(request, visit, "money.html", {"view": money.money_view(viewer, answer)})

    @routes.get("/lab")
    def lab_page(request: Request) -> Response:
        visit = site.door.enter(request)
        _require_lab(visit)
        values = {"reports": site.reports.all(), "directory": site.reports.directory}
        return site.show(request, visit, "lab.html", values)

    @routes.get("/lab/{name}")
    def lab_report(request: Request, name: str) -> Response:
        _require_lab(site.door.enter(request))
        content = site.reports.read(name)
        if content is None:
            raise HttpError(HTTPStatus.NOT_FOUND, "there is no such report", hint="the page of the lab lists them")
        headers = {**HEADERS, "Content-Security-Policy": REPORT_POLICY, "Cache-Control": "no-store"}
        return Response(content, media_type="text/html; charset=utf-8", headers=headers)


_MOST_NAMES = 500
_EVER = datetime(2000, 1, 1, tzinfo=UTC)
_DEEP = 20_000
"""Commits that are read for one that somebody names and that is older than two weeks."""
_RECENT = 40


def _sees_lab(visit: Visit) -> bool:
    """Return whether somebody sees the lab's reports: they tell of all workspaces that were recorded."""
    return EVERYWHERE in visit.caller.roles


def _require_lab(visit: Visit) -> None:
    if not _sees_lab(visit):
        raise HttpError(
            HTTPStatus.FORBIDDEN,
            "the lab's reports tell of all workspaces",
            hint="ask whoever runs Overspill for the role Viewer of *",
        )


def _query(given: Mapping[str, str], changes: Mapping[str, str]) -> str:
    """Return the query of an address with some of its fields changed, those without a value left out."""
    return urlencode({name: value for name, value in {**given, **changes}.items() if value})


def _log(site: Site, viewer: Viewer, commit: str = "") -> RecentCommits:
    """Return the log of the last two weeks; of all that is kept where it does not hold a commit."""
    log = site.branch.log(viewer.caller, site.clock.now() - 2 * max(timeline.SPANS.values()), timeline.MOST_COMMITS)
    if commit and why.find_commit(log.commits, commit) is None:
        return site.branch.log(viewer.caller, _EVER, _DEEP)
    return log


def _commit(site: Site, viewer: Viewer, text: str) -> why.WhyCommit:
    text = text if _COMMIT.fullmatch(text) else ""
    log = _log(site, viewer, text)
    commit = why.find_commit(log.commits, text)
    if commit is None or not why.may_see_commit(viewer, commit):
        raise HttpError(
            HTTPStatus.NOT_FOUND,
            "there is no such commit of Overspill on the branch",
            hint="`git log` of the branch lists them",
        )
    return why.why_commit(viewer, log.commits, commit)


def _recent(site: Site, viewer: Viewer) -> tuple[tuple[str, Any, str], ...]:
    """List the newest commits that a viewer may see."""
    log = _log(site, viewer)
    visible = (commit for commit in log.commits if why.may_see_commit(viewer, commit))
    pairs = zip(visible, range(_RECENT), strict=False)
    return tuple((str(commit.id), commit.at, viewer.say(commit.subject)) for commit, _ in pairs)


# actions


def _add_actions(routes: APIRouter, site: Site) -> None:
    @routes.get("/do/{name}")
    def ask(request: Request, name: str) -> Response:
        visit = site.door.enter(request)
        viewer = site.viewer(visit)
        given = dict(request.query_params)
        page = action_page(name, viewer, given, site.desk, _back(given))
        return site.show(request, visit, "action.html", {"page": page})

    @routes.post("/do/{name}")
    async def carry_out(request: Request, name: str) -> Response:
        visit = await run_in_threadpool(site.door.enter, request)
        given = await _form(request)
        site.door.check_form(request, visit.session, given.pop("csrf", ""))
        viewer = await run_in_threadpool(site.viewer, visit)
        order = await run_in_threadpool(order_of, name, viewer, given, site.desk)
        result = await orders.execute(site.backend.queue, order)
        commit = commit_of(result)
        where = f"/why?{urlencode({'commit': commit, 'done': '1'})}" if commit else "/"
        return RedirectResponse(where, HTTPStatus.SEE_OTHER, headers=dict(HEADERS))


def _back(given: Mapping[str, str]) -> str:
    workload = given.get("workload", "")
    return f"/why?{urlencode({'workload': workload})}" if workload else "/"


async def _form(request: Request) -> dict[str, str]:
    """Read the fields of a form. Raises HttpError for any other body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HttpError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body is not that of a form")
    async with timeout(_FORM_SECONDS):
        body = await read_body(request)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=50, errors="strict"))
    except ValueError as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the form cannot be read") from error


# the door


def _add_door(routes: APIRouter, site: Site) -> None:
    door = site.door

    def login_page(request: Request, target: str, problem: str = "", status: int = HTTPStatus.OK) -> Response:
        token = door.form_token(request)
        values = {
            "target": target,
            "form_token": token,
            "problem": problem or door.obstacle,
            "with_issuer": door.issuer is not None,
            "version": __version__,
        }
        response = site.pages.render("login.html", values, status)
        door.keep_form_token(request, response, token)
        return response

    @routes.get("/login")
    def login(request: Request, next: str = "/") -> Response:  # noqa: A002 - the usual name in an address
        return login_page(request, safe_target(next))

    @routes.post("/login")
    async def sign_in(request: Request) -> Response:
        given = await _form(request)
        target = safe_target(given.get("next", "/"))
        door.check_login(request, given.get("form", ""))
        response = RedirectResponse(target, HTTPStatus.SEE_OTHER, headers=dict(HEADERS))
        try:
            await run_in_threadpool(door.sign_in_by_token, request, response, given.get("token", "").strip())
        except HttpError as error:
            if error.status is not HTTPStatus.UNAUTHORIZED:
                raise
            problem = f"{error.message[0].upper()}{error.message[1:]}. {error.hint[:1].upper()}{error.hint[1:]}".strip()
            return login_page(request, target, problem, HTTPStatus.UNAUTHORIZED)
        return response

    @routes.post("/login/issuer")
    async def to_issuer(request: Request) -> Response:
        given = await _form(request)
        door.check_login(request, given.get("form", ""))
        target = safe_target(given.get("next", "/"))
        attempt, address = await run_in_threadpool(door.begin_login, request, target)
        # A form that leads elsewhere is stopped by form-action; a page that goes on by itself is not.
        response = site.pages.render("onward.html", {"address": address, "words": "On to your issuer"})
        door.keep_attempt(request, response, attempt)
        return response

    @routes.get(CALLBACK)
    def from_issuer(request: Request, state: str = "", code: str = "", error: str = "") -> Response:
        if error:
            raise HttpError(HTTPStatus.UNAUTHORIZED, "the issuer did not let you in", hint="log in again")
        # Not a redirect: the browser came from another site, and would keep a strict cookie to itself.
        response = site.pages.render("onward.html", {"address": "/", "words": "You are signed in"})
        target = door.finish_login(request, response, state, code)
        onward = site.pages.render("onward.html", {"address": target, "words": "You are signed in"})
        onward.raw_headers.extend(pair for pair in response.raw_headers if pair[0] == b"set-cookie")
        return onward

    @routes.post("/logout")
    async def sign_out(request: Request) -> Response:
        visit = await run_in_threadpool(door.enter, request)
        given = await _form(request)
        door.check_form(request, visit.session, given.get("csrf", ""))
        response = RedirectResponse("/login", HTTPStatus.SEE_OTHER, headers={**HEADERS, "Clear-Site-Data": '"cache"'})
        door.sign_out(request, response)
        return response


# what browsers load


def _add_assets(routes: APIRouter, site: Site) -> None:
    @routes.get("/static/{digest}/{name}")
    def static(digest: str, name: str) -> Response:
        response = site.assets.response(digest, name)
        if response is None:
            raise HttpError(HTTPStatus.NOT_FOUND, "there is no such file", hint="reload the page")
        return response

    @routes.get("/events")
    async def events(request: Request) -> Response:
        visit = await run_in_threadpool(site.door.enter, request)
        if not site.live.has_room(visit.caller):
            raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open", headers={"Retry-After": "30"})
        headers = {**HEADERS, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(
            site.live.stream(visit.caller, stays=partial(site.door.stays, request)),
            media_type="text/event-stream",
            headers=headers,
        )
