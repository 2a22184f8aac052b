"""Print this process's peak memory in MB: with arguments after a daemon's passes, without after the imports alone."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

from tests.bench import fleet
from tests.bench.__main__ import Stage, daemon
from tests.bench.peak import peak


def main() -> None:
    """Run a first pass, one that places 1,000 workloads, and ten idle ones."""
    if len(sys.argv) > 1:
        remote, cache = map(Path, sys.argv[1:])
        stage = Stage(observed=fleet.observe({}, fleet.START, full=True))
        with daemon(remote, cache, stage) as run:
            run()
            for _ in range(11):
                stage.moment += timedelta(seconds=1)
                stage.observed = fleet.again(
                    stage.observed, dict.fromkeys(range(fleet.TEMPLATES), 2), stage.moment, full=True
                )
                run()
    print(peak())


main()
