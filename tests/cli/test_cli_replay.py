"""`overspill lab replay` on a terminal."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from tests.builders.remote import Remote
from tests.cli.conftest import Terminal

PASSES = 150


def test_passes_that_part_are_listed_up_to_a_screenful(overspill: Terminal, fleet: Remote, tmp_path: Path) -> None:
    first = {"at": "2026-11-28T00:00:00+00:00", "source": fleet.git("rev-parse", "main").strip(), "observed": {}}
    lines = [{"overspill": "0.1.0", "format": 1, "pass": first}, *({"patch": []} for _ in range(PASSES - 1))]
    recording = tmp_path / "20261128T000000Z.jsonl.gz"
    recording.write_bytes(b"".join(gzip.compress(json.dumps(line).encode() + b"\n") for line in lines))
    table = overspill("lab", "replay", str(recording))
    assert table.exit_code == 1
    assert sum(line.startswith("2026-11-28T00:00:00Z") for line in table.stdout.splitlines()) == 100
    assert "... and 50 plans more (`-o json` lists all)." in table.stdout
    assert "150 plans parted from the recorded one." in table.stdout
    listed = json.loads(overspill("lab", "replay", str(recording), "-o", "json").stdout)
    assert len(listed["partings"]) == PASSES
