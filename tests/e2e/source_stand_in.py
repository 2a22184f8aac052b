"""Plays Flux's source controller where that cannot be built: fetches what others of Flux's controllers apply.

It is no part of Flux. It keeps the contract that the other controllers hold it to: `status.artifact` with URL, digest
and revision, `observedGeneration`, the Ready condition, and `lastHandledReconcileAt` for who asked by annotation. It
knows GitRepository (http with a login, a branch, sparse directories), HelmRepository and HelmChart over http with
exact versions; it leaves OCIRepository and Bucket alone. Its times and errors prove nothing about Flux.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from reconciler.core.schema import yaml
from tests.e2e.api_server import Access, ApiServer, Json, Refused

GROUP = "/apis/source.toolkit.fluxcd.io/v1"
ASKED = "reconcile.fluxcd.io/requestedAt"
LOOK = 0.1
"""Seconds between two looks at the API server: the real one is told by a watch."""
RETRY = 1.0
KINDS = ("gitrepositories", "helmrepositories", "helmcharts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What became of a source: an artifact by path and revision, or nothing to serve, and words for its condition."""

    revision: str = ""
    file: Path | None = None
    message: str = "stored"


class StandIn:
    """Looks at the sources of one cluster and serves what it fetched."""

    def __init__(self, server: ApiServer, storage: Path, address: str) -> None:
        """Begin with an empty storage."""
        self._server, self._storage, self._address = server, storage, address
        self._handled: dict[str, tuple[int, str]] = {}
        self._due: dict[str, float] = {}

    def look(self) -> None:
        """Handle every source that has changed, was asked for, or has reached its interval."""
        for kind in KINDS:
            for source in self._server.call("GET", f"{GROUP}/{kind}")["items"]:
                metadata = source["metadata"]
                asked = metadata.get("annotations", {}).get(ASKED, "")
                state = (metadata["generation"], asked)
                if self._handled.get(metadata["uid"]) == state and time.monotonic() < self._due[metadata["uid"]]:
                    continue
                due = self._handle(kind, source, asked)  # what could not be told has not been handled
                self._handled[metadata["uid"]], self._due[metadata["uid"]] = state, time.monotonic() + due

    def _handle(self, kind: str, source: Json, asked: str) -> float:
        """Fetch one source and say so in its status; returns the seconds until it is due again."""
        metadata, told = source["metadata"], source.get("status", {})
        try:
            found, due = self._fetch(kind, source), _seconds(source["spec"]["interval"])
            conditions = _ready("True", "Succeeded", found.message, source)
        except (OSError, ValueError, Refused, subprocess.CalledProcessError) as error:
            words = error.stderr.decode() if isinstance(error, subprocess.CalledProcessError) else str(error)
            found, due = Fetched(), RETRY
            conditions = _ready("False", "FetchFailed", words.strip()[-500:], source)
        status: dict[str, Json] = {"observedGeneration": metadata["generation"]}
        if asked:
            status["lastHandledReconcileAt"] = asked
        if _words(told.get("conditions", [])) != _words(conditions):
            status["conditions"] = conditions
        if found.file is not None and told.get("artifact", {}).get("revision") != found.revision:
            status["artifact"] = self._artifact(found.revision, found.file)
        if kind == "helmcharts":
            status["observedChartName"] = source["spec"]["chart"]
        if any(told.get(key) != value for key, value in status.items()):
            path = f"{GROUP}/namespaces/{metadata['namespace']}/{kind}/{metadata['name']}/status"
            self._server.call("PATCH", path, {"status": status})
        return due

    def _fetch(self, kind: str, source: Json) -> Fetched:
        if kind == "gitrepositories":
            return self._git(source)
        if kind == "helmrepositories":
            return Fetched(message=f"{len(_index(source['spec']['url']))} charts")
        return self._chart(source)

    def _git(self, source: Json) -> Fetched:
        metadata, spec = source["metadata"], source["spec"]
        mirror = self._storage / metadata["uid"]
        if not mirror.exists():
            _git(self._storage, {}, "init", "--quiet", "--bare", str(mirror))
        branch = f"refs/heads/{spec['ref']['branch']}"
        _git(mirror, self._login(source), "fetch", "--quiet", "--depth=1", spec["url"], f"+{branch}:{branch}")
        commit = _git(mirror, {}, "rev-parse", branch).decode().strip()
        file = self._storage / f"{commit}-{metadata['uid']}.tar.gz"
        paths = [path.rstrip("/") for path in spec.get("sparseCheckout", ())]
        if not file.exists():
            _store(file, _git(mirror, {}, "archive", "--format=tar.gz", commit, "--", *paths))
        revision = f"{spec['ref']['branch']}@sha1:{commit}"
        return Fetched(revision=revision, file=file, message=f"stored artifact for revision '{revision}'")

    def _login(self, source: Json) -> dict[str, str]:
        """Return what makes git log in with the source's Secret."""
        if "secretRef" not in source["spec"]:
            return {}
        name = f"{source['metadata']['namespace']}/secrets/{source['spec']['secretRef']['name']}"
        data = self._server.call("GET", f"/api/v1/namespaces/{name}")["data"]
        login = b":".join(base64.b64decode(data[key]) for key in ("username", "password"))
        header = f"Authorization: Basic {base64.b64encode(login).decode()}"
        return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader", "GIT_CONFIG_VALUE_0": header}

    def _chart(self, source: Json) -> Fetched:
        metadata, spec = source["metadata"], source["spec"]
        place = f"{GROUP}/namespaces/{metadata['namespace']}/helmrepositories/{spec['sourceRef']['name']}"
        url = self._server.call("GET", place)["spec"]["url"]
        versions = _index(url).get(spec["chart"], [])
        for version in versions:
            if version["version"] == spec["version"]:
                address = urllib.parse.urljoin(f"{url.rstrip('/')}/", version["urls"][0])
                file = self._storage / f"{spec['chart']}-{spec['version']}-{metadata['uid']}.tgz"
                with urllib.request.urlopen(address, timeout=10) as answer:
                    _store(file, answer.read())
                return Fetched(revision=spec["version"], file=file, message=f"pulled '{spec['chart']}' chart")
        raise ValueError(f"no '{spec['chart']}' chart with version matching '{spec['version']}' found")

    def _artifact(self, revision: str, file: Path) -> Json:
        content = file.read_bytes()
        return {
            "path": file.name,
            "url": f"{self._address}/{file.name}",
            "revision": revision,
            "size": len(content),
            "digest": f"sha256:{hashlib.sha256(content).hexdigest()}",
            "lastUpdateTime": _now(),
        }


