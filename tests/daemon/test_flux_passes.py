"""Passes over a fleet whose clusters have Flux: what lies outside a placement's directory goes with it, too."""

from __future__ import annotations

import pytest

from reconciler.core.engines import RESERVED_PLACEMENT_NAMES
from tests.builders.passes import SOURCE_FILES, Passes
from tests.fakes.memory_repository import MemoryRepository

ANCHORS = {f"clusters/worker-{number}/flux/_anchor.yaml" for number in (1, 2, 3)}


@pytest.fixture
def passes() -> Passes:
    fleet = SOURCE_FILES["fleet.yaml"].replace("manifests", "flux")
    return Passes(MemoryRepository(SOURCE_FILES | {"fleet.yaml": fleet}))


def burst(passes: Passes) -> str:
    """Have one placement, and return where its Kustomizations lie."""
    passes.missing = 3
    passes.run()
    (placed,) = passes.placements()
    path = f"clusters/{placed.cluster}/flux/{placed.name}.yaml"
    assert path in passes.repository.tree()
    return path


def test_a_cluster_begins_with_its_anchor_in_a_commit_of_its_own(passes: Passes) -> None:
    passes.run()
    assert set(passes.repository.tree(under="clusters")) == ANCHORS
    assert passes.repository.subjects() == [
        "start(demo): what Flux follows in worker-1 and 2 more",
        "start(demo): the output branch",
    ]
    passes.restart()
    passes.run()
    assert len(passes.repository.subjects()) == 2


def test_a_cluster_that_gets_flux_later_gets_its_anchor_then(passes: Passes) -> None:
    passes.run()
    more = "apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {name: worker-4}\n"
    passes.repository.person("source", {"clusters/more.yaml": more})
    passes.run()
    assert "clusters/worker-4/flux/_anchor.yaml" in passes.repository.tree()
    assert set(passes.repository.tree()) >= ANCHORS
    assert passes.repository.subjects()[0] == "start(demo): what Flux follows in worker-4"


def test_after_the_revert_of_a_burst_the_tree_is_what_it_was(passes: Passes) -> None:
    passes.run()
    before = passes.repository.tree(under="clusters")
    burst(passes)
    passes.missing = 0
    passes.advance(700)
    passes.run()
    assert passes.repository.subjects()[0].startswith('Revert "burst(llm/vllm)')
    assert passes.repository.tree(under="clusters") == before


@pytest.mark.parametrize("change", ["kind: Broken\n", None])
def test_what_people_do_to_the_kustomizations_is_put_right(passes: Passes, change: str | None) -> None:
    path = burst(passes)
    good = passes.repository.tree()[path]
    if change is None:
        passes.repository.person("output", removes=(path,), at=passes.moment)
    else:
        passes.repository.person("output", {path: change}, at=passes.moment)
    passes.advance(1)
    passes.run()
    assert passes.repository.tree()[path] == good
    assert passes.repository.subjects()[0].startswith("restore(llm/vllm)")


def test_a_deleted_directory_takes_its_kustomizations_along(passes: Passes) -> None:
    path = burst(passes)
    (placed,) = passes.placements()
    passes.repository.person("output", removes=(placed.path,), at=passes.moment)
    passes.advance(1)
    passes.run()
    assert path not in passes.repository.tree()
    assert any(subject.startswith("hold(llm/vllm)") for subject in passes.repository.subjects())


def test_a_reverted_burst_commit_is_a_deletion_that_is_respected(passes: Passes) -> None:
    path = burst(passes)
    (placed,) = passes.placements()
    passes.repository.person("output", removes=(placed.path, path), at=passes.moment)
    passes.advance(1)
    passes.run()
    assert placed.name not in {one.name for one in passes.placements()}
    assert any(subject.startswith("hold(llm/vllm)") for subject in passes.repository.subjects())


def test_an_anchor_that_somebody_deletes_comes_back_and_one_that_is_edited_stays(passes: Passes) -> None:
    passes.run()
    first, second, _ = sorted(ANCHORS)
    passes.repository.person("output", {second: "# mine\n"}, removes=(first,), at=passes.moment)
    passes.run()
    tree = passes.repository.tree()
    assert tree[first].startswith(b"# Keeps this directory alive")
    assert tree[second] == b"# mine\n"


def test_somebody_elses_file_beside_the_kustomizations_stays(passes: Passes) -> None:
    burst(passes)
    mine = "clusters/worker-2/flux/mine.yaml"
    passes.repository.person("output", {mine: "kind: Mine\n"}, at=passes.moment)
    passes.missing = 0
    passes.advance(700)
    passes.run()
    assert passes.placements() == []
    assert passes.repository.tree()[mine] == b"kind: Mine\n"


def test_no_placement_can_be_called_what_flux_or_its_record_needs(passes: Passes) -> None:
    assert {"flux", "placement"} == RESERVED_PLACEMENT_NAMES
    (placed,) = [one for _ in [burst(passes)] for one in passes.placements()]
    record = passes.repository.tree()[f"{placed.path}/placement.yaml"].decode()
    for name in RESERVED_PLACEMENT_NAMES:
        path = f"clusters/{placed.cluster}/{name}/placement.yaml"
        passes.repository.person("output", {path: record.replace(placed.name, name)}, at=passes.moment)
        outcome = passes.run()
        assert [one.name for one in passes.placements()] == [placed.name]
        assert any(problem.path == path for problem in outcome.problems)
