"""What the tests against real components share: control planes, a git server with a fleet, and the daemon."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.e2e.charts import ChartRepository
from tests.e2e.control_plane import Cluster, missing
from tests.e2e.git_server import GitServer

CHECKOUT = Path(__file__).parents[2]
LAYOUT = CHECKOUT / "repo-layout"
PATIENCE = 90
"""Seconds within which the daemon must have done what it is watched for, on a machine that has much else to do."""


@pytest.fixture(scope="session", autouse=True)
def authorities() -> None:
    """Trust what the system trusts: what is built and installed here comes from other hosts."""


class ByControlPlanes(LoadFileScheduling):
    """Keeps the tests of a file in one process, and those of a folder below this one: each starts what it needs."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        folder = (CHECKOUT / file).parent
        return file if folder == Path(__file__).parent else str(folder)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling:
    """Divide the tests by what they start, whatever ``--dist`` says."""
    return ByControlPlanes(config, log)


@pytest.fixture(scope="module")
def start_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Cluster]]:
    """Start clusters by name, each once, and stop them all after the last test of the file."""
    if reason := missing():
        pytest.skip(reason)
    started: dict[str, Cluster] = {}

    def start(name: str) -> Cluster:
        if name not in started:
            started[name] = Cluster(name, tmp_path_factory.mktemp("clusters") / name)
        return started[name]

    yield start
    for cluster in started.values():
        cluster.stop()


