"""The HTTP side with a certificate of its own."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from structlog.testing import capture_logs

from reconciler.api.security.callers import Callers
from reconciler.api.security.tls import Certificate
from reconciler.api.server import HttpServer
from reconciler.errors import InvalidInput
from tests.builders.api_server import ACCESS, CI, Clock, SecuredApi, app
from tests.builders.certificates import write_pair


@contextmanager
def serving(certificate: Certificate, patience: float = 10) -> Iterator[HttpServer]:
    clock = Clock()
    callers = Callers(clock, access=lambda: ACCESS, ticks=clock.ticks)
    server = HttpServer(app(callers, clock), host="127.0.0.1", port=0, tls=certificate.context, patience=patience)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return write_pair(tmp_path, "first")


@pytest.fixture
def server(pair: tuple[Path, Path]) -> Iterator[HttpServer]:
    with serving(Certificate(*pair)) as opened:
        yield opened


def shown(server: HttpServer, name: str | None = None) -> str:
    """Connect, naming a server or not, and return the name on the certificate that is shown."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname=name) as connection,
    ):
        data = connection.getpeercert(binary_form=True)
    assert data is not None
    return str(x509.load_der_x509_certificate(data).subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def test_calls_are_answered_over_https_to_whoever_trusts_the_certificate(
    server: HttpServer, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    secured = SecuredApi(f"https://127.0.0.1:{server.port}", Clock())
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        secured.call(token=CI)
    monkeypatch.setenv("SSL_CERT_FILE", str(pair[0]))
    assert secured.call(token=CI).body["data"]["name"] == "ci"


def test_plain_http_is_not_answered(server: HttpServer) -> None:
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}/healthz", timeout=60)


def test_old_versions_of_tls_are_not_spoken(pair: tuple[Path, Path]) -> None:
    assert Certificate(*pair).context.minimum_version >= ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("name", [None, "overspill.example.com"])
def test_new_certificate_is_shown_to_new_connections(
    server: HttpServer, pair: tuple[Path, Path], name: str | None
) -> None:
    assert shown(server, name) == "first"
    write_pair(pair[0].parent, "second")
    assert shown(server, name) == "second"
    assert shown(server, name) == "second"


def test_pair_that_does_not_fit_leaves_the_last_good_one(server: HttpServer, pair: tuple[Path, Path]) -> None:
    old = pair[1].read_bytes()
    write_pair(pair[0].parent, "second")
    new = pair[1].read_bytes()
    pair[1].write_bytes(old)
    with capture_logs() as logs:
        assert [shown(server), shown(server)] == ["first", "first"]
    assert [entry["event"] for entry in logs] == ["certificate"]
    assert "the key is another certificate's" in logs[0]["line"]
    pair[1].write_bytes(new)
    assert shown(server) == "second"


def test_files_that_are_gone_leave_the_last_good_pair(server: HttpServer, pair: tuple[Path, Path]) -> None:
    pair[0].unlink()
    assert shown(server) == "first"


def test_connection_that_begins_no_handshake_is_closed(pair: tuple[Path, Path]) -> None:
    with (
        serving(Certificate(*pair), patience=0.2) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=60) as silent,
    ):
        assert silent.recv(1) == b""


def test_what_is_no_pair_stops_the_start_with_a_way_out(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    certificate, key = pair
    (tmp_path / "other").mkdir()
    _, other = write_pair(tmp_path / "other", "other")
    with pytest.raises(InvalidInput, match=r"nowhere: No such file or directory \(try another path\)"):
        Certificate(certificate, tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="the key is another certificate's"):
        Certificate(certificate, other)
    with pytest.raises(InvalidInput, match="try a certificate with its chain and its unencrypted key, both as PEM"):
        Certificate(key, certificate)
    _, locked = write_pair(tmp_path, "locked", password=b"sesame")
    with pytest.raises(InvalidInput, match="the key is encrypted"):
        Certificate(certificate, locked)
