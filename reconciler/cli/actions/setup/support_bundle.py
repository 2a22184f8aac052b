"""`support-bundle`: collects what a maintainer needs, part by part; a part that cannot be had costs no other."""

from __future__ import annotations

import gzip
import io
import json
import os
import platform
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from urllib.parse import urlsplit

import click

from reconciler import __version__
from reconciler.adapters import logs
from reconciler.adapters.clock import SystemClock
from reconciler.adapters.git import checkout
from reconciler.adapters.recording_files import outlined_recording, recording_files
from reconciler.app.commands import connected
from reconciler.cli import printing
from reconciler.cli.actions.setup.doctor import examine
from reconciler.cli.connection import connect
from reconciler.daemon.answers.history import HistorySelection, read_history
from reconciler.daemon.status import status as status_of
from reconciler.daemon.steer import survey
from reconciler.environment import PREFIX, VARIABLES
from reconciler.errors import InvalidInput, OverspillError, Problem
from reconciler.model.workload import Json
from reconciler.settings import Settings
from reconciler.text.redaction import REDACTED, credential, redacted, without_query
from reconciler.text.to_json import json_value
from reconciler.text.wording import count

RECENT = 50
"""Placements of the history."""
LARGEST_RECORDING = 50 << 20
"""Bytes of a file of a recording, once it is unpacked."""
_SECRET = ("PASSWORD", "TOKEN", "TOKENS", "SECRET", "NOTIFY", "API_TOKENS")
"""Words at the end of variables whose values are secrets, or are addresses that are half a secret."""
_LEFT_OUT = ("the fleet's files and manifests, kubeconfigs, logins, tokens and other secrets: never part of a bundle",)


