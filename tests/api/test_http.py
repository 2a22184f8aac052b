"""The HTTP side: health, errors, and the server around it."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta

import pytest
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.api.app import create_app
from reconciler.api.server import HttpServer
from reconciler.daemon.loop import Vitals
from reconciler.errors import InvalidInput

WELL = Vitals(passes=1, bugs=0, idle=timedelta(seconds=5), stuck_after=timedelta(minutes=5))


def client(vitals: Vitals = WELL) -> TestClient:
    app = create_app(
        pushed=PushedObservations(), wake=lambda _: None, clock=SystemClock(), vitals=lambda: vitals, branches=("main",)
    )
    return TestClient(app, raise_server_exceptions=False)


def test_loop_that_works_is_healthy_and_ready() -> None:
    assert client().get("/healthz").json()["status"] == "ok"
    assert client().get("/readyz").status_code == 200


def test_loop_that_backs_off_is_healthy_and_says_so() -> None:
    answer = client(replace(WELL, trouble="https://git.internal is away")).get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (200, "failing")
    assert "git.internal" not in answer.text


def test_loop_that_is_stuck_is_not_healthy() -> None:
    answer = client(replace(WELL, idle=timedelta(minutes=6))).get("/healthz")
    assert (answer.status_code, answer.json()["reason"]) == (503, "no pass has ended for 6m")


def test_not_ready_before_a_first_pass_has_ended_well() -> None:
    assert client(replace(WELL, passes=0)).get("/readyz").status_code == 503


def test_not_ready_while_the_remote_shows_another_host_key() -> None:
    answer = client(replace(WELL, alarm=True)).get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "alarm")


def test_daemon_that_may_not_write_is_alive_and_not_ready_and_says_why() -> None:
    stopped = client(replace(WELL, trouble="branch placements: it was last seen at 5c0e", lost=True))
    answers = [stopped.get(path) for path in ("/healthz", "/readyz")]
    assert [(answer.status_code, answer.json()["status"]) for answer in answers] == [(200, "stopped"), (503, "stopped")]
    assert all("lacks commits" in answer.json()["reason"] and "5c0e" not in answer.text for answer in answers)


def test_errors_of_the_framework_have_our_envelope() -> None:
    for answer in (client().get("/nothing"), client().get("/api/v1/observations"), client().get("/redoc")):
        body = answer.json()
        assert body["statusCode"] == answer.status_code
        assert body["status"] == "Error"
        assert set(body) == {"statusCode", "status", "message", "data", "error"}
        assert json.loads(body["error"]["data"])["error"]["StatusCode"] == answer.status_code


def test_bug_is_answered_without_its_traceback() -> None:
    def broken() -> Vitals:
        raise RuntimeError("the inside of the program")

    app = create_app(
        pushed=PushedObservations(), wake=lambda _: None, clock=SystemClock(), vitals=broken, branches=("main",)
    )
    with capture_logs() as logs:
        answer = TestClient(app, raise_server_exceptions=False).get("/healthz")
    assert answer.status_code == 500
    assert "RuntimeError: the inside of the program" in logs[0]["exception"]
    assert "inside" not in answer.text
    assert answer.json()["status"] == "Error"


def test_openapi_names_every_operation_once() -> None:
    paths = client().get("/api/v1/openapi.json").json()["paths"]
    names = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
    assert sorted(names) == sorted(set(names))
    hooks = {"githubWebhook", "gitlabWebhook", "giteaWebhook"}
    assert {"pushObservations", *hooks, "whoami", "healthz", "readyz"} == set(names)


@pytest.fixture
def server() -> Iterator[HttpServer]:
    server = HttpServer(client().app, host="127.0.0.1", port=0)
    server.start()
    yield server
    server.stop()


def test_server_answers_until_it_is_stopped(server: HttpServer) -> None:
    url = f"http://127.0.0.1:{server.port}/healthz"
    with urllib.request.urlopen(url, timeout=60) as answer:
        assert json.load(answer)["status"] == "ok"
    server.stop()
    server.stop()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=60)


def test_port_in_use_is_told_with_a_way_out(server: HttpServer) -> None:
    with pytest.raises(InvalidInput, match=r"listening at 127.0.0.1:\d+: Address already in use \(try another"):
        HttpServer(client().app, host="127.0.0.1", port=server.port).start()


def test_address_that_is_none_is_told_so() -> None:
    with pytest.raises(InvalidInput, match=r"listening at 203.0.113.1:8080: Cannot assign requested address"):
        HttpServer(client().app, host="203.0.113.1", port=8080).start()


def _status(server: HttpServer) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/healthz", timeout=60) as answer:
        return int(answer.status)


def test_silent_connections_do_not_make_the_daemon_unhealthy(server: HttpServer) -> None:
    with ExitStack() as held:
        for _ in range(150):
            held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
        assert _status(server) == 200


@pytest.mark.parametrize(
    "sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: a", b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /hea"]
)
@pytest.mark.parametrize("trickle", [False, True])
def test_connection_that_sends_no_whole_header_is_closed(sent: bytes, *, trickle: bool) -> None:
    server = HttpServer(client().app, host="127.0.0.1", port=0, patience=0.3)
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=0.05) as connection:
            connection.sendall(sent)
            deadline = time.monotonic() + 60
            while not _closed(connection):
                assert time.monotonic() < deadline, "it is still open"
                if trickle:
                    connection.sendall(b"x")
    except (BrokenPipeError, ConnectionResetError):
        assert trickle
    finally:
        server.stop()


def _closed(connection: socket.socket) -> bool:
    """Read for the connection's timeout; True when the other side has closed it."""
    try:
        return connection.recv(65536) == b""
    except TimeoutError:
        return False


def test_oldest_silent_connection_makes_room_for_a_new_one() -> None:
    server = HttpServer(client().app, host="127.0.0.1", port=0, most=4)
    server.start()
    try:
        with ExitStack() as held:
            silent = [
                held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=0.2)) for _ in range(4)
            ]
            assert _status(server) == 200
            assert [_closed(connection) for connection in silent] == [True, False, False, False]
    finally:
        server.stop()
