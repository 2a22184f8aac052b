"""Recordings as files: whole after a crash, bounded, and readable beside damage."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from reconciler.adapters.recording_files import MAX_AGE, MAX_SIZE, RecordingFiles, read_recording, recording_files
from reconciler.core.recording.pass_record import PassRecord
from reconciler.errors import InvalidInput, Problem
from reconciler.model.bounds import (
    RECORDING_DEPTH,
    RECORDING_FILE,
    RECORDING_LINE,
    RECORDING_PASSES,
    RECORDING_VALUES,
)
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.ids import ClusterName, CommitId
from tests.builders.passes import START


def a_pass(number: int, *, noise: int = 0) -> PassRecord:
    """Make the pass of a second; `noise` is incompressible text that differs from pass to pass."""
    text = os.urandom(noise // 2).hex()
    seen = ClusterObservation(
        cluster=ClusterName("worker-2"), observed_at=START + timedelta(seconds=number), message=text
    )
    at = START + timedelta(seconds=number)
    ages = {seen.cluster: timedelta()}
    return PassRecord(at=at, source=CommitId("5" * 40), observed=Observed(clusters={seen.cluster: seen}), ages=ages)


def write(
    directory: Path, passes: Sequence[PassRecord], *, max_size: int = MAX_SIZE, max_age: timedelta = MAX_AGE
) -> None:
    recording = RecordingFiles(directory, max_size=max_size, max_age=max_age)
    for record in passes:
        recording.append(record)
    recording.close()


def passes_in(directory: Path) -> list[PassRecord]:
    return [entry for entry in read_recording(directory) if isinstance(entry, PassRecord)]


def problems_in(directory: Path) -> list[str]:
    return [entry.message for entry in read_recording(directory) if isinstance(entry, Problem)]


def test_passes_are_read_back_in_order(tmp_path: Path) -> None:
    passes = [a_pass(number, noise=20) for number in range(5)]
    write(tmp_path / "passes", passes)
    assert passes_in(tmp_path / "passes") == passes
    assert (tmp_path / "passes").stat().st_mode & 0o777 == 0o700


def test_lines_are_json_that_any_gzip_reads(tmp_path: Path) -> None:
    write(tmp_path, [a_pass(0), a_pass(1)])
    (file,) = recording_files(tmp_path)
    first, second = map(json.loads, gzip.decompress(file.read_bytes()).splitlines())
    assert first["pass"]["at"] == "2026-11-20T10:00:00+00:00"
    assert {operation["path"] for operation in second["patch"]} == {"/at"}


def test_file_that_was_cut_off_anywhere_loses_its_last_pass_alone(tmp_path: Path) -> None:
    passes = [a_pass(number) for number in range(3)]
    write(tmp_path, passes[:2])
    (file,) = recording_files(tmp_path)
    shorter = file.stat().st_size
    file.unlink()
    write(tmp_path, passes)
    (file,) = recording_files(tmp_path)
    data = file.read_bytes()
    for end in range(shorter + 1, len(data)):
        file.write_bytes(data[:end])
        assert passes_in(tmp_path) == passes[:2]
        assert problems_in(tmp_path) == ["its last pass is cut off, as by a crash, and is left out"]


def test_damaged_file_is_told_and_the_next_is_read(tmp_path: Path) -> None:
    write(tmp_path, [a_pass(number) for number in range(3)])
    write(tmp_path, [a_pass(number) for number in range(5, 8)])
    first, _ = recording_files(tmp_path)
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 0xFF
    first.write_bytes(data)
    (problem,) = problems_in(tmp_path)
    assert "is damaged from here on" in problem
    assert [record.at for record in passes_in(tmp_path)][-3:] == [a_pass(number).at for number in range(5, 8)]


@pytest.mark.parametrize("text", ["", "[]", '{"format": 99}', '{"format": 1, "pass": {}}', '{"format": 1, "pass": 7}'])
def test_file_of_somebody_else_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "20261120T100000Z.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    assert len(problems_in(tmp_path)) == 1


def _packed(*lines: bytes) -> bytes:
    return b"".join(gzip.compress(line, 1) for line in lines)


def _first_line(**fields: object) -> bytes:
    document = {"at": START.isoformat(), "source": "5" * 40, "observed": {}, **fields}
    return json.dumps({"format": 1, "pass": document}).encode()


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ((b"[" + b"[]," * RECORDING_VALUES.most + b"[]]",), f"holds over {RECORDING_VALUES}"),
        ((b'{"format":1,"pass":' + b"[" * RECORDING_DEPTH.most,), "no JSON"),
        ((b'{"format":1,"pass":' + b"[" * 200 + b"]" * 200 + b"}",), f"nested over {RECORDING_DEPTH}"),
        ((b"[" * 200_000,), f"nested over {RECORDING_DEPTH}"),
        ((_first_line(source="--output=/x"),), "is no id of a commit"),
        ((_first_line(source="\x1b[31m" + "a" * 10_000),), "is no id of a commit"),
        ((_first_line(source=["5" * 40]),), "is no id of a commit"),
        ((_first_line(orders="abc"),), "where a list belongs"),
        ((_first_line(ages={"worker-2": 1e300}),), "OverflowError"),
        ((b'{"format": ' + b"9" * 5000 + b"}",), "its format is"),
        ((_first_line(), b'{"patch":[{"op":"add","path":"/a/' + b"9" * 5000 + b'","value":1}]}'), "damaged"),
    ],
    ids=["values", "open", "depth", "deep", "option", "escape", "list", "text", "age", "digits", "index"],
)
def test_recording_of_any_shape_is_told(tmp_path: Path, lines: Sequence[bytes], why: str) -> None:
    (tmp_path / "20261120T100000Z.jsonl.gz").write_bytes(_packed(*lines))
    problem = problems_in(tmp_path)[-1]
    assert why in problem
    assert problem.isprintable()
    assert len(problem) < 400


def test_pass_that_grows_by_differences_is_bounded(tmp_path: Path) -> None:
    half = RECORDING_VALUES.most // 2 + 10
    grow = b'{"patch":[{"op":"add","path":"/%s","value":"' + b"," * half + b'"}]}'
    lines = (_first_line(), grow.replace(b"%s", b"a"), grow.replace(b"%s", b"a"), grow.replace(b"%s", b"b"))
    (tmp_path / "20261120T100000Z.jsonl.gz").write_bytes(_packed(*lines))
    assert len(passes_in(tmp_path)) == 3
    assert f"over {RECORDING_VALUES}" in problems_in(tmp_path)[0]


def test_line_that_unpacks_to_too_much_is_told(tmp_path: Path) -> None:
    (tmp_path / "20261120T100000Z.jsonl.gz").write_bytes(_packed(b"\0" * (RECORDING_LINE.most + 1)))
    assert f"a line is over {RECORDING_LINE}" in problems_in(tmp_path)[0]


def test_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "20261120T100000Z.jsonl.gz").open("wb") as file:
        file.truncate(RECORDING_FILE.most + 1)
    assert f"is over {RECORDING_FILE}" in problems_in(tmp_path)[0]


@pytest.mark.exhaustive(one_in=None)
def test_passes_beyond_the_most_of_a_file_are_left_out(tmp_path: Path) -> None:
    empty = gzip.compress(b'{"patch":[]}', 1)
    data = _packed(_first_line()) + empty * RECORDING_PASSES.most
    (tmp_path / "20261120T100000Z.jsonl.gz").write_bytes(data)
    read = list(read_recording(tmp_path))
    assert len(read) == RECORDING_PASSES.most + 1
    assert f"holds over {RECORDING_PASSES}" in str(read[-1])


def _record_for_ever(directory: Path, acknowledge: Connection) -> None:
    recording = RecordingFiles(directory)
    for number in range(10**6):
        recording.append(a_pass(number, noise=1000))
        acknowledge.send_bytes(number.to_bytes(4))


def test_killed_writer_loses_no_pass_that_it_had_recorded(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_record_for_ever, args=(tmp_path, theirs))
    process.start()
    theirs.close()
    for _ in range(20):
        ours.recv_bytes()
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    recorded = 20
    while ours.poll():
        try:
            ours.recv_bytes()
        except EOFError:
            break
        recorded += 1
    assert len(passes_in(tmp_path)) in (recorded, recorded + 1)
    write(tmp_path, [a_pass(10**6)])
    assert passes_in(tmp_path)[-1].at == a_pass(10**6).at


def test_each_file_covers_an_hour_at_most_and_begins_whole(tmp_path: Path) -> None:
    write(tmp_path, [a_pass(number) for number in range(0, 9000, 600)])
    assert len(recording_files(tmp_path)) == 3
    for file in recording_files(tmp_path):
        assert passes_in(file)


def test_oldest_passes_go_when_there_is_too_much(tmp_path: Path) -> None:
    size = 1 << 20
    write(tmp_path, [a_pass(number, noise=30_000) for number in range(200)], max_size=size)
    assert size / 2 < sum(file.stat().st_size for file in recording_files(tmp_path)) <= size
    assert passes_in(tmp_path)[-1].at == a_pass(199).at


def test_passes_go_when_they_are_too_old(tmp_path: Path) -> None:
    write(tmp_path, [a_pass(3600 * hour) for hour in range(10)], max_age=timedelta(hours=3))
    assert passes_in(tmp_path)[0].at == a_pass(3600 * 5).at


def test_clock_that_jumps_back_begins_a_file(tmp_path: Path) -> None:
    passes = [a_pass(100), a_pass(50), a_pass(51)]
    write(tmp_path, passes)
    assert len(recording_files(tmp_path)) == 2
    assert sorted(record.at for record in passes_in(tmp_path)) == [passes[1].at, passes[2].at, passes[0].at]


def test_two_recordings_of_one_second_have_a_file_each(tmp_path: Path) -> None:
    write(tmp_path, [a_pass(0)])
    write(tmp_path, [a_pass(0)])
    assert [file.name for file in recording_files(tmp_path)] == [
        "20261120T100000Z.jsonl.gz",
        "20261120T100000Z-2.jsonl.gz",
    ]


def test_disk_that_fails_is_reported_once_and_tried_again_after_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    recording = RecordingFiles(tmp_path, report=told.append)
    recording.append(a_pass(0))

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("reconciler.adapters.recording_files.os.write", full)
        for number in (1, 2, 70):
            recording.append(a_pass(number))
    recording.append(a_pass(80))
    recording.append(a_pass(140))
    recording.close()
    assert told == [
        f"passes cannot be recorded in {tmp_path}: No space left on device",
        f"passes are recorded in {tmp_path} again",
    ]
    assert [record.at for record in passes_in(tmp_path)] == [a_pass(0).at, a_pass(140).at]


def test_place_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="try another --record"):
        RecordingFiles(tmp_path / "file")


def test_empty_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="holds none"):
        list(read_recording(tmp_path))


def test_record_that_only_repeats_the_time_costs_little(tmp_path: Path) -> None:
    first = a_pass(0, noise=100_000)
    write(tmp_path, [replace(first, at=first.at + timedelta(seconds=number)) for number in range(100)])
    (file,) = recording_files(tmp_path)
    assert file.stat().st_size < 100_000
