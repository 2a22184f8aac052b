"""Pull requests on GitHub, GitLab, and Gitea or Forgejo, by which bursts are proposed (a `ports.PullRequests`).

The login is that of git, for the host of the repository alone. https://docs.github.com/rest/pulls/pulls,
https://docs.gitlab.com/api/merge_requests, and the Swagger file of Gitea.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from urllib.parse import quote

from reconciler.adapters.git.remote import Credentials, check_address
from reconciler.adapters.git.remote_errors import RATE_LIMIT_PAUSE
from reconciler.adapters.git_host import HostAddress, find_host
from reconciler.core.readiness.branch_rules import HostSoftware
from reconciler.errors import InvalidInput, Transient
from reconciler.http_client import HttpAnswer, HttpClient, NoAnswer
from reconciler.model.approval import PullRequest, PullRequestState
from reconciler.model.workload import Json
from reconciler.text.findings import shortened
from reconciler.text.json_fields import JsonObject, UnreadableField

_LIMIT = 4 << 20
"""Bytes that are read of an answer."""
_LONGEST_PAUSE = timedelta(hours=1)
"""Windows of hosts last an hour; whatever one asks for, it is asked again after that."""
_PAGE = 50
_PAGES = 20
"""Most pages that are read of a list, the newest first: an older pull request is taken for none."""
_NUMBER = re.compile(r"/([0-9]{1,9})/?$")
_MOST_NUMBER = 1 << 31
_TAKEN = frozenset({HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY})
"""What hosts answer where a branch has a pull request already."""


class HostPullRequests:
    """The pull requests of the repository at an address; `timeout` is in seconds, for each answer.

    The host is asked for its software once it answers; not safe for several threads.
    """

    def __init__(self, url: str, credentials: Credentials, *, timeout: float) -> None:
        remote = check_address(url, credentials)
        self._url, self._credentials, self._timeout = remote.url, remote.credentials, timeout
        self._dialect: _Dialect | None = None

    def available(self) -> bool:
        """Return whether the host is one of those, and the login has a password or token."""
        return self._connect() is not None

    def find(self, branch: str, *, known: str = "") -> PullRequest | None:
        """Find the newest pull request of a branch, by its number where its URL is `known`."""
        number = _NUMBER.search(known)
        return self._host().by_number(int(number[1])) if number else self._host().find(branch)

    def open(self, branch: str, base: str, *, title: str, body: str) -> PullRequest:
        """Make a pull request, or return the one that the branch has already."""
        host = self._host()
        request = host.open(branch, base, title, body) or host.find(branch)
        if request is None:
            raise InvalidInput(f"opening a pull request of {branch} to {base}: the host refuses it, and has none")
        return request

    def comment(self, request: PullRequest, text: str) -> None:
        """Say something on a pull request."""
        self._host().comment(request.number, text)

    def close(self, request: PullRequest, *, comment: str) -> None:
        """Say why, and close a pull request that is open."""
        host = self._host()
        host.comment(request.number, comment)
        host.close(request.number)

    def shut(self) -> None:
        """Close all connections; they are opened again where they are needed."""
        if self._dialect is not None:
            self._dialect.shut()
            self._dialect = None

    def _host(self) -> _Dialect:
        dialect = self._connect()
        if dialect is None:
            raise InvalidInput(f"{self._url} is on no host with pull requests that is known here")
        return dialect

    def _connect(self) -> _Dialect | None:
        if self._dialect is None and self._credentials.current_password():
            http = HttpClient(timeout=self._timeout)
            host = find_host(http, self._url, self._credentials)
            if host is None:
                http.close()
                return None
            self._dialect = _DIALECTS[host.software](http, host)
        return self._dialect


class _Dialect(ABC):
    """The calls of one software."""

    def __init__(self, http: HttpClient, host: HostAddress) -> None:
        self._http, self._host = http, host

    def shut(self) -> None:
        self._http.close()

    @abstractmethod
    def find(self, branch: str) -> PullRequest | None: ...

    @abstractmethod
    def by_number(self, number: int) -> PullRequest | None: ...

    @abstractmethod
    def open(self, branch: str, base: str, title: str, body: str) -> PullRequest | None: ...

    @abstractmethod
    def comment(self, number: int, text: str) -> None: ...

    @abstractmethod
    def close(self, number: int) -> None: ...

    def _ask(self, method: str, path: str, body: Mapping[str, str | bool] | None = None) -> HttpAnswer:
        """Make one call. Raises Transient where the host does not answer or is unwell."""
        doing = f"asking {self._host.software} for {self._host.project}"
        headers = {"Accept": "application/json", **self._host.headers()}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        try:
            answer = self._http.send(method, f"{self._host.api}{path}", headers=headers, body=data, limit=_LIMIT)
        except NoAnswer as error:
            raise Transient(f"{doing}: {error}") from error
        if answer.asks_for_quiet:
            pause = min(max(answer.retry_after, RATE_LIMIT_PAUSE), _LONGEST_PAUSE)
            raise Transient(f"{doing}: it answers {answer.status} {answer.reason} (a rate limit)", pause=pause)
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise Transient(f"{doing}: it answers {answer.status} {answer.reason}")
        return answer

    def _read(self, path: str) -> JsonObject | None:
        """Return the object of an answer; None for 404. Raises InvalidInput for anything else."""
        answer = self._ask("GET", path)
        return None if answer.status == HTTPStatus.NOT_FOUND else self._object(answer, path)

    def _entries(self, path: str, size: str) -> Iterator[JsonObject]:
        """List what is on all pages of a list; `size` is the host's word for how much is on one.

        A host may put less on a page than it is asked for, so that only an empty one is the last. What is no object
        can be no pull request of ours.
        """
        for page in range(1, _PAGES + 1):
            address = f"{path}&{size}={_PAGE}&page={page}"
            answer = self._ask("GET", address)
            listed = None if answer.status == HTTPStatus.NOT_FOUND else self._checked(answer, address)
            if not isinstance(listed, list) or not listed:
                return
            yield from (JsonObject(entry) for entry in listed if isinstance(entry, Mapping))

    def _first(self, path: str, size: str, is_wanted: Callable[[JsonObject], bool]) -> PullRequest | None:
        """Find the first of a list that is wanted; an entry that cannot be judged costs itself."""
        for entry in self._entries(path, size):
            try:
                wanted = is_wanted(entry)
            except UnreadableField:
                continue
            if wanted:
                return self._request(entry, path)
        return None

    def _request(self, entry: JsonObject, path: str) -> PullRequest:
        """Return the pull request of an object. Raises InvalidInput that names the field that is unreadable."""
        try:
            return self._value(entry)
        except UnreadableField as error:
            raise self._strange(path, str(error)) from error

    @abstractmethod
    def _value(self, entry: JsonObject) -> PullRequest: ...

    def _write(self, method: str, path: str, body: Mapping[str, str | bool]) -> None:
        self._checked(self._ask(method, path, body), path)

    def _open(self, path: str, body: Mapping[str, str | bool]) -> PullRequest | None:
        answer = self._ask("POST", path, body)
        return None if answer.status in _TAKEN else self._request(self._object(answer, path), path)

    def _object(self, answer: HttpAnswer, path: str) -> JsonObject:
        value = self._checked(answer, path)
        if not isinstance(value, Mapping):
            raise self._strange(path, "it is no object of JSON")
        return JsonObject(value)

    def _strange(self, path: str, why: str) -> InvalidInput:
        return InvalidInput(
            f"reading the answer of {self._host.software} to {path.partition('?')[0]}: {why}"
            " (is a proxy in front of it, or another software at that address?)"
        )

    def _checked(self, answer: HttpAnswer, path: str) -> Json:
        if answer.status >= HTTPStatus.BAD_REQUEST:
            said = answer.json.get("message", "") if isinstance(answer.json, Mapping) else ""
            raise InvalidInput(
                f"{self._host.software} answers {answer.status} to {path}: {shortened(str(said))}"
                " (try a token of git that may write pull requests)"
            )
        return answer.json


class _GitHub(_Dialect):
    def find(self, branch: str) -> PullRequest | None:
        owner = self._host.project.partition("/")[0]
        head = quote(f"{owner}:{branch}", safe="")
        return self._newest(branch, f"{self._pulls}?state=all&head={head}", "per_page")

    def _newest(self, branch: str, path: str, size: str) -> PullRequest | None:
        """Find the first of a list that is of this repository: a fork, of the same owner too, may name a branch so."""

        def is_ours(entry: JsonObject) -> bool:
            head = entry.object("head")
            repository = head.object("repo").text("full_name")  # none where its fork was deleted
            named = branch in (head.text("ref"), head.text("label"))
            return named and repository.casefold() == self._host.project.casefold()

        return self._first(path, size, is_ours)

    def by_number(self, number: int) -> PullRequest | None:
        path = f"{self._pulls}/{number}"
        entry = self._read(path)
        request = None if entry is None else self._request(entry, path)
        if request is None or request.state is not PullRequestState.CLOSED:
            return request
        issue = self._read(f"/repos/{self._host.project}/issues/{number}")  # which tells who closed it
        return request if issue is None else replace(request, closed_by=_login(issue, "login"))

    def open(self, branch: str, base: str, title: str, body: str) -> PullRequest | None:
        return self._open(self._pulls, {"head": branch, "base": base, "title": title, "body": body})

    def comment(self, number: int, text: str) -> None:
        self._write("POST", f"/repos/{self._host.project}/issues/{number}/comments", {"body": text})

    def close(self, number: int) -> None:
        self._write("PATCH", f"{self._pulls}/{number}", {"state": "closed"})

    @property
    def _pulls(self) -> str:
        return f"/repos/{self._host.project}/pulls"

    def _value(self, entry: JsonObject) -> PullRequest:
        state = PullRequestState.CLOSED if entry.required_text("state") == "closed" else PullRequestState.OPEN
        state = PullRequestState.MERGED if entry.text("merged_at") else state
        number = entry.number("number", most=_MOST_NUMBER)
        return PullRequest(number=number, url=entry.required_text("html_url"), state=state)


class _Gitea(_GitHub):
    """Gitea's calls are GitHub's under another root, but for the search by branch."""

    def find(self, branch: str) -> PullRequest | None:
        return self._newest(branch, f"{self._pulls}?state=all&sort=recentupdate", "limit")

    def by_number(self, number: int) -> PullRequest | None:
        path = f"{self._pulls}/{number}"
        entry = self._read(path)
        return None if entry is None else self._request(entry, path)

    def comment(self, number: int, text: str) -> None:
        self._write("POST", f"/api/v1/repos/{self._host.project}/issues/{number}/comments", {"body": text})

    @property
    def _pulls(self) -> str:
        return f"/api/v1/repos/{self._host.project}/pulls"


class _GitLab(_Dialect):
    def find(self, branch: str) -> PullRequest | None:
        path = f"{self._requests}?state=all&source_branch={quote(branch, safe='')}"
        # Those of forks that have a branch of the same name are in the list as well.
        return self._first(path, "per_page", _is_within)

    def by_number(self, number: int) -> PullRequest | None:
        path = f"{self._requests}/{number}"
        entry = self._read(path)
        return None if entry is None else self._request(entry, path)

    def open(self, branch: str, base: str, title: str, body: str) -> PullRequest | None:
        return self._open(
            self._requests, {"source_branch": branch, "target_branch": base, "title": title, "description": body}
        )

    def comment(self, number: int, text: str) -> None:
        self._write("POST", f"{self._requests}/{number}/notes", {"body": text})

    def close(self, number: int) -> None:
        self._write("PUT", f"{self._requests}/{number}", {"state_event": "close"})

    @property
    def _requests(self) -> str:
        return f"/api/v4/projects/{quote(self._host.project, safe='')}/merge_requests"

    def _value(self, entry: JsonObject) -> PullRequest:
        states = {"merged": PullRequestState.MERGED, "closed": PullRequestState.CLOSED}
        return PullRequest(
            number=entry.number("iid", most=_MOST_NUMBER),
            url=entry.required_text("web_url"),
            state=states.get(entry.required_text("state"), PullRequestState.OPEN),
            closed_by=_login(entry, "username"),
        )


def _is_within(entry: JsonObject) -> bool:
    """Return whether a merge request comes from the project that it goes to."""
    return entry.number("source_project_id") == entry.number("target_project_id")


def _login(entry: JsonObject, field: str) -> str:
    """Return who closed it; a host may not say, or not so that it can be read."""
    try:
        return entry.object("closed_by").text(field)
    except UnreadableField:
        return ""


_DIALECTS: Mapping[HostSoftware, type[_Dialect]] = {
    HostSoftware.GITHUB: _GitHub,
    HostSoftware.GITLAB: _GitLab,
    HostSoftware.GITEA: _Gitea,
}
