"""The records of a branch are read back from the cache as they were."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.ledger.read import BrokenRecord, LedgerRecords
from reconciler.core.ledger.request_record import request_path
from reconciler.core.ledger.restraints import ledger_path
from reconciler.core.recording.ledger_cache import read_cached, write_cached
from reconciler.model.ids import BlobId, CommitId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.ledger import Placements
from reconciler.model.placement import Restraint
from reconciler.model.request import RequestRecord
from reconciler.model.sorted_map import SortedMap
from tests.builders.placement_records import PLACEMENT, placement, placements
from tests.builders.random_values import RandomValues

TIP = CommitId("7" * 40)


def blobs_of(records: LedgerRecords) -> dict[str, BlobId]:
    paths = [
        *(f"{path}/placement.yaml" for path in records.placements),
        *map(request_path, records.requests),
        *map(ledger_path, records.restraints),
        *records.anchored,
        *records.broken,
    ]
    return {path: BlobId(f"{number:040x}") for number, path in enumerate(paths)}


@given(st.lists(placements, max_size=6), st.integers(0, 2**32))
def test_records_are_read_back_as_they_were(made: list, seed: int) -> None:
    values = RandomValues(seed)
    kept = [values.of(RequestRecord) for _ in range(2)]
    workloads = [WorkloadId(WorkspaceName("llm"), TemplateName(name)) for name in ("vllm", "tgi")]
    records = LedgerRecords(
        placements=Placements({one.path: one for one in made}),
        requests=SortedMap({one.workload: one for one in kept}),
        restraints=SortedMap({workload: values.of(tuple[Restraint, ...]) for workload in workloads}),
        broken=SortedMap({"ledger/llm/broken.yaml": BrokenRecord(problems=(), workload=None)}),
        anchored=frozenset({"clusters/worker-2/argocd/_anchor.yaml"}),
    )
    blobs = blobs_of(records)
    read = read_cached(write_cached(TIP, records, blobs))
    assert read.commit == TIP
    assert {**read.blobs, **read.unread} == blobs
    assert read.unread.keys() == records.broken.keys()
    for name in ("placements", "requests", "restraints", "anchored"):
        assert getattr(read.records, name) == getattr(records, name)
        assert list(getattr(read.records, name)) == list(getattr(records, name))
    assert not read.records.broken


def test_equal_parts_of_placements_are_shared() -> None:
    made = [placement(f"vllm-{number}") for number in range(3)]
    records = LedgerRecords(placements=Placements({one.path: one for one in made}))
    first, second, _ = read_cached(write_cached(TIP, records, blobs_of(records))).records.placements.values()
    assert first.shape is second.shape
    assert first.workload is second.workload
    assert first.created_at is first.changed_at is second.created_at


@pytest.mark.parametrize("seed", range(20))
def test_contents_that_do_not_fit_together_are_refused_or_read_as_they_are(seed: int) -> None:
    records = LedgerRecords(placements=Placements({PLACEMENT.path: PLACEMENT}))
    data = bytearray(write_cached(TIP, records, blobs_of(records)))
    chance = random.Random(seed)
    place = chance.randrange(len(data))
    del data[place : place + chance.randrange(1, 40)]
    try:
        read_cached(bytes(data))
    except (LookupError, TypeError, ValueError):
        return
