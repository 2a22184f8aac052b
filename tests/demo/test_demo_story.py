"""`overspill demo`: the whole loop, with the real daemon, as a newcomer sees it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconciler.cli import main
from tests.fakes.warm_command import overspill

CHECKOUT = Path(__file__).parents[2]
TUTORIAL = (CHECKOUT / "docs" / "tutorial" / "on-this-machine.md").read_text()
TEMPO = "0.6"


def start(out: Path, *more: str, home: Path | None = None) -> subprocess.Popen[str]:
    """Start the demo; with `home` by itself as a user does, and as one who has never told git a name."""
    command, environment = overspill(), {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    if home is not None:
        command = [sys.executable, "-m", "reconciler"]
        environment |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    return subprocess.Popen(
        [*command, "demo", "--out", str(out), *more],
        cwd=out.parent,
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def git(there: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=there, check=True, capture_output=True, text=True).stdout


def test_the_demo_does_what_it_promises(tmp_path: Path) -> None:
    """Play it once, with no git configuration anywhere; one test, since it takes long."""
    out = tmp_path / "demo-out"
    process = start(out, "--tempo", TEMPO, home=tmp_path)
    said, complained = process.communicate(timeout=240)
    assert process.returncode == 0, said + complained
    assert complained == ""
    folded = " ".join(said.split())
    the_story_goes_out_and_comes_back(out)
    nothing_of_a_burst_is_left(out, folded)
    the_speed_up_is_a_persons_commit(out, folded)
    the_daemon_speaks_for_itself(out, folded)
    it_ends_with_commands_that_work(out, said)
    the_tutorial_shows_its_commit(out)
    assert_nothing_runs(out)


def the_story_goes_out_and_comes_back(out: Path) -> None:
    subjects = git(out / "remote.git", "log", "--reverse", "--format=%s", "placements").splitlines()
    begun = [subject for subject in subjects if not subject.startswith("extend(")]
    assert begun == [
        "start(fleet): the output branch",
        "burst(llm/vllm): 3 replicas on worker-2 for 12s",
        "resize(llm/vllm): 3 to 4 replicas on worker-2",
        "burst(llm/vllm): 2 replicas on worker-3 for 12s",
        'Revert "burst(llm/vllm): 2 replicas on worker-3 for 12s"',
        'Revert "burst(llm/vllm): 3 replicas on worker-2 for 12s"',
        "burst(llm/vllm): 4 replicas on worker-3 for 12s",
        'Revert "burst(llm/vllm): 4 replicas on worker-3 for 12s"',
    ]
    renewal = next(place for place, subject in enumerate(subjects) if subject.startswith("extend("))
    assert subjects[renewal].startswith("extend(llm/vllm): 4 replicas on worker-2 until ")
    assert renewal < subjects.index(begun[5])
    whys = git(out / "remote.git", "log", "--reverse", "--format=%(trailers:key=Overspill-Why,valueonly)", "placements")
    assert whys.split()[:2] == ["demand-gone", "expired"]
    assert whys.split()[2:] in (["demand-gone"], ["expired"]), "of a burst for 12 s, where the machine is busy"


def nothing_of_a_burst_is_left(out: Path, said: str) -> None:
    assert git(out / "remote.git", "ls-tree", "-r", "placements", "clusters/") == ""
    assert git(out / "remote.git", "fsck", "--strict", "--no-dangling") == ""
    assert "is what it was before the first burst: empty." in said
    assert "git fsck --strict finds nothing wrong" in said


def the_speed_up_is_a_persons_commit(out: Path, said: str) -> None:
    newest = git(out / "fleet", "log", "-1", "--format=%an %s", "origin/main")
    assert newest == "Ann demo: seconds instead of minutes\n"
    changed = [line for line in git(out / "fleet", "show", "--format=").splitlines() if line[:1] in "+-"]
    added = [line[1:].split("#")[0].strip() for line in changed if line.startswith("+") and not line.startswith("+++")]
    times = ["window: 2s", "window: 2s", "headroom: 0", "coolDown: 30s", "default: 12s", "max: 24s"]
    assert sorted(added) == sorted([*times, "burstDuration: 12s", "burstDuration: 12s"])
    assert said.count("burstDuration 12s") == 1, "a field of two templates is named once"


def the_daemon_speaks_for_itself(out: Path, said: str) -> None:
    log = (out / "daemon.log").read_text().splitlines()
    told = [line for line in log if "burst(" in line]
    assert len(told) == 6
    for line in told:
        assert line.partition(" ")[2] in said


def it_ends_with_commands_that_work(out: Path, said: str) -> None:
    *_, blank, lies, happened, clusters = said.splitlines()
    assert blank == ""
    assert lies.endswith("demo-out/README.md")
    assert clusters.endswith(" init fleet --from-kubeconfig")
    guide = (out / "README.md").read_text()
    log, history, explain, replay = [line.strip() for line in guide.splitlines() if line.startswith("    ")]
    assert happened.endswith(history)
    commits = (out / "commits.txt").read_text()
    assert commits.strip() == git(out / "remote.git", "log", "--reverse", "placements").strip()
    for name in re.findall(r"^- demo-out/([^:]+):", guide, re.MULTILINE):
        assert (out / name).exists(), name
    for command, answer in ((log, "vllm"), (history, "vllm"), (explain, "vllm"), (replay, ": all decided the same.")):
        words = command.split()
        assert words[0] == "git" or words[:3][-2:] == ["-m", "reconciler"]
        done = subprocess.run(
            words if words[0] == "git" else [*overspill(), *words[3:]],
            cwd=out.parent,
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), "OVERSPILL_CACHE_DIR": str(out.parent / "cache")},
        )
        assert done.returncode == 0, done.stderr
        assert answer in done.stdout
    # What the clusters reported is fresh for minutes only; the command answers for then, and so works for ever.
    *_, flag, moment = explain.split()
    assert flag == "--at"
    texts = (path.read_text() for path in (out / "observations").iterdir())
    seen = [re.search(r"observedAt: \W?([\dT:-]+Z)", text) for text in texts]
    newest = max(datetime.fromisoformat(found[1]) for found in seen if found)
    assert timedelta() <= datetime.fromisoformat(moment) - newest < timedelta(minutes=1)


def the_tutorial_shows_its_commit(out: Path) -> None:
    blocks = re.findall(r"^```text\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)
    (shown,) = [block for block in blocks if "Overspill-Digest" in block]
    made = git(out / "remote.git", "log", "--format=%B%x00", "--grep=^burst.* on worker-3", "placements").split("\0")
    assert plain(shown) in [plain(message) for message in made]


def plain(message: str) -> str:
    """Write a commit message without what another play of the demo has otherwise: times, ids and how long it takes."""
    digits = r"\b[0-9a-f]{8,}\b|\b\d+s\b|\d{4}-\d\d-\d\dT[\d:]+Z"
    return re.sub(digits, "...", message).strip()


def test_an_interrupt_takes_the_daemon_along_and_the_next_demo_replaces_what_it_left(tmp_path: Path) -> None:
    out = tmp_path / "demo-out"
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process = start(out)
        wait_for_daemon(out, process)
        assert not (out / "rubbish").exists()
        (out / "rubbish").touch()
        process.send_signal(sent)
        process.communicate(timeout=60)
        assert process.returncode == 130
        assert_nothing_runs(out)


def test_a_signal_before_the_daemon_runs_leaves_as_an_interrupt_does(tmp_path: Path) -> None:
    out = tmp_path / "demo-out"
    process = start(out)
    wait_for((out / "remote.git").exists, process)
    process.send_signal(signal.SIGTERM)
    _, complained = process.communicate(timeout=60)
    assert (process.returncode, complained.strip()) == (130, "")
    assert_nothing_runs(out)


def test_a_second_demo_in_the_same_directory_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "demo-out"
    process = start(out)
    number = wait_for_daemon(out, process)
    refused = CliRunner().invoke(main, ["demo", "--out", str(out)])
    assert (refused.exit_code, refused.stderr) == (1, f"error: another demo plays in {out} now (try another --out)\n")
    assert (out / "remote.git").is_dir()
    assert [each for each, words in processes_about(out) if "run" in words] == [number]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)


def test_a_step_that_does_not_happen_is_told_and_fails(tmp_path: Path) -> None:
    out = tmp_path / "demo-out"
    process = start(out)
    os.kill(wait_for_daemon(out, process), signal.SIGKILL)
    said, complained = process.communicate(timeout=60)
    assert process.returncode == 1, said
    assert complained == (
        "error: step '1. A calm morning': the daemon has left with exit code -9."
        " The daemon's own words are in demo-out/daemon.log.\n"
    )


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
    refused = CliRunner().invoke(main, ["demo", "--out", str(out)])
    assert refused.exit_code == 1, refused.stdout
    assert refused.stderr == f"error: {out} is there already, and no demo made it (try another --out)\n"
    assert there != "a file in it" or (out / "thesis.txt").read_text() == "precious"


def wait_for_daemon(out: Path, demo: subprocess.Popen[str]) -> int:
    """Wait until a demo has started its daemon, and return its process id."""
    found: list[int] = []

    def runs() -> bool:
        found[:] = [number for number, words in processes_about(out) if "run" in words]
        return bool(found)

    wait_for(runs, demo)
    return found[0]


def wait_for(seen: Callable[[], bool], demo: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 60
    while not seen():
        assert time.monotonic() < until
        assert demo.poll() is None
        time.sleep(0.05)


def assert_nothing_runs(out: Path) -> None:
    """Wait for the processes that the demo has killed: on a busy machine they outlive it for a moment."""
    until = time.monotonic() + 60
    while left := processes_about(out):
        assert time.monotonic() < until, left
        time.sleep(0.05)


def processes_about(out: Path) -> list[tuple[int, list[str]]]:
    """List the processes whose command line names a directory, other than the demo itself."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_text().split("\0") if entry.name.isdecimal() else []
        except OSError:
            continue
        if any(str(out) in word for word in words) and "demo" not in words:
            found.append((int(entry.name), words))
    return found
