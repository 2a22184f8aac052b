"""A fleet in a bare remote, observations in files, and the command line as a person has it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from structlog.testing import capture_logs

from reconciler.cli import main
from reconciler.text.timestamps import format_time
from tests.builders.daemon import EDITOR, Daemon, daemon
from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote

ANN = "Ann <ann@example.com>"
See = Callable[..., None]
"""What the fixture `see` makes."""


@dataclass
class Terminal:
    """Runs commands in one directory and environment; both can be changed between commands."""

    env: dict[str, str]
    runner: CliRunner = field(default_factory=CliRunner)

    def __call__(self, *arguments: str) -> Result:
        return self.runner.invoke(main, list(arguments), env=self.env, prog_name="overspill")

    def answer(self, *arguments: str) -> Any:
        """Run a command that must succeed and read its answer as JSON."""
        result = self(*arguments, "-o", "json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    def done(self, *arguments: str) -> str:
        """Run a command that must succeed and return what it printed."""
        result = self(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout


def push_first(remote: Remote, message: str) -> None:
    """Let somebody else's commit take the place of the next push, and of no other."""
    before = remote.tip("placements")
    tip = remote.commit("placements", {"note.txt": message}, message=message, at=datetime.now(UTC))
    remote.move("placements", before)
    done, hook = remote.path / "moved", remote.path / "hooks" / "pre-receive"
    # git refuses to move refs from within a push, which it tells by its environment.
    update = f'env -i PATH="$PATH" git --git-dir={remote.path} update-ref refs/heads/placements {tip}'
    hook.write_text(f"#!/bin/sh\ntest -e {done} && exit 0\ntouch {done}\n{update}\n")
    hook.chmod(0o755)


def unnamed(paths: Iterable[str]) -> list[str]:
    """Sort paths, those of placements without the digest of their names, which is of the second they began in."""
    return sorted(re.sub(r"-[0-9a-f]{8}(?=/)", "", path) for path in paths)


def shown_then_done(overspill: Terminal, remote: Remote, *arguments: str) -> list[str]:
    """Run a command with --dry-run and then without; return the subjects, which both times have to be the same."""
    before = remote.git("for-each-ref")
    table = overspill.done(*arguments, "--dry-run")
    shown, at = overspill.answer(*arguments, "--dry-run"), remote.git("for-each-ref")
    assert at == before
    assert "pushed" not in shown
    done = overspill.answer(*arguments)
    first, second = (
        [(one["subject"], one["author"], unnamed(one["removes"]), unnamed(one["writes"])) for one in answer["commits"]]
        for answer in (shown, done)
    )
    assert first == second
    assert len(done["pushed"]) == len(first)
    rows = [line.split()[:2] for line in table.splitlines()[1 : len(first) + 1]]
    changes = [one["change"] for one in shown["commits"]]
    assert rows == [[change["action"], "llm/vllm"] for change in changes]
    return [subject for subject, *_ in first]


def over(*subsets: str) -> dict[str, str]:
    """Write a WorkloadSpread of the workload, of subsets in flow style, and a policy that names no clusters."""
    spread = """\
apiVersion: apps.kruise.io/v1alpha1
kind: WorkloadSpread
metadata: {name: pools, namespace: demo}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm}
  subsets:
"""
    return {
        "policies.yaml": SOURCE_FILES["policies.yaml"].replace(
            "  clusters: [{name: worker-2}, {name: worker-3}]\n", ""
        ),
        "spread.yaml": spread + "".join(f"  - {{{one}}}\n" for one in subsets),
    }


def on(cluster: str) -> str:
    """Say that a subset is one cluster."""
    return f"requiredNodeSelectorTerm: {{matchFields: [{{key: metadata.name, operator: In, values: [{cluster}]}}]}}"


@pytest.fixture(autouse=True)
def _nobodys_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let neither the settings nor the git configuration of whoever runs the tests have a say."""
    for name in [name for name in os.environ if name.startswith(("OVERSPILL_", "GIT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def fleet(remote: Remote) -> Remote:
    """Put a fleet of three clusters and one workload on the remote's source branch."""
    remote.commit("main", SOURCE_FILES, message="Begin")
    return remote


@pytest.fixture
def observations(tmp_path: Path) -> Path:
    """Make an empty directory of observations."""
    path = tmp_path / "observations"
    path.mkdir()
    return path


@pytest.fixture
def overspill(fleet: Remote, observations: Path, tmp_path: Path) -> Terminal:
    """Open a terminal on that fleet."""
    return Terminal(
        env={
            "OVERSPILL_REPO": fleet.url,
            "OVERSPILL_CACHE_DIR": str(tmp_path / "mirrors"),
            "OVERSPILL_OBSERVATIONS": str(observations),
        }
    )


@pytest.fixture
def see(observations: Path) -> See:
    """Write what is seen just now: replicas missing on worker-1, and free GPUs by cluster.

    `watched` lets the source vouch that no more than this has been missing for an hour.
    """

    def write(*, missing: int = 3, watched: bool = True, **free: int) -> None:
        now = datetime.now(UTC).replace(microsecond=0)
        workload: dict[str, Any] = {
            "kind": "Deployment",
            "namespace": "demo",
            "name": "vllm",
            "wanted": 4 + missing,
            "running": 4,
            "replica": {"requests": {"nvidia.com/gpu": "1"}},
            "unschedulable": [],
        }
        if missing:
            workload["unschedulable"] = [{"replicas": missing, "since": format_time(now - timedelta(seconds=90))}]
        if watched:
            workload["deficitSince"] = format_time(now - timedelta(hours=1))
        for number, gpus in ((1, 0), (2, free.get("worker_2", 2)), (3, free.get("worker_3", 4))):
            name = f"worker-{number}"
            node = {"name": f"{name}-a", "used": {"nvidia.com/gpu": str(8 - gpus)}}
            seen = {
                "apiVersion": "overspill.dev/v1alpha1",
                "kind": "Observation",
                "cluster": name,
                "observedAt": format_time(now),
                "pools": [{"name": "gpu", "allocatable": {"nvidia.com/gpu": "8"}, "nodes": [node]}],
                "workloads": [workload] if number == 1 else [],
            }
            (observations / f"{name}.json").write_text(json.dumps(seen))

    return write


@pytest.fixture
def placed(overspill: Terminal, see: See) -> list[str]:
    """Burst to worker-2 and worker-3, and return the names of the two placements in this order."""
    see()
    return [one["change"]["placement"]["name"] for one in overspill.answer("once")["commits"] if one["change"]]


@pytest.fixture
def running(remote: Remote, tmp_path: Path) -> Iterator[Daemon]:
    """Run a daemon over a fleet, with its API."""
    with capture_logs(), daemon(remote, tmp_path / "cache") as one:  # its log is no answer of a command
        yield one


@pytest.fixture
def laptop(running: Daemon) -> Terminal:
    """Open a terminal that knows a daemon, and no repository."""
    return Terminal(env={"OVERSPILL_SERVER": f"http://127.0.0.1:{running.port}", "OVERSPILL_TOKEN": EDITOR})
