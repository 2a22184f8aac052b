"""Which addresses git is given, and who gets to see a password."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.adapters.git import Credentials, GitRepository
from reconciler.adapters.git.remote import check_address
from reconciler.adapters.git.remote_errors import failure, rejection
from reconciler.errors import Conflict, InvalidInput, Transient
from reconciler.text.redaction import REDACTED
from tests.fakes.loopback import LoopbackHandler, LoopbackServer

PASSWORD = "swordfish" + "-" + "42"
REMOTE = check_address("https://h/f.git", None)


class Host:
    """An http server that asks for a login and then answers with one status; it keeps what it was sent."""

    def __init__(self, status: int, *, location: str = "") -> None:
        self.logins: list[str] = []
        host = self

        class Handler(LoopbackHandler):
            def do_GET(self) -> None:
                login = self.headers.get("Authorization", "")
                if login:
                    host.logins.append(base64.b64decode(login.removeprefix("Basic ")).decode())
                headers = {"WWW-Authenticate": 'Basic realm="fleet"', "Location": location + self.path}
                self.reply(status if login or location else 401, headers=headers)

        self._server = LoopbackServer(Handler)
        self._server.start()
        self.address = f"127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.stop()


@pytest.fixture
def host() -> Iterator[type[Host]]:
    """Start http servers that stop with the test."""
    started: list[Host] = []

    class Started(Host):
        def __init__(self, status: int, *, location: str = "") -> None:
            super().__init__(status, location=location)
            started.append(self)

    yield Started
    for server in started:
        server.close()


def _fetch(url: str, tmp_path: Path, credentials: Credentials | None = None) -> str:
    """Fetch, which fails, and return what is said."""
    with (
        GitRepository(url, cache=tmp_path / "cache", credentials=credentials) as repository,
        pytest.raises((InvalidInput, Transient)) as caught,
    ):
        repository.fetch()
    return f"{type(caught.value).__name__}: {caught.value}"


def test_password_reaches_the_server_that_asks(host, tmp_path):
    server = host(404)
    said = _fetch(f"http://{server.address}/fleet.git", tmp_path, Credentials(username="bot", password=PASSWORD))
    assert set(server.logins) == {f"bot:{PASSWORD}"}
    assert said.startswith("InvalidInput")
    assert PASSWORD not in said


@pytest.mark.parametrize(
    ("userinfo", "login"), [(f"bot:{PASSWORD}", f"bot:{PASSWORD}"), (PASSWORD, f"x-access-token:{PASSWORD}")]
)
def test_password_in_the_url_is_taken_out_of_it(host, tmp_path, userinfo, login):
    server = host(404)
    said = _fetch(f"http://{userinfo}@{server.address}/fleet.git", tmp_path)
    assert set(server.logins) == {login}
    assert PASSWORD not in said
    assert all(PASSWORD not in path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file())


def test_query_of_an_address_is_in_no_message(host, tmp_path):
    said = _fetch(f"http://{host(404).address}/fleet.git?job={PASSWORD}&x=1", tmp_path)
    assert f"/fleet.git?{REDACTED}" in said
    assert PASSWORD not in said
    with pytest.raises(InvalidInput) as caught:
        check_address(f"gopher://git.example.com/fleet.git?job={PASSWORD}", None)
    assert PASSWORD not in str(caught.value)


def test_password_is_in_no_argument_list(monkeypatch, tmp_path):
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "git").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/arguments\nexit 1\n')
    (directory / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(directory), prepend=":")
    with pytest.raises(Transient):
        GitRepository(f"https://bot:{PASSWORD}@example.com/fleet.git", cache=tmp_path / "cache")
    arguments = (tmp_path / "arguments").read_text()
    assert "init" in arguments
    assert PASSWORD not in arguments


@pytest.mark.parametrize("line_end", ["", "\n", "\r\n"])
def test_password_of_a_file_is_the_one_that_it_holds_now(host, tmp_path, monkeypatch, line_end):
    server, file = host(404), tmp_path / "password"
    monkeypatch.chdir(tmp_path)
    file.write_text(f"first-{PASSWORD}{line_end}")
    credentials = Credentials(username="bot", password_file=Path("password"))
    with GitRepository(
        f"http://{server.address}/fleet.git", cache=tmp_path / "cache", credentials=credentials
    ) as repository:
        for password in (f"first-{PASSWORD}", PASSWORD):
            server.logins.clear()
            file.write_text(f"{password}{line_end}")
            with pytest.raises(InvalidInput) as caught:
                repository.fetch()
            assert set(server.logins) == {f"bot:{password}"}
            assert password not in str(caught.value)


def test_password_of_a_file_is_in_no_environment(tmp_path):
    file = tmp_path / "password"
    file.write_text(PASSWORD)
    remote = check_address("https://example.com/fleet.git", Credentials(password_file=file))
    assert PASSWORD not in str([remote.environment(), remote.settings()])


def test_password_file_that_is_away_is_for_a_person_to_mend(host, tmp_path):
    credentials = Credentials(password_file=tmp_path / "absent")
    said = _fetch(f"http://{host(404).address}/fleet.git", tmp_path, credentials)
    assert said.startswith("InvalidInput")
    assert "(try: set OVERSPILL_GIT_PASSWORD_FILE" in said


def test_wrong_password_is_for_a_person_to_mend(host, tmp_path):
    server = host(401)
    said = _fetch(f"http://{server.address}/fleet.git", tmp_path, Credentials(password=PASSWORD))
    assert said.startswith("InvalidInput")
    assert "(try: set OVERSPILL_GIT_PASSWORD_FILE, and OVERSPILL_GIT_USERNAME beside it" in said


def test_missing_password_is_never_asked_for(host, tmp_path):
    said = _fetch(f"http://{host(404).address}/fleet.git", tmp_path)
    assert said.startswith("InvalidInput")
    assert "(try: set OVERSPILL_GIT_PASSWORD_FILE, and OVERSPILL_GIT_USERNAME beside it" in said


def test_server_that_is_busy_is_transient(host, tmp_path):
    said = _fetch(f"http://{host(503).address}/fleet.git", tmp_path, Credentials(password=PASSWORD))
    assert said.startswith("Transient")


def test_redirect_to_another_host_gets_no_password(host, tmp_path):
    thief = host(404)
    server = host(302, location=f"http://{thief.address}")
    _fetch(f"http://{server.address}/fleet.git", tmp_path, Credentials(password=PASSWORD))
    assert thief.logins == []


def test_password_is_not_shown_with_the_credentials():
    assert PASSWORD not in repr(Credentials(password=PASSWORD))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "--upload-pack=touch /tmp/x",
        "ext::sh -c whoami",
        "fd::17",
        "transport::address",
        "http://example.com/fleet.git",
        "git://example.com/fleet.git",
        "ftp://example.com/fleet.git",
        "ssh://-oProxyCommand=whoami/fleet.git",
        "https://example.com/a\nb.git",
        "https://[::1/fleet.git",
    ],
)
def test_address_that_git_may_not_see_is_refused(tmp_path, url):
    with pytest.raises(InvalidInput, match="repository URL"):
        GitRepository(url, cache=tmp_path / "cache")


@pytest.mark.parametrize(
    ("url", "protocol"),
    [
        ("https://example.com/fleet.git", "https"),
        ("http://localhost:3000/fleet.git", "http"),
        ("http://[::1]:3000/fleet.git", "http"),
        ("ssh://git@example.com:2222/fleet.git", "ssh"),
        ("git@example.com:team/fleet.git", "ssh"),
        ("example.com:/srv/fleet.git", "ssh"),
        ("file:///srv/fleet.git", "file"),
        ("/srv/fleet.git", "file"),
    ],
)
def test_address_that_git_may_see_is_passed_on_as_it_is(url, protocol):
    remote = check_address(url, None)
    assert (remote.url, remote.protocols) == (url, protocol)


def test_relative_path_is_taken_from_where_we_are(remote, tmp_path, monkeypatch):
    source = remote.commit("main", {"a": "1"})
    monkeypatch.chdir(tmp_path)
    with GitRepository("remote.git", cache=Path("cache")) as repository:
        assert repository.fetch().source == source


@pytest.mark.parametrize(
    ("summary", "stderr", "kind"),
    [
        ("[rejected] (non-fast-forward)", "", Conflict),
        ("[rejected] (fetch first)", "", Conflict),
        ("[rejected] (stale info)", "", Conflict),
        ("[remote rejected] (failed to update ref)", "", Conflict),
        ("[remote rejected] (incorrect old value provided)", "", Conflict),
        ("[remote rejected] (reference already exists)", "", Conflict),
        ("[remote rejected] (cannot lock ref 'refs/heads/placements': is at 1 but expected 2)", "", Conflict),
        ("[remote rejected] (protected branch hook declined)", "remote: error: GH006: Protected branch", InvalidInput),
        ("[remote rejected] (push declined due to repository rule violations)", "", InvalidInput),
        ("[remote rejected] (pre-receive hook declined)", "remote: GitLab: You are not allowed to push", InvalidInput),
        ("[remote rejected] (branch is currently checked out)", "", InvalidInput),
        ("[remote rejected] (Internal Server Error)", "", Transient),
        ("[remote rejected] (unpacker error)", "remote: fatal: No space left on device", Transient),
    ],
)
def test_rejections_are_told_apart(summary, stderr, kind):
    assert type(rejection("pushing", summary, stderr, REMOTE, branch="placements")) is kind


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        ("fatal: unable to access 'https://h/f.git/': Could not resolve host: h", Transient),
        ("ssh: Could not resolve hostname h: Name or service not known\nfatal: Could not read from remote", Transient),
        ("fatal: the remote end hung up unexpectedly", Transient),
        ("fatal: unable to access 'https://h/f.git/': The requested URL returned error: 502", Transient),
        ("fatal: unable to access 'https://h/f.git/': The requested URL returned error: 403", InvalidInput),
        ("fatal: Authentication failed for 'https://h/f.git/'", InvalidInput),
        ("remote: Repository not found.\nfatal: repository 'https://h/f.git/' not found", InvalidInput),
        ("fatal: mismatched algorithms: client sha1; server sha256", InvalidInput),
        ("", Transient),
    ],
)
def test_failures_are_told_apart(stderr, kind):
    assert type(failure("fetching", stderr, REMOTE)) is kind
    assert str(failure("fetching", stderr, REMOTE)).startswith("fetching: ")


def test_progress_is_left_out_of_what_went_wrong():
    stderr = "remote: Counting objects: 50%\rremote: Counting objects: 100%, done.\nremote: out of luck\nfatal: ended\n"
    assert str(failure("fetching", stderr, REMOTE)) == "fetching: remote: out of luck; fatal: ended"


def test_login_is_offered_to_the_address_that_it_is_for_alone(host, tmp_path):
    server = host(404)
    url = f"http://{server.address}/fleet.git"
    for address in ("", f"http://{server.address}/other.git", "http://127.0.0.1:1/fleet.git", "https://h/fleet.git"):
        said = _fetch(url, tmp_path, Credentials(password=PASSWORD, address=address))
        assert server.logins == [], address
        assert "(try: name the repository with --repo or OVERSPILL_REPO" in said
    for address in (url, f"http://{server.address.upper()}/fleet", f"http://bot@{server.address}/fleet.git/"):
        server.logins.clear()
        _fetch(url, tmp_path, Credentials(password=PASSWORD, address=address))
        assert server.logins, address


@pytest.mark.parametrize(
    ("address", "url", "same"),
    [
        ("git@h.example.com:acme/fleet.git", "ssh://git@h.example.com:22/acme/fleet", True),
        ("git@h.example.com:acme/fleet.git", "git@h.example.com:acme/apps.git", False),
        ("git@h.example.com:acme/fleet.git", "git@other.example.com:acme/fleet.git", False),
        ("https://h.example.com/acme/fleet.git", "git@h.example.com:acme/fleet.git", False),
    ],
)
def test_ssh_key_is_offered_to_the_address_that_it_is_for_alone(tmp_path, address, url, same):
    remote = check_address(url, Credentials(ssh_key=tmp_path / "key", address=address))
    assert ("-i" in remote.environment()["GIT_SSH_COMMAND"].split()) is same
    assert remote.credentials.withheld is not same


def test_redirect_to_another_path_of_the_host_gets_no_password(host, tmp_path):
    server = host(404)
    redirecting = host(302, location=f"http://{server.address}/elsewhere")
    _fetch(f"http://{redirecting.address}/fleet.git", tmp_path, Credentials(password=PASSWORD))
    assert server.logins == []


def test_proxy_of_plain_http_gets_no_password(host, tmp_path, monkeypatch):
    server, proxy = host(404), host(404)
    monkeypatch.setenv("http_proxy", f"http://{proxy.address}")
    monkeypatch.delenv("no_proxy", raising=False)
    _fetch(f"http://{server.address}/fleet.git", tmp_path, Credentials(password=PASSWORD))
    assert proxy.logins == []
    assert server.logins


def test_login_of_a_source_is_for_its_exact_address_and_stays_in_its_file(host, tmp_path):
    server, file = host(401), tmp_path / "logins"
    file.write_text(f"http://bot:{PASSWORD}@{server.address}/apps.git\n")
    sources = Credentials(of_sources=True, logins_file=file)
    said = _fetch(f"http://{server.address}/other.git", tmp_path, sources)
    assert server.logins == []
    assert "OVERSPILL_SOURCE_LOGINS_FILE" in said
    _fetch(f"http://{server.address}/apps.git", tmp_path, sources)
    assert set(server.logins) == {f"bot:{PASSWORD}"}
    assert PASSWORD in file.read_text(), "a refused login was erased"


@pytest.mark.parametrize("entry", ["machine 127.0.0.1", "default"])
@pytest.mark.parametrize("credentials", [None, Credentials(of_sources=True), Credentials(password="pw", address="")])
def test_logins_of_a_netrc_file_are_sent_nowhere(host, tmp_path, monkeypatch, entry, credentials):
    (tmp_path / ".netrc").write_text(f"{entry} login bot password {PASSWORD}\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    server = host(404)
    redirecting = host(302, location=f"http://{server.address}/elsewhere")
    for address in (server.address, redirecting.address):
        said = _fetch(f"http://{address}/fleet.git", tmp_path, credentials)
        assert "could not read Username" in said
    assert server.logins == []


def test_settings_of_ours_do_not_reach_git(monkeypatch, tmp_path):
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    monkeypatch.setenv("OVERSPILL_GIT_PASSWORD", PASSWORD)
    monkeypatch.setenv("OVERSPILL_API_TOKENS", PASSWORD)
    with GitRepository(str(remote), cache=tmp_path / "cache") as repository:
        runner = repository._branches.runner
        seen = runner.run(["-c", "alias.seen=!env", "seen"]).stdout.decode()
    assert "PATH=" in seen
    assert PASSWORD not in seen
