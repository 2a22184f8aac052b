"""What a restart costs with the ledger that the last run has kept, in percent of the CPU time of one without it.

From the start of the process to the ledger of 33,000 placements, imports and git included. Both have their mirror: to
fetch 100,000 files would make the restart without it dearer.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from time import process_time

from reconciler.adapters.git import GitRepository
from reconciler.adapters.ledger_file import LedgerFile
from reconciler.app.world import GARBAGE
from reconciler.daemon.branch import BranchReader

RUNS = 5


def restart_percent(remote: Path, cache: Path) -> float:
    """Compare starts in turn, the least of several: whatever else runs on the machine only adds to them."""

    def cpu_seconds() -> float:
        command = [sys.executable, "-m", "tests.bench.restart", str(remote), str(cache)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    cpu_seconds()  # fetches the mirror
    without, kept = [], []
    for _ in range(RUNS):
        (file,) = cache.glob("*/ledger")
        file.unlink()
        without.append(cpu_seconds())
        kept.append(cpu_seconds())
    print(
        f"# restart: {min(kept):.2f} s of CPU with what was kept ({file.stat().st_size * 1e-6:.1f} MB),"
        f" {min(without):.2f} s without",
        file=sys.stderr,
    )
    return 100 * min(kept) / min(without)


def main(remote: str, cache: str) -> None:
    """Read the ledger, print the CPU time of this process and of its git processes, and keep what was read."""
    gc.set_threshold(GARBAGE)
    with GitRepository(remote, cache=Path(cache)) as repository:
        reader = BranchReader(repository, LedgerFile(repository.directory / "ledger", writable=True))
        ledger = reader.ledger(repository.fetch().output)
        if not ledger.placements or ledger.problems:
            raise RuntimeError("the full branch was meant to be read")
        times = os.times()
        print(process_time() + times.children_user + times.children_system)
        reader.keep()


if __name__ == "__main__":
    main(*sys.argv[1:])
