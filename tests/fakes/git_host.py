"""GitHub, GitLab and Gitea as far as their documentation says how pull requests are made, over HTTP on loopback.

Each stands over a bare repository: it knows its branches, and merges in it as the host's button does.
https://docs.github.com/rest/pulls/pulls, https://docs.gitlab.com/api/merge_requests, https://docs.gitea.com/api.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from reconciler.core.readiness.branch_rules import HostSoftware
from tests.builders.remote import Remote
from tests.fakes.loopback import LoopbackHandler, LoopbackServer

TOKEN = "hunter2-" * 3
PROJECT = "acme/fleet"


@dataclass
class Request:
    """A pull request on the host."""

    number: int
    head: str
    base: str
    title: str
    body: str
    state: str = "open"
    closed_by: str = ""
    comments: list[str] = field(default_factory=list)
    fork: str = ""
    """The repository that its head is in, if that is another one, such as ``mallory/fleet``."""


@dataclass
class GitHost:
    """A host of one software over a bare repository. With `down` it answers 502.

    `answers` stand in place of its own, by method and the end of the path, and have the `headers`.
    """

    software: HostSoftware
    remote: Remote
    requests: list[Request] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    down: bool = False
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    url: str = ""

    @property
    def repository(self) -> str:
        return f"{self.url}/{PROJECT}.git"

    def open_from_fork(self, head: str, fork: str = "mallory/fleet") -> Request:
        """Open a pull request of a branch of a fork, as anybody can."""
        request = _made(self, head, "placements", "From a fork", "")
        request.fork = fork
        return request

    def merge(self, request: Request, how: str = "merge") -> None:
        """Merge as the button of the host does: a merge commit, one squashed commit, or the rebased commits."""
        git, base, head = self.remote.git, self.remote.tip(request.base), self.remote.tip(request.head)
        assert base is not None
        assert head is not None
        assert request.state == "open"
        if how == "fast-forward":
            tree, parents = git("rev-parse", f"{head}^{{tree}}"), ()
            assert git("merge-base", base, head) == base
            made = str(head)
        elif how == "rebase":
            made = self._rebased(base, head)
        else:
            tree = git("merge-tree", "--write-tree", base, head)  # fails where they conflict
            parents = (base, head) if how == "merge" else (base,)
            words = [word for parent in parents for word in ("-p", str(parent))]
            title = f"{request.title} (#{request.number})"
            ada = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
            made = git(*ada, "commit-tree", tree, *words, "-m", title)
        git("update-ref", f"refs/heads/{request.base}", made, str(base))
        request.state = "merged"

    def _rebased(self, base: str, head: str) -> str:
        """Commit each commit of a branch again, by the host, in one moment."""
        git, made = self.remote.git, str(base)
        for commit in git("rev-list", "--reverse", f"{base}..{head}").split():
            tree = git("merge-tree", "--write-tree", made, commit)
            ada = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
            made = git(*ada, "commit-tree", tree, "-p", made, "-m", git("log", "-1", "--format=%B", commit))
        return made

    def close(self, request: Request, by: str = "ada") -> None:
        request.state, request.closed_by = "closed", by

    def head(self, request: Request) -> str:
        return str(self.remote.tip(request.head) or "")


class _Handler(LoopbackHandler):
    protocol_version = "HTTP/1.1"
    host: GitHost

    def _any(self) -> None:
        data = self.body()
        host, parts = self.host, urlsplit(self.path)
        host.calls.append(f"{self.command} {unquote(parts.path)}")
        body = json.loads(data) if data else {}
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        odd = [
            answer
            for asked, answer in host.answers.items()
            if asked.split()[0] == self.command and parts.path.endswith(asked.split()[1])
        ]
        headers: dict[str, str] = {}
        if host.down:
            status, answer = 502, {"message": "Bad Gateway"}
        elif odd:
            status, answer = odd[0]
            headers = host.headers
            if isinstance(answer, bytes):
                self.reply(status, answer, {"Content-Type": "text/html"})
                return
        else:
            call = _Call(self.command, parts.path, query, body, self.headers.get("Authorization", ""))
            try:
                status, answer = _answer(host, call)
            except IndexError:  # no request of this number
                status, answer = 404, {"message": "Not Found"}
        self.reply_json(status, answer, headers)

    do_GET = do_POST = do_PUT = do_PATCH = _any


class _Call(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    body: dict[str, Any]
    login: str


def _answer(host: GitHost, call: _Call) -> tuple[int, Any]:
    method, path, query, body, login = call
    software = host.software
    if path == "/api/v1/version":
        return (200, {"version": "1.26.0"}) if software is HostSoftware.GITEA else (404, {})
    if path == "/api/v4/version":
        return (401, {"message": "401 Unauthorized"}) if software is HostSoftware.GITLAB else (404, {})
    if path == "/api/v3/meta":
        return (200, {"installed_version": "3.17.0"}) if software is HostSoftware.GITHUB else (404, {})
    pair = base64.b64encode(f"overspill:{TOKEN}".encode()).decode()
    if login not in (f"Bearer {TOKEN}", f"Basic {pair}"):
        return 401, {"message": "Bad credentials"}
    if software is HostSoftware.GITLAB:
        return _gitlab(host, method, path, query, body)
    root = f"/api/v3/repos/{PROJECT}" if software is HostSoftware.GITHUB else f"/api/v1/repos/{PROJECT}"
    if not path.startswith(f"{root}/"):
        return 404, {"message": "Not Found"}
    return _github(host, method, path.removeprefix(f"{root}/").split("/"), query, body)


def _github(
    host: GitHost, method: str, path: list[str], query: dict[str, str], body: dict[str, Any]
) -> tuple[int, Any]:
    match method, path:
        case "GET", ["pulls"]:
            wanted = query.get("head", "")
            found = [each for each in reversed(host.requests) if wanted in ("", f"{_owner(each)}:{each.head}")]
            return 200, [_pull(host, each) for each in _page(found, query)]
        case "POST", ["pulls"]:
            refused = _refused(host, body["head"], body["base"])
            if refused:
                return (422 if host.software is HostSoftware.GITHUB else 409), {"message": refused}
            return 201, _pull(host, _made(host, body["head"], body["base"], body["title"], body["body"]))
        case "POST", ["issues", number, "comments"]:
            _of(host, number).comments.append(body["body"])
            return 201, {}
        case "GET", ["issues", number]:
            by = _of(host, number).closed_by
            return 200, {"closed_by": {"login": by} if by else None}
        case "GET", ["pulls", number]:
            return 200, _pull(host, _of(host, number))
        case "PATCH", ["pulls", number]:
            _of(host, number).state = body["state"]
            return 200, _pull(host, _of(host, number))
    return 404, {"message": "Not Found"}


def _page(found: list[Request], query: dict[str, str]) -> list[Request]:
    """Return one page of a list; Gitea puts no more than 50 on one, however many are asked for."""
    size = min(int(query.get("limit") or query.get("per_page") or 20), 50)
    first = (int(query.get("page", "1")) - 1) * size
    return found[first : first + size]


def _owner(request: Request) -> str:
    return (request.fork or PROJECT).partition("/")[0]


def _pull(host: GitHost, request: Request) -> dict[str, Any]:
    gone = host.remote.tip(request.head) is None and host.software is HostSoftware.GITEA
    return {
        "number": request.number,
        "html_url": f"{host.url}/{PROJECT}/pulls/{request.number}",
        "state": "open" if request.state == "open" else "closed",
        "merged_at": "2026-11-20T10:05:00Z" if request.state == "merged" else None,
        "head": {
            "ref": f"refs/pull/{request.number}/head" if gone else request.head,
            "label": request.head if host.software is HostSoftware.GITEA else f"{_owner(request)}:{request.head}",
            "repo": {"full_name": request.fork or PROJECT},
        },
    }


def _gitlab(host: GitHost, method: str, path: str, query: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
    root = f"/api/v4/projects/{PROJECT.replace('/', '%2F')}/merge_requests"
    if not path.startswith(root):
        return 404, {"message": "404 Project Not Found"}
    match method, path.removeprefix(root).strip("/").split("/"):
        case "GET", [""]:
            found = [each for each in reversed(host.requests) if each.head == query["source_branch"]]
            return 200, [_merge_request(host, each) for each in _page(found, query)]
        case "POST", [""]:
            head, base = body["source_branch"], body["target_branch"]
            refused = _refused(host, head, base)
            if refused:
                return 409, {"message": [refused]}
            return 201, _merge_request(host, _made(host, head, base, body["title"], body["description"]))
        case "GET", [number]:
            return 200, _merge_request(host, _of(host, number))
        case "PUT", [number]:
            assert body["state_event"] == "close"
            _of(host, number).state = "closed"
            return 200, _merge_request(host, _of(host, number))
        case "POST", [number, "notes"]:
            _of(host, number).comments.append(body["body"])
            return 201, {}
    return 404, {"message": "404 Not Found"}


def _merge_request(host: GitHost, request: Request) -> dict[str, Any]:
    by = request.closed_by
    return {
        "iid": request.number,
        "web_url": f"{host.url}/{PROJECT}/-/merge_requests/{request.number}",
        "state": "opened" if request.state == "open" else request.state,
        "closed_by": {"username": by} if by else None,
        "source_project_id": 666 if request.fork else 1,
        "target_project_id": 1,
    }


def _refused(host: GitHost, head: str, base: str) -> str:
    if any(each.head == head and each.state == "open" and not each.fork for each in host.requests):
        return f"A pull request already exists for {head}."
    return "" if host.remote.tip(head) is not None and host.remote.tip(base) is not None else "no such branch"


def _made(host: GitHost, head: str, base: str, title: str, body: str) -> Request:
    request = Request(number=len(host.requests) + 1, head=head, base=base, title=title, body=body)
    host.requests.append(request)
    return request


def _of(host: GitHost, number: str) -> Request:
    return host.requests[int(number) - 1]


@contextmanager
def hosting(software: HostSoftware, remote: Remote) -> Iterator[GitHost]:
    """Serve a host on loopback."""
    host = GitHost(software=software, remote=remote)
    with LoopbackServer(type("Handler", (_Handler,), {"host": host})) as server:
        host.url = server.url
        yield host
