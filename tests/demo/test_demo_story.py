"""`overspill demo`: the whole loop, with the real daemon, as a newcomer sees it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
TEMPO = "0.6"


def start(out: Path, *more: str, home: Path | None = None) -> subprocess.Popen[str]:
    """Start the demo as a user does; with `home`, as one who has never told git a name."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    if home is not None:
        environment |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    return subprocess.Popen(
        [sys.executable, "-m", "reconciler", "demo", "--out", str(out), *more],
        cwd=out.parent, env=environment, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def git(there: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=there, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Play it once, with no git configuration anywhere, and return where it lies and what it said."""
    top = tmp_path_factory.mktemp("demo")
    process = start(top / "demo-out", "--tempo", TEMPO, home=top)
    said, complained = process.communicate(timeout=240)
    assert process.returncode == 0, said + complained
    assert complained == ""
    return top / "demo-out", said


def test_the_story_goes_out_and_comes_back(played: tuple[Path, str]) -> None:
    out, _ = played
    subjects = git(out / "remote.git", "log", "--reverse", "--format=%s", "placements").splitlines()
    assert subjects == [
        "start(fleet): the output branch",
        "burst(llm/vllm): 3 replicas on worker-2 for 16s",
        "resize(llm/vllm): 3 to 4 replicas on worker-2",
        "burst(llm/vllm): 2 replicas on worker-3 for 16s",
        'Revert "burst(llm/vllm): 2 replicas on worker-3 for 16s"',
        'Revert "burst(llm/vllm): 3 replicas on worker-2 for 16s"',
    ]
    whys = git(out / "remote.git", "log", "--reverse", "--format=%(trailers:key=Overspill-Why,valueonly)", "placements")
    assert whys.split() == ["demand-gone", "expired"]


def test_nothing_of_a_burst_is_left(played: tuple[Path, str]) -> None:
    out, said = played
    assert git(out / "remote.git", "ls-tree", "-r", "placements", "clusters/") == ""
    assert git(out / "remote.git", "fsck", "--strict", "--no-dangling") == ""
    assert "is what it was before the first burst: empty." in said
    assert "git fsck --strict finds nothing wrong" in said


def test_the_speed_up_is_a_persons_commit(played: tuple[Path, str]) -> None:
    out, _ = played
    newest = git(out / "fleet", "log", "-1", "--format=%an %s", "origin/main")
    assert newest == "Ann demo: seconds instead of minutes\n"
    changed = [line for line in git(out / "fleet", "show", "--format=").splitlines() if line[:1] in "+-"]
    added = [line[1:].split("#")[0].strip() for line in changed if line.startswith("+") and not line.startswith("+++")]
    assert added == ["window: 2s", "window: 2s", "coolDown: 60s", "burstDuration: 16s"]


def test_the_daemon_speaks_for_itself(played: tuple[Path, str]) -> None:
    out, said = played
    log = (out / "daemon.log").read_text().splitlines()
    told = [line for line in log if "burst(" in line or "revert(" in line]
    assert len(told) == 4
    folded = " ".join(said.split())
    for line in told:
        assert line.partition(" ")[2] in folded


def test_the_log_ends_it_with_commands_that_work(played: tuple[Path, str]) -> None:
    out, said = played
    *_, log, history, explain = said.strip().splitlines()
    for command in (log, history, explain):
        words = command.split()
        assert words[0] == "git" or words[:3][-2:] == ["-m", "reconciler"]
        done = subprocess.run(
            words, cwd=out.parent, check=False, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), "OVERSPILL_CACHE_DIR": str(out.parent / "cache")},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "vllm" in done.stdout


def test_nothing_is_left_running(played: tuple[Path, str]) -> None:
    out, _ = played
    assert processes_about(out) == []


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_takes_the_daemon_along(tmp_path: Path, sent: signal.Signals) -> None:
    out = tmp_path / "demo-out"
    process = start(out)
    until = time.monotonic() + 60
    while not processes_about(out, "run"):
        assert time.monotonic() < until
        assert process.poll() is None
    process.send_signal(sent)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert processes_about(out) == []


@pytest.mark.parametrize("there", ["a file in it", "a file", "a link"])
def test_somebody_elses_directory_is_refused(tmp_path: Path, there: str) -> None:
    out = tmp_path / "mine"
    if there == "a file":
        out.write_text("precious")
    elif there == "a link":
        (tmp_path / "elsewhere").mkdir()
        out.symlink_to(tmp_path / "elsewhere")
    else:
        out.mkdir()
        (out / "thesis.txt").write_text("precious")
    process = start(out)
    said, complained = process.communicate(timeout=60)
    assert process.returncode == 1, said
    assert complained == f"error: {out} is there already, and no demo made it (try another --out)\n"
    assert there != "a file in it" or (out / "thesis.txt").read_text() == "precious"


def processes_about(out: Path, word: str = "") -> list[str]:
    """List the command lines of processes that name a directory, and a word if one is given, other than the demo."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_text().split("\0") if entry.name.isdecimal() else []
        except OSError:
            continue
        if any(str(out) in one for one in words) and "demo" not in words and (not word or word in words):
            found.append(" ".join(words))
    return found
