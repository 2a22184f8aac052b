"""What commits and terminals say of changes of a request itself: that it was taken, changed, closed or forgotten."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.wording import clause, sentence
from reconciler.model.plan import Amend, Close, Forget, Receive, RequestChange
from reconciler.model.request import Asker, RequestRecord


def record_of(change: RequestChange) -> RequestRecord:
    """Return the request as a change leaves it, or as it removes it."""
    match change:
        case Receive(record=record) | Forget(record=record):
            return record
        case Amend(after=after) | Close(after=after):
            return after


def subject(change: RequestChange) -> str:
    """Write the first line of a change's commit message."""
    record = record_of(change)
    match change:
        case Receive():
            done = "received"
        case Amend(before=before) if record.cluster is not None and record.cluster != before.cluster:
            done = f"reserved on {record.cluster}"
        case Amend():
            done = "changed"
        case Close():
            done = record.ended.status.lower() if record.ended else "closed"
        case Forget():
            done = "forgotten"
    return f"request({record.workload}): {done}"


def why(change: RequestChange) -> str:
    """Say why, for the middle of a sentence."""
    match change:
        case Receive(record=record):
            if record.asker is Asker.FILE:
                return "a file of the fleet repository asks for it"
            by = f" by {clause(record.author)}" if record.author else ""
            return f"asked for through the API{by}"
        case Close(after=record):
            return clause(record.ended.message) if record.ended else ""
        case Amend(detail=detail) | Forget(detail=detail):
            return clause(detail)


def reasons(change: RequestChange) -> Iterator[str]:
    """Yield the paragraphs of a commit's body, one line each, still unbroken."""
    yield sentence(why(change))
    if isinstance(change, Receive):
        yield from (sentence(note) for note in change.notes)
    if isinstance(change, Close):
        yield "It stays in the ledger, and nothing of it begins again."
