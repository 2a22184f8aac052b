"""The daemon as a process of its own: signals, exit codes, and what the remote is left with."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.access.rights import digest
from reconciler.core.ledger.restraints import ledger_path, write_restraints
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from tests.builders.placement_records import restraint
from tests.fakes import slurm
from tests.fakes.loopback import LoopbackServer
from tests.fakes.prometheus import serving
from tests.fakes.warm_command import overspill
from tests.git.test_endless_remotes import Endless

LAYOUT = Path(__file__).parents[2] / "repo-layout"
GRACE = int(re.findall(r"terminationGracePeriodSeconds: (\d+)", (LAYOUT / "bootstrap" / "daemon.yaml").read_text())[0])
"""Seconds between SIGTERM and SIGKILL in the manifest of the daemon."""


def git(*args: str, at: Path) -> str:
    named = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *named, *args], cwd=at, check=True, capture_output=True, text=True).stdout


class Fleet:
    """A bare remote with the recommended layout on its source branch, and fresh observations beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.remote = path / "remote.git"
        self.pushing = path / "pushing"
        git("init", "-q", "--bare", str(self.remote), at=path)
        git("init", "-q", str(path / "work"), at=path)
        for source in LAYOUT.rglob("*.yaml"):
            target = path / "work" / source.relative_to(LAYOUT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(source.read_text())
        git("add", "-A", at=path / "work")
        git("commit", "-q", "-m", "Describe the fleet", at=path / "work")
        git("push", "-q", str(self.remote), "HEAD:main", at=path / "work")
        self.observe()

    def observe(self) -> None:
        """Write the layout's observations as if they were made now, with pods that have waited for long enough."""
        (self.path / "seen").mkdir(exist_ok=True)
        now = datetime.now(UTC)
        for source in (LAYOUT / "observations").glob("*.yaml"):
            text = re.sub(r'observedAt: ".*"', f'observedAt: "{now:%Y-%m-%dT%H:%M:%SZ}"', source.read_text())
            text = re.sub(r'since: ".*"', f'since: "{now - timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"', text)
            (self.path / "seen" / source.name).write_text(text)

    def edit(self, path: str, old: str, new: str) -> None:
        """Change a file of the source branch."""
        file = self.path / "work" / path
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
        git("commit", "-q", "-a", "-m", "Edit", at=self.path / "work")
        git("push", "-q", str(self.remote), "HEAD:main", at=self.path / "work")

    def slow_push(self, seconds: float) -> None:
        """Let the remote take its time with a push, and tell by a file that one is under way."""
        hook = self.remote / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{self.pushing}'\nsleep {seconds}\n")
        hook.chmod(0o755)

    def bursts(self) -> list[str]:
        """Return the subjects of the output branch's commits that are bursts; none while it does not exist."""
        if not git("branch", "--list", "placements", at=self.remote):
            return []
        subjects = git("log", "--format=%s", "placements", at=self.remote).splitlines()
        return [subject for subject in subjects if subject.startswith("burst(")]

    @contextmanager
    def daemon(self, *flags: str, command: Sequence[str] = (), **variables: str) -> Iterator[subprocess.Popen[str]]:
        """Run the daemon as a process, by another command than `overspill` if one is given."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("OVERSPILL_")}
        env |= {"OVERSPILL_CACHE_DIR": str(self.path / "cache"), "PYTHONPATH": str(LAYOUT.parent), **variables}
        arguments = [*(command or overspill()), "run", "--repo", str(self.remote)]
        arguments += ["--observations", str(self.path / "seen"), "--poll-interval", "1s", *flags]
        with subprocess.Popen(
            arguments, env=env, cwd=self.path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            try:
                yield process
            finally:
                process.kill()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def test_sigterm_finishes_the_push_under_way_and_leaves(fleet: Fleet) -> None:
    fleet.slow_push(1)
    with fleet.daemon(command=[sys.executable, "-m", "reconciler"]) as process:
        until(fleet.pushing.exists)
        process.send_signal(signal.SIGTERM)
        assert fleet.bursts() == []
        assert process.wait(60) == 0
        told = process.stdout.read()
    assert len(fleet.bursts()) == 1
    assert "Traceback" not in told


def test_sigterm_ends_a_daemon_whose_fetch_never_does(fleet: Fleet) -> None:
    Endless.asked.clear()
    Endless.over.clear()
    with LoopbackServer(Endless) as server:
        with fleet.daemon("--repo", f"{server.url}/fleet.git") as process:
            assert Endless.asked.wait(60)
            process.send_signal(signal.SIGTERM)
            assert process.wait(GRACE) == 0
            told = process.stdout.read()
        Endless.over.set()
    assert "git fetch: stopping" in told
    assert "Traceback" not in told


def test_second_interrupt_leaves_at_once_and_the_next_start_completes(fleet: Fleet) -> None:
    fleet.slow_push(30)
    with fleet.daemon() as process:
        until(fleet.pushing.exists)
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(25) == 130, "it waited for the push"
        assert fleet.bursts() == []
        assert "Traceback" not in process.stdout.read()
    fleet.slow_push(0)
    fleet.observe()
    with fleet.daemon() as process:
        until(fleet.bursts)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert len(fleet.bursts()) == 1
    git("fsck", "--strict", at=fleet.remote)


def test_json_log_is_one_object_a_line_and_tells_each_change(fleet: Fleet) -> None:
    with fleet.daemon("--log-format", "json") as process:
        until(fleet.bursts)
        process.send_signal(signal.SIGTERM)
        lines, _ = process.communicate(timeout=60)
    events = [json.loads(line) for line in lines.splitlines()]
    assert [entry["line"].split(" (")[0] for entry in events if entry["event"] == "committed"] == fleet.bursts()
    assert events[-1]["event"] == "stopped"


def test_remote_that_vanishes_and_comes_back_is_taken_up_again(fleet: Fleet) -> None:
    away = fleet.path / "away.git"
    fleet.remote.rename(away)
    with fleet.daemon() as process:
        tell = until_told(process, "refused; trying again at each poll")
        assert "the directory does not exist (try " in tell
        away.rename(fleet.remote)
        until(fleet.bursts)
        until_told(process, "working again")
        fleet.remote.rename(away)
        until_told(process, "refused; trying again at each poll")
        away.rename(fleet.remote)
        until_told(process, "working again")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def until_told(process: subprocess.Popen[str], words: str) -> str:
    """Return the first line from here on that has these words in it."""
    line = next((line for line in process.stdout if words in line), "")
    assert line, f"the daemon ended and did not say {words!r}"
    return line


def test_a_queue_that_grows_in_prometheus_wakes_the_daemon_and_is_named_in_the_commit(fleet: Fleet) -> None:
    query = "  signals:\n  - {name: queue, prometheus: {query: queue, perReplica: 10}}\n  scaleUp:\n    window: 1s"
    fleet.edit("policies/serving.yaml", "  scaleUp:\n    window: 10s", query)
    with serving() as metrics:
        metrics.values["queue"] = 0
        asked = fleet.daemon("--prometheus", metrics.url, "--poll-interval", "1h", OVERSPILL_PROMETHEUS_INTERVAL="1s")
        with asked as process:
            until(fleet.bursts)
            metrics.values["queue"] = 42
            until(lambda: "prometheus queue is 42" in git("log", "--format=%B", "placements", at=fleet.remote))
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            told = process.stdout.read()
    assert f"signals from {metrics.url}" in told
    assert "Traceback" not in told


def test_api_of_the_daemon_takes_a_placement_and_is_as_strict_as_it_was_told(fleet: Fleet) -> None:
    token = "ovs_" + "Ab3-" * 10 + "xyz"
    tokens = f"tokens: [{{name: Ada, email: ada@example.com, sha256: {digest(token)}, roles: {{llm: Editor}}}}]"
    manifest = {
        "name": "settings",
        "namespace": "vllm-demo",
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {"a": "b"},
    }
    body = {
        "workspaceName": "llm",
        "name": "bookinfo",
        "clusters": ["worker-2"],
        "burstDuration": "15m",
        "manifestResources": [manifest],
        "steps": [{"name": "settings", "type": "manifest"}],
    }
    with fleet.daemon("--listen", "127.0.0.1:0", "--strict-egs-api", OVERSPILL_API_TOKENS=tokens) as process:
        address = re.search(r"listening at ([\d.:]+)", until_told(process, "listening at"))
        assert address is not None

        def call(method: str, path: str = "", data: object = None) -> int:
            request = urllib.request.Request(
                f"http://{address[1]}/api/v1/workload-placement{path}",
                data=None if data is None else json.dumps(data).encode(),
                headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
                method=method,
            )
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                return error.code

        assert call("POST", data=body) == 200
        assert call("GET", "/bookinfo") == 200
        assert call("DELETE", "/bookinfo") == 409
        subjects = git("log", "--format=%an %s", "placements", at=fleet.remote).splitlines()
        assert "Ada request(llm/bookinfo): received" in subjects
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert "Traceback" not in process.stdout.read()


def test_killed_daemon_has_kept_its_ledger_for_the_next_start_and_for_commands(fleet: Fleet) -> None:
    held = restraint(since=datetime.now(UTC).replace(microsecond=0), until=datetime(2100, 1, 1, tzinfo=UTC))
    workloads = [WorkloadId(WorkspaceName("llm"), TemplateName(f"service-{number}")) for number in range(120)]
    files = [(ledger_path(workload), write_restraints(workload, [held])) for workload in workloads]
    stream = b"".join(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(data), data) for path, data in files)
    head = b"commit refs/heads/placements\ncommitter Ada <ada@example.com> 1795166000 +0000\ndata 5\nbegin\n"
    subprocess.run(["git", "-C", fleet.remote, "fast-import", "--quiet"], input=head + stream, check=True)

    def kept() -> bytes:
        return b"".join(path.read_bytes() for path in (fleet.path / "cache").glob("*/ledger"))

    with fleet.daemon() as daemon:
        until(kept)
        daemon.kill()
        daemon.wait()
    first = kept()
    (file,) = (fleet.path / "cache").glob("*/ledger")
    file.write_bytes(first[:-100])
    with fleet.daemon() as daemon:
        until(lambda: len(kept()) >= len(first))
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(60) == 0
        assert "Traceback" not in daemon.stdout.read()
    file.unlink()
    env = {**os.environ, "OVERSPILL_CACHE_DIR": str(fleet.path / "cache"), "PYTHONPATH": str(LAYOUT.parent)}
    subprocess.run([*overspill(), "status", "--repo", fleet.remote], env=env, cwd=fleet.path, check=True)
    assert file.exists()


def test_killed_daemon_has_recorded_passes_that_are_decided_the_same_again(fleet: Fleet) -> None:
    recording = fleet.path / "passes"
    with fleet.daemon("--record", str(recording)) as daemon:
        until(fleet.bursts)
        daemon.kill()
        daemon.wait()

    def lab(*words: str) -> subprocess.CompletedProcess[str]:
        arguments = [*overspill(), "lab", *words, "--repo", str(fleet.remote)]
        env = {**os.environ, "OVERSPILL_CACHE_DIR": str(fleet.path / "cache"), "PYTHONPATH": str(LAYOUT.parent)}
        return subprocess.run(arguments, env=env, cwd=fleet.path, capture_output=True, text=True, check=False)

    again = lab("replay", str(recording))
    assert (again.returncode, again.stderr) == (0, "")
    assert re.fullmatch(r"\d+ pass(es)? from .*Z to .*Z: all decided the same\.\n", again.stdout)
    assert "is recorded" in lab("replay", str(recording), "--at", "2h").stderr
    shown = json.loads(lab("replay", str(recording), "--at", "2100-01-01T00:00:00Z", "-o", "json").stdout)
    assert shown["source"] == git("rev-parse", "main", at=fleet.remote).strip()
    same = lab("compare", "main", "main", "--recording", str(recording))
    assert (same.returncode, same.stderr) == (0, "")
    assert same.stdout.startswith("### What `main` would have changed\n")


def test_burst_for_jobs_of_slurm_is_decided_the_same_again(fleet: Fleet) -> None:
    signals = "  signals: [{name: gpu-h100, slurm: {partition: gpu-h100, gpusPerReplica: 8}}]\n"
    fleet.edit("policies/serving.yaml", "  clusters:\n", f"{signals}  clusters:\n")
    recording = fleet.path / "passes"
    words = "slurm gpu-h100 has 6 pending jobs with 48 GPUs, and a replica takes 8"
    with slurm.serving() as controller:
        controller.jobs = [slurm.job(number) for number in range(1, 7)]
        with fleet.daemon("--record", str(recording), "--slurm", controller.url, no_proxy="*") as daemon:

            def told() -> bool:
                log = git("log", "--format=%b", "placements", at=fleet.remote) if fleet.bursts() else ""
                return words in " ".join(log.split())

            until(told)
            daemon.kill()
            daemon.wait()
    arguments = [*overspill(), "lab", "replay", str(recording), "--repo", str(fleet.remote)]
    env = {**os.environ, "OVERSPILL_CACHE_DIR": str(fleet.path / "cache"), "PYTHONPATH": str(LAYOUT.parent)}
    again = subprocess.run(arguments, env=env, cwd=fleet.path, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.endswith(": all decided the same.\n")
