"""The changes of objects in clusters: as a table, as a question, and those that are refused or belong to others."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import click

from reconciler.cli import printing
from reconciler.core.engines.object_changes import ApplyAction, ObjectChange
from reconciler.errors import InvalidInput, Problem

HEADERS = ("ACTION", "KIND", "NAME", "CHANGES")


def show_changes(changes: Iterable[ObjectChange]) -> None:
    """Print a row for each object."""
    printing.table(HEADERS, [(change.action, change.kind, change.name, _changes(change)) for change in changes])


def _changes(change: ObjectChange) -> str:
    """Write the fields that change, and who has set those of another tool."""
    taken = {field for named in change.conflicts.values() for field in named}
    own = [field for field in change.fields if field not in taken]
    return change.why or ", ".join([*own, *_taken(change)])


def _taken(change: ObjectChange) -> list[str]:
    return [f"{', '.join(named)} set by {manager}" for manager, named in change.conflicts.items()]


def refuse_refused(changes: Iterable[ObjectChange]) -> None:
    """Raise InvalidInput with each object that the server does not take."""
    refused = [change for change in changes if change.action is ApplyAction.REFUSED]
    if refused:
        raise InvalidInput(
            problems=tuple(
                Problem(path=f"{change.kind} {change.name}", message=f"is not taken: {change.why}")
                for change in refused
            )
        )


def refuse_conflicts(changes: Iterable[ObjectChange]) -> None:
    """Raise InvalidInput with each object of which fields would be taken over from another tool."""
    conflicts = [change for change in changes if change.conflicts]
    if conflicts:
        raise InvalidInput(
            problems=tuple(
                Problem(
                    path=f"{change.kind} {change.name}",
                    message=f"has {'; '.join(_taken(change))}",
                    hint="--force-conflicts takes that over, until the tool sets it anew",
                )
                for change in conflicts
            )
        )


def confirm(question: str) -> None:
    """Ask before anything is applied. Raises Abort for a no, and UsageError where nobody can answer."""
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise click.UsageError("nobody answers here, and nothing is changed (try --yes)") from None
    if not agreed:
        raise click.Abort


def managers(changes: Iterable[ObjectChange]) -> Sequence[str]:
    """List the other tools from which fields are taken over."""
    return sorted({manager for change in changes for manager in change.conflicts})
