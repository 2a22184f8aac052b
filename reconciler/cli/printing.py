"""Values as text: on a terminal, in a pipe, and on the error stream.

A terminal gets a table that fits its width. A pipe gets plain aligned columns: no colour, nothing cut off, so that
``grep`` and ``awk`` work on them. JSON is the form to build on.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import click

from reconciler.cli.columns import NONE, aligned, fitted, wrapped
from reconciler.cli.exit_codes import MET_A_BUG
from reconciler.cli.forms import JSONPATH, NAMES, WIDE, YAML
from reconciler.errors import Problem, Severity
from reconciler.model.plan import Reason, ReasonTraits
from reconciler.model.units import format_duration
from reconciler.text.jsonpath import JsonPath
from reconciler.text.redaction import redacted
from reconciler.text.targets import TextTarget, escape
from reconciler.text.timestamps import format_time
from reconciler.text.to_json import json_value


def table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str = "", wide: Collection[str] = ()
) -> None:
    """Print rows under their headers, or say `empty` when there are none. None is shown as ``-``.

    Only the wide form shows the columns of the headers `wide`, and on a terminal columns that are empty in all rows. A
    terminal shows states in colour.
    """
    cells = [[cell(value) for value in row] for row in rows]
    if not cells:
        say(empty)
        return
    terminal = sys.stdout.isatty()
    shown = [
        index
        for index, header in enumerate(headers)
        if _asked(WIDE) or (header not in wide and (not terminal or any(row[index] != NONE for row in cells)))
    ]
    headers, cells = [headers[index] for index in shown], [[row[index] for index in shown] for row in cells]
    lines = fitted(headers, cells, _width(), coloured) if terminal else aligned(headers, cells)
    for number, line in enumerate(lines):
        write(line if number else click.style(line, bold=True))


_UNSHOWN = re.compile(r"(\x1b\[(?:[012]|3[0-7])m|[\t\n]+)|[^\t\n -~\x1b]+|\x1b")
"""A style of our own or layout; else what may be no printable character. None of our styles conceals."""


def coloured(header: str, text: str) -> str:
    """Return a state in its colour, and anything else as it is."""
    if header not in _STATES:
        return text
    colour = next((colour for colour, words in _COLOURS.items() if not words.isdisjoint(text.split())), None)
    return text if colour is None else click.style(text, fg=colour)


def _marked(trait: ReasonTraits) -> Iterator[Reason]:
    """Return the reasons that are marked so."""
    return (reason for reason in Reason if reason.has(trait))


_STATES = frozenset({"ACTION", "ENGINE", "HEALTH", "PHASE", "REASON", "STATUS"})
"""Headers of the columns that hold states."""
_COLOURS: Mapping[str, frozenset[str]] = {
    "red": frozenset({"Failed", "Revert", "Unhealthy", "Unknown", *_marked(ReasonTraits.TROUBLE)}),
    "yellow": frozenset({
        "EndProposal", "Hold", "Move", "Pending", "Progressing", "Propose", "Provisioning", "Queued", "Resize",
        "Update", *_marked(ReasonTraits.CAUTION),
    }),
    "green": frozenset({
        "Approve", "Extend", "Healthy", "Place", "Ready", "Release", "Running", "Succeeded", "Successful",
    }),
}  # fmt: skip # a table of words, filled line by line
"""Words of states by colour; the first colour of which a text has a word is its own."""


def _asked(form: str) -> bool:
    """Return whether a form of `forms` is asked for."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(form))


def _noted(form: str) -> JsonPath | None:
    """Return the JSONPath of a form of `forms` that is asked for."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(form)


def cell(value: object) -> str:
    """Write the value of one cell."""
    match value:
        case None | "":
            return NONE
        case datetime():
            return format_time(value)
        case timedelta():
            return format_duration(value)
        case _:
            return printable(str(value)).replace("\n", " ")


def printable(text: str) -> str:
    """Show control characters instead of sending them, so that no file gives orders to a terminal; line breaks stay."""
    return escape(text, TextTarget.TERMINAL)


def write(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text that is laid out: the one way of commands to their streams.

    Styles, tabs and line breaks are our own; whatever else would order a terminal about is shown.
    """
    click.echo(_UNSHOWN.sub(lambda part: part[1] or printable(part[0]), text), nl=nl, err=err)


def write_over(text: str) -> None:
    """Write over the line of the error stream, without an end."""
    click.echo(f"\r\033[K{printable(text)}", nl=False, err=True)


