"""The bulkhead: one thing that fails costs itself, and nothing beside it.

Whatever is in a file, a template, an observation, a request, a record or a call, an exception that nothing foresaw ends
the work on that item alone. `attempt` turns it into a `Bug`, a value that travels with the problems of the item; the
daemon logs and counts it, and the command line prints it and leaves with exit code 3. Errors that are raised on purpose
keep their meaning, and a process without memory has none to go on with.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from traceback import format_exception
from typing import TypeAlias, TypeVar

from reconciler.errors import Bug, OverspillError

T = TypeVar("T")

NoteBug: TypeAlias = Callable[[Bug], None]
"""Receives a bug where a list goes on without its item: the log of a daemon, or the problems of a command."""

_FRAMES = 30
"""Innermost frames of a traceback that are kept: endless recursion has a thousand equal ones."""

_WORDS = 300
"""Characters of an exception's text that are kept: it may quote a whole file."""


class Seam(StrEnum):
    """Every work that is done item by item, in words that complete "a bug in ...".

    Each is passed to `attempt` where its items are gone through; tests inject an exception at all of them.
    """

    FILE = "reading the file"
    OBJECT = "reading the object"
    ASSEMBLY = "putting the files into force"
    WARNING = "looking for warnings"
    RECORD = "reading the record"
    EDIT = "comparing the placement with its record"
    ENROLMENT = "enrolling the request"
    DRAFTS = "keeping the pods of subsets"
    GANG = "counting the pods of the gang"
    OBJECTS = "listing the objects of the workload"
    DEMAND = "measuring the demand of the workload"
    ROLLOUT = "judging the rollout"
    DECISION = "deciding on the workload"
    EXPIRY = "ending the placement"
    ORDER = "carrying out the order"
    CANDIDATE = "assessing the cluster"
    PENDING = "counting what is still to come of the placement"
    TEMPLATE = "rendering the template"
    CHART = "rendering the charts"
    CHANGE = "writing the change"
    END = "writing the end of the placement"
    EVENT = "telling of the change"
    SINK = "publishing events"
    VIEW = "observing clusters"
    CLUSTER = "observing the cluster"
    ENGINE = "reading the reports of the engine"
    WATCHED_OBJECT = "reading the watched object"
    OBSERVATION_FILE = "reading the observation"
    SIGNAL = "reading the signal"
    STATUS = "telling how the item stands"
    COMMIT = "reading the commit"
    REQUEST = "answering the request"
    RECORDING = "recording the pass"
    CHECK = "checking the cluster"
    PROPOSAL = "following the proposal"
    CACHE = "keeping the ledger from one run to the next"


def attempt(seam: Seam, item: object, call: Callable[[], T]) -> T | Bug:
    """Do the work on one item; return what comes of it, or the bug that it met.

    Raises what is raised on purpose (`OverspillError`), and MemoryError.
    """
    try:
        return _run(seam, item, call)
    except (OverspillError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - the bulkhead: what nothing foresaw ends the work on this item alone
        return bug_of(seam, item, error)


def bug_of(seam: Seam, item: object, error: Exception) -> Bug:
    """Describe an exception that nothing foresaw as a value."""
    words = str(error)
    text = words if len(words) <= _WORDS else f"{words[:_WORDS]}..."
    return Bug(
        task=str(seam),
        item=str(item),
        error=f"{type(error).__name__}: {text}" if text else type(error).__name__,
        trace="".join(format_exception(error, limit=-_FRAMES)),
    )


def _run(_seam: Seam, _item: object, call: Callable[[], T]) -> T:
    """Do the work; tests put a failure in its place."""
    return call()
