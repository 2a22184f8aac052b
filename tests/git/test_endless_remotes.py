"""Remotes that answer for ever: each costs itself a bounded time, and holds up nobody else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from queue import Queue
from threading import Event
from time import monotonic

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.run import RemoteBounds
from reconciler.adapters.git.source_repositories import BOUNDS, SourceRepositories
from reconciler.errors import InvalidInput, Transient
from reconciler.model.bounds import (
    REMOTE_OUTPUT,
    REMOTE_SECONDS,
    REMOTE_STANDSTILL,
    SOURCE_OUTPUT,
    SOURCE_SECONDS,
    SOURCE_SIZE,
    SOURCE_THREADS,
)
from reconciler.model.ids import CommitId
from reconciler.model.manifest_source import RepositorySource, SourceContent, SourceKey, UnreadSource
from reconciler.model.policy import Desired, Fleet
from tests.builders.memory import peak_memory
from tests.fakes.loopback import LoopbackHandler, LoopbackServer
from tests.fleet.test_sources import DEPLOYMENT
from tests.git.test_source_repositories import PATIENCE, Clock, commit

OBJECT = "1" * 40
HASTY = RemoteBounds(silence=timedelta(seconds=20), total=timedelta(seconds=0.6))


def line(payload: bytes) -> bytes:
    """Frame a line of git's protocol."""
    return b"%04x" % (len(payload) + 4) + payload


def endless_upload(program: Path, *, size: int) -> Path:
    """Write a program that uploads so many bytes of a pack as git-upload-pack does, and then nothing more."""
    program.write_text(
        f"#!{sys.executable} -IS\n"
        "import os, subprocess, sys, time\n"
        "pack = subprocess.Popen(['git-upload-pack', *sys.argv[1:]], stdout=subprocess.PIPE)\n"
        "sent = 0\n"
        f"while sent < {size} and (part := os.read(pack.stdout.fileno(), 4096)):\n"
        "    sent += os.write(1, part)\n"
        "time.sleep(60)\n"
    )
    program.chmod(0o755)
    return program


class Endless(LoopbackHandler):
    """A git server that lists a branch, and tells of progress in place of a pack."""

    told = b"\x02still counting\n"
    """A packet of progress."""
    pause = 0.05
    asked = Event()
    over = Event()

    def do_GET(self) -> None:
        abilities = b"side-band-64k ofs-delta shallow allow-tip-sha1-in-want allow-reachable-sha1-in-want"
        refs = line(OBJECT.encode() + b" HEAD\0" + abilities + b"\n") + line(OBJECT.encode() + b" refs/heads/main\n")
        body = line(b"# service=git-upload-pack\n") + b"0000" + refs + b"0000"
        self.reply(200, body, headers={"Content-Type": "application/x-git-upload-pack-advertisement"})

    def do_POST(self) -> None:
        request = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-git-upload-pack-result")
        self.end_headers()
        try:
            self.wfile.write(line(b"shallow " + OBJECT.encode()) + b"0000")
            if b"done" not in request:
                self.close_connection = True
                return
            self.wfile.write(line(b"NAK\n"))
            self.asked.set()
            while not self.over.wait(self.pause):
                self.wfile.write(line(self.told))
                self.wfile.flush()
        except OSError:
            pass  # git has been killed
        self.close_connection = True


@pytest.fixture
def endless() -> Iterator[str]:
    Endless.asked.clear()
    Endless.over.clear()
    with LoopbackServer(Endless) as server:
        yield f"{server.url}/apps.git"
        Endless.over.set()


def test_progress_without_end_is_given_up(endless: str, tmp_path: Path) -> None:
    with (
        GitRepository(endless, cache=tmp_path, bounds=HASTY) as repository,
        pytest.raises(Transient, match=r"git (fetch|ls-remote): not done after 0\.6 s, stopped waiting"),
    ):
        repository.fetch()


def test_progress_without_an_object_is_given_up_long_before(endless: str, tmp_path: Path) -> None:
    still = RemoteBounds(silence=timedelta(seconds=20), standstill=timedelta(seconds=0.5))
    with (
        GitRepository(endless, cache=tmp_path, bounds=still) as repository,
        pytest.raises(Transient, match=r"git fetch: progress without an object for 0\.5 s, stopped waiting"),
    ):
        repository.fetch()


def test_words_without_end_are_given_up(endless: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Endless, "told", b"\x02" + b"x" * 60_000 + b"\n")
    monkeypatch.setattr(Endless, "pause", 0)
    loud = RemoteBounds(silence=timedelta(seconds=20), total=timedelta(seconds=60))
    for bounds in (loud, replace(loud, output=BOUNDS.output)):
        taken = peak_memory()
        with (
            GitRepository(endless, cache=tmp_path / str(bounds.output), bounds=bounds) as repository,
            pytest.raises(Transient, match=f"git fetch: the remote told more than {bounds.output}"),
        ):
            repository.fetch()
        assert taken() < 3 * bounds.output.most + (16 << 20)
    assert (loud.output, BOUNDS.output) == (REMOTE_OUTPUT, SOURCE_OUTPUT)


