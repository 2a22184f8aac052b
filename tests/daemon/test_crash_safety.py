"""Killed at any step, a pass leaves the branch at the old or the new tip, and the next start completes the work."""

from collections.abc import Callable
from typing import Any

import pytest

from reconciler.core.ledger import placement_record
from reconciler.errors import Conflict
from tests.builders.passes import BRANCHES, SOURCE_FILES, Passes, seconds
from tests.fakes.memory_repository import MemoryRepository

STEPS = range(1, 40)


class Killed(BaseException):
    """Stands for kill -9: nothing of ours may catch it."""


class Mortal(MemoryRepository):
    """Dies at the nth call of its port, before or after the call has had its effect."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.left: int | None = None
        self.after = False

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name not in {
            "fetch",
            "tips",
            "entries",
            "changes",
            "read",
            "last_written",
            "log",
            "earlier",
            "write",
            "branches",
            "directories",
            "project",
            "begin_push",
        }:
            return value

        def call(*arguments: Any, **named: Any) -> Any:
            if self.left is None:
                return value(*arguments, **named)
            self.left -= 1
            if self.left == 0 and not self.after:
                raise Killed
            result = value(*arguments, **named)
            if self.left == 0:
                raise Killed
            return result

        return call


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


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("step", "files"),
    [(step, SOURCE_FILES) for step in STEPS] + [(step, SOURCE_FILES | BRANCHES) for step in STEPS[8:32:2]],
    ids=[*map(str, STEPS), *(f"{step}, one a cluster" for step in STEPS[8:32:2])],
)
def test_a_pass_killed_at_any_port_call_is_completed_by_the_next_start(
    step: int, after: bool, files: dict[str, str]
) -> None:
    whole = Passes(Mortal(files))
    story(whole, whole.run)

    broken = Passes(Mortal(files))

    def run() -> None:
        repository = broken.repository
        before, pushes = repository.heads["output"], repository.pushes
        repository.left, repository.after = step, after
        try:
            broken.run_once()
        except Killed:
            assert repository.heads["output"] == before or repository.pushes == pushes + 1
        repository.left = None
        broken.restart()
        broken.run()
        assert files is SOURCE_FILES or repository.right()

    story(broken, run)
    assert broken.repository.subjects() == whole.repository.subjects()
    assert broken.repository.tree(under="clusters") == whole.repository.tree(under="clusters")
    assert broken.repository.clusters == whole.repository.clusters


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
