"""What a pass decided is what is committed: rendering adds the target namespace and the digest, and nothing else."""

from __future__ import annotations

from dataclasses import fields

from reconciler.model.action import Action
from reconciler.model.placement import Placement
from tests.builders.passes import SOURCE_FILES, Passes, seconds
from tests.fakes.memory_repository import MemoryRepository

RENDERED = {"target_namespace", "digest"}


def difference(decided: Placement, recorded: Placement) -> set[str]:
    return {field.name for field in fields(Placement) if getattr(decided, field.name) != getattr(recorded, field.name)}


def test_placements_are_committed_as_they_were_decided_with_namespace_and_digest_alone_added() -> None:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    kinds = set()
    for missing in (2, 5, 1, 6):
        passes.missing, passes.steady_since = missing, passes.moment - seconds(61)
        outcome = passes.run_once()
        for decided, change in zip(outcome.plan.changes, outcome.rendered.changes, strict=True):
            before, after = decided.rewritten, change.rewritten
            if before is None or after is None:
                assert decided is change, "no placement, nothing to render"
                continue
            kinds.add(change.action)
            assert difference(before, after) <= RENDERED
            assert after.target_namespace == "demo"
            assert after.digest
            assert after in passes.placements(), "the record that is read back is the one that was rendered"
        passes.advance(65)
    assert kinds == {Action.PLACE, Action.RESIZE}
