"""The pull request of a branch is found among all others, and is never one of a fork."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from reconciler.adapters.git.remote import Credentials
from reconciler.adapters.pull_requests import HostPullRequests
from reconciler.core.readiness.branch_rules import HostSoftware
from reconciler.errors import InvalidInput, Transient
from reconciler.model.approval import PullRequest
from tests.builders.remote import Remote
from tests.fakes.git_host import TOKEN, GitHost, Request, hosting

BRANCH = "overspill/proposals/llm/vllm-0123456789ab"
every_host = pytest.mark.parametrize("software", HostSoftware)


def find(host: GitHost) -> PullRequest | None:
    login = Credentials(username="overspill", password=TOKEN)
    pull_requests = HostPullRequests(host.repository, login, timeout=5)
    try:
        return pull_requests.find(BRANCH)
    finally:
        pull_requests.shut()


def add(host: GitHost, head: str) -> None:
    host.requests.append(Request(number=len(host.requests) + 1, head=head, base="main", title="Any", body=""))


@every_host
@pytest.mark.parametrize("fork", ["mallory/fleet", "acme/fleet-2"])
def test_pull_request_of_a_fork_is_not_taken_for_ours(remote: Remote, software: HostSoftware, fork: str) -> None:
    remote.commit(BRANCH, {"a": "b"})
    with hosting(software, remote) as host:
        host.close(host.open_from_fork(BRANCH, fork))
        assert find(host) is None
        add(host, BRANCH)
        for _ in range(60):
            host.close(host.open_from_fork(BRANCH, fork))
        found = find(host)
        assert found is not None
        assert found.number == 2


@every_host
def test_pull_request_is_found_behind_many_newer_ones(remote: Remote, software: HostSoftware) -> None:
    remote.commit(BRANCH, {"a": "b"})
    with hosting(software, remote) as host:
        add(host, BRANCH)
        for number in range(120):
            add(host, f"topic-{number}")
        found = find(host)
        assert found is not None
        assert found.number == 1


@every_host
def test_branch_without_a_pull_request_has_none(remote: Remote, software: HostSoftware) -> None:
    with hosting(software, remote) as host:
        for number in range(50):
            add(host, f"topic-{number}")
        assert find(host) is None


JUNK: list[object] = [
    None, 7, "x", [], {}, [[]], [None, 7, "x", [], {}], {"number": 1}, [{"head": 7}],
    [{"head": {"ref": BRANCH, "repo": []}}], b"<html>log in</html>", b"[" * 5000, b"9" * 5000, b"\xff\xfe",
    b'"\\ud800"', b'[{"head": {"ref": "\\ud800"}}]', b"[1e999]",
]  # fmt: skip # a list, filled line by line


@every_host
@pytest.mark.parametrize("junk", JUNK, ids=[repr(junk)[:20] for junk in JUNK])
@pytest.mark.exhaustive(one_in=5)
def test_list_of_junk_has_no_pull_request_or_is_told(remote: Remote, software: HostSoftware, junk: object) -> None:
    with hosting(software, remote) as host:
        path = "/merge_requests" if software is HostSoftware.GITLAB else "/pulls"
        host.answers = {f"GET {path}": (200, junk)}
        try:
            assert find(host) is None
        except InvalidInput as error:
            assert "reading the answer of" in str(error)  # noqa: PT017 - either is right


@every_host
@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("number", None, "is missing, not a whole number"),
        ("number", "7", "is a text, not a whole number"),
        ("number", -1, "is not between 0"),
        ("number", 10**30, "is not between 0"),
        ("number", True, "is true or false"),
        ("url", {}, "is an object, not a text"),
        ("url", None, "is missing"),
        ("state", [], "is a list, not a text"),
    ],
)
def test_pull_request_of_another_shape_names_the_field(
    remote: Remote, software: HostSoftware, field: str, value: object, why: str
) -> None:
    remote.commit(BRANCH, {"a": "b"})
    lab = software is HostSoftware.GITLAB
    names = {"number": "iid", "url": "web_url"} if lab else {"url": "html_url"}
    good = {"number": 1, "iid": 1, "html_url": "https://x/1", "web_url": "https://x/1", "state": "opened"}
    with hosting(software, remote) as host:
        kind = "merge_requests" if lab else "pulls"
        host.answers = {f"GET /{kind}/7": (200, {**good, names.get(field, field): value})}
        login = Credentials(username="overspill", password=TOKEN)
        pull_requests = HostPullRequests(host.repository, login, timeout=5)
        try:
            with pytest.raises(InvalidInput, match=f"{names.get(field, field)} {why}"):
                pull_requests.find(BRANCH, known=f"https://x/{kind}/7")
        finally:
            pull_requests.shut()


def test_pages_without_an_end_are_read_to_a_limit(remote: Remote) -> None:
    with hosting(HostSoftware.GITEA, remote) as host:
        host.answers = {"GET /pulls": (200, [{"number": 1}])}
        assert find(host) is None
        assert 2 < len(host.calls) < 30


@every_host
@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, {}, 30),
        (429, {"Retry-After": "600"}, 600),
        (429, {"Retry-After": "5"}, 30),
        (429, {"Retry-After": "31536000"}, 3600),
        (403, {"Retry-After": "90"}, 90),  # GitHub's secondary limits
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "{soon}"}, 300),  # and its primary one
        (429, {"RateLimit-Reset": "{soon}"}, 300),
        (503, {"Retry-After": "120"}, 120),
        (503, {}, None),
    ],
)
def test_host_is_left_alone_for_as_long_as_it_asks(
    remote: Remote, software: HostSoftware, status: int, headers: dict[str, str], seconds: int | None
) -> None:
    with hosting(software, remote) as host:
        host.answers = {f"GET {path}": (status, {"message": "slow down"}) for path in ("pulls", "merge_requests")}
        host.headers = {name: value.format(soon=int(time.time()) + 300) for name, value in headers.items()}
        with pytest.raises(Transient, match=f"{status}") as caught:
            find(host)
    if seconds is None:
        assert caught.value.pause is None
    else:
        assert caught.value.pause is not None
        assert abs(caught.value.pause - timedelta(seconds=seconds)) < timedelta(seconds=10)
        assert "a rate limit" in str(caught.value)


def test_login_that_may_not_is_no_rate_limit(remote: Remote) -> None:
    with hosting(HostSoftware.GITHUB, remote) as host:
        host.answers = {"GET pulls": (403, {"message": "Resource not accessible"})}
        host.headers = {"X-RateLimit-Remaining": "4999", "X-RateLimit-Reset": "1800000000"}
        with pytest.raises(InvalidInput, match="try a token of git that may write pull requests"):
            find(host)
