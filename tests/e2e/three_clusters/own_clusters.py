"""Three clusters with a fleet for a program of their own, outside pytest."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.e2e.charts import ChartRepository
from tests.e2e.conftest import Fleet
from tests.e2e.git_server import GitServer
from tests.e2e.three_clusters.clusters import ThreeClusters


@contextmanager
def own_clusters(home: Path) -> Iterator[tuple[ThreeClusters, Fleet]]:
    """Start clusters, engines and a git server under a directory, and stop them in the end."""
    bare = home / "git" / "fleet.git"
    bare.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "--bare", "--initial-branch=main", str(bare)], check=True)
    with ExitStack() as stack:
        server = GitServer(home / "git", password=secrets.token_hex(12))
        stack.callback(server.kill)
        charts = ChartRepository(home / "charts")
        stack.callback(charts.stop)
        three = ThreeClusters(home / "three")
        stack.callback(three.stop)
        fleet = Fleet(home, server)
        stack.enter_context(three.with_fleet(fleet, charts.url))
        yield three, fleet
