"""How values look on a terminal, in a pipe, and on the error stream.

A terminal gets a rich table that fits its width. A pipe gets plain aligned columns: no colour, nothing cut off, so that
``grep`` and ``awk`` work on them. JSON is the form to build on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import click
from rich.cells import cell_len

from reconciler.app import BLIND
from reconciler.cli.plainly import plainly
from reconciler.core.times import format_time
from reconciler.errors import Problem, Severity
from reconciler.model.units import format_duration
from reconciler.settings import Settings


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str = "") -> None:
    """Print rows under their headers, or say `empty` when there are none. None is shown as ``-``."""
    cells = [[cell(value) for value in row] for row in rows]
    if not cells:
        say(empty)
    elif sys.stdout.isatty():
        _rich(headers, cells)
    else:
        _columns(headers, cells)


def cell(value: object) -> str:
    """Write one value as people read it."""
    match value:
        case None | "":
            return "-"
        case datetime():
            return format_time(value)
        case timedelta():
            return format_duration(value)
        case _:
            return printable(str(value)).replace("\n", " ")


def printable(text: str) -> str:
    """Show control characters instead of sending them, so that no file gives orders to a terminal; line breaks stay."""
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode() for char in text
    )


def say(text: str) -> None:
    """Print a text, unless it is empty."""
    if text:
        click.echo(printable(text))


def heading(text: str, *, first: bool = False) -> None:
    """Print the title of what follows, with a blank line before it unless it comes first."""
    if not first:
        click.echo()
    click.secho(printable(text), bold=True)


def json_out(value: object) -> None:
    """Print a value as JSON in camelCase, indented."""
    click.echo(json.dumps(plainly(value), indent=2))


def complain(text: str) -> None:
    """Print an error, the second line of it and those after it indented."""
    _tell("error", "red", text)


def warn(text: str) -> None:
    """Print a warning."""
    _tell("warning", "yellow", text)


def note(text: str) -> None:
    """Print a remark that is no part of the answer, and so goes to the error stream."""
    click.echo(printable(text), err=True)


def blind(settings: Settings) -> None:
    """Say how to let clusters be seen, when nothing tells of any."""
    if not (settings.observations or settings.kubeconfig or settings.in_cluster):
        warn(BLIND)


def problems(found: Iterable[Problem]) -> bool:
    """Print problems by path and line, each once, on the error stream; tell whether one of them is an error."""
    errors = False
    for problem in sorted(set(found)):
        error = problem.severity is Severity.ERROR
        errors |= error
        (complain if error else warn)(str(problem))
    return errors


def _tell(word: str, colour: str, text: str) -> None:
    first, *rest = printable(text).split("\n")
    lines = [first, *(f"  {line}" for line in rest)]
    click.echo(click.style(f"{word}: ", fg=colour, bold=True) + "\n".join(lines), err=True)


def _columns(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns two spaces apart, each as wide as its widest cell as terminals count."""
    lines = [headers, *rows]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(headers))]
    for line in lines:
        padded = (text + " " * (width - cell_len(text)) for text, width in zip(line, widths, strict=True))
        click.echo("  ".join(padded).rstrip())


def _rich(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table that folds long cells rather than cutting them."""
    from rich import box  # noqa: PLC0415 - only a terminal needs it, and a pipe should not wait for it
    from rich.console import Console  # noqa: PLC0415 - as above
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for header in headers:
        shown.add_column(header, overflow="fold")
    for row in rows:
        # Text, since a string would be read as markup: [bold] in somebody's file is not ours to obey.
        shown.add_row(*(Text(text) for text in row))
    Console().print(shown)
