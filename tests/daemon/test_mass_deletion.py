"""A source branch that loses half of its workloads at once ends nothing until somebody confirms it; expiries go on."""

from __future__ import annotations

import pytest

from reconciler.core.commits.trailers import Trailer
from reconciler.core.decide.steps.mass_deletion import end_deleted
from reconciler.daemon.steer import carry_out, draft_from_git
from reconciler.model.action import Action
from reconciler.model.plan import Reason
from reconciler.model.tree import Identity
from tests.builders.passes import QUIET, SOURCE_FILES, Passes
from tests.fakes.memory_repository import MemoryRepository

NAMES = ("one", "two", "three", "four")
FOUR = {path: text for path, text in SOURCE_FILES.items() if path != "template.yaml"} | {
    f"{name}.yaml": SOURCE_FILES["template.yaml"]
    .replace("name: vllm", f"name: {name}")
    .replace("app: vllm", f"app: {name}")
    for name in NAMES
}
POLICY = next(path for path in FOUR if path.startswith("polic"))
CLUSTERS = "clusters.yaml"
CONFIRMED = "Leave\n\nOverspill-Confirm: deletion\n"
ADA = Identity(name="Ada", email="ada@example.com")


@pytest.fixture
def passes() -> Passes:
    """Have four bursts, of one replica each."""
    made = Passes(MemoryRepository(FOUR))
    made.names, made.missing = NAMES, 1
    made.run()
    made.advance(1)
    assert running(made) == {*NAMES}
    return made


def running(passes: Passes) -> set[str]:
    """Name the workloads with placements."""
    return {placement.workload.name for placement in passes.placements()}


def delete(passes: Passes, *paths: str, message: str = "Delete\n") -> None:
    """Push a commit without these files, and run until nothing changes."""
    passes.repository.person("source", removes=paths, message=message)
    passes.run()


def test_fewer_than_half_end_at_once(passes: Passes) -> None:
    delete(passes, "one.yaml")
    assert running(passes) == {"two", "three", "four"}


@pytest.mark.parametrize(
    "paths",
    [
        ("one.yaml", "two.yaml"),
        tuple(f"{name}.yaml" for name in NAMES),
        (POLICY,),
        tuple(FOUR),
    ],
    ids=["half of the templates", "all templates", "the policy of all", "everything"],
)
def test_nothing_ends_for_a_deletion_of_half_or_more(passes: Passes, paths: tuple[str, ...]) -> None:
    before = passes.placements()
    delete(passes, *paths)
    assert passes.placements() == before
    seen = passes.look()
    held = [held for held in seen.plan.suppressed if held.reason is Reason.DELETION_UNCONFIRMED]
    assert {f"{held.workload.name}.yaml" for held in held} == {*paths} or len(held) == len(NAMES)
    assert any("overspill confirm" in problem.hint for problem in seen.inputs.problems)


def test_expiries_go_on_meanwhile(passes: Passes) -> None:
    delete(passes, *FOUR)
    passes.advance(600)
    passes.run()
    assert running(passes) == set()


def test_files_that_come_back_end_the_matter(passes: Passes) -> None:
    before = passes.placements()
    delete(passes, "one.yaml", "two.yaml")
    passes.repository.person("source", FOUR)
    passes.run()
    assert passes.placements() == before
    assert passes.look().inputs.deletion is None


def test_a_trailer_of_the_newest_source_commit_confirms_it(passes: Passes) -> None:
    delete(passes, "one.yaml", "two.yaml", message=CONFIRMED)
    assert running(passes) == {"three", "four"}


def test_a_trailer_of_an_earlier_commit_confirms_nothing_later(passes: Passes) -> None:
    delete(passes, "one.yaml", message=CONFIRMED)
    delete(passes, "two.yaml", "three.yaml")
    assert running(passes) == {"two", "three", "four"}


def test_a_person_confirms_it_by_a_command(passes: Passes) -> None:
    delete(passes, "one.yaml", "two.yaml")
    draft = draft_from_git(passes.world(), passes.memory, lambda inputs: end_deleted(inputs, by=ADA), person=ADA)
    outcome = carry_out(passes.world(), passes.memory, draft)
    assert running(passes) == {"three", "four"}
    newest, *_ = passes.repository.log(outcome.commits[-1], limit=1)
    assert (newest.author, "confirmed by Ada" in newest.body) == (ADA, True)
    passes.run()
    assert passes.look().inputs.deletion is None


REQUEST = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadPlacement
metadata: {name: NAME}
spec:
  workspaceName: llm
  clusterNames: [worker-2]
  burstDuration: 10m
  manifestResources:
    - name: settings
      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: demo}, data: {a: b}}
  steps: [{name: settings, type: manifest}]
"""


def test_requests_of_a_confirmed_deletion_are_closed_in_the_name_of_who_confirmed_it() -> None:
    requests = {f"{name}.yaml": REQUEST.replace("NAME", name) for name in ("one", "two")}
    passes = Passes(MemoryRepository(QUIET | requests))
    passes.run()
    before = passes.repository.heads["output"]
    delete(passes, *requests)
    assert running(passes) == {"one", "two"}
    draft = draft_from_git(passes.world(), passes.memory, lambda inputs: end_deleted(inputs, by=ADA), person=ADA)
    outcome = carry_out(passes.world(), passes.memory, draft)
    assert running(passes) == set()
    commits = passes.repository.log(outcome.commits[-1], base=before)
    done = {(Trailer.ACTION.read(commit), commit.author) for commit in commits}
    assert done == {(Action.REVERT, ADA), (Action.FORGET, ADA)}
    assert all("confirmed by Ada" in commit.body for commit in commits)


def test_a_restart_forgets_nothing_of_it(passes: Passes) -> None:
    delete(passes, "one.yaml", "two.yaml")
    passes.restart()
    passes.run()
    assert running(passes) == {*NAMES}


def test_nothing_ends_for_a_deletion_of_all_clusters_until_a_person_confirms_it(passes: Passes) -> None:
    before = passes.placements()
    delete(passes, CLUSTERS)
    assert passes.placements() == before
    seen = passes.look()
    held = {held.workload.name for held in seen.plan.suppressed if held.reason is Reason.DELETION_UNCONFIRMED}
    assert held == {*NAMES}
    assert any("3 of 3 clusters are gone" in problem.message for problem in seen.inputs.problems)
    draft = draft_from_git(passes.world(), passes.memory, lambda inputs: end_deleted(inputs, by=ADA), person=ADA)
    outcome = carry_out(passes.world(), passes.memory, draft)
    assert running(passes) == set()
    ended = passes.repository.log(outcome.commits[-1], limit=len(NAMES))
    assert [commit.author for commit in ended] == [ADA] * len(NAMES)


def test_nothing_moves_for_a_deletion_of_half_of_the_clusters(passes: Passes) -> None:
    before = passes.placements()
    first, *_ = FOUR[CLUSTERS].split("---\n")
    passes.repository.person("source", {CLUSTERS: first})
    passes.run()
    assert passes.placements() == before


def test_placements_leave_a_single_cluster_that_is_deleted(passes: Passes) -> None:
    (gone,) = {placement.cluster for placement in passes.placements()}
    left = [text for text in FOUR[CLUSTERS].split("---\n") if gone not in text]
    passes.repository.person("source", {CLUSTERS: "---\n".join(left)})
    passes.run()
    assert gone not in {placement.cluster for placement in passes.placements()}
