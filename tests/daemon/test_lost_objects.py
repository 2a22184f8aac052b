"""What a daemon remembers of earlier versions of files lasts as long as it may need it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pytest

from reconciler.core.fleet.file import ParsedFile
from reconciler.core.fleet.path_history import CommitFiles, PathHistories, PathHistory
from reconciler.core.fleet.read_file import parse_file
from reconciler.daemon.lost_objects import LostObjects
from reconciler.model.ids import BlobId, CommitId
from tests.builders.fleet_files import TEMPLATE

PATH = "templates/vllm.yaml"
OLD, NEW, MOVED, ELSEWHERE = (BlobId(str(number) * 40) for number in range(4))


class Past:
    """A history in which a file has held one version, and maybe less of it for want of commits."""

    def __init__(self) -> None:
        self.version, self.moved, self.complete = OLD, MOVED, True
        self.files: CommitFiles | None = None

    def past_versions(self, commit: CommitId, paths: Collection[str], *, base: CommitId | None = None) -> PathHistories:
        taken_by = {self.version: self.files or CommitFiles(blobs=(self.moved,))}
        history = PathHistory(asked=PATH, versions=(self.version,), ended=True, taken_by=taken_by)
        return PathHistories(
            paths={PATH: history} if PATH in paths else {}, based=base is not None, complete=self.complete
        )


class Blobs:
    """Versions of files that all hold a template, and what has been read of them."""

    def __init__(self) -> None:
        self.asked: list[BlobId] = []

    def read(self, blobs: Iterable[BlobId]) -> Mapping[BlobId, ParsedFile]:
        wanted = list(blobs)
        self.asked += wanted
        return {blob: parse_file(TEMPLATE.encode()) for blob in wanted}


def test_what_is_remembered_of_a_commit_goes_with_the_version_that_it_took_away() -> None:
    past, blobs = Past(), Blobs()
    lost = LostObjects(past)
    assert lost.versions(CommitId("a" * 40), [PATH], blobs.read) == {PATH: (OLD,)}
    assert lost.names_beside(PATH, OLD, blobs.read)
    past.version, past.moved = NEW, ELSEWHERE
    assert lost.versions(CommitId("b" * 40), [PATH], blobs.read) == {PATH: (NEW,)}
    assert not lost.names_beside(PATH, OLD, blobs.read)
    assert lost.names_beside(PATH, NEW, blobs.read)
    assert lost.versions(CommitId("c" * 40), [], blobs.read) == {}
    assert not lost.names_beside(PATH, NEW, blobs.read)


def test_what_a_commit_wrote_elsewhere_is_read_once() -> None:
    past, blobs = Past(), Blobs()
    lost = LostObjects(past)
    for number in range(3):
        lost.versions(CommitId(str(number) * 40), [PATH], blobs.read)
        lost.names_beside(PATH, OLD, blobs.read)
    assert blobs.asked.count(MOVED) == 1
    past.moved = ELSEWHERE
    lost.versions(CommitId("a" * 40), [PATH], blobs.read)
    lost.names_beside(PATH, OLD, blobs.read)
    assert blobs.asked.count(ELSEWHERE) == 1


def test_what_is_remembered_stays_while_the_remote_lacks_older_commits() -> None:
    past, blobs = Past(), Blobs()
    lost = LostObjects(past)
    lost.versions(CommitId("a" * 40), [PATH], blobs.read)
    past.version, past.moved, past.complete = NEW, ELSEWHERE, False
    for number in range(3):
        lost.versions(CommitId(str(number) * 40), [PATH], blobs.read)
    assert lost.names_beside(PATH, OLD, blobs.read)
    assert lost.names_beside(PATH, NEW, blobs.read)


@pytest.mark.parametrize(("files", "is_beside"), [((NEW,), False), ((NEW, MOVED), True), ((NEW, NEW), True)])
def test_what_a_file_itself_became_is_not_beside_it(files: tuple[BlobId, ...], is_beside: bool) -> None:
    past, blobs = Past(), Blobs()
    past.files = CommitFiles(blobs=files, own=NEW)
    lost = LostObjects(past)
    lost.versions(CommitId("a" * 40), [PATH], blobs.read)
    assert bool(lost.names_beside(PATH, OLD, blobs.read)) == is_beside
