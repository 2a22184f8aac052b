"""Print this process's peak memory in MB: with arguments after a daemon's passes, without after the imports alone."""

from __future__ import annotations

import resource
import sys
from datetime import timedelta
from pathlib import Path

from tests.bench import fleet
from tests.bench.__main__ import Stage, daemon


def main() -> None:
    """Run a first pass, one that places 1,000 workloads, and ten idle ones."""
    if len(sys.argv) > 1:
        remote, cache = map(Path, sys.argv[1:])
        stage = Stage(observed=fleet.observe({}, fleet.START))
        with daemon(remote, cache, stage) as run:
            run()
            for _ in range(11):
                stage.moment += timedelta(seconds=1)
                stage.observed = fleet.observe(dict.fromkeys(range(fleet.TEMPLATES), 2), stage.moment)
                run()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


main()
