"""A real Gitea on loopback, with an organisation that has a fleet repository, and people by name."""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

from tests.e2e.components import Missing, Ready, find, pinned, sources
from tests.e2e.conftest import Fleet
from tests.e2e.git_server import GitServer, free_port
from tests.e2e.processes import Processes

_SETTINGS = """\
RUN_MODE = prod
RUN_USER = {user}
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = http://127.0.0.1:{port}/
DISABLE_SSH = true
OFFLINE_MODE = true
STATIC_ROOT_PATH = {assets}
[database]
DB_TYPE = sqlite3
PATH = {home}/gitea.db
[repository]
ROOT = {home}/git
[security]
INSTALL_LOCK = true
SECRET_KEY = {secret}
[indexer]
ISSUE_INDEXER_TYPE = db
[actions]
ENABLED = false
[mailer]
ENABLED = false
"""


def missing() -> str:
    """Say why Gitea cannot be had here; empty where it can."""
    program = find("gitea")
    if isinstance(program, Missing):
        return f"gitea: {program.reason}"
    assets = sources(pinned("gitea"))
    return assets.reason if isinstance(assets, Missing) else ""


class Gitea:
    """Runs until it is stopped. `ada` owns the organisation, and `overspill` may write to its repository."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True)
        program, assets = find("gitea"), sources(pinned("gitea"))
        assert isinstance(program, Ready)
        assert isinstance(assets, Path)
        self.home, self._program = home, program.path
        self.url = f"http://127.0.0.1:{free_port()}"
        self._settings = home / "app.ini"
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        port = self.url.rpartition(":")[2]
        self._settings.write_text(
            _SETTINGS.format(user=user, port=port, assets=assets, home=home, secret=secrets.token_hex(16))
        )
        self.passwords: dict[str, str] = {}
        self._processes = Processes(home)
        self._command("migrate")
        self._user("ada", "--admin")
        self._user("overspill")
        self._processes.run("gitea", self._words("web"), {"GITEA_WORK_DIR": str(home)})
        self._await()
        self.call("ada", "POST", "/orgs", {"username": "acme"})
        self.call("ada", "POST", "/orgs/acme/repos", {"name": "fleet", "private": True, "default_branch": "main"})
        self.call("ada", "PUT", "/repos/acme/fleet/collaborators/overspill", {"permission": "write"})

    def call(self, user: str, method: str, path: str, body: object = None) -> Any:
        """Make a call of its API in somebody's name."""
        data = None if body is None else json.dumps(body).encode()
        pair = base64.b64encode(f"{user}:{self.passwords[user]}".encode()).decode()
        headers = {"Authorization": f"Basic {pair}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def pulls(self) -> list[dict[str, Any]]:
        """List the pull requests of the fleet repository, the newest first."""
        try:
            found: list[dict[str, Any]] = self.call("ada", "GET", "/repos/acme/fleet/pulls?state=all")
        except urllib.error.HTTPError as error:  # until it has taken in the first push
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return []
        return found

    def stop(self) -> None:
        """End it."""
        self._processes.kill("gitea")

    def start(self) -> None:
        """Start it again as it was."""
        self._processes.start("gitea")
        self._await()

    def _await(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/api/v1/version", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                assert time.monotonic() < deadline, (self.home / "gitea.log").read_text()[-2000:]
                time.sleep(0.1)

    def _user(self, name: str, *more: str) -> None:
        self.passwords[name] = secrets.token_urlsafe(16)
        words = ("--username", name, "--password", self.passwords[name], "--email", f"{name}@example.com")
        self._command("admin", "user", "create", *words, "--must-change-password=false", *more)

    def _words(self, *words: str) -> tuple[str, ...]:
        return (str(self._program), "--config", str(self._settings), *words)

    def _command(self, *words: str) -> None:
        environment = {"GITEA_WORK_DIR": str(self.home), "HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin"}
        done = subprocess.run(self._words(*words), env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


class _Login:
    """What a Fleet asks of its server."""

    def __init__(self, gitea: Gitea) -> None:
        self._gitea, self.username, self.password = gitea, "overspill", gitea.passwords["overspill"]

    def url(self, _name: str) -> str:
        return f"{self._gitea.url}/acme/fleet.git"


class GiteaFleet(Fleet):
    """The recommended layout in Gitea's repository, which people push to as Ada."""

    def __init__(self, path: Path, gitea: Gitea) -> None:
        super().__init__(path, cast("GitServer", _Login(gitea)))
        self.gitea = gitea
        self.bare = gitea.home / "git" / "acme" / "fleet.git"

    def _push(self, subject: str) -> None:
        self.git("add", "-A", at=self._work)
        self.git("commit", "-q", "-m", subject, at=self._work)
        address = self.url.replace("://", f"://ada:{self.gitea.passwords['ada']}@")
        self.git("push", "-q", address, "HEAD:main", at=self._work)
