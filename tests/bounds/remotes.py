"""Git hosts at the bounds of source repositories and of the fleet's remote."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.run import RemoteBounds
from reconciler.adapters.git.signing import AllowedSigners
from reconciler.adapters.git.source_repositories import SourceRepositories
from reconciler.daemon.applied_commits import AppliedCommits
from reconciler.errors import InvalidInput
from reconciler.model.bounds import (
    APPLIED_COMMITS,
    COMMITS_READ_BACK,
    REMOTE_OUTPUT,
    REMOTE_SECONDS,
    REMOTE_STANDSTILL,
    SIGNATURE_SECONDS,
    SOURCE_OUTPUT,
    SOURCE_SECONDS,
    SOURCE_SIZE,
    SOURCE_THREADS,
)
from reconciler.model.capacity import Observed
from reconciler.model.ids import CommitId
from reconciler.model.policy import Fleet
from tests.bounds.experiment import Experiment, experiment
from tests.builders.remote import Remote
from tests.daemon.test_applied_commits import FLUX, _report
from tests.fakes.loopback import LoopbackServer
from tests.fleet.test_sources import DEPLOYMENT
from tests.git.test_endless_remotes import Endless, endless_upload, following
from tests.git.test_signed_source import Fleet as SignedFleet
from tests.git.test_source_repositories import Clock, commit

_SMALL = 4 << 20
"""Bytes in place of half a GiB."""


def _fetched(url: str, place: Path, bounds: RemoteBounds) -> str:
    with GitRepository(url, cache=place, bounds=bounds) as repository:
        return str(repository.fetch().source)


class _Loud(Endless):
    """Tells of progress as fast as it is read."""

    told = b"\x02" + b"x" * 60_000 + b"\n"
    pause = 0


def _endless(
    place: Path, bounds: RemoteBounds, says: str, scaled: str, server: type[Endless] = Endless
) -> Iterator[Experiment]:
    """Fetch from a remote that works, and from one that tells of progress for ever."""
    remote = Remote(place / "remote.git")
    remote.commit("main", {"a": "1"})
    Endless.over.clear()
    with LoopbackServer(server) as endless:
        yield Experiment(
            at=lambda: _fetched(remote.url, place / "near", bounds),
            beyond=lambda: _fetched(f"{endless.url}/apps.git", place / "far", bounds),
            says=says,
            scaled=scaled,
        )
        Endless.over.set()


@experiment(SOURCE_SECONDS)
def _(place: Path) -> Iterator[Experiment]:
    bounds = RemoteBounds(silence=timedelta(seconds=20), total=timedelta(seconds=1))
    yield from _endless(place, bounds, "not done after 1 s, stopped waiting", "1 s")


@experiment(SOURCE_SIZE)
def _(place: Path) -> Iterator[Experiment]:
    bounds = RemoteBounds(silence=timedelta(seconds=10), total=timedelta(seconds=60), size=_SMALL)

    def repository(name: str, size: int) -> Path:
        made = place / name
        (made / "vllm").mkdir(parents=True)
        (made / "vllm" / "noise").write_bytes(b"".join(number.to_bytes(4, "big") * 2 for number in range(size // 8)))
        commit(made, DEPLOYMENT)
        subprocess.run(["git", "-C", made, "config", "core.compression", "0"], check=True)
        return made

    near, far = repository("near", _SMALL // 2), repository("far", 4 * _SMALL)
    slow = endless_upload(place / "git-upload-pack", size=_SMALL + (1 << 20))

    def fetch(source: Path, *options: str) -> str:
        with GitRepository(str(source), cache=place / f"cache-{source.name}", bounds=bounds) as repository:
            arguments = ["fetch", "-q", "--depth=1", *options, str(source), "main"]
            return str(repository._branches.runner.run(arguments, remote=True).status)

    yield Experiment(
        at=lambda: fetch(near),
        beyond=lambda: fetch(far, f"--upload-pack={slow}"),
        says="the remote sent more than",
        scaled="4 MiB",
    )


@experiment(SOURCE_OUTPUT)
def _(place: Path) -> Iterator[Experiment]:
    bounds = RemoteBounds(silence=timedelta(seconds=1), total=timedelta(seconds=60), output=SOURCE_OUTPUT)
    yield from _endless(place, bounds, f"the remote told more than {SOURCE_OUTPUT}", "", _Loud)


@experiment(SOURCE_THREADS)
def _(_place: Path) -> Iterator[Experiment]:
    def looked_at(number: int) -> str:
        """Look at repositories that take a twentieth of a second each, and count the threads."""
        urls = [f"https://{each}.example.com/apps.git" for each in range(number)]

        def opened(_url: str, _revision: str) -> GitRepository:
            time.sleep(0.05)
            raise InvalidInput("gone")

        view = SourceRepositories(opened, clock=Clock(), patience=timedelta(seconds=30))
        view.follow(following(*urls))
        contents, threads = view.observe().sources, len(view._threads)
        view.close()
        assert len(contents) == number
        return f"{threads} threads"

    yield Experiment(
        at=lambda: looked_at(SOURCE_THREADS.most),
        beyond=lambda: looked_at(4 * SOURCE_THREADS.most),
        says=f"^{SOURCE_THREADS.most} threads",
    )


@experiment(REMOTE_STANDSTILL)
def _(place: Path) -> Iterator[Experiment]:
    bounds = RemoteBounds(silence=timedelta(seconds=1), standstill=timedelta(seconds=1))
    says = "progress without an object for 1 s, stopped waiting"
    yield from _endless(place, bounds, says, "1 s")


@experiment(SIGNATURE_SECONDS)
def _(place: Path) -> Iterator[Experiment]:
    bounds = RemoteBounds(silence=timedelta(seconds=20), signature=timedelta(seconds=1))
    fleet = SignedFleet(Remote(place / "remote.git"), place)
    tip = fleet.push(fleet.commit(by="ann"))
    signers = AllowedSigners(ssh=place / "allowed")

    def held_back(name: str, search_path: str) -> str:
        with (
            pytest.MonkeyPatch.context() as variables,
            GitRepository(fleet.remote.url, cache=place / name, bounds=bounds, allowed_signers=signers) as repository,
        ):
            repository.fetch()
            fleet.push(fleet.commit(tip, by="bob"))
            variables.setenv("PATH", search_path)
            tips = repository.fetch()
            return tips.held_back.said if tips.held_back else ""

    slow = place / "slow" / "ssh-keygen"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    path = os.environ["PATH"]

    def at() -> None:
        assert held_back("near", path) == ""

    yield Experiment(
        at=at,
        beyond=lambda: held_back("far", f"{slow.parent}:{path}"),
        says="git verify-commit: no answer for 1 s, stopped waiting",
        scaled="1 s",
    )


@experiment(REMOTE_SECONDS)
def _(place: Path) -> Iterator[Experiment]:
    bounds = RemoteBounds(silence=timedelta(seconds=20), total=timedelta(seconds=2))
    yield from _endless(place, bounds, "not done after 2 s, stopped waiting", "2 s")


@experiment(REMOTE_OUTPUT)
def _(place: Path) -> Iterator[Experiment]:
    bounds = RemoteBounds(silence=timedelta(seconds=1), total=timedelta(seconds=60))
    yield from _endless(place, bounds, f"the remote told more than {REMOTE_OUTPUT}", "", _Loud)


@experiment(COMMITS_READ_BACK)
def _(place: Path) -> Iterator[Experiment]:
    def branch(number: int, name: str) -> tuple[GitRepository, CommitId]:
        remote = Remote(place / f"{name}.git")
        first = remote.commit("placements", {"a": "0"})
        head = "commit refs/heads/placements\ncommitter Ann <a@b> 0 +0000\ndata 0\n"
        stream = f"{head}from refs/heads/placements^0\n{head * (number - 1)}".encode()
        subprocess.run(["git", "-C", remote.url, "fast-import", "--quiet"], input=stream, check=True)
        return GitRepository(remote.url, cache=place / f"{name}-cache"), first

    def contains(repository: GitRepository, known: CommitId) -> str:
        tip = repository.fetch().output
        assert tip is not None
        return str(repository._branches.commits.contains("refs/heads/placements", tip, known))

    near, known_near = branch(COMMITS_READ_BACK.most - 1, "near")
    far, known_far = branch(COMMITS_READ_BACK.most + 10, "far")

    def at() -> None:
        assert contains(near, known_near) == "True"

    with ExitStack() as stack:
        stack.enter_context(near)
        stack.enter_context(far)
        yield Experiment(at=at, beyond=lambda: contains(far, known_far), says="^None")


@experiment(APPLIED_COMMITS)
def _(place: Path) -> Iterator[Experiment]:
    remote = Remote(place / "remote.git")
    remote.commit("main", {"a": "1"})
    commits = [remote.commit("placements", {"a": str(number)}) for number in range(2 * APPLIED_COMMITS.most)]
    with GitRepository(remote.url, cache=place / "cache") as repository:
        repository.fetch()

        def looked_for(number: int) -> str:
            """Compare so many reports, and count those that were looked for."""
            compared = AppliedCommits()
            reports = {name: _report(name, FLUX, name) for name in commits[:number]}
            compared.compare(repository, Observed(reports=reports), Fleet(), "placements")
            return f"{len(compared._found)} looked for"

        def at() -> None:
            assert looked_for(APPLIED_COMMITS.most) == f"{APPLIED_COMMITS.most} looked for"

        # The tip itself needs no look.
        yield Experiment(at=at, beyond=lambda: looked_for(len(commits)), says=f"^{APPLIED_COMMITS.most + 1} looked for")
