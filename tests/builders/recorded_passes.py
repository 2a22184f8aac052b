"""Passes that are recorded: a shortage, a move of the source branch, an edit by hand, a restart, an end."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.core.recording.pass_record import PassRecord
from tests.builders.passes import SOURCE_FILES, Passes
from tests.fakes.memory_repository import MemoryRepository


class Kept:
    """A recording in memory."""

    def __init__(self) -> None:
        self.records: list[PassRecord] = []

    def append(self, record: PassRecord) -> None:
        self.records.append(record)


def play(passes: Passes, repository: MemoryRepository) -> None:
    """Run passes through a shortage that grows, is edited, survives a restart, and ends."""
    for missing in (0, 3, 3, 7, 7):
        passes.missing = missing
        passes.run()
        passes.advance(20)
    repository.commit_as_person(
        "source",
        {
            "policies.yaml": SOURCE_FILES["policies.yaml"].replace(
                "{name: worker-2}", "{name: worker-2, maxReplicas: 2}"
            )
        },
    )
    passes.run()
    first = passes.placements()[0]
    repository.commit_as_person("output", removes=[first.path], at=passes.moment)
    passes.advance(20)
    passes.run()
    passes.restart()
    for missing in (7, 2, 0, 0, 0, 0):
        passes.missing = missing
        passes.advance(45)
        passes.run()


def recorded(files: Mapping[str, str] = SOURCE_FILES) -> tuple[MemoryRepository, list[PassRecord]]:
    """Return a repository, and the passes that were recorded over it."""
    repository, kept = MemoryRepository(files), Kept()
    passes = Passes(repository)
    passes.recording = kept
    play(passes, repository)
    return repository, kept.records
