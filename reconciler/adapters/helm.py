"""Renders charts with ``helm template``: the one place that runs helm.

helm runs without a shell, without the user's settings and without a cluster, in a directory of its own that lives as
long as this object, so that a repository's index is fetched once. Only charts from http(s) and OCI repositories are
taken: a path would let a template read this machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from reconciler.core.findings import shortened
from reconciler.errors import InvalidInput, Transient
from reconciler.model.workload import HelmConfig, Json

TIMEOUT = 60.0
"""Seconds that one chart may take, download included."""

MAX_OUTPUT = 16 * 2**20
"""Bytes that one chart may become; git hosts refuse less."""

MAX_VALUES = 200_000
"""Values that one chart may become once its aliases are written out."""

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
    """Helm 3 or 4 as it is found on the PATH (a `ports.Charts`)."""

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout

    @cached_property
    def _binary(self) -> str | None:
        return shutil.which("helm")

    @cached_property
    def _home(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="overspill-helm-", ignore_cleanup_errors=True)

    def available(self) -> bool:
        """Tell whether helm is installed; it is looked for once."""
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
        return tuple(_objects(output, what))

    def _run(self, argv: list[str], what: str) -> bytes:
        home = self._home.name
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment |= {"HOME": home, "KUBECONFIG": os.devnull}
        environment |= {f"HELM_{name}_HOME": f"{home}/{name.lower()}" for name in ("CACHE", "CONFIG", "DATA")}
        try:
            done = subprocess.run(
                argv,
                env=environment,
                cwd=home,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Transient(f"{what}: helm did not end within {self._timeout:g} s") from error
        except OSError as error:
            raise InvalidInput(f"{what}: helm cannot be run: {error}") from error
        if done.returncode:
            message = _message(done.stderr)
            raise (Transient if _AWAY.search(message) else InvalidInput)(f"{what}: {message}")
        if len(done.stdout) > MAX_OUTPUT:
            raise InvalidInput(f"{what}: it becomes {len(done.stdout) / 2**20:.0f} MiB of manifests (at most 16)")
        return done.stdout


def _source(chart: HelmConfig, what: str) -> list[str]:
    """Say to helm which chart to render, after all options; the repository's alias in the chart's name is dropped."""
    name = chart.chart.removeprefix(f"{chart.repo_name}/") if chart.repo_name else chart.chart
    release = chart.release_name
    if chart.repo_url.startswith("oci://"):
        return ["--", release, f"{chart.repo_url.rstrip('/')}/{name}"]
    if not chart.repo_url.startswith(("http://", "https://")):
        raise InvalidInput(f"{what}: its repoURL is not one of http, https or oci (set repoURL)")
    # With --repo a name with a slash or a dot in front would be a path on this machine.
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) is None:
        raise InvalidInput(
            f"{what}: {shortened(name)!r} cannot be the name of a chart (try {shortened(name.rpartition('/')[2])!r})"
        )
    return ["--repo", chart.repo_url, "--", release, name]


def _message(stderr: bytes) -> str:
    """Return what helm said went wrong, on one line, without credentials of URLs."""
    lines = [line.strip() for line in stderr.decode(errors="replace").splitlines()]
    said = [
        line for line in lines if line and not line.startswith(("WARNING", "Use --debug", "walk.go", "coalesce.go"))
    ]
    return shortened(
        _CREDENTIALS.sub("://", " ".join(said)).removeprefix("Error: ") or "helm failed and said nothing", 1000
    )


class _Loader(yaml.CSafeLoader):
    """Reads what kubectl would read: helm's output is no user's file, and may hold anchors and repeated keys.

    Go's reader takes no scalar for a time, a date or a number in base 60, and takes ``1e3`` for a number.
    """


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag.rpartition(":")[2] not in ("timestamp", "int", "float", "value")
    ]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    list("-+0123456789."),
)


def _objects(output: bytes, what: str) -> Iterator[dict[str, Json]]:
    try:
        documents = list(yaml.load_all(output, Loader=_Loader))  # a safe loader with fewer types
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{what}: the manifests are not YAML: {shortened(str(error), 300)}") from error
    budget = _Counter(what)
    for document in documents:
        if document is None:
            continue
        manifest = budget.plain(document)
        if not isinstance(manifest, dict) or not isinstance(manifest.get("kind"), str):
            raise InvalidInput(f"{what}: a document of it is no Kubernetes object")
        yield manifest


class _Counter:
    """Copies values to plain JSON and counts them, since aliases can make few bytes many values."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._left = MAX_VALUES

    def plain(self, value: Any, depth: int = 0) -> Json:
        """Copy a value; keys become texts, as they do in JSON."""
        self._left -= 1
        if self._left < 0 or depth > 100:  # noqa: PLR2004  # far beyond any object
            raise InvalidInput(f"{self._what}: the manifests hold more than {MAX_VALUES:,} values")
        if isinstance(value, dict):
            return {_key(key): self.plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.plain(item, depth + 1) for item in value]
        if value is None or isinstance(value, str | bool | int | float):
            return value
        raise InvalidInput(f"{self._what}: a value is a {type(value).__name__}, which JSON does not have")


def _key(key: Any) -> str:
    return ("true" if key else "false") if isinstance(key, bool) else "null" if key is None else str(key)
