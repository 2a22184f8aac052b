"""Two daemons on one branch, each step at the same moment: nothing lost, nothing doubled, history linear."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.helm.rendering import Helm
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, World, reconcile_once
from reconciler.daemon.source import SourceReader
from reconciler.errors import Conflict
from reconciler.model.capacity import ClusterObservation, MissingReplicas, Observed, WorkloadObservation
from reconciler.model.ids import ClusterName
from reconciler.model.workload import WorkloadRef
from tests.builders.inputs import free, shape
from tests.builders.passes import BRANCHES, SOURCE_FILES, START, seconds
from tests.builders.remote import Remote
from tests.fakes.memory_repository import OURS

A_STEP = 5


class Sky:
    """What both daemons see: at each step a few more workloads are short of a replica, until none is any more."""

    def __init__(self) -> None:
        self.moment = START
        self.short = 0
        self.calm = False

    def now(self) -> datetime:
        return self.moment

    def follow(self, desired: object) -> None:
        """Show the same whatever is asked for."""

    def observe(self) -> Observed:
        workloads = tuple(
            WorkloadObservation(
                ref=WorkloadRef(namespace="demo", name=f"vllm-{index}"),
                wanted=2,
                running=2 if self.calm else 1,
                waiting=() if self.calm else (MissingReplicas(replicas=1, since=START - seconds(60)),),
                shape=shape(),
            )
            for index in range(self.short)
        )
        primary = ClusterObservation(cluster=ClusterName("worker-1"), observed_at=self.moment, workloads=workloads)
        return Observed(clusters={"worker-1": primary, "worker-2": free("worker-2", *[8] * 40, at=self.moment)})


def play(remote: Path, cache: Path, barrier: Barrier, workloads: int) -> None:
    """Be one daemon: place five at each moment, then revert them at as many moments."""
    sky, steps = Sky(), workloads // A_STEP
    with GitRepository(str(remote), cache=cache) as repository:
        world = World(repository=repository, clusters=sky, charts=Helm(), clock=sky, author=OURS)
        memory = Memory(source=SourceReader(repository), branch=BranchReader(repository))
        for step in range(2 * steps):
            sky.calm = step >= steps
            sky.short = min(workloads, A_STEP * (step + 1))
            sky.moment = START + seconds(10 * (step % steps)) + (timedelta(minutes=10) if step >= steps else seconds(0))
            barrier.wait(300)
            while True:
                try:
                    outcome = reconcile_once(world, memory)
                except Conflict:
                    continue
                if not outcome.commits:
                    break


@pytest.mark.parametrize(("more", "workloads"), [({}, 60), (BRANCHES, 40)], ids=["one branch", "one a cluster"])
def test_two_daemons_lose_nothing_and_double_nothing(
    remote: Remote, tmp_path: Path, more: Mapping[str, str], workloads: int
) -> None:
    template = SOURCE_FILES["template.yaml"]
    names = [f"vllm-{index}" for index in range(workloads)]
    files = {f"templates/{name}.yaml": template.replace("name: vllm", f"name: {name}") for name in names}
    policy = SOURCE_FILES["policies.yaml"].replace("coolDown: 1m", "coolDown: 2h")
    remote.commit("main", {**SOURCE_FILES, **files, "template.yaml": template, "policies.yaml": policy, **more})
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.daemon.test_two_daemons"])
    barrier = context.Barrier(2)
    daemons = [
        context.Process(target=play, args=(remote.path, tmp_path / name, barrier, workloads))
        for name in ("one", "other")
    ]
    for daemon in daemons:
        daemon.start()
    for daemon in daemons:
        daemon.join(600)
        assert daemon.exitcode == 0
    parents = remote.git("log", "--format=%P", "placements").splitlines()
    assert all(len(line.split()) <= 1 for line in parents), "a merge commit"
    trailers = "%(trailers:key=Overspill-Action,valueonly,separator=%x2C) %(trailers:key=Overspill-Placement,valueonly)"
    counts = Counter(remote.git("log", f"--format={trailers}", "placements").split("\n"))
    counts.pop("", None)
    assert max(counts.values()) == 1, counts.most_common(3)
    actions = Counter(line.split()[0] for line in counts)
    assert actions == {"Start": 1, "Place": workloads, "Revert": workloads}
    assert remote.files("placements", "clusters") == {}
    if more:
        subjects = remote.subjects("placements-by-cluster/worker-2")
        assert subjects == remote.subjects("placements"), "its branch has each commit once, in order"
        assert remote.files("placements-by-cluster/worker-2") == {}
    remote.git("fsck", "--strict")