def test_pack_beyond_the_bound_is_given_up(tmp_path: Path) -> None:
    apps = tmp_path / "apps"
    (apps / "vllm").mkdir(parents=True)
    (apps / "vllm" / "noise").write_bytes(b"".join(number.to_bytes(4, "big") * 3 for number in range(300_000)))
    commit(apps, DEPLOYMENT)
    # The remote does not end: a pack that is complete before it is looked at is accepted.
    slow = endless_upload(tmp_path / "git-upload-pack", size=400_000)
    subprocess.run(["git", "-C", apps, "config", "core.compression", "0"], check=True)
    narrow = RemoteBounds(silence=timedelta(seconds=20), total=timedelta(seconds=30), size=100_000)
    with (
        GitRepository(str(apps), cache=tmp_path / "cache", bounds=narrow) as repository,
        pytest.raises(Transient, match="git fetch: the remote sent more than"),
    ):
        repository._branches.runner.run(
            ["fetch", "-q", "--depth=1", f"--upload-pack={slow}", str(apps), "main"], remote=True
        )


def test_slow_clone_that_brings_objects_is_not_given_up() -> None:
    assert REMOTE_STANDSTILL.most >= 600, "a server may count and compress for minutes before the first object"
    assert 40e9 / REMOTE_SECONDS.most < 3e6
    assert BOUNDS.total == timedelta(seconds=SOURCE_SECONDS.most)
    assert BOUNDS.size == SOURCE_SIZE.most


@pytest.fixture
def good(tmp_path: Path) -> Path:
    (tmp_path / "good" / "vllm").mkdir(parents=True)
    commit(tmp_path / "good", DEPLOYMENT)
    return tmp_path / "good"


def source(url: str) -> RepositorySource:
    return RepositorySource(url=url, revision="main", path="vllm")


def following(*urls: str) -> Desired:
    keys = frozenset(SourceKey(source(url)) for url in urls)
    return Desired(commit=CommitId("c"), fleet=Fleet(source_repositories=urls), sources=keys)


def test_endless_source_holds_up_no_other_and_ends_with_the_daemon(endless: str, good: Path, tmp_path: Path) -> None:
    def opened(url: str, revision: str) -> GitRepository:
        return GitRepository(url, cache=tmp_path / "cache", source_branch=revision, ended=view.is_closing)

    wakes = Queue[str]()
    view = SourceRepositories(opened, clock=Clock(), wake=wakes.put, every=timedelta(milliseconds=10))
    view.follow(following(endless, str(good)))
    assert Endless.asked.wait(30)
    versions = []
    for image in ("vllm:1.1", "vllm:1.2"):
        newest = commit(good, DEPLOYMENT.replace("vllm:1.0", image))
        while getattr(view.observe().sources.get(source(str(good))), "version", "") != newest:
            wakes.get(timeout=PATIENCE.total_seconds())
        versions.append(newest)
    assert len(versions) == 2, "changes of the other one are seen while it goes on"
    view.close()
    assert not any(thread.is_alive() for thread in view._threads), "its git is killed"


def test_repository_that_fails_is_asked_later_and_later(tmp_path: Path, good: Path) -> None:
    asked: list[float] = []
    wakes = Queue[str]()

    def opened(url: str, revision: str) -> GitRepository:
        if url == str(good):
            return GitRepository(url, cache=tmp_path / "cache", source_branch=revision)
        asked.append(monotonic())
        raise Transient("no route")

    view = SourceRepositories(opened, clock=Clock(), wake=wakes.put, every=timedelta(milliseconds=5))
    view.follow(following("https://away.example.com/apps.git", str(good)))
    newest = ""
    for number in range(8):
        newest = commit(good, DEPLOYMENT.replace("vllm:1.0", f"vllm:2.{number}"))
        while getattr(view.observe().sources.get(source(str(good))), "version", "") != newest:
            wakes.get(timeout=PATIENCE.total_seconds())
    told = view.observe().sources[source("https://away.example.com/apps.git")]
    view.close()
    assert isinstance(told, UnreadSource)
    assert "no route" in told.message
    gaps = [after - before for before, after in pairwise(asked)]
    assert all(gap >= 0.005 * 2**number * 0.9 for number, gap in enumerate(gaps)), "each wait is at least twice as long"


def test_more_repositories_than_threads_are_all_read(tmp_path: Path, good: Path) -> None:
    urls = [str(good)] + [f"https://{number}.example.com/apps.git" for number in range(2 * SOURCE_THREADS.most)]

    def opened(url: str, revision: str) -> GitRepository:
        if url != str(good):
            raise InvalidInput("gone")
        return GitRepository(url, cache=tmp_path / "cache", source_branch=revision)

    view = SourceRepositories(opened, clock=Clock(), patience=PATIENCE)
    view.follow(following(*urls))
    contents = view.observe().sources
    view.close()
    assert len(contents) == len(urls)
    assert isinstance(contents[source(str(good))], SourceContent)
    assert len(view._threads) == SOURCE_THREADS.most
