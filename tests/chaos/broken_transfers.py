"""Transfers that end in the middle: over smart HTTP through a proxy that hangs up, and over ssh.

No ssh server is needed: git runs a program of ours in the place of `ssh`, which starts the other side here and stops
passing bytes on after so many. git itself cannot tell.
"""

from __future__ import annotations

import os
import random
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from reconciler.adapters.git import Credentials, GitRepository
from reconciler.errors import Conflict, InvalidInput, Transient
from tests.builders.passes import SOURCE_FILES, Passes, seconds
from tests.builders.remote import Remote
from tests.e2e.git_server import GitServer

_FARTHEST = 6000
"""Bytes after which a connection is cut at the latest; a push of one placement sends about as many."""

_SSH = """\
#!{python}
import os, subprocess, sys, threading
left = int(open({budget!r}).read())
other = subprocess.Popen(["sh", "-c", sys.argv[-1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def pump(source, target):
    global left
    while data := os.read(source, 4096):
        passed = data[:left] if left >= 0 else data
        os.write(target, passed)
        if left >= 0:
            left -= len(passed)
            if left <= 0:
                other.kill()
                os._exit(255)
    os.close(target)
threading.Thread(target=pump, args=(0, other.stdin.fileno()), daemon=True).start()
pump(other.stdout.fileno(), 1)
sys.exit(other.wait())
"""


class Proxy:
    """A TCP proxy that hangs up on both sides after `left` bytes; never while `left` is None."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.left: int | None = None
        self.cuts = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            near, _ = self._server.accept()
            far = socket.create_connection(("127.0.0.1", self._to))
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1024):
                if self.left is not None:
                    data = data[: self.left]
                    self.left -= len(data)
                target.sendall(data)
                if self.left is not None and self.left <= 0:
                    self.cuts += 1
                    break
        except OSError:
            pass
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


def run(directory: Path, number: int) -> str:
    """Cut so many transfers over each transport, and see that the next pass does what is due."""
    http, over_http = _over_http(directory / "http", number)
    over_ssh = _over_ssh(directory / "ssh", number)
    return f"smart HTTP: {http} connections cut, {over_http} passes broken off; ssh: {over_ssh} passes broken off"


def _over_http(directory: Path, number: int) -> tuple[int, int]:
    directory.mkdir()
    remote = Remote(directory / "fleet.git")
    remote.commit("main", SOURCE_FILES)
    remote.git("config", "http.receivepack", "true")
    password = secrets.token_hex()
    server = GitServer(directory, password=password)
    try:
        proxy = Proxy(int(server.url("").rsplit(":", 1)[1].strip("/")))
        url = f"http://127.0.0.1:{proxy.port}/fleet.git"
        login = Credentials(username=server.username, password=password)
        with GitRepository(url, cache=directory / "cache", credentials=login) as repository:
            broken = _disturb(repository, remote, number, lambda left: setattr(proxy, "left", left))
    finally:
        server.kill()
    return proxy.cuts, broken


def _over_ssh(directory: Path, number: int) -> int:
    directory.mkdir()
    remote = Remote(directory / "fleet.git")
    remote.commit("main", SOURCE_FILES)
    budget, program = directory / "budget", directory / "bin" / "ssh"
    program.parent.mkdir()
    budget.write_text("-1")
    program.write_text(_SSH.format(python=sys.executable, budget=str(budget)))
    program.chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{program.parent}{os.pathsep}{before}"
    try:
        with GitRepository(f"ssh://git@example.com{remote.path}", cache=directory / "cache") as repository:
            return _disturb(
                repository, remote, number, lambda left: budget.write_text(str(-1 if left is None else left))
            )
    finally:
        os.environ["PATH"] = before


def _disturb(repository: GitRepository, remote: Remote, number: int, cut: Callable[[int | None], object]) -> int:
    """Run passes of which each is cut somewhere, each followed by one that is not; count those that broke."""
    chance, passes, broken = random.Random(20261123), Passes(repository), 0
    repository.fetch()
    for step in range(number):
        passes.advance(70)
        passes.missing = (3, 5, 1, 7, 0, 2)[step % 6]
        passes.since, passes.steady_since = passes.moment - seconds(60), passes.moment - seconds(61)
        cut(chance.randint(1, _FARTHEST))
        try:
            repository.fetch()
            passes.run_once()
        except (Transient, Conflict, InvalidInput):
            broken += 1
        cut(None)
        passes.restart()
        repository.fetch()
        passes.run()
        placed = sum(placement.replicas for placement in passes.placements())
        assert placed <= 12, f"{placed} replicas on 12 GPUs"
    remote.git("fsck", "--strict")
    subjects = remote.subjects("placements")
    assert len(subjects) == len(remote.git("rev-list", "--first-parent", "placements").splitlines()), "a merge"
    assert broken > number // 10, "hardly any transfer was cut"
    return broken
