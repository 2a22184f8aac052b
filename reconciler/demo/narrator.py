"""Lines of the demo: time, speaker and text, coloured on terminals."""

from __future__ import annotations

import shutil
import textwrap
import time

import click

from reconciler.core.commits.trailers import is_trailer

_COLOURS = {"Ann": "magenta", "clusters": "blue", "Overspill": "green", "why": "", "check": "cyan"}
_WHO = 9
_LEAST, _MOST = 60, 120


class Narrator:
    """Tells the story with the time since its beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._width = min(_MOST, max(_LEAST, shutil.get_terminal_size((_MOST, 24)).columns))

    def title(self, text: str) -> None:
        """Print the title of a chapter."""
        click.echo()
        click.secho(text, bold=True)

    def say(self, who: str, text: str) -> None:
        """Print a sentence of a speaker."""
        lapse = int(time.monotonic() - self._began)
        head = f"  {lapse // 60}:{lapse % 60:02}  {who:<{_WHO}}  "
        lines = textwrap.wrap(text, self._width - len(head), break_long_words=False, break_on_hyphens=False)
        for number, line in enumerate(lines):
            before = (
                click.style(head, fg=_COLOURS[who] or None, dim=not _COLOURS[who] or None)
                if not number
                else " " * len(head)
            )
            click.echo(before + click.style(line, dim=who == "why" or None))

    def plain(self, text: str) -> None:
        """Print a paragraph as it stands."""
        click.echo(text)

    def commit(self, text: str) -> None:
        """Print one commit of a log: its first line apart from its body and its trailers."""
        head, *rest = text.strip("\n").split("\n")
        click.secho(head, fg="yellow")
        for line in rest:
            click.echo(click.style(f"    {line}", dim=is_trailer(line)) if line else "")
        click.echo()

    def fail(self, text: str) -> None:
        """Print an error."""
        click.echo()
        click.echo(click.style("error: ", fg="red", bold=True) + text, err=True)
