"""The changes of objects in clusters, as a table; objects that a cluster refuses, and fields of other tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.cli import printing
from reconciler.core.engines.object_changes import ApplyAction, ObjectChange
from reconciler.errors import InvalidInput, Problem

HEADERS = ("ACTION", "KIND", "NAME", "CHANGES")


def change_row(change: ObjectChange) -> tuple[str, str, str, str]:
    """Write the row of one object."""
    taken = (f"{', '.join(fields)} was set by {manager}" for manager, fields in change.conflicts.items())
    return change.action, change.kind, change.name, change.why or "; ".join((", ".join(change.fields), *taken))


def show_changes(changes: Iterable[ObjectChange]) -> None:
    """Print the rows of some objects."""
    printing.table(HEADERS, [change_row(change) for change in changes])


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
                    message="; ".join(f"{', '.join(named)} was set by {by}" for by, named in change.conflicts.items()),
                    hint="--force-conflicts takes it over, unless that tool sets it anew",
                )
                for change in conflicts
            )
        )


def managers(changes: Iterable[ObjectChange]) -> Sequence[str]:
    """List the other tools from which fields are taken over."""
    return sorted({manager for change in changes for manager in change.conflicts})
