"""The ledger of the last run is whole, of this program and of this user, or it is thrown away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.adapters import ledger_file
from reconciler.adapters.ledger_file import LedgerFile

DATA = b'{"commit": "7"}' * 50


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def write(path: Path, data: bytes = DATA) -> None:
    LedgerFile(path, writable=True).write(data)


def test_file_is_read_as_it_was_written_and_belongs_to_its_user_alone(path: Path) -> None:
    os.umask(before := os.umask(0))
    write(path)
    assert os.umask(before) == before
    assert LedgerFile(path, writable=False).read() == DATA
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["ledger"]


def test_missing_file_is_none_and_nothing_to_tell(path: Path) -> None:
    told: list[str] = []
    assert LedgerFile(path, writable=True, report=told.append).read() is None
    assert told == []


def head(**changes: object) -> Callable[[bytes], bytes]:
    def change(file: bytes) -> bytes:
        first, _, data = file.partition(b"\n")
        return json.dumps({**json.loads(first), **changes}).encode() + b"\n" + data

    return change


def with_by(edit: Callable[[str], str]) -> Callable[[bytes], bytes]:
    def change(file: bytes) -> bytes:
        return head(by=edit(json.loads(file.partition(b"\n")[0])["by"]))(file)

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda file: b"", "it is damaged"),
        (lambda file: file[:20], "it is damaged"),
        (lambda file: file[:-1], "it is damaged"),
        (lambda file: file + b" ", "it is damaged"),
        (lambda file: file[:-40] + b"0" + file[-39:], "it is damaged"),
        (lambda file: b"\0" * len(file), "it is damaged"),
        (lambda file: b"[1, 2]\n" + file, "it is damaged"),
        (lambda file: b"PK\x03\x04" + os.urandom(5000), "it is damaged"),
        (head(sha256="0" * 64), "it is damaged"),
        (with_by(lambda by: f"9{by}"), "another version has written it"),
        (with_by(lambda by: by.replace("cpython-", "cpython-9")), "another version has written it"),
        (with_by(lambda by: by[:-1]), "another version has written it"),
    ],
)
def test_damaged_foreign_or_old_file_is_thrown_away_and_told_once(
    path: Path, change: Callable[[bytes], bytes], why: str
) -> None:
    write(path)
    path.write_bytes(change(path.read_bytes()))
    told: list[str] = []
    file = LedgerFile(path, writable=True, report=told.append)
    assert file.read() is None
    assert told == [f"the ledger of the last run in {path} is not used: {why}"]
    file.write(DATA)
    assert file.read() == DATA


def test_file_that_others_can_write_to_is_thrown_away(path: Path) -> None:
    write(path)
    path.chmod(0o620)
    told: list[str] = []
    assert LedgerFile(path, writable=True, report=told.append).read() is None
    assert told == [f"the ledger of the last run in {path} is not used: others can write to it"]


def test_pipe_in_place_of_the_file_is_not_waited_for(path: Path) -> None:
    os.mkfifo(path)
    told: list[str] = []
    assert LedgerFile(path, writable=True, report=told.append).read() is None
    assert told == [f"the ledger of the last run in {path} is not used: it is no file"]
    write(path)
    assert LedgerFile(path, writable=False).read() == DATA


def test_link_is_not_followed(path: Path) -> None:
    write(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")
    assert LedgerFile(path, writable=True).read() is None
    write(path, b"new")
    assert LedgerFile(path.with_name("elsewhere"), writable=True).read() == DATA


def test_ledger_that_is_too_large_is_not_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path)
    monkeypatch.setattr(ledger_file, "MAX_SIZE", 100)
    told: list[str] = []
    LedgerFile(path, writable=True, report=told.append).write(b"x" * 101)
    assert told == [f"the ledger is not kept in {path}: it has more than 100 bytes"]
    told.clear()
    assert LedgerFile(path, writable=True, report=told.append).read() is None
    assert told == [f"the ledger of the last run in {path} is not used: it is damaged"]


def test_directory_that_is_gone_costs_nothing_but_the_time_of_the_next_start(path: Path) -> None:
    told: list[str] = []
    LedgerFile(path.parent / "gone" / "ledger", writable=True, report=told.append).write(DATA)
    (line,) = told
    assert line.endswith("No such file or directory")


WRITER = """
import sys
from pathlib import Path
from reconciler.adapters.ledger_file import LedgerFile
file = LedgerFile(Path(sys.argv[1]), writable=True)
while True:
    for letter in b"ab":
        file.write(bytes([letter]) * 3_000_000)
"""


def test_writer_that_is_killed_at_any_moment_leaves_a_whole_file(path: Path) -> None:
    reader = LedgerFile(path, writable=False)
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)]) as writer:
        while not path.exists():
            time.sleep(0.01)
        for _ in range(50):
            data = reader.read()
            assert data is not None
            assert data in (b"a" * 3_000_000, b"b" * 3_000_000)
        writer.kill()
    assert reader.read() is not None
    write(path)
    assert [entry.name for entry in path.parent.iterdir()] == ["ledger"]
