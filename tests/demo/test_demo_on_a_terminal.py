"""On a terminal the demo is a picture that a person plays with: more demand, a revert by hand, a killed daemon."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.fakes.warm_command import overspill

CHECKOUT = Path(__file__).parents[2]
LEAVE_SCREEN = b"\x1b[?1049l"


class Person:
    """Somebody at a terminal of 100 columns and 30 lines."""

    def __init__(self, command: list[str], directory: Path) -> None:
        self.outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        browser = directory / "browser"
        browser.write_text(f'#!/bin/sh\necho "$1" >> {directory}/opened\n')
        browser.chmod(0o755)
        environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        environment["BROWSER"] = f"{browser} %s"
        self.process = subprocess.Popen(
            command, cwd=directory, env=environment, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
        )
        os.close(inner)
        self.screen = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while data := os.read(self.outer, 65536):
                self.screen += data
        except OSError:  # the other side is closed
            return

    def press(self, keys: str) -> None:
        os.write(self.outer, keys.encode())

    def wait_for(self, what: Callable[[], bool]) -> None:
        until = time.monotonic() + 60
        while not what():
            assert time.monotonic() < until, self.screen[-6000:].decode(errors="replace")
            time.sleep(0.05)

    def sees(self, words: str) -> Callable[[], bool]:
        return lambda: words.encode() in self.screen

    def leave(self) -> str:
        """Return what stands on the terminal once the picture is gone."""
        self.process.wait(60)
        self._reader.join(10)
        os.close(self.outer)
        return self.screen.rpartition(LEAVE_SCREEN)[2].decode()


def log(out: Path) -> list[str]:
    done = subprocess.run(
        ["git", "-C", str(out / "remote.git"), "log", "--reverse", "--format=%an %s", "placements"],
        check=False,
        capture_output=True,
        text=True,
    )
    return [re.sub(r" for \d+s| until .*", "", line) for line in done.stdout.splitlines()]


def test_a_person_scales_reverts_and_kills_and_nothing_is_lost(tmp_path: Path) -> None:
    out = tmp_path / "demo-out"
    person = Person([*overspill(), "demo", "--out", str(out), "--tempo", "0.4"], tmp_path)
    person.wait_for(person.sees("more demand"))
    person.press("++")
    person.wait_for(lambda: "Overspill burst(llm/vllm): 2 replicas on worker-2" in log(out))
    person.wait_for(person.sees("2 find no node, 2 elsewhere"))
    person.press("r")
    person.wait_for(lambda: 'Ann Revert "burst(llm/vllm): 2 replicas on worker-2"' in log(out))
    person.press("k")
    person.wait_for(person.sees("kill -9"))
    person.wait_for(lambda: "Overspill burst(llm/vllm): 2 replicas on worker-3" in log(out))
    person.press("q")
    left = person.leave()
    assert person.process.returncode == 0, left
    assert "Overspill hold(llm/vllm): worker-2" in log(out)  # a revert by hand is a decision, also for a new daemon
    assert (out / "daemon.log").read_text().count(" watching ") == 2
    lines = left.replace("\r", "").split("\n")
    assert [line.partition(":")[0] for line in lines if ":  " in line] == [
        "What lies here", "What happened", "Your clusters",
    ]  # fmt: skip # the three lines that stay
    assert "git log" not in left
    opened = (tmp_path / "opened").read_text().splitlines()
    assert len(opened) == 1, "the page is opened once, also where the daemon was killed"
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login#token=ovs_[A-Za-z0-9_-]{43}", opened[0])
