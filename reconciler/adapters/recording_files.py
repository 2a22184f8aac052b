"""Recordings of passes as files: a directory of JSON lines, each line a gzip member of its own.

`zcat` reads them. The first line of a file holds a whole pass (`pass`), each later line the difference from the pass
before it, as JSON Patch (`patch`). A line is written and synced at once: a crash loses the last pass at most. Each file
covers an hour at most, and the oldest go when there are too many bytes or they are too old.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reconciler import __version__
from reconciler.adapters import operating_system
from reconciler.core.recording.documents import Operation
from reconciler.core.recording.json_patch import patched
from reconciler.core.recording.pass_record import OUTLINE, RECORD, PassRecord, read_record
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.bounds import (
    RECORDING_DEPTH,
    RECORDING_FILE,
    RECORDING_LINE,
    RECORDING_PASSES,
    RECORDING_VALUES,
    JsonBounds,
)
from reconciler.model.workload import Json
from reconciler.ports import Recording
from reconciler.text.findings import shortened
from reconciler.text.json_input import UnreadableJson, count_values, parse_json
from reconciler.text.wording import sanitize

FORMAT = 1
MAX_SIZE = 1 << 30
MAX_AGE = timedelta(days=7)

_SPAN = timedelta(hours=1)
"""The longest time that one file covers."""
_PARTS = 16
"""Files that share the size: as much goes at once when there is too much."""
_PAUSE = timedelta(minutes=1)
"""Time without a recording after one has failed."""
_GZIP = 31
"""The `wbits` of zlib that write and read gzip members."""
_FAST = 1
_SUFFIX = ".jsonl.gz"
_NAME = re.compile(r"([0-9]{8}T[0-9]{6}Z)(?:-[0-9]+)?\.jsonl\.gz")
_TIME = "%Y%m%dT%H%M%SZ"
_NEVER = datetime(1, 1, 1, tzinfo=UTC)
_CHUNK = 16 << 10
"""Packed bytes that are unpacked at once: what is beyond the end of a line is copied."""
_LINE = JsonBounds(size=RECORDING_LINE, values=RECORDING_VALUES, depth=RECORDING_DEPTH)


@dataclass(slots=True)
class _OpenFile:
    """The file that is being written."""

    descriptor: int
    path: Path
    begun: datetime
    first: int
    """Bytes of its first line."""
    size: int
    last: PassRecord


class RecordingFiles(Recording):
    """Records passes in a directory, which is made if it is not there."""

    def __init__(
        self,
        directory: Path,
        *,
        max_size: int = MAX_SIZE,
        max_age: timedelta = MAX_AGE,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Begin a file with the next pass; `report` gets a sentence when recording fails, and when it works again.

        Raises InvalidInput for a directory that cannot be written to.
        """
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"recording to {directory}: {error.strerror} (try another --record)") from error
        if not os.access(directory, os.W_OK | os.X_OK):
            raise InvalidInput(f"recording to {directory}: no permission to write there (try another --record)")
        self._directory = directory
        self._max_size, self._max_age = max_size, max_age
        self._report = report
        self._file: _OpenFile | None = None
        self._failed_at: datetime | None = None

    def append(self, record: PassRecord) -> None:
        """Write one pass. A disk that is full or gone is reported once, and tried again a minute later."""
        if self._failed_at is not None and _near(self._failed_at, record.at, _PAUSE):
            return
        try:
            if self._file is None or self._is_full(self._file, record.at):
                self._begin(record)
            else:
                self._continue(self._file, record)
        except OSError as error:
            self.close()
            if self._failed_at is None:
                self._report(f"passes cannot be recorded in {self._directory}: {error.strerror}")
            self._failed_at = record.at
            return
        if self._failed_at is not None:
            self._report(f"passes are recorded in {self._directory} again")
            self._failed_at = None

    def close(self) -> None:
        """End the file. The next pass begins another."""
        if self._file is not None:
            os.close(self._file.descriptor)
            self._file = None

    def _is_full(self, file: _OpenFile, at: datetime) -> bool:
        return not _near(file.begun, at, _SPAN) or file.size - file.first >= self._max_size // _PARTS

    def _begin(self, record: PassRecord) -> None:
        self.close()
        line = _line({"overspill": __version__, "format": FORMAT, "pass": RECORD.encode(record)})
        self._make_room(record.at, len(line))
        descriptor, path = self._create(record.at)
        self._file = _OpenFile(
            descriptor=descriptor, path=path, begun=record.at, first=len(line), size=len(line), last=record
        )
        _write(descriptor, line)

    def _continue(self, file: _OpenFile, record: PassRecord) -> None:
        operations: list[Operation] = []
        RECORD.difference(file.last, record, "", operations)
        line = _line({"patch": operations})
        _write(file.descriptor, line)
        file.size += len(line)
        file.last = record

    def _create(self, at: datetime) -> tuple[int, Path]:
        """Create a file named after its first pass; another one of the same second gets a number."""
        number = 1
        while True:
            name = f"{at:{_TIME}}{'' if number == 1 else f'-{number}'}{_SUFFIX}"
            path = self._directory / name
            try:
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600), path
            except FileExistsError:
                number += 1

    def _make_room(self, at: datetime, first: int) -> None:
        """Remove the oldest files: those of passes that are too old, and those beyond the size with a new file."""
        files = recording_files(self._directory)
        ends = [*map(_begin_of, files), at][1:]
        sizes = [path.stat().st_size for path in files]
        left = sum(sizes) + first + self._max_size // _PARTS
        for path, end, size in zip(files, ends, sizes, strict=True):
            if left <= self._max_size and end >= at - self._max_age:
                break
            path.unlink(missing_ok=True)
            left -= size


