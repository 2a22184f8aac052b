"""Recordings at their bounds."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reconciler.adapters.recording_files import read_recording
from reconciler.errors import InvalidInput, Problem
from reconciler.lab import demand
from reconciler.model.bounds import (
    RECORDING_DEPTH,
    RECORDING_FILE,
    RECORDING_LINE,
    RECORDING_PASSES,
    RECORDING_VALUES,
    REQUEST_LOG,
)
from tests.adapters.test_recording_files import _first_line
from tests.bounds.experiment import Experiment, experiment

NAME = "20261120T100000Z.jsonl.gz"


def _add(value: bytes) -> bytes:
    """Return a line that adds a value to the pass before it."""
    return b'{"patch":[{"op":"add","path":"/a","value":' + value + b"}]}"


def _recorded(place: Path, name: str, lines: Sequence[bytes], *, level: int = 1) -> Path:
    directory = place / name
    directory.mkdir()
    with (directory / NAME).open("wb") as file:
        for line in (_first_line(), *lines):
            file.write(gzip.compress(line, level))
    return directory


def _read(directory: Path) -> str:
    """Read a recording to its end, and return its problems."""
    return " ".join(entry.message for entry in read_recording(directory) if isinstance(entry, Problem))


def _tried(near: Path, far: Path, says: str) -> Iterator[Experiment]:
    def at() -> None:
        assert _read(near) == "", _read(near)

    yield Experiment(at=at, beyond=lambda: _read(far), says=says)


@experiment(RECORDING_FILE)
def _(place: Path) -> Iterator[Experiment]:
    line = _add(b'"' + b"x" * ((4 << 20) - 200) + b'"')
    near = _recorded(place, "near", [line] * (RECORDING_FILE.most // len(line) - 1), level=0)
    far = _recorded(place, "far", [])
    with (far / NAME).open("r+b") as file:
        file.truncate(RECORDING_FILE.most + 1)
    yield from _tried(near, far, f"is over {RECORDING_FILE}")


@experiment(RECORDING_LINE)
def _(place: Path) -> Iterator[Experiment]:
    near = _recorded(place, "near", [_add(b'"' + b"x" * (RECORDING_LINE.most - 100) + b'"')])
    far = _recorded(place, "far", [b"\0" * 4 * RECORDING_LINE.most])
    yield from _tried(near, far, f"a line is over {RECORDING_LINE}")


@experiment(RECORDING_VALUES)
def _(place: Path) -> Iterator[Experiment]:
    near, far = (
        _recorded(place, name, [_add(b"[" + b"[]," * number + b"[]]")])
        for name, number in (("near", RECORDING_VALUES.most // 2 - 100), ("far", 3 * RECORDING_VALUES.most))
    )
    yield from _tried(near, far, f"holds over {RECORDING_VALUES}")


@experiment(RECORDING_DEPTH)
def _(place: Path) -> Iterator[Experiment]:
    near, far = (
        _recorded(place, name, [_add(b"[" * number + b"]" * number)])
        for name, number in (("near", RECORDING_DEPTH.most - 5), ("far", RECORDING_VALUES.most - 100))
    )
    yield from _tried(near, far, f"nested over {RECORDING_DEPTH}")


@experiment(RECORDING_PASSES)
def _(place: Path) -> Iterator[Experiment]:
    same = json.dumps({"patch": []}).encode()
    near, far = (
        _recorded(place, name, [same] * number)
        for name, number in (("near", RECORDING_PASSES.most - 1), ("far", 3 * RECORDING_PASSES.most))
    )
    yield from _tried(near, far, f"holds over {RECORDING_PASSES}")


@experiment(REQUEST_LOG)
def _(place: Path) -> Iterator[Experiment]:
    begin = datetime(2026, 11, 20, tzinfo=UTC)
    throughput = demand.Throughput(context_tokens=100, generated_tokens=10)

    def log(name: str, length: timedelta) -> Path:
        path = place / f"{name}.csv"
        rows = (f"{moment:%Y-%m-%d %H:%M:%S},9,9" for moment in (begin, begin + length))
        path.write_text("\n".join(("TIMESTAMP,ContextTokens,GeneratedTokens", *rows)))
        return path

    def beyond() -> str:
        try:
            demand.read_requests(far)
        except InvalidInput as error:
            return str(error)
        return ""

    near = log("near", timedelta(seconds=REQUEST_LOG.most))
    far = log("far", timedelta(days=365 * 20))
    yield Experiment(
        at=lambda: demand.load(demand.read_requests(near), throughput), beyond=beyond, says=f"over {REQUEST_LOG}"
    )
