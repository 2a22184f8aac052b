"""Draws docs/pictures: the demo as it moves, and what commands answer on its fleet. Each run writes the same bytes."""

from __future__ import annotations

import contextlib
import fcntl
import io
import logging
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import click
import structlog
from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text

from reconciler.app.commands import connected
from reconciler.cli.actions.watch import draw as draw_fleet
from reconciler.cli.actions.watch import fleet_picture
from reconciler.demo.keys import Key
from reconciler.demo.story import acts, timing
from reconciler.preview import decision_at
from reconciler.settings import Settings
from reconciler.text.timestamps import format_time
from tests.builders.ready_fleet import FILES, ReadyFleet
from tests.builders.remote import Remote
from tests.pictures.demo_film import play
from tests.pictures.terminal_svg import film, still

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
COLUMNS, LINES = 100, 28
WIDE = 106
"""Columns of the demo, in which the subject of a Revert takes one line."""
KEYS = (
    (2.0, Key.MORE),
    (2.0, Key.MORE),
    (2.0, Key.MORE),
    (10.0, Key.REVERT),
    (15.0, Key.KILL),
    (29.0, Key.QUIT),
)
"""What a person presses after the story, and when: the revert of a burst outlives the daemon that took it in."""
OUT = "demo-out"
ANY_COMMIT = "8b69969fe5e3"
SHORT_AT = datetime(2026, 11, 20, 10, 5, 1, tzinfo=UTC)
"""A second after the layout's example observations, by which three replicas are missing."""
CALM, BUSY = 1, 3
"""Numbers of acts after which nothing is missing, and two clusters have bursts."""


def draw(directory: Path) -> None:
    """Write all pictures into a directory."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    script = timing(1.0)
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        shown, _ = play(Path(OUT).absolute(), acts(script), script, KEYS, columns=WIDE, lines=LINES)
        rest = next(number for number, (_, lines) in enumerate(shown.frames) if "4. The" in lines[0].plain)
        write(directory / "demo.svg", film(shown.frames, WIDE, "make demo", rest=rest))
        for name, words, played in (
            ("plan", ["plan", "--what-if", "llm/vllm+6"], CALM),
            ("status", ["status"], BUSY),
            ("explain", ["explain", "llm/vllm"], BUSY),
        ):
            out = Path(OUT).absolute()
            _, now = play(out, acts(script)[:played], script, (), columns=COLUMNS, lines=LINES)
            fleet = {"OVERSPILL_REPO": str(out / "remote.git"), "OVERSPILL_OBSERVATIONS": str(out / "observations")}
            write(directory / f"{name}.svg", answer(words, fleet, now))
            if name == "plan":
                write(directory / "comment.svg", comment(fleet))
        write(directory / "watch.svg", watch(now))
        write(directory / "doctor.svg", doctor())


def watch(now: datetime) -> str:
    """Draw one screen of `watch`, which has no end, as of a moment."""
    settings = Settings(repo=f"{OUT}/remote.git", observations=Path(OUT, "observations"), cache_dir=Path("cache"))
    with connected(settings) as (world, memory):
        picture = fleet_picture(settings, world, decision_at(world, memory, now))
    lines = draw_fleet(picture, COLUMNS, LINES)
    return still([Text.from_ansi(line) for line in lines], COLUMNS, "overspill watch")


def doctor() -> str:
    """Draw `doctor` on three API servers that lack a right and an ApplicationSet."""
    remote = Remote(Path("doctor.git").absolute())
    remote.commit("main", FILES)
    with ExitStack() as stack:
        ready = ReadyFleet(Path.cwd(), stack)
        ready.primary.denied.add("deployments.apps")
        ready.argo_cd.delete("applicationsets", "overspill", "argocd")
        settings = {"OVERSPILL_REPO": remote.url, "OVERSPILL_KUBECONFIG": str(ready.kubeconfig)}
        return answer(["doctor"], settings, None)


def comment(fleet: Mapping[str, str]) -> str:
    """Draw the comment of a pull request, of the plan for the layout's own observations."""
    seen = Path(OUT, "fleet", "observations").absolute()
    settings = {**fleet, "OVERSPILL_OBSERVATIONS": str(seen)}
    text = printed(["plan", "-o", "markdown", "--at", format_time(SHORT_AT)], settings)
    console = Console(width=COLUMNS, file=io.StringIO())
    lines = console.render_lines(Markdown(text), pad=False)
    return still(
        [Text.assemble(*((part.text, part.style or "") for part in line)) for line in lines],
        COLUMNS,
        "comment on a pull request",
    )


def answer(words: list[str], settings: Mapping[str, str], at: datetime | None) -> str:
    """Run a command on a terminal, as of a moment, and draw what it printed."""
    text = printed([*words, *(["--at", format_time(at)] if at is not None else [])], settings)
    command = " ".join(["overspill", *words])
    lines = [Text.assemble(("$ ", "green"), (command, "bold")), *Text.from_ansi(text).split("\n")]
    longest = max(line.cell_len for line in lines)
    if longest > COLUMNS:
        raise ValueError(f"{command} prints {longest} columns on a terminal of {COLUMNS}")
    return still(lines, COLUMNS, command)


def printed(words: list[str], settings: Mapping[str, str]) -> str:
    """Run a command on a terminal, and return what it printed; ids of commits are those of no layout's files."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    environment = {
        **settings,
        "PATH": os.environ["PATH"],
        "LC_ALL": "C.UTF-8",
        "HOME": os.getcwd(),  # noqa: PTH109 - a variable is text
        "OVERSPILL_CACHE_DIR": os.path.abspath("cache"),  # noqa: PTH100 - a variable is text
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "TERM": "xterm-256color",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "reconciler", *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=inner,
        stderr=subprocess.DEVNULL,
    ):
        os.close(inner)
        data = b""
        with contextlib.suppress(OSError):  # the command has ended
            while part := os.read(outer, 65536):
                data += part
    os.close(outer)
    return re.sub(r"\b[0-9a-f]{12}\b", ANY_COMMIT, data.decode().replace("\r\n", "\n").rstrip("\n"))


def write(path: Path, drawn: str) -> None:
    """Write a picture, and say how large it is."""
    path.write_text(drawn, encoding="utf-8")
    click.echo(f"{path.name}: {len(drawn.encode()) // 1000} kB")


if __name__ == "__main__":
    draw(Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else PICTURES)
