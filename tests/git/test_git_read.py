"""Reading files of commits out of the mirror."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.adapters.git.objects import parse_changes, parse_entries
from reconciler.errors import Conflict, Transient
from reconciler.model.ids import BlobId, CommitId
from reconciler.model.tree import FileChange


def test_entries_are_the_regular_files_sorted_by_path(remote, repository):
    remote.commit("main", {"b/z": "1", "b.yaml": "2", "a": "", "ü/ö x.yaml": "4", 'q"uote': "5"})
    tip = repository.fetch().source
    paths = [entry.path for entry in repository.entries(tip)]
    assert paths == sorted(["a", "b.yaml", "b/z", 'q"uote', "ü/ö x.yaml"])
    assert {entry.size for entry in repository.entries(tip)} == {-1}


def test_entries_tell_sizes_when_asked(remote, repository):
    remote.commit("main", {"empty": "", "five": "12345", "large": "x" * 100_000})
    sizes = {entry.path: entry.size for entry in repository.entries(repository.fetch().source, sizes=True)}
    assert sizes == {"empty": 0, "five": 5, "large": 100_000}


def test_entries_can_be_limited_to_directories(remote, repository):
    remote.commit("main", {"clusters/a/x": "1", "clusters-b/x": "2", "ledger/y": "3", "-r": "4", "*": "5"})
    tip = repository.fetch().source
    assert [entry.path for entry in repository.entries(tip, under=["ledger", "clusters"])] == [
        "clusters/a/x",
        "ledger/y",
    ]
    assert [entry.path for entry in repository.entries(tip, under=["-r", "*"])] == ["*", "-r"]
    assert repository.entries(tip, under=["nowhere"]) == []


def test_links_and_submodules_are_left_out(remote, repository):
    blob = remote.git("hash-object", "-w", "--stdin", stdin=b"target")
    commit = remote.commit("main", {"file": "1"})
    listing = f"100755 blob {blob}\trun\n120000 blob {blob}\tlink\n160000 commit {commit}\tmodule\n"
    tree = remote.git("mktree", "--missing", stdin=listing.encode())
    ann = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    made = CommitId(remote.git(*ann, "commit-tree", "-p", commit, "-m", "Odd files", tree))
    remote.move("main", made)
    tip = repository.fetch().source
    assert [(entry.path, entry.blob) for entry in repository.entries(tip)] == [("run", blob)]
    assert [entry.path for entry in repository.entries(tip, sizes=True)] == ["run"]


def test_changes_are_the_files_that_differ(remote, repository):
    old = remote.commit("placements", {"kept": "1", "edited": "1", "removed": "1", "clusters/a/moved": "same"})
    repository.fetch()
    edits = {"edited": "2", "removed": None, "added": "3", "clusters/a/moved": None, "clusters/b/moved": "same"}
    new = remote.commit("placements", edits)
    repository.fetch()
    changes = {change.path: (change.old is None, change.new is None) for change in repository.changes(old, new)}
    assert changes == {
        "added": (True, False),
        "clusters/a/moved": (False, True),
        "clusters/b/moved": (True, False),
        "edited": (False, False),
        "removed": (False, True),
    }
    assert [change.path for change in repository.changes(old, new, under=["clusters/b"])] == ["clusters/b/moved"]
    assert repository.changes(new, new) == []


def test_comparing_with_a_commit_that_is_unknown_is_a_conflict_and_breaks_nothing(remote, repository):
    tip = remote.commit("placements", {"a": "1"})
    repository.fetch()
    with pytest.raises(Conflict, match="not in the branch's history"):
        repository.changes(CommitId("1" * 40), tip)
    assert repository.tips().output == tip
    assert repository.changes(tip, tip) == []


def test_file_that_becomes_a_link_is_gone_and_one_made_executable_is_unchanged():
    raw = (
        b":100644 120000 " + b"a" * 40 + b" " + b"b" * 40 + b" T\0link\0"
        b":100644 100755 " + b"a" * 40 + b" " + b"a" * 40 + b" M\0run\0"
        b":000000 160000 " + b"0" * 40 + b" " + b"c" * 40 + b" A\0module\0"
    )
    assert parse_changes(raw) == [FileChange(path="link", old=BlobId("a" * 40), new=None)]


_NAMES = st.text(st.characters(blacklist_characters="\0/", blacklist_categories=["Cs"]), min_size=1)


@given(st.lists(st.lists(_NAMES, min_size=1, max_size=3).map("/".join), unique=True))
def test_any_path_is_read_back(paths):
    listing = "".join(f"100644 blob {'a' * 40}\t{path}\0" for path in paths)
    assert [entry.path for entry in parse_entries(listing.encode(), sizes=False)] == paths


def test_path_that_is_not_utf8_survives_the_round_trip(remote, repository):
    odd = os.fsdecode(b"caf\xe9")
    blob = remote.git("hash-object", "-w", "--stdin", stdin=b"1")
    tree = remote.git("mktree", "-z", stdin=f"100644 blob {blob}\t{odd}\0".encode(errors="surrogateescape"))
    ann = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    remote.move("main", CommitId(remote.git(*ann, "commit-tree", "-m", "Odd name", tree)))
    tip = repository.fetch().source
    (entry,) = repository.entries(tip)
    assert repository.entries(tip, under=[odd]) == [entry]


def test_contents_are_read_byte_for_byte(remote, repository):
    contents = [b"", b"\n", b"a\n\n", b"\0\xff missing\n", b"x" * 1_000_000]
    remote.commit("main", {f"f{number}": content for number, content in enumerate(contents)})
    entries = repository.entries(repository.fetch().source)
    read = repository.read(entry.blob for entry in entries)
    assert [read[entry.blob] for entry in entries] == contents


def test_thousands_of_large_files_are_read_without_a_deadlock(remote, repository):
    remote.commit("main", {f"f{number}": f"{number}\n" * 500 for number in range(3000)})
    entries = repository.entries(repository.fetch().source)
    read = repository.read(entry.blob for entry in entries)
    assert all(read[entry.blob] == f"{entry.path[1:]}\n".encode() * 500 for entry in entries)


def test_nothing_is_read_without_git_when_nothing_is_asked(repository):
    assert repository.read([]) == {}


def test_reader_that_was_killed_is_started_again(remote, repository):
    remote.commit("main", {"a": "1", "b": "2"})
    first, second = repository.entries(repository.fetch().source)
    repository.read([first.blob])
    process = repository._branches.reader._process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert repository.read([second.blob]) == {second.blob: b"2"}


def test_objects_that_came_after_the_reader_started_are_found(remote, repository):
    remote.commit("main", {"a": "1"})
    (entry,) = repository.entries(repository.fetch().source)
    repository.read([entry.blob])
    remote.commit("main", {"a": "2"})
    (entry,) = repository.entries(repository.fetch().source)
    assert repository.read([entry.blob]) == {entry.blob: b"2"}


def test_unknown_blob_is_transient_and_the_next_fetch_brings_all_back(remote, repository):
    source = remote.commit("main", {"a": "1"})
    repository.fetch()
    with pytest.raises(Transient, match="incomplete"):
        repository.read([BlobId("1" * 40)])
    assert repository.tips().source is None
    assert repository.fetch().source == source


@pytest.mark.parametrize("wrong", ["", "-r", "HEAD", "1" * 39, f"{'1' * 40}\n{'2' * 40}"])
def test_only_full_object_ids_reach_git(repository, wrong):
    with pytest.raises(ValueError, match="not a full object id"):
        repository.read([BlobId(wrong)])
    with pytest.raises(ValueError, match="not a full object id"):
        repository.entries(CommitId(wrong))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_selection_is_answered_whatever_its_order(remote, repository, data):
    if remote.tip("main") is None:
        remote.commit("main", {f"f{number:03}": f"{number}" for number in range(200)})
    entries = repository.entries(repository.fetch().source)
    chosen = data.draw(st.lists(st.integers(0, 199), max_size=300))
    blobs = [entries[number].blob for number in chosen]
    assert repository.read(blobs) == {entries[number].blob: f"{number}".encode() for number in chosen}
