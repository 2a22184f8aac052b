"""Files of the fleet repository at their bounds."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from reconciler.adapters.git import GitRepository
from reconciler.core.schema.yaml import parse
from reconciler.model.bounds import FILE_DEPTH, FILE_SIZE, FILE_VALUES, SOURCE_HISTORY
from tests.bounds.experiment import Experiment, experiment
from tests.builders.remote import Remote


def _read(data: bytes) -> object:
    return parse(data, "templates/vllm.yaml")


@experiment(FILE_SIZE)
def _(_place: Path) -> Iterator[Experiment]:
    line = b"- 'a line of a list in a large file, as of values or of a table'\n"
    yield Experiment(
        at=lambda: _read(line * (FILE_SIZE.most // len(line))),
        beyond=lambda: _read(b"#" * FILE_SIZE.most + b"\na: 1\n"),
        says=f"files over {FILE_SIZE} are not read",
    )


@experiment(FILE_DEPTH)
def _(_place: Path) -> Iterator[Experiment]:
    def nested(levels: int) -> object:
        return _read(b"[" * levels + b"]" * levels)

    yield Experiment(
        at=lambda: nested(FILE_DEPTH.most),
        beyond=lambda: nested(FILE_SIZE.most // 2),
        says=f"nested deeper than {FILE_DEPTH}",
    )


@experiment(FILE_VALUES)
def _(_place: Path) -> Iterator[Experiment]:
    yield Experiment(
        at=lambda: _read(b"- [1,2,3,4]\n" * ((FILE_VALUES.most - 2) // 5)),
        beyond=lambda: _read(b"[" + b"1," * (FILE_SIZE.most // 2 - 2) + b"1]"),
        says=f"holds more than {FILE_VALUES}",
    )


@experiment(SOURCE_HISTORY)
def _(place: Path) -> Iterator[Experiment]:
    def history(number: int, name: str) -> GitRepository:
        """Make a file, and so many commits after it that do not touch it."""
        remote = Remote(place / f"{name}.git")
        remote.commit("main", {"templates/vllm.yaml": "a: 1\n"})
        remote.commit("main", {"templates/vllm.yaml": "version https://git-lfs.github.com/spec/v1\n"})
        head = "commit refs/heads/main\ncommitter Ann <a@b> 0 +0000\ndata 0\n"
        stream = f"{head}from refs/heads/main^0\n{head * (number - 1)}".encode()
        subprocess.run(["git", "-C", remote.url, "fast-import", "--quiet"], input=stream, check=True)
        return GitRepository(remote.url, cache=place / f"{name}-cache")

    def versions(repository: GitRepository) -> str:
        tip = repository.fetch().source
        assert tip is not None
        path = "templates/vllm.yaml"
        return f"{len(repository.past_versions(tip, [path]).paths[path].versions)} earlier versions"

    with history(SOURCE_HISTORY.most - 2, "near") as near, history(3 * SOURCE_HISTORY.most, "far") as far:

        def at() -> None:
            assert versions(near) == "1 earlier versions"

        yield Experiment(at=at, beyond=lambda: versions(far), says="0 earlier versions")
