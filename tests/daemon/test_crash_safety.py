"""Killed at any step, a pass leaves the branch at the old or the new tip, and the next start completes the work."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache

import pytest

from reconciler.core.ledger import placement_record
from reconciler.errors import Conflict
from tests.builders.passes import BRANCHES, RENEWING, SOURCE_FILES, Passes, seconds
from tests.fakes.memory_repository import MemoryRepository
from tests.fakes.mortal_repository import Killed, Mortal

STEPS = range(1, 34)
"""Port calls of a pass, up to one that no pass makes."""


def story(passes: Passes, run: Callable[[], None]) -> None:
    """A burst, growth, a deletion by hand, a fall in demand and an expiry."""
    passes.free = {"worker-2": 2, "worker-3": 8}
    passes.missing = 2
    run()
    passes.advance(10)
    passes.missing = 5
    run()
    passes.advance(10)
    deleted = next(path for path in passes.repository.tree() if "clusters/worker-3/" in path)
    passes.repository.person(
        "output", removes=(deleted.rpartition("/")[0].removesuffix("/manifests"),), at=passes.moment
    )
    run()
    passes.advance(400)
    run()
    passes.missing = 3
    passes.steady_since = passes.moment - seconds(90)
    run()
    passes.missing = 0
    passes.steady_since = passes.moment
    passes.advance(61)
    run()
    passes.missing = 2
    passes.steady_since = None
    passes.advance(61)
    run()
    passes.advance(1000)
    run()


@cache
def undisturbed(*, branches: bool) -> MemoryRepository:
    """Return the repository after a story in which nothing is killed, with or without branches of clusters."""
    repository = MemoryRepository(SOURCE_FILES | BRANCHES if branches else SOURCE_FILES)
    passes = Passes(repository)
    story(passes, passes.run)
    return repository


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("step", "files"),
    [(step, SOURCE_FILES) for step in STEPS] + [(step, SOURCE_FILES | BRANCHES) for step in STEPS[8::2]],
    ids=[*map(str, STEPS), *(f"{step}, one a cluster" for step in STEPS[8::2])],
)
@pytest.mark.exhaustive(one_in=4)
def test_a_pass_killed_at_any_port_call_is_completed_by_the_next_start(
    step: int, after: bool, files: dict[str, str]
) -> None:
    whole = undisturbed(branches=files is not SOURCE_FILES)
    broken = Passes(Mortal(MemoryRepository(files)))

    def run() -> None:
        repository = broken.repository
        before, pushes = repository.heads["output"], repository.pushes
        repository.fuse.left, repository.fuse.after = step, after
        try:
            broken.run_once()
        except Killed:
            assert step < STEPS[-1], "passes make more calls: raise STEPS"
            assert repository.heads["output"] == before or repository.pushes == pushes + 1
        repository.fuse.left = 0
        broken.restart()
        broken.run()
        assert files is SOURCE_FILES or repository.right()

    story(broken, run)
    assert broken.repository.subjects() == whole.subjects()
    assert broken.repository.tree(under="clusters") == whole.tree(under="clusters")
    assert broken.repository.clusters == whole.clusters


def renewal_story(passes: Passes, run: Callable[[], None]) -> None:
    """A burst that is renewed twice, once by a pass that comes late, and ends when its demand has gone."""
    passes.missing = 2
    run()
    for wait in (460, 590):
        passes.advance(wait)
        run()
        assert sum(placement.replicas for placement in passes.placements()) == 2
    passes.missing = 0
    passes.steady_since = passes.moment
    passes.advance(61)
    run()
    assert not passes.placements()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.exhaustive(one_in=4)
def test_a_renewal_killed_at_any_port_call_lets_no_needed_burst_lapse_and_no_other_live(step: int, after: bool) -> None:
    whole = Passes(MemoryRepository(SOURCE_FILES | RENEWING))
    renewal_story(whole, whole.run)
    broken = Passes(Mortal(MemoryRepository(SOURCE_FILES | RENEWING)))

    def run() -> None:
        broken.repository.fuse.left, broken.repository.fuse.after = step, after
        with suppress(Killed):
            broken.run_once()
        broken.repository.fuse.left = 0
        broken.restart()
        broken.run()

    renewal_story(broken, run)
    assert broken.repository.subjects() == whole.repository.subjects()
    assert sum(subject.startswith("extend(") for subject in broken.repository.subjects()) == 2


def test_two_daemons_renew_a_burst_once() -> None:
    repository = MemoryRepository(SOURCE_FILES | RENEWING)
    daemons = [Passes(repository), Passes(repository)]
    for wait in (0, 460, 600, 600):
        for passes in daemons:
            passes.missing = 2
            passes.advance(wait)
        for passes in daemons:
            passes.run()
    words = [subject.partition("(")[0] for subject in repository.subjects()]
    assert (words.count("burst"), words.count("extend")) == (1, 3)


def test_a_tip_that_moves_before_the_push_is_a_conflict_and_changes_nothing() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.missing = 2
    passes.run()
    passes.missing = 3
    passes.advance(60)

    def intrude() -> None:
        passes.repository.before_push = lambda: None
        passes.repository.person("output", {"clusters/worker-2/NOTES.md": "mine"}, at=passes.moment)

    passes.repository.before_push = intrude
    with pytest.raises(Conflict):
        passes.run_once()
    passes.run()
    placements = passes.placements()
    assert sum(placement.replicas for placement in placements) == 3
    assert passes.repository.tree()["clusters/worker-2/NOTES.md"] == b"mine"


def test_two_daemons_in_turn_neither_lose_nor_double_anything() -> None:
    repository = MemoryRepository(SOURCE_FILES)
    one, other = Passes(repository), Passes(repository)
    for step in range(30):
        for passes in (one, other):
            passes.missing = (step * 7) % 5
            passes.advance(40)
            passes.run()
    pairs = [subject for subject in repository.subjects() if subject.startswith(("burst", "Revert"))]
    assert len(pairs) - len([one for one in pairs if one.startswith("Revert")]) * 2 == len(one.placements())


def test_a_month_of_absence_is_put_right_at_once() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.missing = 2
    passes.run()
    assert passes.placements()
    passes.advance(30 * 86400)
    passes.restart()
    passes.run()
    assert not [one for one in passes.placements() if one.expires_at <= passes.moment]
    assert passes.repository.subjects()[-1].startswith("start(")


def test_a_pass_that_changes_nothing_makes_no_commit() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.missing = 2
    passes.run()
    before = passes.repository.heads["output"]
    passes.advance(5)
    passes.run()
    assert passes.repository.heads["output"] == before


def test_same_inputs_give_the_same_bytes() -> None:
    heads = set()
    for _ in range(3):
        passes = Passes(MemoryRepository(SOURCE_FILES))
        passes.missing = 2
        passes.run()
        heads.add(passes.repository.heads["output"])
    assert len(heads) == 1


def test_a_clock_that_jumps_back_ends_nothing_and_places_nothing() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.missing = 2
    passes.run()
    before = passes.repository.tree(under="clusters")
    passes.moment -= seconds(7200)
    passes.missing = 5
    passes.run(observed_at=passes.moment + seconds(7200))
    assert passes.repository.tree(under="clusters") == before


def test_a_reverted_burst_stays_reverted_after_a_restart_too() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.missing = 2
    passes.run()
    (placement,) = passes.placements()
    passes.repository.person("output", removes=(placement.path,), at=passes.moment)
    passes.restart()
    passes.advance(30)
    passes.run()
    assert placement.cluster not in {one.cluster for one in passes.placements()}
    assert any(subject.startswith("hold(llm/vllm): worker-2") for subject in passes.repository.subjects())


def test_an_edit_by_hand_is_put_right_and_the_commit_says_so() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.missing = 2
    passes.run()
    before = passes.repository.tree(under="clusters")
    path = next(path for path in before if path.endswith("placement.yaml"))
    passes.repository.person("output", {path: before[path].replace(b'"2"', b'"9"')}, at=passes.moment)
    passes.run()
    assert passes.repository.tree(under="clusters") == before
    assert passes.repository.subjects()[0].startswith("restore(llm/vllm)")


def test_what_the_record_says_is_what_was_deployed() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.missing = 2
    passes.run()
    (placement,) = passes.placements()
    data = passes.repository.tree()[f"{placement.path}/placement.yaml"]
    spec = placement_record.read_spec(data, "placement.yaml")
    assert spec.manifests[0].manifest["spec"]["replicas"] == 2
