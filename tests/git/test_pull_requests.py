"""The pull request of a branch is found among all others, and is never one of a fork."""

from __future__ import annotations

import pytest

from reconciler.adapters.git.remote import Credentials
from reconciler.adapters.pull_requests import HostPullRequests
from reconciler.core.readiness.branch_rules import HostSoftware
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
