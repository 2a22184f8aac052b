"""What the client makes of servers that fail, refuse, lead elsewhere or are no daemon."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.client import Client, Refused
from reconciler.errors import InvalidInput, Transient
from tests.fakes.faulty_servers import QUICK, TOKEN, Reply, said, serving

RECEIPT = said(200, status="OK", message="Success", data={"name": "bookinfo", "commit": "4f2a"})
ITEM = said(200, status="OK", message="Success", data={"name": "bookinfo", "workspaceName": "llm", "added": 1})
BUSY = said(503, status="Error", message="the daemon is starting")
GONE = Reply(hangs_up=True)


def test_read_is_tried_again_until_it_is_answered() -> None:
    with serving(BUSY, GONE, said(429, message="too many calls"), ITEM) as server, server.client() as client:
        assert client.placement("bookinfo").workspace_name == "llm"
        assert len(server.asked) == 4


def test_write_that_is_tried_again_carries_the_same_key() -> None:
    with serving(GONE, BUSY, RECEIPT) as server, server.client() as client:
        assert client.create({"name": "bookinfo"}).commit == "4f2a"
        first, second, third = [headers["idempotency-key"] for _, headers in server.asked]
        assert first == second == third != ""
        client.create({"name": "bookinfo"})
        assert server.asked[-1][1]["idempotency-key"] != first
        client.create({"name": "bookinfo"}, key="of-my-pipeline")
        assert server.asked[-1][1]["idempotency-key"] == "of-my-pipeline"


def test_nobody_who_answers_is_transient_after_the_last_try() -> None:
    with serving(BUSY) as server, server.client() as client:
        with pytest.raises(Transient, match=r"http://127.0.0.1:\d+: it answers 503: the daemon is starting"):
            client.placement("bookinfo")
        assert len(server.asked) == QUICK.tries


def test_wait_that_is_asked_for_is_told_where_it_is_too_long() -> None:
    later = Reply(status=429, body=said(429, message="too many calls").body, headers={"Retry-After": "3600"})
    with serving(later) as server, server.client() as client:
        with pytest.raises(Transient, match=r"too many calls \(it asks to be left alone for 1h\)"):
            client.placement("bookinfo")
        assert len(server.asked) == 1


def test_server_that_is_not_there_is_transient() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    with Client(address, pace=QUICK) as client, pytest.raises(Transient, match="connection refused"):
        client.placement("bookinfo")


def test_server_that_keeps_silent_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            Client(address, timeout=timedelta(milliseconds=50), pace=QUICK) as client,
            pytest.raises(Transient, match="it does not answer in time"),
        ):
            client.placement("bookinfo")


def test_end_that_was_carried_out_unheard_is_no_refusal() -> None:
    missing = said(404, message="Not Found", error={"errorKey": "", "message": "Workload Placement not found"})
    with serving(GONE, missing) as server, server.client() as client:
        assert client.delete("bookinfo", workspace="llm").message == "it is gone; an earlier try got no answer"
    with serving(missing) as server, server.client() as client, pytest.raises(Refused, match="not found"):
        client.delete("bookinfo")


def test_refusal_keeps_words_way_out_and_fields() -> None:
    problem = {"path": "request", "line": 0, "field": "steps[0].name", "message": "names nothing", "hint": "try cuda"}
    refusal = said(
        422,
        status="Error",
        message="the placement is not valid",
        error={
            "errorKey": "Invalid",
            "message": "1 problem",
            "hint": "see docs/reference/api.md",
            "problems": [problem],
        },
    )
    with serving(refusal) as server, server.client() as client:
        with pytest.raises(Refused, match=r"1 problem \(see docs/reference/api.md\)") as caught:
            client.create({"name": "bookinfo"})
        assert len(server.asked) == 1
    assert (caught.value.status, caught.value.key) == (422, "Invalid")
    assert [str(one) for one in caught.value.problems] == ["request: steps[0].name: names nothing (try cuda)"]


def test_unknown_token_is_refused_with_where_it_comes_from() -> None:
    with serving(said(401, message="the bearer token is unknown")) as server, server.client() as client:
        with pytest.raises(Refused, match="OVERSPILL_TOKEN_FILE"):
            client.placement("bookinfo")
        assert server.asked[0][1]["authorization"] == f"Bearer {TOKEN}"


def test_token_is_sent_to_no_other_address() -> None:
    with serving(ITEM) as other:
        away = Reply(status=307, headers={"Location": f"{other.url}/api/v1/workload-placement/bookinfo"})
        refused = pytest.raises(InvalidInput, match=f"leads to {other.url}.* which is not followed")
        with serving(away) as server, server.client() as client, refused:
            client.placement("bookinfo")
    assert other.asked == []


def test_token_for_this_machine_passes_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(ITEM) as proxy, serving(ITEM) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        with server.client() as client:
            client.placement("bookinfo")
    assert proxy.asked == []


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=404, body=b"<html>nothing here</html>"),
        Reply(status=200, body=b"<html>log in</html>"),
        Reply(status=200, body=b'["a list"]'),
        said(200, data=None),
        said(200, data={"name": 12}),
        said(200, data={"name": "bookinfo", "createdAt": "yesterday"}),
        Reply(status=200, body=b"not gzip", headers={"Content-Encoding": "gzip"}),
    ],
)
def test_what_does_not_answer_like_a_daemon_is_told_so(reply: Reply) -> None:
    with serving(reply) as server, server.client() as client, pytest.raises((InvalidInput, Transient)) as caught:
        client.placement("bookinfo")
    assert "Traceback" not in str(caught.value)
    assert str(caught.value)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("http://overspill.example.com", r"by https only, but to this machine \(try https://overspill.example.com\)"),
        ("https://ann:secret-word@overspill.example.com", "holds a user or a password"),
        ("overspill.example.com", "is not the address of a server"),
        ("https://overspill.example.com:no", "is not the address of a server"),
        ("https://[::1", "is not the address of a server"),
        ("https://overspill.example.com/?a=b", "is not the address of a server"),
        ("ftp://overspill.example.com", "is not the address of a server"),
        ("http://127.0.0.1.example.com", "by https only"),
    ],
)
def test_address_that_no_token_may_go_to_is_refused(address: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as caught:
        Client(address, token=TOKEN)
    assert "secret-word" not in str(caught.value)


@pytest.mark.parametrize("address", ["http://localhost:8080", "http://[::1]:8080/overspill/", "http://127.0.0.2:8080"])
def test_this_machine_needs_no_https(address: str) -> None:
    Client(address, token=TOKEN).close()


def test_path_of_the_address_is_where_a_proxy_has_put_the_daemon() -> None:
    with serving(ITEM) as server, Client(f"{server.url}/overspill/", pace=QUICK) as client:
        client.placement("a/b?c")
        assert server.asked[0][0] == "GET /overspill/api/v1/workload-placement/a%2Fb%3Fc"
        assert "authorization" not in server.asked[0][1]


@pytest.mark.parametrize("token", ["two words", "lïne", "line\nbreak"])
def test_token_that_cannot_stand_in_a_header_is_refused(token: str) -> None:
    with pytest.raises(InvalidInput, match="OVERSPILL_TOKEN"):
        Client("https://overspill.example.com", token=token)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl: not on the PATH, and Python makes no certificates")
    file, key = tmp_path / "server.pem", tmp_path / "server.key"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", key, "-out", file, "-days", "2", "-subj", "/CN=127.0.0.1",
            "-addext", "subjectAltName=IP:127.0.0.1",
        ],
        check=True, capture_output=True,
    )  # fmt: skip # a command line, word by word
    return file, key


def test_certificate_is_checked_against_the_authorities_that_are_named(certificate: tuple[Path, Path]) -> None:
    file, key = certificate
    with serving(ITEM, wrap=lambda context: context.load_cert_chain(file, key)) as server:
        with server.client(ca_file=file) as client:
            assert client.placement("bookinfo").name == "bookinfo"
        refused = pytest.raises(InvalidInput, match=r"its certificate is not trusted: .*OVERSPILL_SERVER_CA_FILE")
        with server.client() as client, refused:
            client.placement("bookinfo")
        assert len(server.asked) == 1


@pytest.mark.parametrize(("content", "why"), [(None, "No such file"), ("not a certificate", "it holds no certificate")])
def test_file_without_authorities_is_refused(tmp_path: Path, content: str | None, why: str) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InvalidInput, match=f"reading {file}: {why}"):
        Client("https://overspill.example.com", ca_file=file)


def test_all_pages_of_a_list_are_read() -> None:
    first = said(200, data=[{"name": "a"}, {"name": "b"}], metadata={"total": 3, "continue": "b"})
    last = said(200, data=[{"name": "c"}], metadata={"total": 3, "continue": ""})
    with serving(first, last) as server, server.client() as client:
        found = list(client.placements(workspace="llm", status="Queued"))
        assert [item.name for item in found] == ["a", "b", "c"]
        asked = [target for target, _ in server.asked]
    assert asked[0].endswith("?workspaceName=llm&provisioningStatus=Queued&limit=100")
    assert asked[1].endswith("&continue=b")


def test_fields_that_are_not_known_yet_are_kept_in_the_document() -> None:
    with serving(ITEM) as server, server.client() as client:
        item = client.placement("bookinfo")
    assert item.document == json.loads(ITEM.body)["data"]


def test_pages_without_an_entry_end_a_list_whatever_they_say() -> None:
    endless = said(200, data={"lines": 7}, metadata={"continue": "more"})
    with serving(endless) as server, server.client() as client:
        assert client.history(limit=50).placements == ()
        assert list(client.placements()) == []
        assert client.log() == ()
