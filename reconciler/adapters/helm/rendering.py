"""Renders charts with ``helm template``; no other module runs helm.

helm runs without a shell, the user's settings, the daemon's secrets and a cluster, within bounds of time, memory and
disk. It keeps what it downloads in a directory of the workspace, as long as the `Helm` object lasts: a repository's
index is fetched once, and nobody finds the charts of another. Charts come from http(s) and OCI repositories only: a
path would let a template read files of this machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from threading import Lock
from urllib.parse import urlsplit

from reconciler.adapters import operating_system
from reconciler.adapters.child_memory import helm_bounds, own_limit
from reconciler.adapters.helm.output import objects
from reconciler.errors import InvalidInput, Transient
from reconciler.model.bounds import CHART_CACHE, CHART_FILE, CHART_OUTPUT, CHART_SECONDS
from reconciler.model.ids import WorkspaceName
from reconciler.model.workload import HelmConfig, Json
from reconciler.text.findings import shortened

_MAX_SAID = 64 << 10
_PART = 64 << 10

_PASSED_ON = (
    "PATH",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
_AWAY = re.compile(
    r"timeout|timed out|no such host|connection (?:refused|reset)|temporary failure|network is unreachable"
    r"|TLS handshake|EOF$|: (?:429|50[0234]) ",
    re.IGNORECASE,
)
_OUT_OF_MEMORY = re.compile(rb"out of memory|cannot allocate memory|MemoryError")
_FILE_TOO_LARGE = re.compile(rb"file too large|file size limit exceeded", re.IGNORECASE)
_CREDENTIALS = re.compile(r"://[^/\s@]+@")
_SIGXCPU, _SIGXFSZ = 24, 25  # on Linux, the one system that has these bounds
_GO_SHARE = 0.75
"""Share of the memory at which Go collects its garbage without a pause."""
_SOME = WorkspaceName("")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartManifests:
    """The objects that a chart becomes."""

    objects: tuple[Mapping[str, Json], ...]
    """In the order in which Helm prints them."""
    size: int
    """Bytes of what Helm printed."""


class Helm:
    """Helm 3 or 4 on the PATH (a `ports.Charts` that makes its caller wait)."""

    def __init__(self, *, timeout: float = CHART_SECONDS.most, limit: int | None = None) -> None:
        """Share the memory of this container, or of one with such a limit in bytes."""
        bounds = helm_bounds(own_limit() if limit is None else limit)
        self._timeout = timeout
        self._memory = bounds.memory
        self.at_once = bounds.processes
        """The most helms that may run at a time."""
        self._running: set[int] = set()
        self._lock = Lock()
        self._stopped = False

    @cached_property
    def _binary(self) -> str | None:
        return shutil.which("helm")

    @cached_property
    def _root(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="overspill-helm-", ignore_cleanup_errors=True)

    def available(self) -> bool:
        """Return whether helm is installed; the PATH is searched once."""
        return self._binary is not None

    def stop(self) -> None:
        """Kill each helm that runs, from any thread, and start no other."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                operating_system.kill(process)

    def close(self) -> None:
        """Remove helm's directories."""
        if "_root" in self.__dict__:
            self._root.cleanup()
            del self.__dict__["_root"]

    def template(
        self, chart: HelmConfig, *, hooks: bool, workspace: WorkspaceName = _SOME
    ) -> tuple[Mapping[str, Json], ...]:
        """Render one chart as `render` does, and return its objects."""
        return self.render(chart, hooks=hooks, workspace=workspace).objects

    def render(self, chart: HelmConfig, *, hooks: bool, workspace: WorkspaceName) -> ChartManifests:
        """Render one chart with its values to objects; tests are left out.

        Raises InvalidInput with Helm's own message when the chart or its values are wrong, beyond a bound, and when
        helm is not installed, and Transient when the repository does not answer. Charts of one workspace are rendered
        one at a time.
        """
        self.check(chart)
        what = _what(chart)
        home = self._home(workspace)
        try:
            with tempfile.TemporaryDirectory(prefix="values-", dir=home) as directory:
                values = Path(directory, "values.json")
                values.write_text(json.dumps(chart.values), encoding="utf-8")
                options = ["--namespace", chart.release_namespace or "default", "--values", str(values), "--skip-tests"]
                options += ["--version", chart.version] if chart.version else []
                options += [] if chart.flags.skip_crds else ["--include-crds"]
                options += [] if hooks else ["--no-hooks"]
                output = self._run([self._binary or "helm", "template", *options, *_source(chart, what)], home, what)
        finally:
            _empty_large(home)
        return ChartManifests(objects=tuple(objects(output, what)), size=len(output))

    def check(self, chart: HelmConfig) -> None:
        """Raise InvalidInput for a chart that cannot be asked for at all, whatever its repository holds."""
        if self._binary is None:
            raise InvalidInput(f"{_what(chart)}: helm is not installed (install helm 3)")
        _source(chart, _what(chart))

    def version(self) -> str:
        """Return the version of helm; empty where it is not installed or does not tell it."""
        if self._binary is None:
            return ""
        try:
            output = self._run([self._binary, "version", "--short"], self._home(_SOME), "asking helm for its version")
            return output.decode().strip()
        except (InvalidInput, Transient, UnicodeDecodeError):
            return ""

    def _home(self, workspace: WorkspaceName) -> Path:
        """Return the directory that helm has for a workspace."""
        home = Path(self._root.name, sha256(workspace.encode()).hexdigest()[:16])
        home.mkdir(exist_ok=True)
        return home

    def _environment(self, home: Path) -> dict[str, str]:
        """Return an environment without anything that is not helm's to know."""
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment |= {"HOME": str(home), "TMPDIR": str(home), "KUBECONFIG": os.devnull}
        environment |= {f"HELM_{name}_HOME": f"{home}/{name.lower()}" for name in ("CACHE", "CONFIG", "DATA")}
        # Each processor's share of the heap is memory as well.
        return environment | {"GOMEMLIMIT": str(int(self._memory * _GO_SHARE)), "GOMAXPROCS": "2"}

    def _run(self, argv: list[str], home: Path, what: str) -> bytes:
        process = self._start(argv, home, what)
        try:
            read = _communicate if sys.platform == "win32" else _read_outputs
            output, messages = read(process, time.monotonic() + self._timeout, what)
        except subprocess.TimeoutExpired as error:
            raise Transient(f"{what}: helm did not end within {self._timeout:g} s") from error
        finally:
            with self._lock:
                self._running.discard(process.pid)
                _kill(process)
        if process.returncode:
            raise self._failure(process.returncode, messages, what)
        return output

    def _start(self, argv: list[str], home: Path, what: str) -> subprocess.Popen[bytes]:
        """Start helm within its bounds."""
        seconds = max(1, int(self._timeout))
        command = operating_system.bounded(argv, memory=self._memory, file_size=CHART_FILE.most, cpu_seconds=seconds)
        with self._lock:
            if self._stopped:
                raise Transient(f"{what}: stopping")
            try:
                process = subprocess.Popen(
                    command,
                    env=self._environment(home),
                    cwd=home,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            except OSError as error:
                raise InvalidInput(f"{what}: helm cannot be run: {error}") from error
            self._running.add(process.pid)
        return process

    def _failure(self, status: int, messages: bytes, what: str) -> InvalidInput | Transient:
        """Return the error of a helm that has failed."""
        if self._stopped:
            return Transient(f"{what}: stopping")
        if _OUT_OF_MEMORY.search(messages):
            return InvalidInput(f"{what}: helm needs more than {self._memory >> 20} MiB of memory for it")
        if status == -_SIGXCPU:
            return InvalidInput(f"{what}: helm needs more than {self._timeout:g} s of a processor for it")
        if status == -_SIGXFSZ or _FILE_TOO_LARGE.search(messages):
            return InvalidInput(f"{what}: a file of it is larger than {CHART_FILE}")
        message = _message(messages)
        return (Transient if _AWAY.search(message) else InvalidInput)(f"{what}: {message}")


def _what(chart: HelmConfig) -> str:
    """Return the prefix of errors."""
    return f"rendering chart {shortened(chart.name)!r}"


def _empty_large(home: Path) -> None:
    """Remove what helm has kept, where it takes more of the disk than it may."""
    size = 0
    for directory, _, names in os.walk(home):
        for name in names:
            with contextlib.suppress(OSError):
                size += Path(directory, name).lstat().st_size
    if size > CHART_CACHE.most:
        shutil.rmtree(home, ignore_errors=True)


def _read_outputs(process: subprocess.Popen[bytes], deadline: float, what: str) -> tuple[bytes, bytes]:
    """Read both outputs to their ends: stdout up to the limit of a chart, stderr up to its first lines."""
    output, messages = bytearray(), bytearray()
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout or -1, selectors.EVENT_READ, output)
        ready.register(process.stderr or -1, selectors.EVENT_READ, messages)
        while ready.get_map():
            if time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(process.args, 0)
            for key, _ in ready.select(deadline - time.monotonic()):
                part = os.read(key.fd, _PART)
                if not part:
                    ready.unregister(key.fileobj)
                elif key.data is output or len(messages) < _MAX_SAID:
                    key.data.extend(part)
            _refuse_excess(output, what)
    process.wait(max(0.0, deadline - time.monotonic()))
    return bytes(output), bytes(messages)


