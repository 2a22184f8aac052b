"""The callers that the API lets in with a token of the access file, those that it refuses, and with what answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO

import pytest
import structlog
from structlog.testing import capture_logs

from reconciler.access.rate_limit import parse_rate
from reconciler.access.rights import Access, AccessRole
from reconciler.adapters import logs as logging
from tests.builders.api_server import ACCESS, ADA, CI, OLD, SecuredApi, held, open_api

NOBODYS = "ovs_" + "Zz9-" * 10 + "xyz"


@pytest.fixture
def secured() -> Iterator[SecuredApi]:
    with open_api(access=lambda: ACCESS) as opened:
        yield opened


def test_bearer_is_told_who_they_are(secured: SecuredApi) -> None:
    answer = secured.call(token=CI)
    assert answer.body == {
        "statusCode": 200,
        "status": "OK",
        "message": "Success",
        "data": {"name": "ci", "email": "ci@example.com", "roles": {"llm": "Editor", "vision": "Viewer"}},
    }
    assert secured.call(token=ADA).body["data"]["roles"] == {"*": "Owner"}


@pytest.mark.parametrize("token", [NOBODYS, CI[:-1], CI + "x", CI.lower(), "guessed", "ovs_", OLD])
def test_wrong_token_is_refused_and_kept_out_of_answer_and_log(secured: SecuredApi, token: str) -> None:
    with capture_logs() as logs:
        answer = secured.call(token=token)
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="overspill", error="invalid_token"'
    assert answer.body["status"] == "Error"
    assert [entry["event"] for entry in logs] == ["request refused"]
    assert len(token) < 5 or token not in f"{logs}{answer.body}"


def test_expired_token_is_told_so_and_logged_with_whose_it_is(secured: SecuredApi) -> None:
    with capture_logs() as logs:
        answer = secured.call(token=OLD)
    assert answer.body["message"] == "the token expired at 2026-11-20T12:00:00Z"
    assert "ask for a new one" in answer.body["error"]["hint"]
    assert logs[0]["caller"] == "old"
    secured.clock.move(-1)
    assert secured.call(token=OLD).status == 200


@pytest.mark.parametrize("header", ["", "Basic YTpi", "Bearer", "Bearer  ", CI])
def test_request_without_a_bearer_token_is_told_how_to_send_one(secured: SecuredApi, header: str) -> None:
    answer = secured.call(Authorization=header)
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="overspill"'
    assert answer.body["error"]["hint"] == "try -H 'Authorization: Bearer ovs_...'"


def test_with_nothing_configured_everybody_is_refused_with_what_to_set() -> None:
    with open_api() as secured:
        answer = secured.call(token=CI)
    assert answer.status == 403
    assert "set OVERSPILL_API_TOKENS_FILE or OVERSPILL_OIDC_ISSUER" in answer.body["error"]["hint"]


def test_workspace_of_others_is_told_from_no_workspace_by_nothing(secured: SecuredApi) -> None:
    hidden, none = secured.call("/test/audio/things/x", CI), secured.call("/test/nowhere/things/x", CI)
    assert hidden.status == none.status == 404
    assert json.dumps(hidden.body).replace("audio", "nowhere") == json.dumps(none.body)
    assert secured.call("/test/audio/things/x", ADA).status == 200


def test_viewer_may_look_and_is_told_which_role_is_missing_for_more(secured: SecuredApi) -> None:
    assert secured.call("/test/vision/things/x", CI).status == 200
    with capture_logs() as logs:
        answer = secured.call("/test/vision/things/x", CI, method="PUT", body=b"{}")
    assert answer.status == 403
    assert answer.body["message"] == "ci is not an Editor of the workspace vision"
    assert logs[0]["caller"] == "ci"
    assert logs[0]["path"] == "/test/vision/things/x"


def test_editor_may_change(secured: SecuredApi) -> None:
    more = {"Content_Type": "application/json"}
    answer = secured.call("/test/llm/things/x", CI, method="PUT", body=b'{"replicas": 3}', **more)
    assert (answer.status, answer.body["data"]) == (200, {"x": {"replicas": 3}})


def test_whoever_may_not_learns_nothing_from_a_broken_body(secured: SecuredApi) -> None:
    assert secured.call("/test/audio/things/x", CI, method="PUT", body=b"{").status == 404
    assert secured.call("/test/audio/things/x", method="PUT", body=b"{").status == 401


def test_refusals_are_logged_once_a_minute_whatever_stands_in_the_address(secured: SecuredApi) -> None:
    with capture_logs() as logs:
        for number in range(20):
            secured.call(f"/test/llm/things/{number}", ADA, method="DELETE")  # no such route, and no refusal of ours
            secured.call(f"/test/hidden-{number}/things/{number}", CI)
        secured.clock.move(61)
        secured.call("/test/hidden/things/x", CI)
    assert [(entry["status"], entry.get("more_before")) for entry in logs] == [(404, None), (404, 19)]


def test_each_caller_who_is_refused_is_named(secured: SecuredApi) -> None:
    with capture_logs() as logs:
        secured.call("/test/vision/things/x", CI, method="PUT", body=b"{}")
        secured.call("/test/vision/things/x", method="PUT", body=b"{}")
        secured.call("/test/vision/things/x", OLD, method="PUT", body=b"{}")
    assert [entry.get("caller", "") for entry in logs] == ["ci", "", "old"]


def test_caller_who_calls_too_often_is_told_when_to_come_again() -> None:
    with open_api(access=lambda: ACCESS, rate=parse_rate("2/m")) as secured:
        assert [secured.call(token=CI).status for _ in range(3)] == [200, 200, 429]
        assert secured.call(token=ADA).status == 200, "each has a rate of their own"
        answer = secured.call(token=CI)
        assert answer.headers["Retry-After"] == "30"
        assert answer.body["error"]["hint"] == "try again in 30 s"
        secured.clock.move(30)
        assert [secured.call(token=CI).status for _ in range(2)] == [200, 429]


def test_failed_logins_of_an_address_are_bounded_and_lock_nobody_out(secured: SecuredApi) -> None:
    statuses = [secured.call(token=NOBODYS).status for _ in range(12)]
    assert statuses == [401] * 10 + [429] * 2
    assert secured.call(token=CI).status == 200, "others may be behind the same address"
    secured.clock.move(6)
    assert [secured.call(token=NOBODYS).status for _ in range(2)] == [401, 429]


def test_tokens_are_looked_up_at_each_call() -> None:
    known = [ACCESS]
    with open_api(access=lambda: known[0]) as secured:
        assert secured.call(token=CI).status == 200
        known[0] = Access()
        assert secured.call(token=CI).status == 401


@pytest.mark.parametrize("weak", ["sesame", "ovs_sesame", "ovs_" + "a" * 42])
def test_secret_that_somebody_made_up_is_no_token_even_with_an_entry(weak: str) -> None:
    with open_api(access=lambda: Access(tokens=(held(weak, "ci", llm=AccessRole.EDITOR),))) as secured:
        assert secured.call(token=weak).status == 401


def test_health_asks_for_no_token(secured: SecuredApi) -> None:
    assert secured.call("/healthz").status == 200


def test_description_says_that_a_token_is_needed(secured: SecuredApi) -> None:
    described = secured.call("/api/v1/openapi.json").body
    assert described["paths"]["/api/v1/whoami"]["get"]["security"] == [{"bearer": []}]
    assert described["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    assert {"401", "403", "429", "503"} <= set(described["paths"]["/api/v1/whoami"]["get"]["responses"])


def test_token_in_any_text_is_taken_out_of_the_log() -> None:
    stream = StringIO()
    web_token = ".".join(["ey" + "JhbGciOiJSUzI1NiJ9", "ey" + "JzdWIiOiJ1LTEifQ", "c2lnbmF0dXJl" * 3])
    try:
        logging.configure("text", stream)
        structlog.get_logger().warning("odd", line=f"somebody sent {CI} and {web_token} as a name")
    finally:
        structlog.reset_defaults()
    assert "somebody sent ovs_*** and eyJ*** as a name" in stream.getvalue()
