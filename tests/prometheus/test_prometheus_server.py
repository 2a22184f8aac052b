"""One query to a real server, and every way in which it can fail."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import timedelta

import pytest

from reconciler.adapters.signals import PrometheusServer
from reconciler.daemon.metrics.process_metrics import ProcessMetrics
from reconciler.errors import InvalidInput, Transient
from tests.fakes.loopback import LoopbackHandler, LoopbackServer
from tests.fakes.prometheus import Metrics, serving

TOKEN = "t0ken-" * 4


def ask(*args: object, **kwargs: object) -> float:
    """Ask once, over a connection that is closed again."""
    with closing(PrometheusServer(*args, **kwargs)) as server:
        return server.ask("up")


@pytest.fixture
def server(metrics: Metrics) -> Iterator[PrometheusServer]:
    with closing(PrometheusServer(metrics.url + "/", patience=timedelta(seconds=5))) as made:
        yield made


def test_a_query_is_answered_with_its_value(metrics: Metrics, server: PrometheusServer) -> None:
    query = 'sum(vllm:num_requests_waiting{namespace="a b",pod=~"x-.+"}) + 1'
    metrics.values[query] = 47.5
    assert server.ask(query) == 47.5
    assert metrics.asked == [query]


def test_a_connection_that_is_closed_in_place_of_an_answer_is_opened_again() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body := Metrics.vector(1)), body)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for queries in (2, 1):  # the first connection ends at the second query
                connection, _ = listener.accept()
                with connection:
                    for number in range(queries):
                        connection.recv(1 << 16)
                        if number == 0:
                            connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with closing(PrometheusServer(url, patience=timedelta(seconds=5))) as server:
            assert server.ask("up") == 1
            assert server.ask("up") == 1
        thread.join(5)


def test_prometheus_is_asked_through_a_proxy(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics.values["up"] = 1
    monkeypatch.delenv("no_proxy")
    monkeypatch.setenv("http_proxy", metrics.url.removesuffix("/prom"))
    assert ask("http://prometheus.monitoring.invalid:9090/prom", token=TOKEN) == 1
    monkeypatch.setenv("no_proxy", "monitoring.invalid")
    with pytest.raises(Transient):
        ask("http://prometheus.monitoring.invalid:9090/prom")
    assert metrics.asked == ["up"]


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "nonsense://127.0.0.1:1"])
def test_a_proxy_that_cannot_be_used_is_refused_at_the_start(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy")
    monkeypatch.setenv("all_proxy", proxy)
    with pytest.raises(InvalidInput, match=r"HTTPS_PROXY, HTTP_PROXY or ALL_PROXY: .*try the http:// or https://"):
        ask("http://prometheus.example.com:9090")


@pytest.mark.parametrize(("status", "kind"), [(400, "bad_data"), (422, "execution"), (503, "timeout")])
def test_a_query_that_fails_is_told_in_the_servers_words(
    metrics: Metrics, server: PrometheusServer, status: int, kind: str
) -> None:
    metrics.says = (status, metrics.error(kind, 'parse error: unexpected "}"'))
    with pytest.raises(InvalidInput, match=re.escape(f'{kind}: parse error: unexpected "}}"')):
        server.ask("up{}}")


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (200, b"<html>a login page</html>", "not as Prometheus does (is the address right?)"),
        (404, b"", "it answers 404 Not Found, not as Prometheus does"),
        (403, b"", "it answers 403 Forbidden (is OVERSPILL_PROMETHEUS_TOKEN right?)"),
        (500, b"{}", "it answers 500 Internal Server Error"),
        (200, b'{"status": "success", "data": "' + b"x" * (2 << 20) + b'"}', "not as Prometheus does"),
        (503, b'{"status": "error", "errorType": "unavailable", "error": "starting"}', "it answers 503"),
    ],
)
def test_a_server_that_does_not_answer_as_one_is_told(
    metrics: Metrics, server: PrometheusServer, status: int, body: bytes, told: str
) -> None:
    metrics.says = (status, body)
    with pytest.raises(Transient, match=re.escape(told)):
        server.ask("up")
    metrics.says = (200, metrics.vector(3))
    assert server.ask("up") == 3


def test_the_token_is_sent_and_is_no_part_of_any_message(metrics: Metrics) -> None:
    metrics.token, metrics.values["up"] = TOKEN, 1
    assert ask(metrics.url, token=TOKEN) == 1
    with pytest.raises(Transient) as failure:
        ask(metrics.url, token="another-token-of-ours")
    assert "another" not in str(failure.value)


def test_a_redirect_is_not_followed_with_the_token(metrics: Metrics) -> None:
    with serving() as other:
        metrics.elsewhere = other.url
        with pytest.raises(Transient, match="302 Found, which is not followed"):
            ask(metrics.url, token=TOKEN)
        assert other.asked == []


def test_nobody_there_is_told_in_a_few_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Transient, match=re.escape("connection refused")):
        ask(f"http://127.0.0.1:{port}")


def test_a_server_that_hangs_is_not_waited_for(metrics: Metrics) -> None:
    metrics.hangs.clear()
    with pytest.raises(Transient, match="it does not answer in time"):
        ask(metrics.url, patience=timedelta(seconds=0.1))


def test_a_host_that_is_no_name_is_nobody_there() -> None:
    with pytest.raises(Transient):
        ask("http://a..example.com:9090")


def test_an_answer_that_drips_is_given_up_in_time() -> None:
    class Dripping(LoopbackHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            with suppress(OSError):
                for _ in range(60):
                    self.wfile.write(b" ")
                    time.sleep(0.05)

    with LoopbackServer(Dripping) as server, pytest.raises(Transient, match="it does not answer in time"):
        ask(server.url, patience=timedelta(seconds=0.3))


def test_every_query_is_measured_by_its_answer(metrics: Metrics) -> None:
    process = ProcessMetrics(output_branch="placements", orders=lambda: 0, bugs=lambda: 0)
    metrics.values["up"] = 1.0
    with closing(PrometheusServer(metrics.url, measure=process.call)) as server:
        assert server.ask("up") == 1.0
    with closing(PrometheusServer("http://127.0.0.1:1", measure=process.call)) as server, pytest.raises(Transient):
        server.ask("up")
    counts = [
        process.registry.get_sample_value("overspill_prometheus_queries_total", {"code": code})
        for code in ("200", "none")
    ]
    assert counts == [1, 1]