def _store(file: Path, content: bytes) -> None:
    """Write a file whole or not at all: it may be being served."""
    unfinished = file.with_suffix(".part")
    unfinished.write_bytes(content)
    unfinished.rename(file)


def _index(url: str) -> Json:
    """Read the index of a chart repository: versions by chart."""
    with urllib.request.urlopen(f"{url.rstrip('/')}/index.yaml", timeout=10) as answer:
        [document] = yaml.parse(answer.read(), "index.yaml")
    return document.value["entries"]


def _git(at: Path, login: dict[str, str], *arguments: str) -> bytes:
    quiet = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", *arguments]
    return subprocess.run(command, cwd=at, env={**os.environ, **quiet, **login}, check=True, capture_output=True).stdout


def _ready(status: str, reason: str, message: str, source: Json) -> list[Json]:
    generation = source["metadata"]["generation"]
    return [
        {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": message,
            "observedGeneration": generation,
            "lastTransitionTime": _now(),
        }
    ]


def _words(conditions: list[Json]) -> list[tuple[Json, ...]]:
    """Return what conditions say, without when."""
    return [(each["type"], each["status"], each["message"], each["observedGeneration"]) for each in conditions]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _seconds(duration: str) -> float:
    """Read a duration as Go writes it, in hours, minutes and seconds."""
    units = {"h": 3600, "m": 60, "s": 1}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"([\d.]+)([hms])", duration))


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name is the library's
        """Say nothing."""


def main() -> None:
    """Run until killed: SERVER AUTHORITY STORAGE PORT, and the token in KUBE_TOKEN."""
    server, authority, storage, port = sys.argv[1:]
    access = Access(server=server, token=os.environ["KUBE_TOKEN"], authority=Path(authority))
    Path(storage).mkdir(parents=True, exist_ok=True)
    files = ThreadingHTTPServer(("127.0.0.1", int(port)), partial(_Quiet, directory=storage))
    threading.Thread(target=files.serve_forever, daemon=True).start()
    stand_in = StandIn(ApiServer(access), Path(storage), f"http://127.0.0.1:{port}")
    while True:
        try:
            stand_in.look()
        except (OSError, Refused) as error:
            sys.stderr.write(f"{_now()} {error}\n")
            sys.stderr.flush()
        time.sleep(LOOK)


if __name__ == "__main__":
    main()
