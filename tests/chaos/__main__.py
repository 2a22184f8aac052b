"""Run one disturbance or all of them; a line of figures for each, and exit code 1 where one finds a defect."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.chaos import (
    broken_transfers,
    full_disk,
    kills,
    many_passes,
    notifications,
    process_kills,
    sigterm,
    two_daemons,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """One way to disturb a daemon."""

    run: Callable[[Path, int], str]
    """Disturbs a daemon so often in a directory, and returns its figures. Raises AssertionError at a defect."""
    number: int
    """How often, unless the command line says."""


DISTURBANCES: Mapping[str, Disturbance] = {
    "kills": Disturbance(run=kills.run, number=10_000),
    "passes": Disturbance(run=many_passes.run, number=2_000),
    "transfers": Disturbance(run=broken_transfers.run, number=200),
    "notifications": Disturbance(run=notifications.run, number=100),
    "process-kills": Disturbance(run=process_kills.run, number=1_000),
    "two-daemons": Disturbance(run=two_daemons.run, number=600),  # seconds
    "disks": Disturbance(run=full_disk.run, number=20),
    "sigterm": Disturbance(run=sigterm.run, number=1),
}


def main(arguments: list[str]) -> int:
    """Run the disturbances that are named, or all."""
    names, number = ([arguments[0]], arguments[1:]) if arguments else ([*DISTURBANCES], [])
    if not {*names} <= DISTURBANCES.keys():
        print(f"there are: {', '.join(DISTURBANCES)}", file=sys.stderr)
        return 2
    failed = 0
    for name in names:
        disturbance, began = DISTURBANCES[name], time.process_time()
        with tempfile.TemporaryDirectory(prefix="overspill-chaos-") as directory:
            try:
                figures = disturbance.run(Path(directory), int(number[0]) if number else disturbance.number)
            except AssertionError as error:
                figures, failed = f"DEFECT: {error}", 1
        print(f"{name}: {figures} ({time.process_time() - began:.0f} s of CPU in this process)", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