def recording_files(place: Path) -> list[Path]:
    """List the files of a recording, oldest first: those of a directory, or the file itself."""
    if not place.is_dir():
        return [place]
    return sorted(
        (path for path in place.iterdir() if _NAME.fullmatch(path.name)),
        key=lambda path: (_begin_of(path), len(path.name), path.name),
    )


def read_recording(place: Path) -> Iterator[PassRecord | Problem]:
    """Yield the recorded passes, oldest first; of a broken file those before the damage, and the problem.

    The last line of a file may be cut off, as by a crash: that is a warning. Raises InvalidInput where nothing is
    recorded.
    """
    files = recording_files(place)
    if not files or not all(path.is_file() for path in files):
        raise InvalidInput(f"reading the recording: {place} holds none (try the directory of `overspill run --record`)")
    for path in files:
        yield from _read_file(path)


def outlined_recording(path: Path) -> Iterator[Json | Problem]:
    """Yield the lines of a file of a recording without the content of manifests and charts.

    Of a broken file come the lines before the damage, and the problem.
    """
    last: PassRecord | None = None
    for record in _read_file(path):
        if isinstance(record, Problem):
            yield record
        elif last is None:
            yield {"overspill": __version__, "format": FORMAT, "pass": OUTLINE.encode(record)}
            last = record
        else:
            operations: list[Operation] = []
            OUTLINE.difference(last, record, "", operations)
            yield {"patch": operations}
            last = record


def _read_file(path: Path) -> Iterator[PassRecord | Problem]:
    document: Json = None
    number, values = 1, 0
    try:
        if path.stat().st_size > RECORDING_FILE.most:
            yield _problem(path, 0, f"is over {RECORDING_FILE}, and is not read")
            return
        for line in _lines(path.read_bytes()):
            if number > RECORDING_PASSES.most:
                yield _problem(path, number, f"holds over {RECORDING_PASSES}, and the rest of it is left out")
                return
            frame = parse_json(line, _LINE)
            values += count_values(line)
            if number == 1:
                if frame["format"] != FORMAT:
                    yield _problem(path, 1, f"its format is {shortened(repr(frame['format']), 60)}, not {FORMAT}")
                    return
                document = frame["pass"]
            else:
                document = patched(document, frame["patch"])
            if values > RECORDING_VALUES.most:  # counted with what was replaced, so that it is counted again
                values = _bounded_values(document)
            yield read_record(document)
            number += 1
    except EOFError:
        yield _problem(path, number, "its last pass is cut off, as by a crash, and is left out", Severity.WARNING)
    except OSError as error:
        yield _problem(path, 0, f"cannot be read: {error.strerror}")
    except (zlib.error, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        words = str(error)
        kind = "" if isinstance(error, UnreadableJson) else f"{type(error).__name__}: "
        why = sanitize(shortened(f"{kind}{words}" if words else type(error).__name__, 200))
        yield _problem(path, number, f"is damaged from here on, and the rest of it is left out ({why})")


def _bounded_values(document: Json) -> int:
    """Count the values of a pass. Raises ValueError where there are too many."""
    values = count_values(json.dumps(document, ensure_ascii=False).encode(errors="replace"))
    if values > RECORDING_VALUES.most:
        raise ValueError(f"a pass holds over {RECORDING_VALUES}")
    return values


def _problem(path: Path, line: int, message: str, severity: Severity = Severity.ERROR) -> Problem:
    return Problem(path=str(path), line=line, message=message, severity=severity)


def _lines(data: bytes) -> Iterator[bytes]:
    """Yield the whole lines. Raises EOFError where the last one is cut off, zlib.error for what is damaged."""
    packed, begin = memoryview(data), 0
    while begin < len(packed):
        reader = zlib.decompressobj(_GZIP)
        line = bytearray()
        while not reader.eof:
            chunk = packed[begin : begin + _CHUNK]
            if not chunk:
                raise EOFError
            line += reader.decompress(chunk, RECORDING_LINE.most + 1 - len(line))
            if len(line) > RECORDING_LINE.most:
                raise ValueError(f"a line is over {RECORDING_LINE}")
            begin += len(chunk) - len(reader.unused_data)
        yield bytes(line)


def _line(frame: Json) -> bytes:
    text = json.dumps(frame, separators=(",", ":"), ensure_ascii=False) + "\n"
    packer = zlib.compressobj(_FAST, zlib.DEFLATED, _GZIP)
    return packer.compress(text.encode(errors="surrogatepass")) + packer.flush()


def _write(descriptor: int, line: bytes) -> None:
    """Write a line and bring it to the disk."""
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    operating_system.bring_to_disk(descriptor)


def _near(begin: datetime, at: datetime, within: timedelta) -> bool:
    """Return whether a moment is not long after another, and not before it."""
    return timedelta() <= at - begin < within


def _begin_of(path: Path) -> datetime:
    """Return when a file begins, by its name."""
    match = _NAME.fullmatch(path.name)
    return datetime.strptime(f"{match[1]}+0000", f"{_TIME}%z") if match else _NEVER