class Fleet:
    """The recommended layout on a git server that asks for a password, with observations beside it in files."""

    def __init__(self, path: Path, server: GitServer) -> None:
        self.path = path
        self.server = server
        self.url = server.url("fleet.git")
        self.bare = path / "git" / "fleet.git"
        self.seen = path / "seen"
        self._work = path / "work"
        self._seeing: tuple[int, str] | None = None

    def describe(self, edits: Mapping[str, Mapping[str, str]]) -> None:
        """Commit the layout to the source branch; `edits` says by file what to replace in it by what."""
        for source in LAYOUT.rglob("*.yaml"):
            name = source.relative_to(LAYOUT).as_posix()
            target = self._work / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_edited(name, source.read_text(), edits.get(name, {})))
        self.git("init", "-q", "--initial-branch=main", at=self._work)
        self._push("Describe the fleet")

    def amend(self, name: str, edits: Mapping[str, str]) -> None:
        """Commit a change of one file to the source branch."""
        path = self._work / name
        path.write_text(_edited(name, path.read_text(), edits))
        self._push(f"Amend {name}")

    def add(self, name: str, text: str) -> None:
        """Commit a file of its own to the source branch."""
        path = self._work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self._push(f"Add {name}")

    def remove(self, name: str) -> None:
        """Commit that a file is gone from the source branch."""
        (self._work / name).unlink()
        self._push(f"Remove {name}")

    def _push(self, subject: str) -> None:
        self.git("add", "-A", at=self._work)
        self.git("commit", "-q", "-m", subject, at=self._work)
        self.git("push", "-q", str(self.bare), "HEAD:main", at=self._work)

    def observe(self, *, missing: int, namespace: str = "vllm-demo") -> None:
        """Write the layout's observations as if made now, with so many replicas of vllm waiting for a minute."""
        self._seeing = (missing, namespace)
        self.seen.mkdir(exist_ok=True)
        now = datetime.now(UTC)
        for source in (LAYOUT / "observations").glob("*.yaml"):
            text = re.sub(r'observedAt: ".*"', f'observedAt: "{now:%Y-%m-%dT%H:%M:%SZ}"', source.read_text())
            if missing:
                waiting = f'  - replicas: {missing}\n    since: "{now - timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"'
                text = re.sub(r'  - replicas: 3\n    since: ".*"', waiting, text)
            else:
                text = re.sub(r'  unschedulable:\n  - replicas: 3\n    since: ".*"\n', "", text)
            text = text.replace("wanted: 19", f"wanted: {16 + missing}").replace("vllm-demo", namespace)
            unfinished = self.seen / f".{source.name}"
            unfinished.write_text(text)
            unfinished.rename(self.seen / source.name)

    def log(self, *arguments: str) -> list[str]:
        """Run git log on the output branch, oldest first; nothing while it does not exist."""
        if not self.git("branch", "--list", "placements", at=self.bare).strip():
            return []
        return self.git("log", "--reverse", *arguments, "placements", at=self.bare).splitlines()

    def subjects(self) -> list[str]:
        """Return the subjects of all bursts and reverts on the output branch, oldest first."""
        return [subject for subject in self.log("--format=%s") if not subject.startswith("start(")]

    def tip(self) -> str:
        """Return the commit of the output branch."""
        return self.git("rev-parse", "placements", at=self.bare).strip()

    def changed(self, since: str) -> tuple[str, ...]:
        """Return the paths on the output branch that have changed since a commit of it."""
        return tuple(self.git("diff", "--name-only", since, "placements", at=self.bare).splitlines())

    def check_out(self, revision: str = "placements") -> Path:
        """Write the tree of the output branch to a directory, as an engine does."""
        commit = self.git("rev-parse", revision, at=self.bare).strip()
        target = self.path / "trees" / commit
        if not target.exists():
            target.mkdir(parents=True)
            archive = subprocess.run(["git", "archive", commit], cwd=self.bare, check=True, capture_output=True).stdout
            subprocess.run(["tar", "-x", "-C", str(target)], input=archive, check=True)
        return target

    @contextmanager
    def daemon(self, *arguments: str, settings: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
        """Run the daemon against the git server; its log is in ``daemon.log``.

        Without arguments of `overspill run` it looks at the observations in files. `settings` are variables by name,
        without their prefix. One that the test has killed is not asked to stop.
        """
        env = {name: value for name, value in os.environ.items() if not name.startswith("OVERSPILL_")}
        password = self.path / "password"
        password.write_text(self.server.password)
        env |= {
            "OVERSPILL_CACHE_DIR": str(self.path / "cache"),
            "OVERSPILL_GIT_USERNAME": self.server.username,
            "OVERSPILL_GIT_PASSWORD_FILE": str(password),
            "PYTHONPATH": str(CHECKOUT),
        }
        env |= {f"OVERSPILL_{name}": value for name, value in (settings or {}).items()}
        command = [sys.executable, "-m", "reconciler", "run", "--repo", self.url, "--poll-interval", "1s"]
        command += arguments or ("--observations", str(self.seen))
        with (self.path / "daemon.log").open("a") as log:
            process = subprocess.Popen(command, env=env, cwd=self.path, text=True, stdout=log, stderr=subprocess.STDOUT)
            try:
                yield process
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    assert process.wait(PATIENCE) == 0, self.last_words()
            finally:
                process.kill()
                process.wait()
        assert "Traceback" not in self.last_words()

    @contextmanager
    def bursting(self, *, missing: int, namespace: str = "vllm-demo") -> Iterator[None]:
        """Run the daemon on a shortage, and go on once its burst is committed."""
        self.observe(missing=missing, namespace=namespace)
        with self.daemon():
            self.until(self.subjects, "no burst")
            yield

    def give_back(self) -> None:
        """Show that nothing is missing any more, and wait until the burst is reverted."""
        before = len(self.subjects())
        self.observe(missing=0, namespace=self._seeing[1] if self._seeing else "vllm-demo")
        self.until(lambda: len(self.subjects()) > before, "no revert")

    def bootstrap(self, *arguments: str) -> str:
        """Return what `overspill bootstrap` prints for the repository."""
        env = {**os.environ, "PYTHONPATH": str(CHECKOUT), "OVERSPILL_CACHE_DIR": str(self.path / "cache-of-bootstrap")}
        command = [sys.executable, "-m", "reconciler", "bootstrap", *arguments, "--repo", str(self.bare)]
        done = subprocess.run(command, env=env, cwd=self.path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def asks(self, *words: str) -> str:
        """Return what a command says of the repository."""
        env = {**os.environ, "PYTHONPATH": str(CHECKOUT), "OVERSPILL_CACHE_DIR": str(self.path / "cache-of-asks")}
        command = [sys.executable, "-m", "reconciler", *words, "--repo", str(self.bare)]
        done = subprocess.run(command, env=env, cwd=self.path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def replay(self, recording: Path) -> str:
        """Decide the passes of a recording again, all the same, and return what `overspill lab replay` prints."""
        env = {**os.environ, "PYTHONPATH": str(CHECKOUT), "OVERSPILL_CACHE_DIR": str(self.path / "cache-of-replay")}
        command = [sys.executable, "-m", "reconciler", "lab", "replay", str(recording), "--repo", str(self.bare)]
        done = subprocess.run(command, env=env, cwd=self.path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        return done.stdout

    def last_words(self) -> str:
        """Return all that the daemon has logged."""
        return (self.path / "daemon.log").read_text()

    def until(self, condition: Callable[[], object], what: str, *, within: float = PATIENCE) -> None:
        """Wait for the daemon to have done something, and go on observing: what is not looked at is not watched."""
        deadline = time.monotonic() + within
        looked = time.monotonic()
        while not condition():
            assert time.monotonic() < deadline, f"{what}: not within {within} s; it said:\n{self.last_words()}"
            time.sleep(0.05)
            if self._seeing is not None and time.monotonic() - looked > 1:
                missing, namespace = self._seeing
                self.observe(missing=missing, namespace=namespace)
                looked = time.monotonic()

    def git(self, *arguments: str, at: Path) -> str:
        """Run git as a person."""
        named = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
        done = subprocess.run(["git", *named, *arguments], cwd=at, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout


def _edited(name: str, text: str, edits: Mapping[str, str]) -> str:
    for old, new in edits.items():
        assert old in text, f"{name} does not say {old!r}"
        text = text.replace(old, new)
    return text


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Start a git server with an empty repository for one test."""
    if (
        shutil.which("git") is None
        or subprocess.run(["git", "http-backend"], capture_output=True, check=False).returncode == 1
    ):
        pytest.skip("git http-backend: not there (in Debian it comes with git)")
    bare = tmp_path / "git" / "fleet.git"
    bare.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "--bare", "--initial-branch=main", str(bare)], check=True)
    server = GitServer(tmp_path / "git", password=secrets.token_hex(12))
    try:
        yield Fleet(tmp_path, server)
    finally:
        server.kill()


@pytest.fixture
def charts(tmp_path: Path) -> Iterator[str]:
    """Serve the chart that the layout's template names; returns the repository's address."""
    repository = ChartRepository(tmp_path / "charts")
    yield repository.url
    repository.stop()
