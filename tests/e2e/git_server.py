"""A git server over HTTP that asks for a password: git's own http-backend behind a small web server.

It runs as a process of its own, so that tests can kill it at any moment, with whatever it is doing, and start it again.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hmac
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]


class GitServer:
    """Serves the bare repositories in a directory at ``http://127.0.0.1:<port>/<name>.git`` to one account."""

    def __init__(self, root: Path, *, username: str = "overspill", password: str) -> None:
        """Choose a port, which stays the same over restarts, and start."""
        self._root = root
        self.username = username
        self.password = password
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def url(self, name: str) -> str:
        """Return the address of a repository, without the account."""
        return f"http://127.0.0.1:{self._port}/{name}"

    def start(self) -> None:
        """Start, and return when it answers."""
        environment = {**os.environ, "GIT_PASSWORD": self.password, "PYTHONPATH": str(CHECKOUT)}
        command = [sys.executable, "-m", "tests.e2e.git_server", str(self._port), str(self._root), self.username]
        self._process = subprocess.Popen(command, env=environment, start_new_session=True)
        deadline = time.monotonic() + 15
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), timeout=1):
                return
            assert self._process.poll() is None, "the git server ended at once"
            assert time.monotonic() < deadline, "the git server does not answer"
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill the server and the git processes that it runs, in the middle of whatever they do."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


def free_port() -> int:
    """Return a port of the loopback that nobody listens on, and that no test has been given that still runs.

    It lies below those that the kernel gives to outgoing connections, so that none of them takes it before it is used.
    A lock keeps it until this process ends: between two programs that choose at the same time, looking is not enough.
    """
    locks = Path(tempfile.gettempdir()) / f"overspill-e2e-ports-{os.getuid()}"
    locks.mkdir(exist_ok=True)
    while True:
        port = 20000 + secrets.randbelow(12000)
        lock = os.open(locks / str(port), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as listening:
                listening.bind(("127.0.0.1", port))
        except OSError:
            os.close(lock)
            continue
        return port


class Handler(BaseHTTPRequestHandler):
    """One request: the account is checked, the rest is CGI as git-http-backend(1) describes it."""

    protocol_version = "HTTP/1.1"
    root: Path
    login: bytes
    username: str

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        given = self.headers.get("Authorization", "").removeprefix("Basic ").encode()
        if not hmac.compare_digest(given, self.login):
            body = self._body()  # a connection that is kept must be read to the end
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="fleet"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = self._body()
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=self._environment(len(body)), stdout=-1, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = [line.partition(": ") for line in head.decode().splitlines()]
        status = next((int(value[:3]) for name, _, value in fields if name == "Status"), 200)
        self.send_response(status if head else 500)
        for name, _, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # whoever asked has gone
            self.end_headers()
            self.wfile.write(content)

    def _environment(self, length: int) -> Mapping[str, str]:
        path, _, query = self.path.partition("?")
        quiet = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "PATH": os.environ["PATH"]}
        return quiet | {
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": self.username,  # who has logged in may push
            "REMOTE_ADDR": self.client_address[0],
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(length),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }

    def _body(self) -> bytes:
        """Read the request's body, in chunks where git did not know its length beforehand."""
        stream = self.rfile
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return stream.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(stream.readline(), 16):
            parts.append(stream.read(size))
            stream.readline()
        stream.readline()
        return b"".join(parts)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name is the library's
        """Say nothing."""


def main() -> None:
    """Serve until killed: PORT ROOT USERNAME, and the password in GIT_PASSWORD."""
    port, root, username = sys.argv[1:]
    Handler.root, Handler.username = Path(root), username
    Handler.login = base64.b64encode(f"{username}:{os.environ['GIT_PASSWORD']}".encode())
    ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main()
