"""What an event says, and what engines make of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from reconciler.core.engines import WEBHOOKS
from reconciler.core.engines.webhook import MOST_BYTES, signed, web_page
from reconciler.model.events.event import MOST_PATHS, Endpoint, Push
from reconciler.model.ids import CommitId
from reconciler.model.policy import EngineName
from tests.fakes.engine_webhooks import SECRET, refreshes

A, B, C, D = (CommitId(letter * 40) for letter in "abcd")
HTTPS = "https://git.example.com/ml/fleet.git"
PUSH = Push(
    branch="env/placements",
    old=A,
    new=B,
    commits=2,
    repo_url=HTTPS,
    paths=frozenset({"clusters/worker-2/vllm-1/placement.yaml", "clusters/worker-3/vllm-2"}),
)


def argo_cd_event(push: Push) -> dict[str, Any]:
    """Return the event that Argo CD would get."""
    endpoint = Endpoint(engine=EngineName.ARGOCD, url="https://argocd.example.com/api/webhook", secret=SECRET)
    event: dict[str, Any] = json.loads(signed(WEBHOOKS[endpoint.engine], endpoint, push)[1])
    return event


@pytest.mark.parametrize(
    "repo_url",
    [
        HTTPS,
        "https://git.example.com/ml/fleet",
        "https://git.example.com:8443/ml/fleet.git",
        "http://git.example.com/ml/fleet/",
        "git@git.example.com:ml/fleet.git",
        "git.example.com:ml/fleet.git",
        "ssh://git@git.example.com/ml/fleet.git",
        "ssh://git@git.example.com:2222/ml/fleet",
        "ssh://git@ssh.github.com:443/ml/fleet.git",
    ],
)
def test_applications_of_the_repository_are_refreshed_however_its_address_is_written(repo_url: str) -> None:
    event = argo_cd_event(replace(PUSH, repo_url=repo_url))
    assert refreshes(event, repo_url=repo_url, revision="refs/heads/env/placements", paths=[])
    assert not refreshes(event, repo_url=repo_url, revision="refs/heads/main", paths=[])
    assert not refreshes(event, repo_url="https://git.example.com/ml/other.git", revision="env/placements", paths=[])


@pytest.mark.parametrize("repo_url", ["", "/srv/git/fleet.git", "file:///srv/git/fleet.git", "https://[", "git://h/x"])
def test_an_address_that_argo_cd_could_not_compare_has_no_page(repo_url: str) -> None:
    assert web_page(repo_url) == ""


def test_a_login_in_the_address_of_the_repository_is_not_passed_on() -> None:
    page = web_page("https://ann:" + "hunter" + "2@git.example.com/ml/fleet.git")
    assert page == "https://git.example.com/ml/fleet"


def test_only_applications_whose_files_changed_are_refreshed_also_when_all_of_them_went() -> None:
    event, seen = argo_cd_event(PUSH), {"repo_url": HTTPS, "revision": "refs/heads/env/placements"}
    assert refreshes(event, **seen, paths=["/clusters/worker-2/vllm-1"])
    assert refreshes(event, **seen, paths=["/clusters/worker-3/vllm-2"])
    assert not refreshes(event, **seen, paths=["/clusters/worker-2/vllm-10"])
    assert (event["before"], event["after"]) == (A, B)


def test_the_branchs_first_push_comes_from_nothing() -> None:
    assert argo_cd_event(replace(PUSH, old=None))["before"] == "0" * 40


def test_too_many_paths_are_told_as_none_which_refreshes_everything() -> None:
    paths = frozenset(f"clusters/worker-2/{'x' * 50}-{number}/placement.yaml" for number in range(MOST_BYTES // 60))
    headers, body = signed(
        WEBHOOKS[EngineName.FLUX],
        Endpoint(engine=EngineName.FLUX, url="https://flux.example.com/hook/x", secret=SECRET),
        replace(PUSH, paths=paths),
    )
    assert len(body) < 1000
    assert json.loads(body)["commits"] == []
    assert headers["X-Signature"].startswith("sha256=")
    assert refreshes(json.loads(body), repo_url=HTTPS, revision="refs/heads/env/placements", paths=["/clusters/a/b"])


def test_moves_in_a_row_are_one_move_with_the_paths_of_both() -> None:
    both = PUSH.then(replace(PUSH, old=B, new=C, commits=1, paths=frozenset({"clusters/worker-1/vllm-3"})))
    assert (both.old, both.new, both.commits) == (A, C, 3)
    assert both.paths == (PUSH.paths or frozenset()) | {"clusters/worker-1/vllm-3"}


def test_moves_with_somebody_elses_commit_between_them_may_have_changed_anything() -> None:
    assert PUSH.then(replace(PUSH, old=C, new=D)).paths is None
    assert PUSH.then(replace(PUSH, old=C, new=D)).then(replace(PUSH, old=D, new=B)).paths is None


def test_paths_do_not_gather_without_end_while_an_engine_is_away() -> None:
    push, tip = PUSH, B
    for number in range(3):
        new = CommitId(f"{number}" * 40)
        paths = frozenset(f"clusters/worker-2/{number}-{index}" for index in range(MOST_PATHS // 2))
        push, tip = push.then(replace(PUSH, old=tip, new=new, paths=paths)), new
    assert push.paths is None
    assert push.old == A


def test_the_address_of_the_later_move_holds_if_it_has_one() -> None:
    assert PUSH.then(replace(PUSH, old=B, new=C, repo_url="")).repo_url == HTTPS
    assert PUSH.then(replace(PUSH, old=B, new=C, repo_url="https://new.example.com/x")).repo_url.startswith(
        "https://new"
    )
