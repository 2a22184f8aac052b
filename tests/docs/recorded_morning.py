"""The recording that docs/how-to/lab.md compares two branches on: ``python -m tests.docs.recorded_morning``.

Four hours of a daemon, a pass a minute, in which up to seven replicas are missing. `main` takes clusters in the order
of its policy; `my-branch` goes by the price, and by a spare replica.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import datetime

from reconciler.adapters.helm.rendering import Helm
from reconciler.daemon.branch import BranchReader
from reconciler.lab.branch_comparison import BranchFiles, compare_branches
from reconciler.model.capacity import Node, Observed
from tests.builders.inputs import gpus
from tests.builders.passes import RENEWING, SOURCE_FILES, Passes
from tests.builders.recorded_passes import Kept
from tests.fakes.memory_repository import MemoryRepository

_PRICES = (None, 2.99, 1.49)
_MAIN = {
    **SOURCE_FILES,
    **RENEWING,
    "clusters.yaml": "---\n".join(
        "apiVersion: overspill.dev/v1alpha1\nkind: Cluster\n"
        f"metadata: {{name: worker-{number}}}\nspec: {{pricePerGPUHour: {price or 0}}}\n"
        for number, price in enumerate(_PRICES, 1)
    ),
}
_BRANCH = _MAIN | {"policies.yaml": f"{_MAIN['policies.yaml']}  scoring: [{{name: Price}}]\n  headroom: 1\n"}
_MINUTES, _GPUS = 240, 8
_MISSING = {0: 0, 5: 2, 30: 3, 60: 4, 90: 6, 120: 7, 150: 5, 180: 2, 210: 0}
"""Replicas that are missing from each minute on."""


class _Morning(Passes):
    """A daemon whose clusters say how large their nodes are."""

    def _look(self, at: datetime) -> Observed:
        observed = super()._look(at)
        clusters = {
            name: replace(seen, pools=tuple(replace(pool, nodes=tuple(map(_whole, pool.nodes))) for pool in seen.pools))
            for name, seen in observed.clusters.items()
        }
        return replace(observed, clusters=clusters)


def _whole(node: Node) -> Node:
    return replace(node, allocatable=gpus(_GPUS))


def comparison() -> str:
    """Record the passes, play both branches on them, and return the Markdown."""
    repository, kept = MemoryRepository(_MAIN), Kept()
    passes = _Morning(repository)
    passes.free = {"worker-2": _GPUS, "worker-3": _GPUS}
    passes.recording = kept
    for minute in range(_MINUTES + 1):
        missing = _MISSING.get(minute, passes.missing)
        if missing > passes.missing:
            passes.since = passes.moment
        passes.missing = missing
        passes.run()
        passes.advance(60)
    main, branch = (
        BranchFiles(name=name, files={path: text.encode() for path, text in files.items()})
        for name, files in (("main", _MAIN), ("my-branch", _BRANCH))
    )
    output = BranchReader(repository)
    return compare_branches(main, branch, kept.records, repository=repository, output=output, charts=Helm()).markdown()


if __name__ == "__main__":
    sys.stdout.write(comparison())
