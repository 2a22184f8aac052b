"""The play as lines of text: time, speaker and sentence, coloured where a terminal shows them."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Sequence

import click

from reconciler.demo.branch_log import LandedCommit
from reconciler.demo.keys import Key
from reconciler.demo.view import ClusterScene, DemoTime

_COLOURS = {"Ann": "magenta", "clusters": "blue", "Overspill": "green", "why": "", "check": "cyan"}
_WHO = 9
_LEAST, _MOST = 60, 120


class PlainNarrator:
    """Tells the story with the time since its beginning (a `View`)."""

    interactive = False

    def __init__(self, clock: DemoTime) -> None:
        """Begin the story."""
        self._clock = clock
        self._width = min(_MOST, max(_LEAST, shutil.get_terminal_size((_MOST, 24)).columns))
        self._first = True
        click.echo("Three simulated clusters, one git repository, and Overspill between them.")

    def chapter(self, title: str, says: str = "") -> None:
        """Print the title of a chapter, and its sentence."""
        click.echo()
        click.secho(title, bold=True)
        if says:
            self.say("clusters", says)

    def say(self, who: str, text: str) -> None:
        """Print a sentence of a speaker."""
        lapse = int(self._clock.lapse())
        head = f"  {lapse // 60}:{lapse % 60:02}  {who:<{_WHO}}  "
        lines = textwrap.wrap(text, self._width - len(head), break_long_words=False, break_on_hyphens=False)
        for number, line in enumerate(lines):
            before = (
                click.style(head, fg=_COLOURS[who] or None, dim=not _COLOURS[who] or None)
                if not number
                else " " * len(head)
            )
            click.echo(before + click.style(line, dim=who == "why" or None))

    def quote(self, who: str, command: str, run: Callable[[], str]) -> None:
        """Print the output of a command."""
        self.say(who, f"asks: {command}")
        click.echo("".join(f"      {line}\n" if line else "\n" for line in run().splitlines()))

    def land(self, commit: LandedCommit) -> None:
        """Print why a commit was made; the daemon has told what it is. The first one begins the branch."""
        for reason in () if self._first else commit.reasons:
            self.say("why", reason)
        self._first = False

    def show(self, clusters: Sequence[ClusterScene]) -> None:
        """Print nothing: the changes of clusters are told."""

    def wait(self, seconds: float) -> tuple[Key, ...]:
        """Let time pass; nobody presses a key."""
        self._clock.pause(seconds)
        return ()
