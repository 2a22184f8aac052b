"""Whatever is wrong with a pass, what has lapsed is ended."""

import pytest

from reconciler.daemon.reconcile import reconcile_once
from reconciler.daemon.steer import sweep_on_failure
from reconciler.errors import InvalidInput
from reconciler.model.capacity import Observed
from tests.builders.passes import SOURCE_FILES, Passes
from tests.fakes.memory_repository import MemoryRepository


class Fainting(Passes):
    """A daemon whose sight of the clusters ends in an exception that nobody expected."""

    faints = False

    def observe(self) -> Observed:
        if self.faints:
            raise ZeroDivisionError
        return super().observe()


def test_a_bug_in_every_pass_does_not_keep_a_burst_beyond_its_end() -> None:
    passes = Fainting(MemoryRepository(SOURCE_FILES))
    passes.missing = 3
    passes.run()
    assert passes.placements()
    passes.faints = True
    passes.advance(300)
    with pytest.raises(ZeroDivisionError):
        sweep_on_failure(passes.world(), passes.memory, lambda: reconcile_once(passes.world(), passes.memory))
    assert passes.placements(), "it is not over yet"
    passes.advance(301)
    with pytest.raises(ZeroDivisionError):
        sweep_on_failure(passes.world(), passes.memory, lambda: reconcile_once(passes.world(), passes.memory))
    assert passes.placements() == []


def test_a_source_branch_that_is_gone_does_not_either() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.missing = 3
    passes.run()
    passes.repository.heads["source"] = None
    passes.advance(601)
    with pytest.raises(InvalidInput, match="source branch"):
        sweep_on_failure(passes.world(), passes.memory, lambda: reconcile_once(passes.world(), passes.memory))
    assert passes.placements() == []