def _communicate(process: subprocess.Popen[bytes], deadline: float, what: str) -> tuple[bytes, bytes]:
    """Read both outputs at once, where selectors wait for no pipe."""
    output, messages = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
    _refuse_excess(output, what)
    return output, messages


def _refuse_excess(output: bytes | bytearray, what: str) -> None:
    """Raise InvalidInput for more output than a chart may have."""
    if len(output) > CHART_OUTPUT.most:
        raise InvalidInput(f"{what}: it becomes more than {CHART_OUTPUT} of manifests")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill helm, if it still runs, with its children, and close its streams."""
    if process.returncode is None:
        operating_system.kill(process.pid)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    process.wait()


def _source(chart: HelmConfig, what: str) -> list[str]:
    """Return helm's arguments for the chart; the repository's alias in the chart's name is dropped."""
    name = chart.chart.removeprefix(f"{chart.repo_name}/") if chart.repo_name else chart.chart
    release = chart.release_name
    if _may_log_in(chart.repo_url):
        raise InvalidInput(
            f"{what}: its repoURL holds a login, which every process here could see (try a repository that needs none,"
            " or an engine that renders charts itself, with a secretRef)"
        )
    if chart.repo_url.startswith("oci://"):
        return ["--", release, f"{chart.repo_url.rstrip('/')}/{name}"]
    if not chart.repo_url.startswith(("http://", "https://")):
        raise InvalidInput(f"{what}: its repoURL is not one of http, https or oci (set repoURL)")
    # With --repo, helm reads a name that starts with a slash or a dot as a local path.
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) is None:
        raise InvalidInput(
            f"{what}: {shortened(name)!r} cannot be the name of a chart (try {shortened(name.rpartition('/')[2])!r})"
        )
    return ["--repo", chart.repo_url, "--", release, name]


def _may_log_in(url: str) -> bool:
    """Return whether an address may hold a password or token, which helm takes in its arguments only."""
    try:
        parts = urlsplit(url)
        return "@" in parts.netloc or bool(parts.query) or (parts.port or 0) < 0
    except ValueError:  # for example a password with a slash, which leaves an invalid port
        return True


def _message(stderr: bytes) -> str:
    """Return helm's error on one line, without credentials in URLs."""
    lines = [line.strip() for line in stderr.decode(errors="replace").splitlines()]
    reasons = [
        line for line in lines if line and not line.startswith(("WARNING", "Use --debug", "walk.go", "coalesce.go"))
    ]
    return shortened(
        _CREDENTIALS.sub("://", " ".join(reasons)).removeprefix("Error: ") or "helm failed and said nothing", 1000
    )
