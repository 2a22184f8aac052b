"""docs/reference/commits.md shows what is really written."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.core.commits.branch_loss import accept_message
from reconciler.core.commits.cluster_branches import catch_up_message
from reconciler.core.commits.messages import message
from reconciler.core.commits.trailers import naming_branch
from reconciler.core.commits.unproposed_changes import UnproposedChanges, discard_commit
from reconciler.core.ledger.placement_record import write_placement, write_restraints
from reconciler.core.ledger.proposal_record import write_proposal
from reconciler.core.ledger.request_record import RequestAnnotationsRecord, write_request
from reconciler.core.schema.egs.request import TEMPLATE
from reconciler.core.signals.past_demand import write_levels
from reconciler.model.action import Action
from reconciler.model.branch_loss import BranchLoss, BranchLossKind
from reconciler.model.ids import BlobId, ClusterName, CommitId
from reconciler.model.plan import Change
from reconciler.model.signal import DemandLevel
from reconciler.model.tree import FileChange, Identity
from reconciler.model.workload import ManifestResource
from tests.builders.changes import ALL, CLOSED, HISTORY, IN_SUBSET, NEW, PROPOSAL, SHRINK, UPDATE
from tests.builders.placement_records import PLACEMENT, SOURCE, SPEC, VLLM, restraint
from tests.engines.test_autoscaled_replicas import hpa

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "commits.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("change", [*ALL, IN_SUBSET, SHRINK, UPDATE], ids=lambda change: change.action)
def test_the_page_shows_the_commit_of_every_change(change: Change):
    history = HISTORY if change.action in (Action.MOVE, Action.REVERT) else ()
    assert ("text", message(change, source=SOURCE, history=history)) in BLOCKS
    assert f"\n### {change.action}\n" in PAGE


def test_the_page_shows_every_record():
    assert [text for kind, text in BLOCKS if kind == "yaml"] == [
        write_placement(PLACEMENT, SPEC, charts="engine").decode(),
        write_restraints(VLLM, (restraint(),)).decode(),
        write_request(CLOSED).decode(),
        write_proposal(PROPOSAL).decode(),
    ]


@pytest.mark.parametrize("new", [True, False])
def test_the_page_shows_what_only_branches_of_clusters_have(new: bool):
    output = CommitId("3b4708062550ae919793138bef7760443fd82ade")
    assert ("text", catch_up_message(ClusterName("worker-2"), output, new=new)) in BLOCKS


def test_the_page_shows_the_past_demand_that_commits_carry():
    begin = datetime(2026, 11, 20, 10, tzinfo=UTC)
    levels = tuple(
        DemandLevel(at=begin + timedelta(minutes=later), missing=missing)
        for later, missing in ((0, 0), (60, 5), (125, 0))
    )
    past = write_levels(levels, begin + timedelta(hours=3))
    *_, written = message(ALL[0], source=SOURCE, demand=past).splitlines(keepends=True)
    assert ("text", written) in BLOCKS


def test_the_page_shows_the_id_of_a_call():
    *_, written = message(ALL[0], source=SOURCE, request_id="build-1742").splitlines(keepends=True)
    assert ("text", written) in BLOCKS


def test_the_page_shows_the_branch_that_commits_name():
    named = naming_branch(message(ALL[0], source=SOURCE), "placements")
    assert ("text", f"{named.splitlines()[-1]}\n") in BLOCKS


def test_the_page_shows_the_commit_of_an_accepted_loss():
    loss = BranchLoss(
        branch="placements",
        kind=BranchLossKind.GONE,
        known=CommitId("5c0e1f7d3a52c1f7b9d0e86a4b3f2c1d0e9f8a7b"),
        known_at=datetime(2026, 11, 20, 10, 0, 5, tzinfo=UTC),
        tip=None,
        tip_at=None,
    )
    assert ("text", accept_message(loss)) in BLOCKS


def test_the_page_shows_the_commit_that_discards_what_was_not_proposed():
    files = tuple(
        FileChange(path=f"clusters/worker-3/{name}", old=old, new=BlobId("2" * 40))
        for name, old in (("extra/role.yaml", None), ("notes.md", BlobId("1" * 40)))
    )
    merge = CommitId("5c0e1f7d3a52c1f7b9d0e86a4b3f2c1d0e9f8a7b")
    changes = UnproposedChanges(workload=VLLM, commits=(merge,), by="GitHub", files=files)
    commit = discard_commit(
        changes,
        {change.path: BlobId("2" * 40) for change in files},
        {BlobId("1" * 40): b"as it was"},
        author=Identity(name="Overspill", email="overspill@example.com"),
        at=datetime(2026, 11, 20, 10, tzinfo=UTC),
    )
    assert commit is not None
    assert ("text", commit.message) in BLOCKS


def test_the_page_shows_nothing_that_is_not_written():
    by_people = [text for kind, text in BLOCKS if kind == "text" and "Overspill-Confirm: deletion" in text]
    assert len(BLOCKS) == len(ALL) + 3 + 2 + 1 + 1 + 1 + 1 + 1 + 4 + len(by_people)


def test_the_page_tells_every_annotation():
    numbered = replace(IN_SUBSET.placement, first_ordinal=5, made_from=NEW, kept="stays", runs_once=True)
    shared = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}
    beside = (("shared", shared), ("scaler", hpa()))
    more = tuple(ManifestResource(name=name, manifest=value) for name, value in beside)
    spec = replace(SPEC, manifests=(*SPEC.manifests, *more))
    written = re.findall(
        r"^    overspill\.dev/([a-z-]+):", write_placement(numbered, spec, charts="").decode(), re.MULTILINE
    )
    assert sorted(annotations(1)) == sorted(written)


def test_the_page_tells_every_annotation_of_a_request():
    told = annotations(2)
    assert {f"overspill.dev/{name}" for name in told} == {
        str(one.alias) for one in RequestAnnotationsRecord.model_fields.values()
    } | {TEMPLATE}


def annotations(table: int) -> list[str]:
    rows = PAGE.split("| annotation")[table].split("\n\n")[0].split("\n")[2:]
    return [name for row in rows for name in re.findall(r"`([a-z-]+)`", row.split("|")[1])]


def test_the_page_tells_every_trailer():
    shown = set(re.findall(r"^(Overspill-[A-Za-z-]+):", PAGE, re.MULTILINE))
    table = PAGE.split("| trailer")[1].split("\n\n")[0]
    assert shown == set(re.findall(r"`(Overspill-[A-Za-z-]+)`", table))
