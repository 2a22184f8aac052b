"""A branch that is not as we left it: what is not ours stays, what is broken is told, everything else goes on."""

from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.errors import LostBranch, Severity
from reconciler.model.action import Action
from tests.builders.passes import SOURCE_FILES, START, Passes, seconds
from tests.builders.remote import Remote
from tests.fakes.memory_repository import MemoryRepository

FOREIGN = {
    "README.md": "ours, says the platform team",
    "clusters/worker-2/kustomization.yaml": "resources: []\n",
    "clusters/worker-2/other/app.yaml": "kind: ConfigMap\n",
    "docs/notes.txt": "x",
}


def test_foreign_files_outlive_every_burst() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.repository.person("output", FOREIGN, at=passes.moment)
    passes.missing = 3
    passes.run()
    assert passes.placements()
    passes.advance(1000)
    passes.missing = 0
    passes.run()
    left = {path: data.decode() for path, data in passes.repository.tree().items() if not path.startswith("ledger/")}
    assert left == FOREIGN


def test_a_note_beside_our_files_outlives_the_placement() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.missing = 3
    passes.run()
    (placement,) = passes.placements()
    note = f"{placement.path}/NOTES.md"
    passes.repository.person("output", {note: "seen by Ada"}, at=passes.moment)
    passes.advance(1000)
    passes.missing = 0
    passes.run()
    assert set(passes.repository.tree(under="clusters")) == {note}


def test_a_broken_record_is_told_and_kept_and_holds_up_nothing_else() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    broken = {"clusters/worker-3/strange-1/placement.yaml": "apiVersion: worker.kubeslice.io/v1alpha1\nkind: [\n"}
    passes.repository.person("output", broken, at=passes.moment)
    passes.missing = 3
    outcome = passes.run()
    assert [problem.path for problem in outcome.problems] == list(broken)
    assert sum(placement.replicas for placement in passes.placements()) == 3
    assert passes.repository.tree()["clusters/worker-3/strange-1/placement.yaml"].startswith(b"apiVersion")


def test_a_broken_template_keeps_its_last_good_version_in_force_and_is_told() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.run()
    passes.repository.person("source", {"template.yaml": "kind: WorkloadTemplate\nkind: WorkloadTemplate\n"})
    passes.restart()
    passes.missing = 3
    outcome = passes.run()
    assert passes.placements()
    assert any(problem.path == "template.yaml" and "kind" in str(problem) for problem in outcome.problems)


def test_output_branch_that_was_removed_stops_writes_until_it_is_back() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.missing = 3
    passes.run()
    tip = passes.repository.heads["output"]
    passes.repository.heads["output"] = None
    passes.advance(10_000)
    for _ in range(2):
        with pytest.raises(LostBranch, match="overspill restore"):
            passes.run()
        assert passes.repository.heads["output"] is None
    passes.repository.heads["output"] = tip
    passes.run()
    assert [subject.partition("(")[0] for subject in passes.repository.subjects()][-3:] == [
        'Revert "burst',
        "burst",
        "start",
    ]


def test_a_daemon_on_an_empty_disk_decides_as_the_one_that_ran_all_along(remote: Remote, tmp_path: Path) -> None:
    remote.commit("main", SOURCE_FILES)
    with GitRepository(remote.url, cache=tmp_path / "old") as repository:
        passes = Passes(repository)
        for step, missing in enumerate((2, 5, 1, 6, 3, 3, 7)):
            passes.moment = START + seconds(65 * step)
            passes.missing, passes.steady_since = missing, passes.moment - seconds(61)
            passes.run()
            passes.advance(0)
        placement = passes.placements()[0]
        remote.commit("placements", {placement.path: None}, message="Take it away", at=passes.moment + seconds(1))
        remote.commit("placements", {"clusters/worker-3/note": "and another commit"})
        passes.advance(5)
        with GitRepository(remote.url, cache=tmp_path / "new") as empty:
            fresh = Passes(empty)
            for name in ("moment", "missing", "steady_since", "since", "bound"):
                setattr(fresh, name, getattr(passes, name))
            empty.fetch()
            fresh_decision, old_decision = fresh.look(), passes.look()
        assert fresh_decision.plan == old_decision.plan
        assert fresh_decision.plan.changes[0].action is Action.HOLD
        assert fresh_decision.inputs.ledger == old_decision.inputs.ledger


def test_an_observed_cluster_that_no_file_describes_is_told_with_the_name_that_was_meant() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.free = {"worker-22": 4}
    outcome = passes.run()
    (problem,) = outcome.problems
    assert str(problem) == (
        "observation of worker-22: cluster: no file describes a Cluster of this name, so it counts for nothing"
        " (try 'worker-2')"
    )


def test_what_only_follows_from_a_broken_file_is_not_told() -> None:
    broken = SOURCE_FILES["clusters.yaml"].replace("spec: {}", "spec: {availability: cordoned}", 1)
    passes = Passes(MemoryRepository({**SOURCE_FILES, "clusters.yaml": broken}))
    errors = [problem for problem in passes.run().problems if problem.severity is Severity.ERROR]
    assert [problem.field for problem in errors] == ["spec.availability"]
