"""Programs of a kubeconfig that log in: each failure is told, none is left running, and none is run for nothing."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Timer

import pytest

from reconciler.adapters import operating_system
from reconciler.adapters.kube import login_plugins
from reconciler.core.engines.logins import Plugin
from reconciler.errors import Transient
from reconciler.model.bounds import CLUSTER_LOGIN_SIZE
from tests.builders.watched_clusters import QUICK, Fleet, free, until

VERSION = "client.authentication.k8s.io/v1"
TOKEN = "sesame-" * 3


class Programs(Fleet):
    """Clusters whose kubeconfig names a program to log in."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        super().__init__(path, stack)
        self.directory = path
        self.started = path / "started"
        self.started.touch()
        self.one.token = TOKEN

    def write(self, body: str) -> str:
        """Make a program that leaves word of its process."""
        program = self.directory / "log-in"
        program.write_text(f"#!/bin/sh\necho $$ >> {self.started}\n{body}\n")
        program.chmod(0o755)
        return str(program)

    def use(self, command: str, **more: object) -> None:
        config = json.loads(self.path.read_text())
        config["users"].append(
            {"name": "program", "user": {"exec": {"apiVersion": VERSION, "command": command, **more}}}
        )
        config["contexts"][0]["context"]["user"] = "program"
        self.path.write_text(json.dumps(config))

    def processes(self) -> list[int]:
        return [int(word) for word in self.started.read_text().split()]


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    with ExitStack() as stack:
        yield Programs(tmp_path, stack)


def answer(status: Mapping[str, str]) -> str:
    return f"echo '{json.dumps({'apiVersion': VERSION, 'kind': 'ExecCredential', 'status': status})}'"


def lives(process: int) -> bool:
    try:
        os.killpg(process, 0)
    except ProcessLookupError:
        return False
    return True


def login_problems(programs: Programs) -> list[str]:
    return [str(problem) for problem in programs.following().observe().problems if "worker-1" in str(problem)]


def test_program_gives_the_token_and_sees_no_setting_of_ours(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OVERSPILL_GIT_PASSWORD", TOKEN)
    programs.use(programs.write(f"env > {tmp_path}/env; {answer({'token': TOKEN})}"), env=[{"name": "A", "value": "b"}])
    assert free(programs.following()) == 8
    env = (tmp_path / "env").read_text().splitlines()
    assert "A=b" in env
    assert not [line for line in env if line.startswith("OVERSPILL_")]


def test_program_that_is_missing_is_named(programs: Programs) -> None:
    programs.use("no-such-program")
    assert login_problems(programs) == [
        "cluster worker-1: cannot be watched: cannot be logged in to: 'no-such-program': No such file or directory"
    ]
    assert not programs.one.asked


@pytest.mark.parametrize("body", [f"echo {TOKEN} >&2; exit 1", f"echo {TOKEN}", "echo '{}'", answer({})])
def test_program_that_fails_is_named_without_its_words_and_nothing_is_asked(programs: Programs, body: str) -> None:
    programs.use(programs.write(body))
    (said,) = login_problems(programs)
    assert said.endswith("log-in' failed (run it here to see why)")
    assert TOKEN not in said
    assert not programs.one.asked


def test_program_that_hangs_is_ended_with_all_that_it_has_started(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_plugins, "PATIENCE", 0.2)
    programs.use(programs.write("sleep 60 & sleep 60"))
    (said,) = login_problems(programs)
    assert said.endswith("log-in' gave no answer in 0.2 s")
    first = programs.processes()[0]
    until(lambda: not lives(first))


def test_program_that_never_stops_writing_is_ended(programs: Programs) -> None:
    plugin = Plugin(command=programs.write("exec cat /dev/zero"), args=(), env=(), version=VERSION)
    with pytest.raises(Transient, match="failed"):
        asyncio.run(login_plugins.credentials(plugin))
    assert not any(map(lives, programs.processes()))
    assert CLUSTER_LOGIN_SIZE.most < 64 << 20


def test_program_is_ended_with_the_daemon(programs: Programs) -> None:
    programs.use(programs.write("sleep 60 & sleep 60"))
    view = programs.view(patience=timedelta(0))
    view.follow(programs.desired)
    until(programs.processes)
    view.close()
    until(lambda: not any(lives(process) for process in programs.processes()))


def test_program_is_waited_for_however_often_its_call_is_cancelled(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill = operating_system.kill
    monkeypatch.setattr(operating_system, "kill", lambda process: Timer(0.2, kill, [process]).start())
    plugin = Plugin(command=programs.write("exec sleep 60"), args=(), env=(), version=VERSION)

    async def give_up() -> None:
        call = asyncio.create_task(login_plugins.credentials(plugin))
        await asyncio.to_thread(until, programs.processes)
        while not call.done():
            call.cancel()
            await asyncio.sleep(0)
        assert call.cancelled()
        (process,) = programs.processes()
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)  # one that nobody has waited for is still there

    asyncio.run(give_up())


def test_program_is_not_run_for_each_stream_while_its_credentials_are_refused(programs: Programs) -> None:
    programs.use(programs.write(answer({"token": "stale"})))
    view = programs.view(pace=replace(QUICK, first_backoff=0.5, longest_backoff=60), patience=timedelta(0))
    view.follow(programs.desired)
    until(programs.processes)
    time.sleep(1.2)  # half a second at the most, and a second after it: three runs, of which the third may be coming
    assert len(programs.processes()) <= 3
    assert any("does not take our credentials" in str(problem) for problem in view.observe().problems)
