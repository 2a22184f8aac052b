"""What a demo leaves behind: a guide to its files, the log of the output branch, and three lines on the screen."""

from __future__ import annotations

import os
import shutil
import sys
from datetime import datetime
from pathlib import Path

from reconciler.demo.stage import OUTPUT, DemoDirectory
from reconciler.demo.story import WORKLOAD
from reconciler.text.timestamps import format_time

_NEXT = "init fleet --from-kubeconfig"


def write_guide(stage: DemoDirectory, now: datetime) -> None:
    """Write the guide and the log; observations are fresh for `explain` only as of `now`."""
    stage.git("fetch", "-q", "origin")
    branch = stage.git("branch", "--list", OUTPUT, directory=stage.remote)
    stage.commits.write_text(
        f"{stage.git('log', '--reverse', OUTPUT, directory=stage.remote)}\n" if branch else "", encoding="utf-8"
    )
    stage.guide.write_text(_guide(stage, now), encoding="utf-8")


def last_lines(stage: DemoDirectory) -> tuple[str, str, str]:
    """Return what a demo ends with: where its files are, a command to look at them, and what comes next."""
    return (
        f"What lies here:  {path_from_here(stage.guide)}",
        f"What happened:   {_history(stage)}",
        f"Your clusters:   {_program()} {_NEXT}",
    )


def path_from_here(path: Path) -> str:
    """Return the shortest form of a path from here."""
    return min(os.path.relpath(path), str(path), key=len)


def _guide(stage: DemoDirectory, now: datetime) -> str:
    """Describe the files of the demo and commands to try."""
    remote, fleet, seen = (path_from_here(path) for path in (stage.remote, stage.fleet, stage.observations))
    overspill, passes = _program(), path_from_here(stage.recording)
    files = {
        remote: f"the git host: `main`, which people write, and `{OUTPUT}`, which Overspill writes",
        fleet: "Ann's clone: clusters, workspace, policy and templates to look at",
        path_from_here(stage.commits): f"the log of `{OUTPUT}`: what was done, and why",
        seen: "what the simulated clusters reported last",
        path_from_here(stage.log): "what the daemon said",
        passes: "what each pass saw and decided",
    }
    commands = (
        f"git -C {fleet} log origin/{OUTPUT}",
        _history(stage),
        f"{overspill} explain {WORKLOAD} --repo {remote} --observations {seen} --at {format_time(now)}",
        f"{overspill} lab replay {passes} --repo {remote}",
    )
    lines = (f"- {path}: {what}" for path, what in files.items())
    return "\n".join(
        ("# What lies here", "", *lines, "", "# What to try", "", *(f"    {line}" for line in commands), "")
    )


def _history(stage: DemoDirectory) -> str:
    return f"{_program()} history --repo {path_from_here(stage.remote)}"


def _program() -> str:
    """Return the command that starts this program from here."""
    started = Path(sys.argv[0])
    if started.name != "overspill":
        return f"{path_from_here(Path(sys.executable))} -m reconciler"
    return started.name if shutil.which(started.name) else path_from_here(started)
