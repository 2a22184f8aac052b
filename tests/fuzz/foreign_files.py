"""Targets for files that others wrote into: recordings, helm's output, the output branch, what stands in our paths."""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

from reconciler.adapters.helm.output import sourced_objects
from reconciler.adapters.recording_files import outlined_recording, read_recording
from reconciler.core.engines.standing_objects import hold_immutable
from reconciler.core.fleet.file import describe_foreign
from reconciler.core.fleet.read_file import parse_file
from reconciler.core.fleet.standing_paths import held_names, lost_problem, version_in_force, without_objects_elsewhere
from reconciler.core.recording.documents import Operation
from reconciler.core.recording.pass_record import RECORD, PassRecord
from reconciler.errors import Problem
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS
from reconciler.model.workload import Json
from tests.builders.immutable_objects import CHANGES
from tests.builders.passes import SOURCE_FILES, Passes
from tests.builders.recorded_passes import Kept
from tests.fakes.memory_repository import MemoryRepository
from tests.fuzz.mutations import FLEETS, Corpus, changed_bytes, changed_document, changed_file, encoded
from tests.fuzz.target import Target

# Recordings


def _recorded() -> Sequence[PassRecord]:
    """Record a burst that is placed and ends."""
    kept = Kept()
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.recording = kept
    for missing, later in ((3, 20), (0, 700), (0, 0)):
        passes.missing = missing
        passes.run_once()
        passes.advance(later)
    return kept.records


def _patch(earlier: PassRecord, later: PassRecord) -> list[Operation]:
    operations: list[Operation] = []
    RECORD.difference(earlier, later, "", operations)
    return operations


_PASSES = _recorded()
_LINES: list[Json] = [
    {"overspill": "0.1.0", "format": 1, "pass": RECORD.encode(_PASSES[0])},
    *({"patch": _patch(*pair)} for pair in pairwise(_PASSES)),
]
_LINE_CORPUS = Corpus([encoded(line) for line in _LINES])


def _packed(line: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(line) + packer.flush()


def _make_recording(random: Random) -> bytes:
    lines = [encoded(line) for line in _LINES]
    for _ in range(random.choice((1, 1, 2))):
        at = random.randrange(len(lines))
        changed = encoded(changed_document(random, _LINE_CORPUS, _LINES[at]))
        lines[at] = changed if random.random() < 0.8 else changed_bytes(random, _LINE_CORPUS, lines[at])
    data = b"".join(map(_packed, lines))
    return changed_bytes(random, Corpus([data]), data) if random.random() < 0.1 else data


def _read_recording(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "20261128T000000Z.jsonl.gz"
        path.write_bytes(data)
        for entry in read_recording(path):
            if isinstance(entry, Problem) and not str(entry).isprintable():
                raise AssertionError(repr(str(entry))[:300])
        for line in outlined_recording(path):
            if not isinstance(line, Problem):
                json.dumps(line)


# helm's output

_OUTPUT = Corpus(
    [
        b"""---
# Source: vllm/templates/deployment.yaml
apiVersion: apps/v1
kind: Deployment
metadata: &m
  name: vllm
  labels: {a: b}
spec:
  replicas: 3
  template: {metadata: *m}
""",
        b"""---
# Source: vllm/templates/service.yaml
base: &base {kind: Service}
<<: *base
spec: {ports: [{port: 80}]}
""",
        b"""# Source: a/b.yaml
kind: ConfigMap
data: {a: 0x1f, b: 1e3, c: .5, d: 0o7, e: 'x', f: !!int 7, g: "\\x41", 8: true}
text: |
  a
""",
    ]
)


def _read_output(data: bytes) -> None:
    for _, manifest in sourced_objects(data.decode(errors="replace"), "chart vllm"):
        json.dumps(manifest, allow_nan=False)


# The output branch

_STANDING = Corpus([encoded(change.before) for change in CHANGES])


def _make_standing(random: Random) -> tuple[int, bytes, bool]:
    which = random.randrange(len(CHANGES))
    standing = encoded(changed_document(random, _STANDING, CHANGES[which].before))
    return which, standing if random.random() < 0.9 else changed_file(random, _STANDING), random.random() < 0.5


def _hold(made: tuple[int, bytes, bool]) -> None:
    which, standing, charts = made
    path = "vllm-1/manifests/1-object.yaml"
    held = hold_immutable({path: standing}, {path: encoded(CHANGES[which].after)}, {}, NO_SCHEMAS, charts=charts)
    if not held.kept.isprintable():
        raise AssertionError(repr(held.kept)[:300])


# What stands in the place of files

_BEGINNINGS = (
    b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", b"\0GITCRYPT\0", b"<html>", b"\xff\xfe",
    b"$ANSIBLE_VAULT;1.1;AES256\n", b"\0\0\0", b"sops:\n  a: ENC[x]\n", b"kind: Kustomization\n---\n", b"",
)  # fmt: skip # a list of beginnings


def _make_versions(random: Random) -> list[bytes]:
    file = random.choice(FLEETS.files)
    versions = [file]
    for _ in range(random.randrange(1, 4)):
        changed = changed_file(random, FLEETS) if random.random() < 0.5 else changed_bytes(random, FLEETS, file)
        versions.append(random.choice(_BEGINNINGS) + changed[: random.choice((0, 10, 100_000))])
    return versions


def _compare_versions(versions: list[bytes]) -> None:
    files = [parse_file(data) for data in versions]
    for data in versions:
        if not describe_foreign(data).isprintable():
            raise AssertionError(repr(describe_foreign(data))[:300])
    *past, current = files
    place = version_in_force(past, current)
    if place is not None:
        str(lost_problem("a.yaml", current, without_objects_elsewhere(past[place], held_names([current]))))


FILE_TARGETS: tuple[Target, ...] = (
    Target(name="recording", make=_make_recording, run=_read_recording),
    Target(
        name="output",
        make=lambda random: changed_bytes(random, _OUTPUT, random.choice(_OUTPUT.files)),
        run=_read_output,
    ),
    Target(name="standing", make=_make_standing, run=_hold),
    Target(name="versions", make=_make_versions, run=_compare_versions),
)
"""Files of the fleet's own branches and of the people around them."""