def document(content: str | bytes) -> None:
    """Print a document: to a pipe as it is, byte for byte, to a terminal as text."""
    if sys.stdout.isatty():
        text = content if isinstance(content, str) else content.decode(errors="replace")
        write("\t".join(map(printable, text.split("\t"))), nl=False)
    else:
        click.echo(content, nl=False)


def say(text: str) -> None:
    """Print a text, unless it is empty."""
    if text:
        write(printable(text))


def sentence(text: str) -> None:
    """Print a sentence; on a terminal it is wrapped between words, never within a name, and keeps its indent."""
    shown = printable(text)
    if not sys.stdout.isatty():
        write(shown)
        return
    words = shown.lstrip(" ")
    indent = " " * (len(shown) - len(words))
    for line in wrapped(words, _width() - len(indent)):
        write(indent + line)


def entry(label: str, text: str, *, colour: str, width: int) -> None:
    """Print a sentence after a coloured label of so many columns; on a terminal its further lines stand below it."""
    shown = cell(text)
    lines = wrapped(shown, max(1, _width() - width)) if sys.stdout.isatty() else [shown]
    for number, line in enumerate(lines):
        write((" " * width if number else click.style(f"{label:<{width}}", fg=colour)) + line)


def heading(text: str, *, first: bool = False) -> None:
    """Print the title of what follows, with a blank line before it unless it comes first."""
    if not first:
        write()
    write(click.style(printable(text), bold=True))


def json_out(value: object) -> None:
    """Print a value as JSON in camelCase, indented; as YAML, by name or by a JSONPath where that is asked for."""
    if _asked(YAML):
        from reconciler.core.schema import yaml  # noqa: PLC0415 - slow to import, and few answers need it

        document(yaml.emit(json_value(value)))
    elif path := _noted(JSONPATH):
        write("\t".join(map(printable, path.render(json_value(value)).split("\t"))), nl=False)
    elif names := _noted(NAMES):
        for name in dict.fromkeys(map(str, names.find(json_value(value)))):
            say(name)
    else:
        write(json.dumps(json_value(value), indent=2))


def complain(text: str) -> None:
    """Print an error, the second line of it and those after it indented."""
    _tell("error", "red", text)


def warn(text: str) -> None:
    """Print a warning."""
    _tell("warning", "yellow", text)


def note(text: str) -> None:
    """Print a remark that is no part of the answer, and so goes to the error stream."""
    write(printable(text), err=True)


def problems(findings: Iterable[Problem]) -> bool:
    """Print problems by path and line, each once, on the error stream; return whether one of them is an error.

    Tracebacks of bugs follow; the command does all other work, then exits with the code of a bug.
    """
    errors, findings = False, tuple(findings)
    for problem in sorted(set(findings)):
        error = problem.severity is Severity.ERROR
        errors |= error
        (complain if error else warn)(str(problem))
    bugs(findings)
    return errors


def bugs(findings: Iterable[Problem]) -> None:
    """Print the traceback of each bug on the error stream, and have the command exit with the code of a bug."""
    for bug in sorted({problem.bug for problem in findings if problem.bug is not None}):
        note(f"{bug}\n{bug.trace.rstrip()}")
        context = click.get_current_context(silent=True)
        if context is not None:
            context.meta[MET_A_BUG] = True


def _width() -> int:
    # A terminal of a few columns shows nothing readable, but must not stop the answer.
    return max(20, shutil.get_terminal_size().columns)


def _tell(word: str, colour: str, text: str) -> None:
    first, *rest = printable(redacted(text)).split("\n")  # errors quote addresses and other people's words
    lines = [first, *(f"  {line}" for line in rest)]
    if sys.stderr.isatty():
        lines = [part for number, line in enumerate(lines) for part in _within(line, 0 if number else len(word) + 2)]
    write(click.style(f"{word}: ", fg=colour, bold=True) + "\n".join(lines), err=True)


def _within(line: str, taken: int) -> list[str]:
    """Break a line of the error stream between words, after so many columns that are taken; the rest is indented."""
    words = line.lstrip(" ")
    indent = len(line) - len(words)
    first, *rest = wrapped(f"{'x' * taken}{words}" if taken else words, _width() - indent)
    lines = [first[taken:]]
    if rest:
        lines += [f"  {part}" for part in wrapped(" ".join(rest), _width() - indent - 2)]
    return [" " * indent + part for part in lines]
