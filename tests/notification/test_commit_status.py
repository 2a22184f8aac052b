"""Commit statuses of GitHub's, GitLab's and Gitea's APIs, at a host that answers as they do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.adapters.git import Credentials
from reconciler.adapters.notification.commit_status import CommitStatusSender
from reconciler.adapters.notification.sender import ONLY, NotTaken
from reconciler.core.notification.commit_status import status_request
from reconciler.core.readiness.branch_rules import HostSoftware
from reconciler.model.events.event import Event, Notice
from reconciler.model.events.event_kind import EventKind
from reconciler.model.events.notification import Importance
from reconciler.model.ids import CommitId
from tests.builders.notifications import VLLM
from tests.fakes.loopback import LoopbackHandler, LoopbackServer

SOURCE = CommitId("5" * 40)
AT = datetime(2026, 11, 20, tzinfo=UTC)


def notice(kind: EventKind = EventKind.PLACED, importance: Importance = Importance.INFO) -> Notice:
    event = Event(kind=kind, at=AT, line="burst(llm/vllm): 3 replicas on worker-2 for 10m", workload=VLLM)
    return Notice(id="a" * 40, event=event, importance=importance, source=SOURCE)


@dataclass
class Host:
    """A git host of one software, which keeps statuses."""

    software: HostSoftware
    url: str = ""
    status: int = 201
    answer: Any = None
    posted: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)


@contextmanager
def hosting(software: HostSoftware) -> Iterator[Host]:
    host = Host(software)

    class Handler(LoopbackHandler):
        def do_GET(self) -> None:
            documents = {
                HostSoftware.GITEA: {"/api/v1/version": {"version": "1.25.0"}, "/api/v1/repos/acme/fleet": {}},
                HostSoftware.GITLAB: {
                    "/api/v4/version": {"version": "18.6.0", "revision": "f00"},
                    "/api/v4/projects/acme%2Ffleet": {},
                },
            }[software]
            self.reply_json(200, documents[self.path]) if self.path in documents else self.reply_json(404, {})

        def do_POST(self) -> None:
            body = json.loads(self.body())
            host.posted.append((self.path, dict(self.headers.items()), body))
            self.reply_json(host.status, host.answer or {})

    with LoopbackServer(Handler) as server:
        host.url = f"{server.url}/acme/fleet.git"
        yield host


def sender(host: Host, remarks: list[str], token: str = "") -> CommitStatusSender:
    given = Credentials(username="bot", password="git-" + "word")
    return CommitStatusSender(host.url, given, (lambda: token) if token else None, remark=remarks.append, timeout=5)


@pytest.mark.parametrize(
    ("software", "path", "states"),
    [
        (HostSoftware.GITHUB, "/repos/acme/fleet/statuses/", ("success", "failure")),
        (HostSoftware.GITLAB, "/api/v4/projects/acme%2Ffleet/statuses/", ("success", "failed")),
        (HostSoftware.GITEA, "/api/v1/repos/acme/fleet/statuses/", ("success", "failure")),
    ],
)
def test_request_is_that_of_the_host(software: HostSoftware, path: str, states: tuple[str, str]) -> None:
    placed = status_request(software, "acme/fleet", notice(), SOURCE)
    failed = status_request(software, "acme/fleet", notice(EventKind.FAILED, Importance.ERROR), SOURCE)
    assert placed.path == f"{path}{SOURCE}"
    assert (placed.body["state"], failed.body["state"]) == states
    assert placed.body["context"] == "overspill/llm/vllm"
    assert len(placed.body["description"]) <= 140


@pytest.mark.parametrize("software", [HostSoftware.GITLAB, HostSoftware.GITEA])
def test_status_is_set_on_the_source_commit_with_the_login_of_git(software: HostSoftware) -> None:
    with hosting(software) as host:
        sender(host, []).send(ONLY, (notice(),))
        ((path, headers, body),) = host.posted
    assert path.endswith(f"/statuses/{SOURCE}")
    assert body["description"] == "burst(llm/vllm): 3 replicas on worker-2 for 10m"
    assert headers["Authorization"].startswith("Basic " if software is HostSoftware.GITEA else "Bearer git-")


def test_named_token_goes_before_the_login_of_git() -> None:
    with hosting(HostSoftware.GITEA) as host:
        sender(host, [], "own-" + "word").send(ONLY, (notice(),))
        assert host.posted[0][1]["Authorization"] == "Bearer own-word"


def test_status_that_gitlab_has_already_is_no_failure() -> None:
    with hosting(HostSoftware.GITLAB) as host:
        host.status, host.answer = 400, {"message": "Cannot transition status via :succeed from :success"}
        sender(host, []).send(ONLY, (notice(),))


def test_commit_that_the_host_does_not_have_holds_up_no_other() -> None:
    remarks: list[str] = []
    with hosting(HostSoftware.GITEA) as host:
        host.status = 404
        sender(host, remarks).send(ONLY, (notice(),))
    assert remarks == ["Gitea takes no status of commit 555555555555: does it have it?"]


def test_token_without_the_right_is_told_with_a_way_out() -> None:
    with hosting(HostSoftware.GITLAB) as host:
        host.status = 403
        with pytest.raises(NotTaken, match=r"403 \(may its token write commit statuses\? Name one by tokenFrom\)"):
            sender(host, []).send(ONLY, (notice(),))


def test_host_that_is_not_known_is_told() -> None:
    unknown = CommitStatusSender("/srv/git/fleet.git", Credentials(), None, remark=str, timeout=5)
    with pytest.raises(NotTaken, match="none of GitHub, GitLab, Gitea and Forgejo"):
        unknown.send(ONLY, (notice(),))
