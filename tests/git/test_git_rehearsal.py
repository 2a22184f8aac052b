"""A push is tried without moving anything, and a login that may not push is found out."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.errors import InvalidInput, Transient
from tests.builders.remote import Remote
from tests.fakes.loopback import LoopbackHandler, LoopbackServer


class ReadOnlyHost(LoopbackHandler):
    """Serves a repository over HTTP to logins that may fetch and not push, as git hosts do."""

    protocol_version = "HTTP/1.1"
    repository: Path

    def do_GET(self) -> None:
        """Advertise the branches to who fetches, and refuse who would push."""
        service = "git-upload-pack"
        if not self.path.endswith(f"/info/refs?service={service}"):
            self._answer(403, b"", "text/plain")
            return
        greeting = b"001e# service=git-upload-pack\n0000"
        self._answer(200, greeting + self._upload("--advertise-refs"), f"application/x-{service}-advertisement")

    def do_POST(self) -> None:
        """Send what is asked for."""
        body = self.body()
        self._answer(200, self._upload(stdin=body), "application/x-git-upload-pack-result")

    def _upload(self, *flags: str, stdin: bytes = b"") -> bytes:
        command = ["git", "upload-pack", "--stateless-rpc", *flags, str(self.repository)]
        return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True).stdout

    def _answer(self, status: int, content: bytes, kind: str) -> None:
        self.reply(status, content, {"Content-Type": kind})


@pytest.fixture
def read_only(remote: Remote) -> Iterator[str]:
    """Serve the remote where nobody may push."""
    with LoopbackServer(type("Handler", (ReadOnlyHost,), {"repository": remote.path})) as server:
        yield f"{server.url}/{remote.path.name}"


@pytest.mark.parametrize("begun", [False, True])
def test_push_is_tried_before_and_after_the_output_branch_has_begun(
    remote: Remote, tmp_path: Path, begun: bool
) -> None:
    remote.commit("main", {"fleet.yaml": "kind: Fleet"})
    if begun:
        remote.commit("placements", {"README.md": "begun"})
    before = remote.git("for-each-ref")
    with GitRepository(remote.url, cache=tmp_path / "cache") as repository:
        tips = repository.fetch()
        repository.rehearse_push()
        assert repository.fetch() == tips
    assert remote.git("for-each-ref") == before


def test_login_that_may_not_push_is_refused(
    remote: Remote, read_only: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    remote.commit("main", {"fleet.yaml": "kind: Fleet"})
    with GitRepository(read_only, cache=tmp_path / "cache") as repository:
        assert repository.fetch().source
        with pytest.raises(InvalidInput) as refused:
            repository.rehearse_push()
    assert str(refused.value).startswith(f"pushing placements to {read_only}: ")
    assert "403" in str(refused.value)


def test_remote_that_has_gone_is_no_refusal(remote: Remote, tmp_path: Path) -> None:
    remote.commit("main", {"fleet.yaml": "kind: Fleet"})
    with GitRepository(remote.url, cache=tmp_path / "cache") as repository:
        repository.fetch()
        remote.path.rename(tmp_path / "elsewhere")
        with pytest.raises((InvalidInput, Transient)) as caught:
            repository.rehearse_push()
    assert "placements" in str(caught.value)


def test_empty_repository_has_nothing_to_try_it_with(remote: Remote, tmp_path: Path) -> None:
    with GitRepository(remote.url, cache=tmp_path / "cache") as repository:
        repository.fetch()
        with pytest.raises(InvalidInput, match="there is no commit to try it with"):
            repository.rehearse_push()
