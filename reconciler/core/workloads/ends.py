"""The ends of runs: what the status of an object says of it, by the `EndStatus` of its kind.

An object that has ended asks for nothing any more, whether or not its pods are still there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from reconciler.core.workloads.paths import at, items, within
from reconciler.model.capacity import ClusterObservation, FailedObject
from reconciler.model.kubernetes.workload_kind import EndStatus, Path, WorkloadKind
from reconciler.model.placement import Placement
from reconciler.model.workload import Json
from reconciler.text.timestamps import read_moment


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """The end of a run by the status of its object."""

    complete: bool
    """Whether all of its work is done; it has failed otherwise, or was stopped."""
    at: datetime | None
    """When; the creation of the object where its status does not say it, and None without that."""
    message: str
    """Why, in the words of its controller; empty where it says nothing."""


def asks_for_nothing(kind: WorkloadKind, raw: Mapping[str, Json]) -> bool:
    """Return whether the run of an object is over, or is being ended, by its own status: it asks for nothing then.

    Never for a kind whose status does not say it.
    """
    end = kind.end
    return end is not None and _word(end, raw, (*end.complete, *end.failed, *end.ending)) != ""


def read_end(kind: WorkloadKind, raw: Mapping[str, Json]) -> RunEnd | None:
    """Return the end of the run of an object by its own status; None while it goes on, and where nothing says it.

    Raises ValueError for a moment that is none.
    """
    end = kind.end
    word = "" if end is None else _word(end, raw, (*end.complete, *end.failed))
    if end is None or not word:
        return None
    condition = {} if end.word else _conditions(raw).get(word, {})
    spoiled = end.spoiled is not None and at(raw, end.spoiled[0]) in end.spoiled[1]
    explained = _conditions(raw).get(end.explained_by, {})
    texts = (condition.get("message"), condition.get("reason"), *_values(raw, end.reasons), explained.get("message"))
    return RunEnd(
        complete=word in end.complete and not spoiled,
        at=_moment(raw, end, condition),
        message=next((str(text) for text in texts if text), ""),
    )


def failed_object(placement: Placement, seen: ClusterObservation) -> FailedObject | None:
    """Return an object of a placement that has failed; one of an earlier placement of the same name is none of it."""
    failed = seen.failed.get(placement.name)
    return failed if failed is not None and failed.since >= placement.created_at else None


def _word(end: EndStatus, raw: Mapping[str, Json], ends: Sequence[str]) -> str:
    """Return the word of a status that is one of these; empty while none is."""
    if not end.word:
        true = _conditions(raw)
        return next((word for word in ends if word in true), "")
    word = at(raw, end.word)
    return word if isinstance(word, str) and word in ends else ""


def _conditions(raw: Mapping[str, Json]) -> dict[str, Json]:
    """Return the conditions of a status that hold, by their type."""
    conditions = at(raw, ("status", "conditions"))
    listed = [each for each in conditions if isinstance(each, Mapping)] if isinstance(conditions, list) else []
    return {str(each.get("type")): each for each in listed if each.get("status") == "True"}


def _moment(raw: Mapping[str, Json], end: EndStatus, condition: Json) -> datetime | None:
    """Return the moment of an end, from the first source that has one."""
    said = condition.get("lastTransitionTime")
    if said:
        return read_moment(said)
    for field_path in (*end.moments, ("metadata", "creationTimestamp")):
        moments = [read_moment(moment) for moment in _values(raw, (field_path,)) if moment]
        if moments:
            return max(moments)
    return None


def _values(raw: Mapping[str, Json], field_paths: Iterable[Path]) -> Iterator[Json]:
    """Yield the values at paths, and of all items for a ``*``."""
    for field_path in field_paths:
        for item in items(raw, field_path):
            yield at(raw, within(field_path, item, field_path))
