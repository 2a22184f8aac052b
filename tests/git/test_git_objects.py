"""Files are read from any thread while passes go on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from reconciler.adapters.git import GitRepository
from reconciler.model.ids import BlobId
from tests.builders.remote import Remote


def blobs(repository: GitRepository) -> dict[str, BlobId]:
    commit = repository.fetch().source
    assert commit is not None
    return {entry.path: entry.blob for entry in repository.entries(commit)}


def test_files_are_read_from_many_threads_at_once(remote: Remote, repository: GitRepository) -> None:
    remote.commit("main", {f"{number}.yaml": f"number: {number}\n" * 1000 for number in range(40)})
    wanted = blobs(repository)
    with ThreadPoolExecutor(8) as pool:
        found = dict(
            zip(wanted, pool.map(lambda blob: repository.shelf.read([blob])[blob], wanted.values()), strict=True)
        )
    assert found == remote.files("main")


def test_what_is_not_there_is_left_out(remote: Remote, repository: GitRepository) -> None:
    remote.commit("main", {"a.yaml": "a: 1\n"})
    blob = blobs(repository)["a.yaml"]
    assert repository.shelf.read([BlobId("0" * 40), blob, BlobId("1" * 40)]) == {blob: b"a: 1\n"}


def test_what_came_after_the_first_read_is_found(remote: Remote, repository: GitRepository) -> None:
    remote.commit("main", {"a.yaml": "a: 1\n"})
    repository.shelf.read(blobs(repository).values())
    remote.commit("main", {"b.yaml": "b: 2\n"})
    blob = blobs(repository)["b.yaml"]
    assert repository.shelf.read([blob]) == {blob: b"b: 2\n"}


def test_closed_shelf_has_nothing(remote: Remote, repository: GitRepository) -> None:
    remote.commit("main", {"a.yaml": "a: 1\n"})
    there = blobs(repository).values()
    repository.shelf.close()
    assert repository.shelf.read(there) == {}
