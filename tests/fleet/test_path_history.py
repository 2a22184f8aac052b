"""The history of paths tells of each version what its commit wrote, at a cost that follows the number of changes."""

from __future__ import annotations

import gc

from reconciler.core.fleet.path_history import PathChange, path_histories
from reconciler.model.ids import BlobId


def _references(root: object) -> int:
    """Count the references that a value holds, those of a shared part once."""
    seen: dict[int, object] = {}
    count, waiting = 0, [root]
    while waiting:
        held = [each for each in gc.get_referents(waiting.pop()) if not isinstance(each, type)]
        count += len(held)
        new = [each for each in held if id(each) not in seen and gc.is_tracked(each)]
        seen.update({id(each): each for each in new})
        waiting += new
    return count


def _histories(paths: int, commits: int) -> object:
    """Follow paths back through commits each of which changed all of them."""
    names = [f"apps/{number}.yaml" for number in range(paths)]
    changes = [
        [
            PathChange(path=name, old=BlobId(f"{name}@{commit - 1}"), stood=True, stands=True, new=BlobId(name))
            for name in names
        ]
        for commit in range(commits)
    ]
    return path_histories(names, changes)


def test_many_paths_in_many_commits_cost_as_much_as_their_changes() -> None:
    few, many = (_references(_histories(paths, 10)) for paths in (50, 200))
    assert many < 5 * few


def test_a_directory_that_is_replaced_costs_as_much_as_its_files() -> None:
    def replaced(files: int) -> object:
        removed = [
            PathChange(path=f"apps/{number}.yaml", old=BlobId(f"{number}"), stood=True, stands=False)
            for number in range(files)
        ]
        added = [
            PathChange(path=f"new/{number}.yaml", old=None, stood=False, stands=True, new=BlobId(f"new {number}"))
            for number in range(files)
        ]
        link = PathChange(path="apps", old=None, stood=False, stands=True)
        return path_histories(["apps"], [[*removed, *added, link]])

    few, many = (_references(replaced(files)) for files in (50, 200))
    assert many < 5 * few
