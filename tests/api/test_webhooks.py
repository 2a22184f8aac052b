"""A push hint is believed when it is signed, and then only as far as a look at the remote."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.api.app import create_app
from reconciler.daemon.loop import Vitals

SECRET = "between" + "-us-" + "two-hosts"
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
WAITING = Vitals(passes=1, bugs=0, idle=timedelta(0), stuck_after=timedelta(minutes=5))


class Clock:
    def now(self) -> datetime:
        return NOW


class Hooks:
    """The endpoints with one secret, and what woke the loop."""

    def __init__(self, secret: str = SECRET) -> None:
        self.secret = secret
        self.woken: list[str] = []
        app = create_app(
            pushed=PushedObservations(),
            wake=self.woken.append,
            clock=Clock(),
            vitals=lambda: WAITING,
            branches=("main", "placements"),
            webhook_secret=secret,
        )
        self.client = TestClient(app, raise_server_exceptions=False)

    def post(self, host: str, body: bytes, headers: Mapping[str, str]) -> int:
        answer = self.client.post(f"/api/v1/webhooks/{host}", content=body, headers=dict(headers))
        if answer.status_code >= 400:
            assert answer.json()["statusCode"] == answer.status_code
            assert SECRET not in answer.text
        return answer.status_code


def push_to(branch: str = "main") -> bytes:
    return json.dumps({"ref": f"refs/heads/{branch}", "after": "0" * 40}).encode()


def hexed(body: bytes, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def by_github(body: bytes, *, delivery: str = "1", event: str = "push") -> dict[str, str]:
    return {
        "X-Hub-Signature-256": f"sha256={hexed(body)}",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": delivery,
        "Content-Type": "application/json",
    }


def by_gitea(body: bytes, *, event: str = "push", delivery: str = "1") -> dict[str, str]:
    return {"X-Gitea-Signature": hexed(body), "X-Gitea-Event": event, "X-Gitea-Delivery": delivery}


def by_gitlab(
    body: bytes, *, at: datetime = NOW, key: bytes = SECRET.encode(), delivery: str = "1", event: str = "Push Hook"
) -> dict[str, str]:
    stamp = str(int(at.timestamp()))
    digest = hmac.new(key, f"{delivery}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": delivery,
        "webhook-timestamp": stamp,
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
        "X-Gitlab-Event": event,
    }


SIGNERS = {"github": by_github, "gitea": by_gitea, "gitlab": by_gitlab}


@pytest.mark.parametrize("host", SIGNERS)
@pytest.mark.parametrize("branch", ["main", "placements"])
def test_signed_push_to_one_of_the_branches_wakes(host: str, branch: str) -> None:
    hooks, body = Hooks(), push_to(branch)
    assert hooks.post(host, body, SIGNERS[host](body)) == 202
    assert hooks.woken == ["hint"]


@pytest.mark.parametrize("host", SIGNERS)
def test_push_to_another_branch_is_taken_and_passed_over(host: str) -> None:
    hooks, body = Hooks(), push_to("feature/main")
    assert hooks.post(host, body, SIGNERS[host](body)) == 204
    assert hooks.woken == []


@pytest.mark.parametrize("host", SIGNERS)
def test_other_event_is_taken_and_passed_over(host: str) -> None:
    hooks, body = Hooks(), push_to()
    assert hooks.post(host, body, SIGNERS[host](body, event="ping")) == 204
    assert hooks.woken == []


@pytest.mark.parametrize("host", SIGNERS)
def test_body_that_was_changed_on_the_way_is_refused(host: str) -> None:
    hooks, body = Hooks(), push_to()
    assert hooks.post(host, body + b" ", SIGNERS[host](body)) == 401
    assert hooks.woken == []


@pytest.mark.parametrize("host", SIGNERS)
def test_unsigned_call_is_refused(host: str) -> None:
    hooks = Hooks()
    assert hooks.post(host, push_to(), {"X-GitHub-Event": "push", "X-Gitea-Event": "push"}) == 401
    assert hooks.woken == []


@pytest.mark.parametrize("host", SIGNERS)
def test_without_a_secret_nobody_is_let_in(host: str) -> None:
    hooks, body = Hooks(secret=""), push_to()
    headers = SIGNERS[host](body) | {"X-Gitlab-Token": "", "X-Hub-Signature-256": f"sha256={hexed(body, '')}"}
    answer = hooks.client.post(f"/api/v1/webhooks/{host}", content=body, headers=headers)
    assert answer.status_code == 403
    assert "OVERSPILL_WEBHOOK_SECRET" in answer.json()["error"]["hint"]
    assert hooks.woken == []


@pytest.mark.parametrize("host", SIGNERS)
def test_delivery_that_is_sent_twice_wakes_once(host: str) -> None:
    hooks, body = Hooks(), push_to()
    for _ in range(3):
        assert hooks.post(host, body, SIGNERS[host](body)) == 202
    assert hooks.post(host, body, SIGNERS[host](body, delivery="2")) == 202
    assert hooks.woken == ["hint", "hint"]


def test_forged_delivery_does_not_use_up_its_id() -> None:
    hooks, body = Hooks(), push_to()
    assert hooks.post("github", body, by_github(b"other")) == 401
    assert hooks.post("github", body, by_github(body)) == 202
    assert hooks.woken == ["hint"]


def test_gitea_may_sign_as_github_does() -> None:
    hooks, body = Hooks(), push_to()
    headers = {"X-Hub-Signature-256": f"sha256={hexed(body)}", "X-Gitea-Event": "push"}
    assert hooks.post("gitea", body, headers) == 202


def test_github_may_send_its_payload_as_a_form() -> None:
    hooks = Hooks()
    body = urlencode({"payload": push_to().decode()}).encode()
    headers = by_github(body) | {"Content-Type": "application/x-www-form-urlencoded"}
    assert hooks.post("github", body, headers) == 202
    assert hooks.woken == ["hint"]


def test_gitlab_signing_token_is_a_key_in_base64() -> None:
    key = bytes(range(32))
    hooks, body = Hooks(secret="whsec_" + base64.b64encode(key).decode()), push_to()
    assert hooks.post("gitlab", body, by_gitlab(body, key=key)) == 202


@pytest.mark.parametrize("minutes", [-6, 6])
def test_gitlab_signature_from_another_time_is_refused(minutes: int) -> None:
    hooks, body = Hooks(), push_to()
    assert hooks.post("gitlab", body, by_gitlab(body, at=NOW + timedelta(minutes=minutes))) == 401


@pytest.mark.parametrize("stamp", ["", "soon", "-1", "9" * 400, "١٢٣"])
def test_gitlab_time_that_is_none_is_refused(stamp: str) -> None:
    hooks, body = Hooks(), push_to()
    headers = {name: value.encode() for name, value in (by_gitlab(body) | {"webhook-timestamp": stamp}).items()}
    assert hooks.client.post("/api/v1/webhooks/gitlab", content=body, headers=headers).status_code == 401


def test_gitlab_may_send_two_signatures_while_a_token_is_exchanged() -> None:
    hooks, body = Hooks(), push_to()
    headers = by_gitlab(body)
    headers["webhook-signature"] = f"v1,{base64.b64encode(b'old').decode()} {headers['webhook-signature']}"
    assert hooks.post("gitlab", body, headers) == 202


def test_older_gitlab_sends_the_secret_itself() -> None:
    hooks, body = Hooks(), push_to()
    assert hooks.post("gitlab", body, {"X-Gitlab-Token": SECRET, "X-Gitlab-Event": "Push Hook"}) == 202
    assert hooks.post("gitlab", body, {"X-Gitlab-Token": SECRET + "x", "X-Gitlab-Event": "Push Hook"}) == 401


def test_wrong_signature_is_not_saved_by_the_older_header() -> None:
    hooks, body = Hooks(), push_to()
    headers = by_gitlab(body, key=b"another") | {"X-Gitlab-Token": SECRET}
    assert hooks.post("gitlab", body, headers) == 401


def test_body_over_a_mebibyte_is_refused_before_it_is_checked() -> None:
    hooks, body = Hooks(), b" " * (2**20 + 1)
    assert hooks.post("github", body, by_github(body)) == 413


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b"\xff"])
def test_signed_nonsense_is_told_so(body: bytes) -> None:
    hooks = Hooks()
    assert hooks.post("github", body, by_github(body)) == 400
    assert hooks.woken == []


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"ref": 7}', b'{"ref": "refs/tags/main"}'])
def test_signed_push_of_no_branch_is_passed_over(body: bytes) -> None:
    hooks = Hooks()
    assert hooks.post("github", body, by_github(body)) == 204


def test_deliveries_that_prove_nothing_are_refused_without_a_look_after_a_while() -> None:
    hooks = Hooks()
    statuses = [hooks.post("github", push_to(), {"X-GitHub-Event": "push"}) for _ in range(300)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert not hooks.woken


@pytest.mark.parametrize("path", ["/api/v1/webhooks/github", "/api/v1/observations"])
def test_connection_that_is_closed_within_a_body_is_one_line_of_log(path: str) -> None:
    app = Hooks().client.app
    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "path": path, "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"content-length", b"1000"), (b"authorization", b"Bearer " + SECRET.encode())], "scheme": "http",
        "client": ("192.0.2.1", 1), "server": ("127.0.0.1", 80), "root_path": "",
    }  # fmt: skip # a request, filled line by line
    sent: list[dict[str, object]] = []

    async def half(messages: list[dict[str, object]]) -> dict[str, object]:
        return messages.pop(0)

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    async def ask() -> None:
        messages = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
        await app(dict(scope), lambda: half(messages), send)

    with capture_logs() as log:
        for _ in range(50):
            asyncio.run(ask())
    assert len(log) <= 2
    assert not any("exception" in entry or "exc_info" in entry for entry in log)
