"""What tenants and clusters wrote refers to nothing in a proposal: its commit, its pull request, and a squash of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.adapters.git.fastimport import stream
from reconciler.core.commits.proposals import proposal_commit, pull_request_text
from reconciler.model.approval import BurstProposal, ProposedPlacement
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.tree import Identity
from tests.text.host_references import CODE, references, rendered_references

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)
ADA = Identity(name="Ada", email="ada@example.com")
WORDS = (
    "h100 closes #12",
    "closes !3, fixes acme/infra#4, OPS-12, GH-7 and gl-9",
    "@everyone, ann@acme.example and acme/infra@3b1c4de",
    "[skip ci] ***NO_CI*** skip-checks: true",
    "`c` https://evil.example/x www.evil.example :tada: ~bug %v1 /merge",
    "$x$ and $$y$$",
)


def proposal(words: str) -> BurstProposal:
    place = ProposedPlacement(
        cluster=ClusterName("w2"),
        subset=words,
        replicas=2,
        gpus=2,
        duration=timedelta(hours=1),
        price_per_gpu_hour=2.99,
    )
    return BurstProposal(
        workload=WorkloadId(WorkspaceName("llm"), TemplateName("vllm")),
        policy="gpu",
        proposed_at=NOW,
        until=NOW + timedelta(hours=1),
        reason=f"3 pods unschedulable: {words}",
        renewals=words,
        placements=(place, place),
    )


@pytest.mark.parametrize("words", WORDS)
def test_proposal_refers_to_nothing_at_any_host(words: str) -> None:
    title, body = pull_request_text(proposal(words))
    assert references(title) == set()
    assert CODE not in title
    assert rendered_references(body) == set()
    commit = stream(None, NOW, [proposal_commit(proposal(words), ADA, NOW)], ADA, branch="placements").decode()
    message = commit.partition("committer ")[2].partition("\n")[2].partition("\nM 100644")[0]
    assert message.count("approve(llm/vllm)") == 1
    assert references(message) == set()


def test_own_words_of_a_proposal_stay_as_they_are() -> None:
    title, body = pull_request_text(proposal("h100"))
    assert title == "approve(llm/vllm): 2 replicas on w2/h100 and 2 replicas on w2/h100"
    assert "- w2/h100: 2 replicas, 2 GPUs, 2.99 $/GPU-h, 5.98 $/h, for 1h.\n" in body
    assert "- In all 4 GPUs, 11.96 $/h.\n" in body