@dataclass(slots=True)
class Bundle:
    """The files of an archive, and what is not in it."""

    files: dict[str, bytes] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=lambda: list(_LEFT_OUT))

    def add(self, name: str, make: Callable[[], bytes]) -> None:
        """Add a file, or say why it cannot be had."""
        try:
            self.files[name] = make()
        except (OverspillError, click.ClickException, OSError, EOFError, ValueError, zlib.error) as error:
            text = error.format_message() if isinstance(error, click.ClickException) else str(error)
            self.left_out.append(f"{name}: {clean_text(text) or type(error).__name__}")

    def contents(self) -> str:
        """List the files with their sizes, then what was left out."""
        rows = [f"{len(data):>10}  {name}" for name, data in sorted(self.files.items())]
        return "\n".join([*rows, "", "Left out:", *(f"- {line}" for line in self.left_out), ""])

    def pack(self, directory: str, now: datetime) -> bytes:
        """Return the archive, everything below one directory."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for name, data in sorted({**self.files, "CONTENTS.txt": self.contents().encode()}.items()):
                entry = tarfile.TarInfo(f"{directory}/{name}")
                entry.size, entry.mtime, entry.mode = len(data), int(now.timestamp()), 0o600
                archive.addfile(entry, io.BytesIO(data))
        return packed.getvalue()


def support_bundle(settings: Settings, server: str, out: Path | None) -> None:
    """Collect everything, write the archive, and list what is in it."""
    now = SystemClock().now()
    directory = f"overspill-support-{now:%Y%m%dT%H%M%SZ}"
    path = out or Path(f"{directory}.tar.gz")
    if path.exists():
        raise InvalidInput(f"{path} is there already (take it away first, or name another with --out)")
    bundle = collect(settings, server)
    _write(path, bundle.pack(directory, now))
    printing.say(bundle.contents())
    printing.say(f"Wrote {count(len(bundle.files) + 1, 'file')} to {path}. Read them before you send it.")


def collect(settings: Settings, server: str) -> Bundle:
    """Collect all parts, from a daemon where one is named."""
    bundle = Bundle()
    bundle.add("versions.json", lambda: clean_json(_versions()))
    bundle.add("settings.json", lambda: clean_json(_variables(os.environ)))
    if settings.repo:
        bundle.add("doctor.json", lambda: clean_json(json_value(_doctor(settings, server))))
    else:
        bundle.left_out.append("doctor.json: no repository is named (--repo with a URL or a path)")
    if server:
        _collect_remotely(bundle, server)
    else:
        _collect_here(bundle, settings)
        bundle.left_out.append("metrics.txt and log.jsonl: they are a daemon's (name it with --server)")
    if settings.record is None:
        bundle.left_out.append("recording: none is named (--record DIR)")
    else:
        _collect_recording(bundle, settings.record)
    return bundle


def _doctor(settings: Settings, server: str) -> Mapping[str, Json]:
    groups, problems = examine(settings, "", server)
    return {"groups": groups, "problems": [str(problem) for problem in problems]}


def _collect_remotely(bundle: Bundle, server: str) -> None:
    """Ask a daemon, part by part: its token may see some of them alone."""
    with ExitStack() as stack:
        try:
            client = stack.enter_context(connect(server))
        except OverspillError as error:
            bundle.left_out.append(
                f"status, history, metrics and log of {clean_text(server)}: {clean_text(str(error))}"
            )
            return
        bundle.add("status.json", lambda: clean_json(client.status()))
        bundle.add("history.json", lambda: clean_json(json_value(client.history(limit=RECENT))))
        bundle.add("metrics.txt", lambda: clean_text(client.metrics()).encode())
        bundle.add("log.jsonl", lambda: _json_lines(client.log()))


def _collect_here(bundle: Bundle, settings: Settings) -> None:
    """Decide a pass on this machine, commit nothing, and show what it saw."""
    with ExitStack() as stack:
        try:
            world, memory = stack.enter_context(connected(settings))
            decision = survey(world, memory)
        except OverspillError as error:
            bundle.left_out.append(f"status.json and history.json: {clean_text(str(error))}")
            return
        bundle.add("status.json", lambda: clean_json(json_value(status_of(decision))))

        def history() -> bytes:
            selection = HistorySelection.of(decision, "", since=None, limit=RECENT)
            past = read_history(world.repository, world.author, decision.inputs.ledger, selection)
            return clean_json(json_value({"placements": past.placements, "more": past.more}))

        bundle.add("history.json", history)


def _collect_recording(bundle: Bundle, place: Path) -> None:
    """Add the newest file of a recording, which begins with a whole pass."""
    files = recording_files(place)
    if not files or not files[-1].is_file():
        bundle.left_out.append(f"recording: {place} holds none")
        return
    newest, name = files[-1], f"recording/{files[-1].name}"
    problems: list[Problem] = []

    def outlined() -> bytes:
        if _is_too_large(newest):
            raise ValueError(f"{newest} is larger than {LARGEST_RECORDING >> 20} MiB")
        entries = [*outlined_recording(newest)]
        problems.extend(entry for entry in entries if isinstance(entry, Problem))
        lines = [json.dumps(_clean(line), ensure_ascii=False) for line in entries if not isinstance(line, Problem)]
        # A line is a gzip member of its own, as in every recording.
        return b"".join(gzip.compress(f"{line}\n".encode(errors="surrogatepass"), mtime=0) for line in lines)

    bundle.add(name, outlined)
    if name in bundle.files:
        bundle.left_out.append(f"{name}: of manifests and values of charts all but kind, name and digest")
    bundle.left_out.extend(f"{name}: {clean_text(str(problem))}" for problem in problems)


def _is_too_large(file: Path) -> bool:
    """Return whether a file of a recording is too large once it is unpacked; its last line may be cut off."""
    size = 0
    with gzip.open(file, "rb") as unpacked, suppress(EOFError):
        while size <= LARGEST_RECORDING and (part := unpacked.read(1 << 20)):
            size += len(part)
    return size > LARGEST_RECORDING


def _json_lines(lines: Sequence[str]) -> bytes:
    """Redact lines of JSON; a line that is none, as the last one after a crash, is redacted as text."""
    return "".join(f"{_clean_line(line)}\n" for line in lines).encode()


def _clean_line(line: str) -> str:
    try:
        return json.dumps(_clean(json.loads(line)), ensure_ascii=False)
    except ValueError:
        return clean_text(line)


def clean_json(value: Json) -> bytes:
    """Write a value as JSON, every text of it redacted."""
    return (json.dumps(_clean(value), indent=1, ensure_ascii=False, default=str) + "\n").encode()


def clean_text(text: str) -> str:
    """Redact a text."""
    return logs.redact(redacted(text))


def _clean(value: Json, name: str = "") -> Json:
    """Redact the texts of a value; what still looks like a credential under its name goes as a whole."""
    if isinstance(value, str):
        text = clean_text(value)
        return REDACTED if credential(text, name) else text
    if isinstance(value, Mapping):
        return {clean_text(str(key)): _clean(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner, name) for inner in value]
    return value


def _variables(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the settings that are set, those that are secrets without their values."""
    named = {name: environment[f"{PREFIX}{name}"] for name in VARIABLES if environment.get(f"{PREFIX}{name}")}
    unknown = sorted(
        name for name in environment if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in VARIABLES
    )
    return {
        **{f"{PREFIX}{name}": "<set>" if _is_secret(name) else _address(name, value) for name, value in named.items()},
        **dict.fromkeys(unknown, "<set, and unknown>"),
    }


def _address(name: str, value: str) -> str:
    """Return a setting without the query of an address, and a collector's without its path: either may be a secret."""
    if name == "TRACES":
        parts = urlsplit(value)
        return f"{parts.scheme}://{parts.netloc}"
    return without_query(value)


def _is_secret(name: str) -> bool:
    return name.endswith(_SECRET) or (name.startswith("NOTIFY_SECRET") and not name.endswith("_FILE"))


def _versions() -> Mapping[str, Json]:
    """Return the versions of all that a pass depends on."""
    return {
        "overspill": __version__,
        "python": sys.version,
        "platform": platform.platform(),
        "git": checkout.version(),
        "packages": dict(_packages()),
    }


def _packages() -> Iterator[tuple[str, str]]:
    """Yield the packages that Overspill requires, with their versions; those of extras where they are installed."""
    try:
        required = requires("overspill") or []
    except PackageNotFoundError:
        return
    for line in sorted(required):
        name = line.split(";")[0].split("[")[0].split(">")[0].split("<")[0].split("=")[0].split("!")[0].strip()
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def _write(path: Path, data: bytes) -> None:
    """Write a new file that its owner alone may read."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror} (name another file with --out)") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
