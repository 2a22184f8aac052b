"""`doctor`: the results of all checks, as lines or as JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from reconciler.app.commands import inspected
from reconciler.cli import options, printing
from reconciler.cli.actions.visibility import note_usual_kubeconfig
from reconciler.cli.exit_codes import REFUSED
from reconciler.client.transport import server_address
from reconciler.core.readiness.check import CheckGroup, CheckResult, Readiness
from reconciler.core.readiness.question import ServiceAccountName
from reconciler.daemon.inspection import inspect
from reconciler.errors import Problem
from reconciler.settings import Settings
from reconciler.text.redaction import redacted
from reconciler.variables import Reader

_COLOURS = {Readiness.OK: "green", Readiness.MISSING: "red", Readiness.UNKNOWN: "yellow"}
_INDENT = 9
"""Columns of the first word of a line."""


def doctor(settings: Settings, account: str, server: str, form: options.Output) -> None:
    """Print what a first burst needs, group by group; rights are those of an account, where one is named.

    `server` is the address of a daemon to look at beside it; empty for none.
    """
    groups, found = examine(settings, account, server)
    if form == "json":
        printing.json_out(groups)
    else:
        _lines(groups)
    note_usual_kubeconfig(settings)
    printing.problems(found)
    if any(result.readiness is Readiness.MISSING for result in _all(groups)):
        raise click.exceptions.Exit(REFUSED)


def examine(settings: Settings, account: str, server: str) -> tuple[list[CheckGroup], Sequence[Problem]]:
    """Return the groups of checks, redacted, and the problems of the fleet's files."""
    namespace, _, name = account.partition("/")
    named = ServiceAccountName(namespace=namespace, name=name) if account else None
    daemon = (server_address(server), _authorities()) if server else None
    with inspected(settings, named, daemon) as (world, memory, around):
        inspection = inspect(world, memory, around)
    return [_without_secrets(group) for group in inspection.groups], inspection.problems


def _authorities() -> Path | None:
    """Return the file of authorities that the environment names for a daemon."""
    reader = Reader({name: value for name, value in os.environ.items() if value})
    return reader.path("SERVER_CA_FILE")


def _without_secrets(group: CheckGroup) -> CheckGroup:
    """Redact what servers and addresses said, for whichever form it is printed in.

    Remedies are redacted where they quote others (`core.readiness`): ``password=PASSWORD`` has to stay.
    """
    results = (
        replace(result, subject=redacted(result.subject), seen=redacted(result.seen)) for result in group.results
    )
    return replace(group, results=tuple(results))


def _lines(groups: Sequence[CheckGroup]) -> None:
    for number, group in enumerate(groups):
        printing.heading(group.place, first=number == 0)
        for result in group.results:
            text = f"{result.subject}: {result.seen}"
            printing.entry(result.readiness, text, colour=_COLOURS[result.readiness], width=_INDENT)
            if result.remedy:  # whole, to be copied
                printing.write(" " * _INDENT + printing.cell(result.remedy))
    readiness = [result.readiness for result in _all(groups)]
    counts = (f"{readiness.count(kind)} {kind}" for kind in Readiness)
    printing.write()
    printing.sentence(f"{', '.join(counts)}.")


def _all(groups: Sequence[CheckGroup]) -> list[CheckResult]:
    return [result for group in groups for result in group.results]
