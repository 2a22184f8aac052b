"""Writes through the API from 50 callers at once, against one git commit and push at a time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from tests.bench.calls import CLUSTERS, WORKSPACE

CALLERS = 50
EACH = 10
"""Calls of each caller: so few that all are answered before receiving pauses for a whole pass, on a slow machine too.

That pause comes after some seconds of a clock (`pass_runner.LONGEST_RECEIVING`), whatever the machine does in them.
"""
FLOOR_COMMITS = 30
TOKEN = "ovs_" + "Ab3-" * 10 + "xyz"  # put together here, so that no scanner takes this file for a leak

FLOOR = """\
set -e
for number in $(seq "$1"); do
  echo "$number" >"placement-$number.yaml"
  git add "placement-$number.yaml"
  git commit --quiet --message "placement $number"
  git push --quiet origin HEAD:refs/heads/placements
done
"""
"""What a script does that writes one placement after the other."""


class Api:
    """A daemon in a process of its own, and how it is asked."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection = HTTPConnection("127.0.0.1", port)

    def await_ready(self) -> None:
        """Wait until the first pass has ended."""
        deadline = perf_counter() + 60
        while perf_counter() < deadline:
            self._connection.request("GET", "/readyz")
            with self._connection.getresponse() as answer:
                answer.read()
            if answer.status == 200:
                return
            sleep(0.1)
        raise RuntimeError("the daemon's first pass did not end well")

    def await_placed(self, remote: Path, number: int) -> float:
        """Return the seconds until so many placements are on the output branch; nothing here gives their pods nodes."""
        began = perf_counter()
        self._connection.close()  # the daemon has, since nothing was asked for while others were
        command = ["git", "-C", str(remote), "ls-tree", "-r", "--name-only", "placements", "clusters"]
        while perf_counter() < began + 60:
            listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            if listed.count("/placement.yaml\n") >= number:
                return perf_counter() - began
            sleep(0.05)
        raise RuntimeError("what was received was not all placed")

    def create(self, prefix: str, each: int) -> float:
        """Have 50 callers at once create `each` placements, and return the seconds that one placement took."""
        server = f"127.0.0.1:{self._port}"
        command = [sys.executable, "-m", "tests.bench.calls", server, TOKEN, prefix, str(CALLERS), str(each)]
        told: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        if told["ok"] != CALLERS * each:
            raise RuntimeError(f"every placement was meant to be created: {told}")
        return float(told["seconds"]) / (CALLERS * each)


def write_over_floor(work: Path) -> float:
    """Divide the seconds that one of many writes takes by those of one git commit and push on its own."""
    floor = _floor(work)
    remote = _remote(work / "api.git")
    with _daemon(remote, work) as api:
        api.await_ready()
        api.create("warm", 2)
        api.await_placed(remote, CALLERS * 2)
        each = api.create("job", EACH)
        placed = api.await_placed(remote, CALLERS * (2 + EACH))
    told = f"all {CALLERS * EACH} placed {placed:.1f} s after the last answer"
    print(f"# API: {1 / each:.0f} writes a second, floor {1 / floor:.0f}; {told}", file=sys.stderr)
    return each / floor


def _floor(work: Path) -> float:
    """Time one git commit and push after the other; return the seconds for one."""
    remote, clone = work / "api-floor.git", work / "api-floor"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    subprocess.run(["git", "clone", "--quiet", str(remote), str(clone)], check=True, capture_output=True)
    who = {f"GIT_{role}_{what}": "ada@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["sh", "-c", FLOOR, "sh", str(FLOOR_COMMITS)]
    began = perf_counter()
    subprocess.run(command, cwd=clone, check=True, env=os.environ | who)
    return (perf_counter() - began) / FLOOR_COMMITS


def _remote(path: Path) -> Path:
    """Make a bare remote with a fleet of one workspace and many clusters, all applying plain manifests."""
    names = ["home", *(f"worker-{number}" for number in range(CLUSTERS))]
    head = "apiVersion: overspill.dev/v1alpha1\n"
    files = {
        "fleet.yaml": f"{head}kind: Fleet\nmetadata: {{name: bench}}\n"
        "spec: {engine: manifests, observationMaxAge: 1h}\n",
        "workspaces.yaml": f"{head}kind: Workspace\nmetadata: {{name: {WORKSPACE}}}\n"
        f"spec: {{primaryCluster: home, clusters: [{', '.join(names)}], namespaces: [{WORKSPACE}]}}\n",
        **{f"clusters/{name}.yaml": f"{head}kind: Cluster\nmetadata: {{name: {name}}}\nspec: {{}}\n" for name in names},
    }
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(path)], check=True)
    stream = b"commit refs/heads/main\ncommitter Ada <ada@example.com> 1700000000 +0000\ndata 6\nbegin\n\n"
    for name, text in files.items():
        stream += b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(text), text.encode())
    subprocess.run(["git", "-C", str(path), "fast-import", "--quiet"], input=stream, check=True)
    return path


def _observations(directory: Path) -> Path:
    """Show every cluster with room for whatever is asked."""
    directory.mkdir()
    seen = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    node = {"name": "node-1", "allocatable": {"cpu": "1000", "pods": "100000"}}
    for name in ("home", *(f"worker-{number}" for number in range(CLUSTERS))):
        document = {
            "apiVersion": "overspill.dev/v1alpha1",
            "kind": "Observation",
            "cluster": name,
            "observedAt": seen,
            "pools": [{"name": "cpu", "nodes": [node]}],
        }
        (directory / f"{name}.yaml").write_text(json.dumps(document))
    return directory


@contextmanager
def _daemon(remote: Path, work: Path) -> Iterator[Api]:
    """Run the daemon, and yield how to ask it."""
    tokens = work / "tokens.yaml"
    tokens.write_text(
        f"tokens:\n- name: bench\n  sha256: {sha256(TOKEN.encode()).hexdigest()}\n  roles: {{'*': Owner}}\n"
    )
    command = [sys.executable, "-m", "reconciler", "run", "--repo", str(remote), "--listen", "127.0.0.1:0"]
    command += ["--observations", str(_observations(work / "observations"))]
    environment: Mapping[str, str] = os.environ | {
        "OVERSPILL_CACHE_DIR": str(work / "api-cache"),
        "OVERSPILL_API_TOKENS_FILE": str(tokens),
        "OVERSPILL_API_RATE": "100000/s",
    }
    log = work / "daemon.log"
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output, env=environment) as process:
        try:
            yield Api(_port(log, process))
        finally:
            process.terminate()


def _port(log: Path, process: subprocess.Popen[bytes]) -> int:
    """Wait until the daemon says where it listens and has answered its first pass."""
    deadline = datetime.now(UTC) + timedelta(seconds=60)
    while datetime.now(UTC) < deadline and process.poll() is None:
        told = re.search(r"listening at 127\.0\.0\.1:(\d+)", log.read_text())
        if told is not None:
            return int(told[1])
        sleep(0.05)
    raise RuntimeError(f"the daemon did not start: {log.read_text()}")
