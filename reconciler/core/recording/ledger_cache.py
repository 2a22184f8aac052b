"""The records of the output branch as a document, so that a restart does not parse them again.

Reading tens of thousands of records as YAML takes seconds, of which this is a few percent: placements are kept by
column, each column as its different values and, for each placement, the index of its own. A record that could not be
read is kept by its blob alone, and is read again.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import repeat
from typing import Any, get_type_hints

from reconciler.core.ledger.read import LedgerRecords
from reconciler.core.ledger.request_record import request_path
from reconciler.core.ledger.restraints import ledger_path
from reconciler.core.recording.documents import document_type
from reconciler.model.ids import BlobId, CommitId, WorkloadId
from reconciler.model.ledger import Placements
from reconciler.model.placement import Placement, Restraint
from reconciler.model.request import RequestRecord
from reconciler.model.sorted_map import SortedMap
from reconciler.model.workload import Json

_REQUEST = document_type(RequestRecord, secrets=True)
_WORKLOAD = document_type(WorkloadId, secrets=True)
_RESTRAINTS = document_type(tuple[Restraint, ...], secrets=True)
_FIELDS = {
    field.name: document_type(get_type_hints(Placement)[field.name], secrets=True) for field in fields(Placement)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedLedger:
    """The records at one commit of the output branch."""

    commit: CommitId
    records: LedgerRecords
    """Those that could be read."""
    blobs: Mapping[str, BlobId]
    """Their blobs, by path."""
    unread: Mapping[str, BlobId]
    """The blobs of all other records, by path."""


def write_cached(commit: CommitId, records: LedgerRecords, blobs: Mapping[str, BlobId]) -> bytes:
    """Write the records at a commit, of which `blobs` has all, those that could not be read among them."""
    left = dict(blobs)
    placements = list(records.placements.values())
    document = {
        "commit": commit,
        "blobs": [left.pop(_record_path(placement.path)) for placement in placements],
        "placements": _columns(placements),
        "requests": [
            [left.pop(request_path(workload)), _REQUEST.encode(record)] for workload, record in records.requests.items()
        ],
        "restraints": [
            [left.pop(ledger_path(workload)), _WORKLOAD.encode(workload), _RESTRAINTS.encode(restraints)]
            for workload, restraints in records.restraints.items()
        ],
        "anchors": {path: left.pop(path) for path in sorted(records.anchored)},
        "unread": left,
    }
    return json.dumps(document, check_circular=False, separators=(",", ":")).encode()


def read_cached(data: bytes) -> CachedLedger:
    """Read what `write_cached` has written. Raises LookupError, TypeError or ValueError for anything else."""
    document: Json = json.loads(data)
    placements = _placements(document["placements"], len(document["blobs"]))
    paths = [placement.path for placement in placements]
    blobs = {_record_path(path): blob for path, blob in zip(paths, document["blobs"], strict=True)}
    requests: dict[WorkloadId, RequestRecord] = {}
    for blob, part in document["requests"]:
        record = _REQUEST.decode(part)
        requests[record.workload] = record
        blobs[request_path(record.workload)] = blob
    restraints: dict[WorkloadId, tuple[Restraint, ...]] = {}
    for blob, name, part in document["restraints"]:
        workload = _WORKLOAD.decode(name)
        restraints[workload] = _RESTRAINTS.decode(part)
        blobs[ledger_path(workload)] = blob
    records = LedgerRecords(
        placements=Placements(dict(zip(paths, placements, strict=True))),
        requests=SortedMap(requests),
        restraints=SortedMap(restraints),
        anchored=frozenset(document["anchors"]),
    )
    return CachedLedger(
        commit=document["commit"],
        records=records,
        blobs=blobs | document["anchors"],
        unread=document["unread"],
    )


def _record_path(directory: str) -> str:
    return f"{directory}/placement.yaml"


def _columns(placements: Sequence[Placement]) -> dict[str, Json]:
    """Return each field as its different values, and the index of each placement's value; null where all differ."""
    columns: dict[str, Json] = {}
    for name, kind in _FIELDS.items():
        column = list(map(getattr, placements, repeat(name)))
        keys: list[Any] = column
        try:
            values = dict(zip(column, column, strict=True))
        except TypeError:  # shapes, which equal placements share
            keys = list(map(id, column))
            values = dict(zip(keys, column, strict=True))
        places = {key: place for place, key in enumerate(values)}
        rows = None if len(values) == len(column) else list(map(places.__getitem__, keys))
        columns[name] = [list(map(kind.encode, values.values())), rows]
    return columns


def _placements(columns: Mapping[str, Json], number: int) -> list[Placement]:
    """Make the placements of columns; equal texts and moments are shared, as after reading.

    A frozen class has no way in but its constructor and its slots, and the slots take a quarter of the time.
    """
    placements = list(map(object.__new__, repeat(Placement, number)))
    shared: dict[str | datetime, str | datetime] = {}
    for name, kind in _FIELDS.items():
        encoded, rows = columns[name]
        values = list(map(kind.decode, encoded))
        if rows is not None and values and type(values[0]) in (str, datetime):
            values = [shared.setdefault(value, value) for value in values]
        column = values if rows is None else list(map(values.__getitem__, rows))
        if len(column) != number:
            raise ValueError(f"{number} placements have {len(column)} values of {name}")
        deque(map(getattr(Placement, name).__set__, placements, column), maxlen=0)
    return placements
