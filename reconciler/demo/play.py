"""Plays the script: the simulated world and the real daemon, with git between them."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from reconciler.adapters.clock import SystemClock
from reconciler.core.commits.trailers import is_trailer
from reconciler.demo.narrator import Narrator
from reconciler.demo.process import Daemon, run_daemon
from reconciler.demo.stage import OUTPUT, PROGRAM, DemoDirectory, commit, edit_fields, prepare
from reconciler.demo.story import WORKLOAD, Act, Timing, acts, timing
from reconciler.demo.world import DemoWorld
from reconciler.errors import OverspillError
from reconciler.text.timestamps import format_time
from reconciler.text.wording import join_names

_TURN = 0.5
_HURRY = "demo: seconds instead of minutes"
_UNDOES = "This reverts commit "


class MissedStepError(OverspillError):
    """An expected step did not happen in its time."""


def demo(out: Path, *, tempo: float = 1.0) -> int:
    """Play the demo into a directory, and return 0, or 1 if a step did not happen in its time.

    `tempo` scales the windows of the story: 0.5 takes about half as long. Raises InvalidInput if the directory is not
    a demo's, or git cannot be run.
    """
    script = timing(tempo)
    narrator = Narrator()
    narrator.plain("Three simulated clusters, one git repository, and Overspill between them.")
    stage = prepare(out)
    _commit_fleet(stage, narrator, script)
    performance = _DemoRun(stage, narrator)
    try:
        with run_daemon(_run(stage), directory=stage.out, environment=stage.environment, log=stage.log) as daemon:
            for act in acts(script):
                performance.play(act, daemon)
        performance.finish()
    except MissedStepError as error:
        narrator.fail(f"{error}. The daemon's own words are in {_short_path(stage.log)}.")
        return 1
    return 0


class _DemoRun:
    """A run of the demo: the lines printed so far, and the first commit of the branch."""

    def __init__(self, stage: DemoDirectory, narrator: Narrator) -> None:
        self._stage = stage
        self._narrator = narrator
        self._clock = SystemClock()
        self._world = DemoWorld(stage)
        self._world.observe(self._clock.now())
        self._begin = ""
        self._heard = ""

    def play(self, act: Act, daemon: Daemon) -> None:
        """Set the demand of one act, and wait for its placement."""
        primary = self._world.primary
        primary.scale(act.missing, self._clock.now())
        self._narrator.title(act.title)
        self._narrator.say("clusters", act.says)
        counts = f"{primary.wanted} wanted, {primary.running} run, {primary.missing} find no node"
        self._narrator.say("clusters", f"{primary.name}: {counts}")
        if act.status:
            self._ask("status")
        until = time.monotonic() + act.within
        while not self._is_over(act):
            if daemon.ended() is not None:
                raise MissedStepError(f"step '{act.title}': the daemon has left with exit code {daemon.ended()}")
            if time.monotonic() > until:
                line = f" and the daemon saying {act.expected_line!r}" if act.expected_line else ""
                raise MissedStepError(
                    f"step '{act.title}': expected {_counts(act.placed)}{line} within {act.within} s, and there is"
                    f" {_counts(self._world.placed)}"
                )
            time.sleep(_TURN)
            self._turn(daemon)

    def finish(self) -> None:
        """Check the output branch, print its log, and name what to look at."""
        stage, narrator = self._stage, self._narrator
        narrator.title("8. What is left")
        before, after = self._files(self._begin), self._files(self._world.tip)
        if before != after:
            raise MissedStepError(
                f"step '8. What is left': clusters/ is not what it was before: {join_names(after or before)}"
            )
        narrator.say(
            "check",
            f"The tree under clusters/ is what it was before the first burst: {join_names(after) or 'empty'}. Every"
            " burst has ended in a revert.",
        )
        wrong = stage.git("fsck", "--strict", "--no-dangling", directory=stage.remote)
        if wrong:
            raise MissedStepError(f"step '8. What is left': git fsck --strict says: {wrong}")
        narrator.say("check", "git fsck --strict finds nothing wrong with the repository.")
        stage.git("fetch", "-q", "origin")
        narrator.title(f"git log --reverse {OUTPUT}")
        narrator.plain("")
        log = stage.git("log", "--reverse", "--format=%x00commit %h  %cI%n%n%B", OUTPUT, directory=stage.remote)
        for entry in log.split("\0")[1:]:
            narrator.commit(entry)
        narrator.title("What lies here, and what to try")
        narrator.plain(_next_commands(stage, self._clock.now()))

    def _turn(self, daemon: Daemon) -> None:
        """Advance the world by one turn, and print its changes."""
        since = self._world.tip
        for sentence in self._world.turn(self._clock.now()):
            self._narrator.say("clusters", sentence)
        moved = self._world.tip != since
        if moved:
            self._begin = self._begin or self._world.tip
            time.sleep(_TURN)  # the daemon logs a push after it is visible
        for line in daemon.lines():
            self._heard += f"{line}\n"
            self._narrator.say("Overspill", line.partition(" ")[2] or line)
        if moved and since:
            for reason in self._reasons(f"{since}..{self._world.tip}"):
                self._narrator.say("why", reason)

    def _is_over(self, act: Act) -> bool:
        """Tell whether an act is over: the engine has applied the branch, and the placement is the expected one."""
        world = self._world
        return bool(world.tip) and world.settled and world.placed == act.placed and act.expected_line in self._heard

    def _ask(self, command: str) -> None:
        """Run a command of Overspill as Ann, and print its output."""
        stage = self._stage
        self._narrator.say("Ann", f"asks: overspill {command}")
        output = stage.overspill(command, "--repo", str(stage.remote), "--observations", str(stage.observations))
        self._narrator.plain("".join(f"      {line}\n" if line else "\n" for line in output.splitlines()))

    def _reasons(self, commits: str) -> Iterator[str]:
        """Yield the bodies of commits without trailers."""
        bodies = self._stage.git("log", "--reverse", "--format=%b%x00", commits, directory=self._stage.remote)
        for body in bodies.split("\0"):
            for paragraph in body.strip().split("\n\n"):
                if paragraph and not (is_trailer(paragraph.partition("\n")[0]) or paragraph.startswith(_UNDOES)):
                    yield " ".join(paragraph.split())

    def _files(self, commit: str) -> list[str]:
        """List the files under clusters/ of a commit, each with the id of its content."""
        return self._stage.git("ls-tree", "-r", commit, "clusters/", directory=self._stage.remote).splitlines()


def _commit_fleet(stage: DemoDirectory, narrator: Narrator, script: Timing) -> None:
    """Commit the layout of the fleet repository with short windows."""
    narrator.title("0. A fleet repository")
    narrator.say("Ann", f"overspill init {_short_path(stage.fleet)}; its remote is {_short_path(stage.remote)}")
    edit_fields(stage, script.edits)
    commit(stage, _HURRY)
    actions = ", ".join(
        f"{field.removeprefix('spec.')} {value}" for edits in script.edits.values() for field, value in edits.items()
    )
    narrator.say("Ann", f"commits and pushes '{_HURRY}': {actions}")


def _run(stage: DemoDirectory) -> tuple[str, ...]:
    repo, seen = str(stage.remote), str(stage.observations)
    recording = ("--record", str(stage.recording))
    return (*PROGRAM, "run", "--repo", repo, "--observations", seen, "--poll-interval", "1s", *recording)


def _counts(placed: Mapping[str, int]) -> str:
    return join_names(f"{replicas} on {cluster}" for cluster, replicas in placed.items()) or "nothing placed"


def _next_commands(stage: DemoDirectory, now: datetime) -> str:
    """Describe the files of the demo and commands to try; its observations are fresh only with ``--at``."""
    remote, fleet, seen = _short_path(stage.remote), _short_path(stage.fleet), _short_path(stage.observations)
    overspill = _program()
    lies = {
        remote: f"the git host: main, which people write, and {OUTPUT}, which Overspill writes",
        fleet: "Ann's clone: clusters, workspace, policy and templates to look at",
        seen: "what the simulated clusters reported last",
        _short_path(stage.log): "what the daemon said",
        _short_path(stage.recording): "what each pass saw and decided",
    }
    width = max(map(len, lies))
    commands = (
        f"git -C {fleet} log origin/{OUTPUT}",
        f"{overspill} history --repo {remote}",
        f"{overspill} explain {WORKLOAD} --repo {remote} --observations {seen} --at {format_time(now)}",
        f"{overspill} lab replay {_short_path(stage.recording)} --repo {remote}",
    )
    lines = [f"  {path:<{width}}  {what}" for path, what in lies.items()]
    return "\n".join(["", *lines, "", *(f"  {command}" for command in commands)])


def _program() -> str:
    """Return the command that starts this program from here."""
    started = Path(sys.argv[0])
    if started.name != "overspill":
        return f"{_short_path(Path(sys.executable))} -m reconciler"
    return started.name if shutil.which(started.name) else _short_path(started)


def _short_path(path: Path) -> str:
    """Return the shortest form of a path from here."""
    return min(os.path.relpath(path), str(path), key=len)
