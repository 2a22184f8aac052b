"""ledger/<workspace>/<workload>.yaml keeps what outlives a placement."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.ledger.placement_record import ledger_path, read_restraints, write_restraints
from reconciler.core.ledger.restraints import is_kept
from reconciler.errors import InvalidInput
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.placement import Restraint, RestraintKind
from tests.builders.placement_records import VLLM, names, restraint, restraints

PATH = "ledger/llm/vllm.yaml"


@given(
    workload=st.builds(WorkloadId, names.map(WorkspaceName), names.map(TemplateName), request=st.just(False)),
    kept=st.lists(restraints, min_size=1, max_size=4).map(tuple),
)
def test_every_restraint_is_read_back_as_it_was_written(workload: WorkloadId, kept: tuple[Restraint, ...]):
    assert read_restraints(write_restraints(workload, kept), ledger_path(workload)) == (workload, kept)


def test_no_restraint_left_means_no_file():
    assert write_restraints(VLLM, ()) == b""


def test_a_ledger_file_reads_like_a_sentence():
    kept = [restraint(), restraint(kind=RestraintKind.COOL_DOWN, cluster=None, reason="it ended: expired")]
    assert (
        write_restraints(VLLM, kept).decode()
        == """\
apiVersion: overspill.dev/v1alpha1
kind: LedgerEntry
metadata:
  name: vllm
spec:
  workspace: llm
  workload: vllm
  restraints:
  - kind: hold
    cluster: worker-2
    since: "2026-11-20T10:05:00Z"
    until: "2026-11-20T11:05:00Z"
    reason: "vllm-7f3a90c1 was deleted by hand"
    placement: vllm-7f3a90c1
  - kind: coolDown
    since: "2026-11-20T10:05:00Z"
    until: "2026-11-20T11:05:00Z"
    reason: "it ended: expired"
    placement: vllm-7f3a90c1
"""
    )


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("workload: vllm", "workload: other", "7: spec.workload: llm/other belongs in ledger/llm/other.yaml"),
        ("kind: hold", "kind: held", "9: spec.restraints[0].kind: 'held' is not one of coolDown, hold"),
        ("11:05:00Z", "11:05", "12: spec.restraints[0].until: '2026-11-20T11:05' is not a time"),
        ("reason:", "because:", "9: spec.restraints[0].reason: is required"),
        ("cluster: worker-2", "cluster: Worker", "10: spec.restraints[0].cluster: 'Worker' is not a name"),
    ],
)
def test_a_fault_of_a_ledger_file_is_told_with_its_line(good: str, bad: str, said: str):
    data = write_restraints(VLLM, [restraint()]).decode().replace(good, bad, 1)
    with pytest.raises(InvalidInput) as error:
        read_restraints(data.encode(), PATH)
    assert f"{PATH}:{said}" in str(error.value)


def test_a_move_is_kept_for_an_hour_also_when_its_rest_is_over():
    move = restraint(kind=RestraintKind.COOL_DOWN, move=True)
    rested = replace(move, until=move.since + timedelta(minutes=5))
    later = [rested.since + timedelta(minutes=minutes) for minutes in (4, 59, 60)]
    assert [is_kept(rested, moment) for moment in later] == [True, True, False]
    assert [is_kept(replace(rested, move=False), moment) for moment in later] == [True, False, False]
