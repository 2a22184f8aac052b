"""An exchange over HTTP ends at its deadline and within its bounds, whatever a server sends and however slowly."""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from reconciler.app.world import PATIENCE
from reconciler.errors import InvalidInput
from reconciler.http_client import HttpAnswer, HttpClient, NoAnswer, json_in
from reconciler.http_exchange import ProxyRules
from reconciler.model.bounds import (
    HTTP_ANSWER_DEPTH,
    HTTP_ANSWER_SIZE,
    HTTP_ANSWER_VALUES,
    HTTP_EXCHANGE,
    HTTP_HEAD,
    HTTP_PIECES,
)
from tests.builders.certificates import write_pair
from tests.fakes.faulty_servers import Reply, serving

Peer = Callable[[socket.socket, threading.Event], None]
SHORT = 0.3


@contextmanager
def peer(answer: Peer) -> Iterator[str]:
    """Listen at this machine; `answer` speaks on each connection until the client leaves, or the event is set."""
    over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                answer(self.request, over)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            over.set()
            server.shutdown()
            thread.join()


def dripping(first: bytes, drop: bytes) -> Peer:
    """Send a beginning, and a drop every hundredth of a second for as long as somebody listens."""

    def answer(connection: socket.socket, over: threading.Event) -> None:
        connection.recv(1 << 16)
        connection.sendall(first)
        while not over.wait(0.01):
            connection.sendall(drop)

    return answer


def pouring(first: bytes, flood: bytes) -> Peer:
    """Send a beginning, and a flood without a pause."""

    def answer(connection: socket.socket, over: threading.Event) -> None:
        connection.recv(1 << 16)
        connection.sendall(first)
        while not over.is_set():
            connection.sendall(flood)

    return answer


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        dripping(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        dripping(b"HTTP/1.1 200 ", b"x"),
        dripping(OK + b"A: ", b"b"),
        dripping(OK, b"A: b\r\n"),
        dripping(OK + b"Content-Length: 100000\r\n\r\n", b"x"),
        dripping(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        dripping(OK + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x"),
    ],
    ids=["103", "100", "status line", "header", "headers", "body", "chunks", "chunk extension"],
)
def test_dripped_answer_ends_at_the_deadline_of_the_exchange(answer: Peer) -> None:
    with (
        peer(answer) as address,
        HttpClient(timeout=SHORT) as http,
        pytest.raises(NoAnswer, match="does not answer in time"),
    ):
        http.send("GET", f"http://{address}/", limit=1 << 20)


def test_dripped_tls_handshake_ends_at_the_deadline() -> None:
    with (
        peer(dripping(b"\x16\x03\x03\x40\x00", b"\0")) as address,
        HttpClient(timeout=SHORT) as http,
        pytest.raises(NoAnswer, match="in time"),
    ):
        http.send("GET", f"https://{address}/", limit=1 << 20)


def test_request_that_is_read_byte_by_byte_ends_at_the_deadline() -> None:
    def answer(connection: socket.socket, over: threading.Event) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        while not over.wait(0.01):
            connection.recv(512)

    with peer(answer) as address, HttpClient(timeout=SHORT) as http, pytest.raises(NoAnswer, match="in time"):
        http.send("POST", f"http://{address}/", limit=0, body=b"x" * (32 << 20))


def test_proxy_that_drips_its_answer_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    with peer(dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n")) as address:
        _only_proxy(monkeypatch, f"http://{address}")
        with HttpClient(timeout=SHORT) as http, pytest.raises(NoAnswer, match="in time"):
            http.send("GET", "https://host.invalid/", limit=1 << 20)


@pytest.mark.parametrize(
    "flood",
    [b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 50, OK + b"A: b\r\n" * 40_000],
    ids=["informational answers", "headers"],
)
@pytest.mark.parametrize("limit", [0, 1 << 20])
def test_what_comes_before_a_body_is_bounded_in_bytes(flood: bytes, limit: int) -> None:
    with (
        peer(pouring(b"", flood)) as address,
        HttpClient(timeout=30) as http,
        pytest.raises(NoAnswer, match=f"over {HTTP_HEAD} before its answer|headers|too"),
    ):
        http.send("GET", f"http://{address}/", limit=limit)


def test_body_in_pieces_of_a_byte_is_bounded_in_pieces() -> None:
    first = OK + b"Transfer-Encoding: chunked\r\n\r\n"
    with (
        peer(pouring(first, b"1\r\nx\r\n" * 1000)) as address,
        HttpClient(timeout=30) as http,
        pytest.raises(NoAnswer, match=f"in over {HTTP_PIECES.most:,} pieces"),
    ):
        http.send("GET", f"http://{address}/", limit=1 << 20)


def test_connection_that_is_kept_serves_the_next_exchange() -> None:
    with serving(Reply(body=b"{}")) as server, HttpClient(timeout=5) as http:
        answers = [http.send("GET", f"{server.url}/{number}", limit=99) for number in range(3)]
    assert [answer.json for answer in answers] == [{}] * 3


def test_cookies_are_neither_kept_nor_sent_back() -> None:
    heads: list[bytes] = []

    def setting(connection: socket.socket, _over: threading.Event) -> None:
        while head := connection.recv(1 << 16):
            heads.append(head)
            cookies = b"".join(b"Set-Cookie: c%d-%d=%b; Path=/\r\n" % (len(heads), i, b"x" * 900) for i in range(20))
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + cookies + b"Content-Length: 2\r\n\r\n{}")

    with peer(setting) as address, HttpClient(timeout=5) as http:
        for _ in range(3):
            assert http.send("GET", f"http://{address}/", limit=100).json == {}
    assert len(heads) == 3
    assert not any(b"cookie" in head.lower() for head in heads)


def test_tls_within_tls_reaches_a_server_behind_an_https_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = write_pair(tmp_path, "proxy")
    with serving(Reply(body=b'"behind"'), wrap=lambda tls: tls.load_cert_chain(certificate, key)) as server:
        target = server.url.removeprefix("https://")

        def tunnel(connection: socket.socket, over: threading.Event) -> None:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(certificate, key)
            with tls.wrap_socket(connection, server_side=True) as client, socket.create_connection(_pair(target)) as to:
                client.recv(1 << 16)
                client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                thread = threading.Thread(target=_copy, args=(client, to), daemon=True)
                thread.start()
                _copy(to, client)

        with peer(tunnel) as address:
            _only_proxy(monkeypatch, f"https://{address}")
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
            with HttpClient(timeout=10) as http:
                assert http.send("GET", f"https://{target}/", limit=99).json == "behind"


def test_exchange_of_the_daemon_has_the_time_of_the_table() -> None:
    assert PATIENCE.total_seconds() == HTTP_EXCHANGE.most


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"[]," * HTTP_ANSWER_VALUES.most + b"[]]",
        b"[" * (HTTP_ANSWER_DEPTH.most + 1) + b"]" * (HTTP_ANSWER_DEPTH.most + 1),
        b"[" * 200_000,
        b"9" * 5000,
        b'{"a": Infinity}',
    ],
    ids=["values", "depth", "open", "digits", "infinite"],
)
def test_json_beyond_its_bounds_is_none(body: bytes) -> None:
    assert json_in(body) is None


