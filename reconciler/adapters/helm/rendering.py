"""Renders charts with ``helm template``; no other module runs helm.

helm runs without a shell, the user's settings and a cluster, in a directory that lasts as long as the `Helm` object, so
that a repository's index is fetched once. Charts come from http(s) and OCI repositories only: a path would let a
template read files of this machine.
"""

from __future__ import annotations

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
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from reconciler.adapters import operating_system
from reconciler.adapters.helm.output import MAX_OUTPUT, objects
from reconciler.errors import InvalidInput, Transient
from reconciler.model.workload import HelmConfig, Json
from reconciler.text.findings import shortened

TIMEOUT = 30.0
"""Seconds that one chart may take, download included."""

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
_CREDENTIALS = re.compile(r"://[^/\s@]+@")


class Helm:
    """Helm 3 or 4 on the PATH (a `ports.Charts`)."""

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout

    @cached_property
    def _binary(self) -> str | None:
        return shutil.which("helm")

    @cached_property
    def _home(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="overspill-helm-", ignore_cleanup_errors=True)

    def available(self) -> bool:
        """Tell whether helm is installed; the PATH is searched once."""
        return self._binary is not None

    def close(self) -> None:
        """Remove helm's directory."""
        if "_home" in self.__dict__:
            self._home.cleanup()
            del self.__dict__["_home"]

    def template(self, chart: HelmConfig, *, hooks: bool) -> tuple[Mapping[str, Json], ...]:
        """Render one chart with its values to objects, in the order in which Helm prints them; tests are left out.

        Raises InvalidInput with Helm's own message when the chart or its values are wrong or helm is not installed, and
        Transient when the repository does not answer.
        """
        what = f"rendering chart {shortened(chart.name)!r}"
        if self._binary is None:
            raise InvalidInput(f"{what}: helm is not installed (install helm 3)")
        source = _source(chart, what)
        with tempfile.TemporaryDirectory(prefix="values-", dir=self._home.name) as directory:
            values = Path(directory, "values.json")
            values.write_text(json.dumps(chart.values), encoding="utf-8")
            options = ["--namespace", chart.release_namespace or "default", "--values", str(values), "--skip-tests"]
            options += ["--version", chart.version] if chart.version else []
            options += [] if chart.flags.skip_crds else ["--include-crds"]
            options += [] if hooks else ["--no-hooks"]
            output = self._run([self._binary, "template", *options, *source], what)
        return tuple(objects(output, what))

    def version(self) -> str:
        """Return the version of helm; empty where it is not installed or does not tell it."""
        if self._binary is None:
            return ""
        try:
            return self._run([self._binary, "version", "--short"], "asking helm for its version").decode().strip()
        except (InvalidInput, Transient, UnicodeDecodeError):
            return ""

    def _run(self, argv: list[str], what: str) -> bytes:
        home = self._home.name
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment |= {"HOME": home, "KUBECONFIG": os.devnull}
        environment |= {f"HELM_{name}_HOME": f"{home}/{name.lower()}" for name in ("CACHE", "CONFIG", "DATA")}
        try:
            process = subprocess.Popen(
                argv,
                env=environment,
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise InvalidInput(f"{what}: helm cannot be run: {error}") from error
        try:
            read = _communicate if sys.platform == "win32" else _read_outputs
            output, messages = read(process, time.monotonic() + self._timeout, what)
        except subprocess.TimeoutExpired as error:
            raise Transient(f"{what}: helm did not end within {self._timeout:g} s") from error
        finally:
            _kill(process)
        if process.returncode:
            message = _message(messages)
            raise (Transient if _AWAY.search(message) else InvalidInput)(f"{what}: {message}")
        return output


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
    if len(output) > MAX_OUTPUT:
        raise InvalidInput(f"{what}: it becomes more than {MAX_OUTPUT >> 20} MiB of manifests")


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
    """Tell whether an address may hold a password or token, which helm takes in its arguments only."""
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
