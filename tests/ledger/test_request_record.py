"""ledger/<workspace>/requests/<shard>/<name>.yaml holds all that is known of a request, and is read strictly."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.ledger.read import LedgerRecords, assemble_ledger, is_record, read_record
from reconciler.core.ledger.request_record import differences, digest_of, read_request, request_path, write_request
from reconciler.errors import InvalidInput
from reconciler.model.gpr import GprTerms, GpuAsk
from reconciler.model.ids import ClusterName, CommitId, TemplateName, WorkspaceName
from reconciler.model.ledger import Ledger
from reconciler.model.request import Asker, Ended, Provisioning, Request, RequestRecord
from reconciler.model.workload import DeletionPolicy, DeploySpec
from tests.builders.placement_records import moments, names, text
from tests.builders.requests import BOOKINFO, deployment, gpus, manifests, record, request

PATH = "ledger/llm/requests/a8/bookinfo.yaml"
WRITTEN = write_request(record(request("worker-2"))).decode()

durations = st.none() | st.integers(1, 10**7).map(lambda seconds: timedelta(seconds=seconds))
clusters = st.lists(names.map(ClusterName), unique=True, min_size=1, max_size=3).map(tuple)
terms = st.builds(
    GprTerms,
    priority=st.integers(1, 300),
    exit_duration=durations,
    idle=durations,
    evictable=st.booleans(),
    requeue=st.booleans(),
    dedicated=st.booleans(),
).map(lambda terms: replace(terms, enforce_idle=terms.idle is not None))
asks = st.builds(GpuAsk, gpus=st.integers(1, 100), nodes=st.integers(1, 100), memory=st.integers(0, 1000))
deployed = st.builds(
    manifests,
    st.integers(0, 9).map(deployment),
    lasting=durations,
    deletion_policy=st.sampled_from(DeletionPolicy),
    service_account=st.just("") | names,
)
requests = st.builds(
    Request,
    name=names.map(TemplateName),
    workspace=names.map(WorkspaceName),
    namespace=st.just("") | names,
    spec=deployed,
    clusters=clusters,
    placements=st.none() | st.integers(1, 3),
    template=st.just("") | names,
    ask=st.none() | asks,
    terms=terms,
    redistributes=st.booleans(),
) | st.builds(
    Request,
    name=names.map(TemplateName),
    workspace=names.map(WorkspaceName),
    namespace=st.just("") | names,
    spec=st.just(DeploySpec()),
    clusters=st.just(()) | clusters,
    placements=st.just(1),
    ask=asks,
    terms=terms,
)
records = st.builds(
    RequestRecord,
    request=requests,
    asker=st.sampled_from(Asker),
    author=text,
    received_at=moments,
    changed_at=moments,
    source_commit=st.from_regex(r"[0-9a-f]{40}", fullmatch=True).map(CommitId),
    asked=st.just("") | st.just("sha256-1"),
    key=st.just("") | st.just("sha256-2"),
    body=st.just("") | st.just("sha256-3"),
    began_at=st.none() | moments,
    avoids=st.just(()) | clusters,
    attempts=st.integers(0, 9),
    evicted_by=text,
    observed=st.just(()) | clusters,
    ended=st.none()
    | st.builds(Ended, status=st.sampled_from([Provisioning.COMPLETED, Provisioning.FAILED]), at=moments, message=text),
)


@given(records)
def test_every_record_is_read_back_as_it_was_written(kept: RequestRecord):
    data = write_request(kept)
    assert read_request(data, request_path(kept.workload)) == kept
    assert write_request(read_request(data, request_path(kept.workload))) == data


@given(requests)
def test_a_digest_is_of_what_is_asked_and_not_of_where_it_stands(asked: Request):
    moved = replace(asked, path="elsewhere.yaml", line=7)
    assert digest_of(moved) == digest_of(asked)
    other = replace(asked, terms=replace(asked.terms, priority=asked.terms.priority % 300 + 1))
    assert digest_of(other) != digest_of(asked)


def test_a_reservation_is_a_gpu_provisioning_request():
    reserved = replace(request("worker-2"), spec=DeploySpec(), ask=gpus(2), placements=1)
    assert "kind: GPUProvisioningRequest\n" in write_request(record(reserved)).decode()


def test_differences_are_named_as_egs_names_them():
    before = request("worker-2")
    after = replace(
        before, clusters=(ClusterName("worker-3"),), terms=GprTerms(priority=7), spec=manifests(lasting=timedelta(1))
    )
    assert set(differences(before, after)) >= {"clusterNames", "gprDetails.priority", "burstDuration", "steps"}
    assert differences(before, replace(before, path="x", line=3)) == ()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("asker: file", "asker: nobody", "overspill.dev/asker"),
        ('received-at: "2026-11-20T10:05:00Z"', "received-at: yesterday", "is not a time"),
        ("workspaceName: llm", "workspaceName: vision", "belongs in ledger/vision/requests/a8/bookinfo.yaml"),
        ("priority: 101", "priority: 999", "spec.gprDetails.priority"),
        ("name: part-0\n    type", "name: ghost\n    type", "ghost"),
        ("  clusterNames:", "  clusterNamez: []\n  clusterNames:", "spec.clusterNamez"),
        (
            "spec:",
            "status: {provisioningStatus: Queued, message: '', lastUpdated: '2026-11-20T10:05:00Z'}\nspec:",
            "is not how a request ends (try Completed or Failed, or no status)",
        ),
    ],
)
def test_a_fault_is_told_with_its_file_and_field(old: str, new: str, told: str):
    assert old in WRITTEN
    with pytest.raises(InvalidInput) as caught:
        read_request(WRITTEN.replace(old, new, 1).encode(), PATH)
    assert str(caught.value).startswith(f"{PATH}:")
    assert told in str(caught.value)


def test_a_broken_record_is_the_requests_and_not_the_templates():
    ledger = assemble_ledger(
        CommitId("7" * 40), LedgerRecords().changed({PATH: read_record(b"kind: Nothing\n", PATH)}), ()
    )
    assert ledger.blocked == {BOOKINFO}
    assert [problem.path for problem in ledger.problems] == [PATH] * len(ledger.problems)


def test_a_record_comes_and_goes_with_its_file():
    there = LedgerRecords().changed({PATH: read_record(WRITTEN.encode(), PATH)})
    assert list(there.requests) == [BOOKINFO]
    assert list(there.changed({PATH: None}).requests) == []
    restraint = "ledger/llm/bookinfo.yaml"
    assert list(there.changed({restraint: None}).requests) == [BOOKINFO]


elsewhere = pytest.mark.parametrize(
    "place",
    [
        "ledger/llm/requests/bookinfo.yaml",
        "ledger/llm/requests/00/bookinfo.yaml",
        "ledger/llm/requests/A8/bookinfo.yaml",
        "ledger/llm/requests/a8/old/bookinfo.yaml",
    ],
)


@elsewhere
def test_a_record_elsewhere_is_told_with_the_path_that_it_belongs_in(place: str):
    assert is_record(place)
    (problem,) = moved(place).problems
    assert str(problem) == f"{place}:4: metadata.name: llm/bookinfo belongs in {PATH}"


@elsewhere
def test_a_record_elsewhere_holds_its_request_up_and_is_nobody_elses(place: str):
    assert moved(place).blocked == {BOOKINFO}
    assert list(moved(place).requests) == []


@elsewhere
def test_a_record_elsewhere_is_itself_again_when_it_is_back(place: str):
    there = LedgerRecords().changed({place: read_record(WRITTEN.encode(), place)})
    back = there.changed({place: None, PATH: read_record(WRITTEN.encode(), PATH)})
    assert (list(back.requests), dict(back.broken)) == ([BOOKINFO], {})


@elsewhere
def test_a_record_elsewhere_takes_nothing_away_from_the_one_that_it_is_a_copy_of(place: str):
    there = LedgerRecords().changed({PATH: read_record(WRITTEN.encode(), PATH)})
    copied = there.changed({place: read_record(WRITTEN.encode(), place)})
    assert (list(copied.requests), list(copied.broken)) == ([BOOKINFO], [place])
    assert list(copied.changed({place: None}).requests) == [BOOKINFO]


def moved(place: str) -> Ledger:
    """Say what the ledger holds after the record was moved from its own place."""
    there = LedgerRecords().changed({PATH: read_record(WRITTEN.encode(), PATH)})
    gone = there.changed({PATH: None, place: read_record(WRITTEN.encode(), place)})
    return assemble_ledger(CommitId("7" * 40), gone, ())


@pytest.mark.parametrize(("name", "shard"), [("bookinfo", "a8"), ("settings", "cd"), ("low", "6c")])
def test_a_request_lies_in_the_shard_that_sha256sum_tells_of_its_name(name: str, shard: str):
    workload = BOOKINFO._replace(name=TemplateName(name))
    assert request_path(workload) == f"ledger/llm/requests/{shard}/{name}.yaml"