def test_size_of_json_is_bounded_before_it_is_parsed() -> None:
    assert json_in(b" " * (HTTP_ANSWER_SIZE.most + 1)) is None


@pytest.mark.parametrize(
    ("without", "host", "through"),
    [
        ("", "https://prom.example.com/", True),
        ("example.com", "https://prom.example.com/", False),
        (".example.com", "https://prom.example.com/", False),
        ("*.example.com", "https://prom.example.com/", False),
        (".example.com", "https://example.com/", True),
        ("ample.com", "https://prom.example.com/", True),
        ("example.com:443", "https://prom.example.com/", False),
        ("example.com:80", "https://prom.example.com/", True),
        ("10.0.0.0/8", "http://10.1.2.3/", False),
        ("10.1.2.3", "http://10.1.2.3/", False),
        ("::1", "http://[::1]/", False),
        ("localhost", "http://localhost:9/", False),
        ("*", "https://prom.example.com/", False),
    ],
)
def test_no_proxy_names_hosts_domains_and_networks(
    without: str, host: str, through: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    _only_proxy(monkeypatch, "proxy.example.com:3128", without)
    proxy = ProxyRules.from_environment().proxy_for(httpx2.URL(host))
    assert proxy == ("http://proxy.example.com:3128" if through else None)


def test_proxy_that_is_not_spoken_to_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _only_proxy(monkeypatch, "socks5://127.0.0.1:1")
    with pytest.raises(InvalidInput, match="a proxy of socks5"):
        HttpClient(timeout=1)


def _only_proxy(monkeypatch: pytest.MonkeyPatch, address: str, without: str = "") -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("ALL_PROXY", address)
    monkeypatch.setenv("NO_PROXY", without)


def _pair(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def _copy(source: socket.socket, to: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            to.sendall(data)


def test_words_of_a_status_are_shortened_for_all_callers() -> None:
    def answer(connection: socket.socket, _: threading.Event) -> None:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 503 " + b"x\xff" * 10_000 + b"\r\nContent-Length: 0\r\n\r\n")

    with peer(answer) as address, HttpClient(timeout=5) as http:
        reason = http.send("GET", f"http://{address}/", limit=0).reason
    assert len(reason) <= 60
    assert reason.isprintable()


DATE = "Fri, 20 Nov 2026 10:00:00 GMT"


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (200, {}, 0),
        (503, {"retry-after": "7"}, 7),
        (503, {"retry-after": "99999999"}, 86_400),
        (503, {"retry-after": "-3"}, 0),
        (503, {"retry-after": "1_0"}, 0),
        (503, {"retry-after": "Fri, 20 Nov 2026 10:02:00 GMT", "date": DATE}, 120),
        (503, {"retry-after": "Fri, 20 Nov 2026 09:00:00 GMT", "date": DATE}, 0),
        (503, {"retry-after": "Fri, 20 Nov 2026 10:02:00 GMT"}, 0),
        (503, {"retry-after": "Mon, 01 Jan 0001 00:00:00 +2359", "date": DATE}, 0),
        (429, {"x-ratelimit-reset": "1795168920", "date": DATE}, 120),
        (429, {"x-ratelimit-reset": "9" * 400, "date": DATE}, 0),
        (429, {"retry-after": "7", "x-ratelimit-reset": "1795168920", "date": DATE}, 7),
        (403, {"x-ratelimit-remaining": "12", "x-ratelimit-reset": "1795168920", "date": DATE}, 0),
        (429, {"retry-after": "soon", "date": "never"}, 0),
    ],
)
def test_time_that_a_server_asks_for_is_read_from_what_it_says(
    status: int, headers: dict[str, str], seconds: int
) -> None:
    answer = HttpAnswer(status=status, reason="", headers=httpx2.Headers(headers), body=b"", complete=True)
    assert answer.retry_after == timedelta(seconds=seconds)
