"""Each call has an id: on its answer, in the log, and in the commit that it led to."""

from __future__ import annotations

import io
import json
import logging
import re

import pytest
import structlog
from starlette.datastructures import Headers

from reconciler.adapters import logs
from reconciler.api.request_id import request_id
from tests.builders.daemon import OWNER, PATH, Daemon, small

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({"X-Request-Id": "build-17.2_a"}, "build-17.2_a"),
        ({"X-Request-Id": "mine", "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}, "mine"),
        ({"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}, TRACE),
        ({"traceparent": f"00-{'0' * 32}-b7ad6b7169203331-01"}, "new"),
        ({"traceparent": "nonsense"}, "new"),
        ({"X-Request-Id": "two words\nOverspill-Action: Revert"}, "new"),
        ({"X-Request-Id": "a" * 65}, "new"),
        ({"X-Request-Id": ""}, "new"),
        ({}, "new"),
    ],
)
def test_the_callers_id_is_taken_over_where_it_is_safe(headers: dict[str, str], name: str) -> None:
    assert request_id(Headers(headers), lambda: "new") == name


@pytest.mark.parametrize(
    ("method", "path", "token", "status"),
    [
        ("GET", "/api/v1/status", OWNER, 200),
        ("GET", "/api/v1/status", "", 401),
        ("GET", "/nowhere", OWNER, 404),
        ("DELETE", f"{PATH}/nothing", OWNER, 404),
    ],
)
def test_every_answer_carries_the_id(running: Daemon, method: str, path: str, token: str, status: int) -> None:
    reply = running.call(method, path, token=token, X_Request_Id="call-1")
    assert (reply.status, reply.headers["X-Request-Id"]) == (status, "call-1")
    made = running.call(method, path, token=token).headers["X-Request-Id"]
    assert re.fullmatch(r"[0-9a-f]{32}", made)


def test_the_commit_that_a_call_led_to_names_it(running: Daemon) -> None:
    assert running.call("POST", PATH, small("named"), X_Request_Id="call-2").status == 200
    assert running.call("DELETE", f"{PATH}/named", X_Request_Id="call-3").status == 200
    keys = [f"%(trailers:key=Overspill-{key},valueonly,separator=%x2C)" for key in ("Action", "Request-Id")]
    log = running.remote.git("log", "--reverse", f"--format={' '.join(keys)}", "placements")
    lines = [line.split() for line in log.splitlines()]
    assert lines == [
        ["Start"], ["Receive", "call-2"], ["Place", "call-2"], ["Revert", "call-3"], ["Forget", "call-3"],
    ]  # fmt: skip # a commit each


def test_lines_of_the_log_carry_it(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    before = structlog.get_config()
    handlers = logging.root.handlers[:]
    try:
        logs.configure("json", stream)
        with structlog.contextvars.bound_contextvars(request="call-4"):
            structlog.get_logger().info("order not carried out")
        structlog.get_logger().info("later")
    finally:
        structlog.configure(**before)
        logging.root.handlers[:] = handlers
    first, later = map(json.loads, stream.getvalue().splitlines())
    assert first["request"] == "call-4"
    assert "request" not in later
