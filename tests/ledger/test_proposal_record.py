"""Proposals and approvals are read as they were written, and an approval of anything else is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.ledger.proposal_record import (
    approval_path,
    proposal_branch,
    proposal_id,
    proposal_path,
    read_approval,
    read_proposal,
    write_approval,
    write_proposal,
)
from reconciler.daemon.branch import BranchReader
from reconciler.errors import InvalidInput
from tests.builders.changes import PROPOSAL
from tests.builders.placement_records import VLLM
from tests.fakes.memory_repository import MemoryRepository
from tests.ledger.test_restart import KeptLedger

PATH, APPROVAL = proposal_path(VLLM), approval_path(PROPOSAL)
NOTED = replace(PROPOSAL, pull_request="https://git.example.com/acme/fleet/pulls/1")


@pytest.mark.parametrize("proposal", [PROPOSAL, NOTED])
def test_proposal_is_read_as_it_was_written(proposal: object) -> None:
    assert read_proposal(write_proposal(proposal), PATH) == proposal


def test_approval_says_what_was_shown_and_not_where() -> None:
    assert read_approval(write_approval(NOTED), APPROVAL).proposal == PROPOSAL
    assert (proposal_id(NOTED), proposal_branch(NOTED)) == (proposal_id(PROPOSAL), proposal_branch(PROPOSAL))


def test_approval_of_another_number_is_refused_with_the_way_out() -> None:
    text = write_approval(PROPOSAL).replace(b"replicas: 3", b"replicas: 30")
    with pytest.raises(InvalidInput) as error:
        read_approval(text, APPROVAL)
    (problem,) = error.value.problems
    assert (problem.line, "does not say what was proposed" in problem.message, bool(problem.hint)) == (5, True, True)


def test_proposal_of_another_workload_is_refused() -> None:
    with pytest.raises(InvalidInput, match="belongs in"):
        read_proposal(write_proposal(PROPOSAL), "ledger/llm/proposals/zephyr.yaml")


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "data:text/html,x", "//evil.example.com", "https://", "https://a b", " https://a"],
)
def test_address_of_a_pull_request_that_is_no_web_page_is_refused_with_its_line(address: str) -> None:
    text = write_proposal(replace(PROPOSAL, pull_request=address))
    with pytest.raises(InvalidInput) as error:
        read_proposal(text, PATH)
    (problem,) = error.value.problems
    line = next(number for number, line in enumerate(text.splitlines(), start=1) if b"pullRequest" in line)
    assert (problem.path, problem.line, problem.hint) == (PATH, line, "delete the field")
    assert "spec.pullRequest" in str(problem)


def test_address_of_a_pull_request_may_be_plain_http() -> None:
    local = replace(PROPOSAL, pull_request="http://gitea.local:3000/acme/fleet/pulls/1")
    assert read_proposal(write_proposal(local), PATH) == local


def test_ledger_has_proposals_and_approvals_and_keeps_its_restraints() -> None:
    repository, cache = MemoryRepository({}), KeptLedger()
    repository.commit_as_person("output", {PATH: write_proposal(PROPOSAL), APPROVAL: write_approval(PROPOSAL)})
    reader = BranchReader(repository, cache)
    ledger = reader.ledger(repository.heads["output"])
    assert dict(ledger.proposals) == {VLLM: PROPOSAL}
    assert list(ledger.approvals) == [APPROVAL]
    reader.keep(least=1)
    assert BranchReader(repository, cache).ledger(repository.heads["output"]) == ledger
    repository.commit_as_person("output", removes=[PATH, APPROVAL])
    gone = reader.ledger(repository.heads["output"])
    assert (dict(gone.proposals), dict(gone.approvals)) == ({}, {})


def test_broken_approval_blocks_its_workload_alone() -> None:
    repository = MemoryRepository({})
    repository.commit_as_person("output", {PATH: write_proposal(PROPOSAL), APPROVAL: b"nothing"})
    ledger = BranchReader(repository).ledger(repository.heads["output"])
    assert ledger.blocked == {VLLM}
    assert [problem.path for problem in ledger.problems] == [APPROVAL]
