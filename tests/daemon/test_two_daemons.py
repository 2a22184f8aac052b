"""Two daemons on one branch, each step at the same moment: nothing lost, nothing doubled, history linear."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from datetime import datetime, timedelta
from multiprocessing.synchronize import Barrier
from pathlib import Path

from reconciler.adapters.git import GitRepository
from reconciler.adapters.helm import Helm
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, World, reconcile_once
from reconciler.daemon.source import SourceReader
from reconciler.errors import Conflict
from reconciler.model.capacity import ClusterObservation, Observed, Waiting, WorkloadObservation
from reconciler.model.ids import ClusterName
from reconciler.model.push import Push
from reconciler.model.workload import WorkloadRef
from tests.conftest import Remote
from tests.memory import OURS
from tests.passes import SOURCE_FILES, START, seconds
from tests.situations import free, shape

WORKLOADS = 200
A_STEP = 5
STEPS = WORKLOADS // A_STEP


class Sky:
    """What both daemons see: at each step a few more workloads are short of a replica, and none ever recovers."""

    def __init__(self) -> None:
        self.moment = START
        self.short = 0

    def now(self) -> datetime:
        return self.moment

    def follow(self, desired: object) -> None:
        """Show the same whatever is asked for."""

    def observe(self) -> Observed:
        workloads = tuple(
            WorkloadObservation(
                ref=WorkloadRef(namespace="demo", name=f"vllm-{index}"),
                wanted=2,
                running=1,
                waiting=(Waiting(replicas=1, since=START - seconds(60)),),
                shape=shape(),
            )
            for index in range(self.short)
        )
        primary = ClusterObservation(cluster=ClusterName("worker-1"), observed_at=self.moment, workloads=workloads)
        return Observed(clusters={"worker-1": primary, "worker-2": free("worker-2", *[8] * 40, at=self.moment)})

    def pushed(self, push: Push) -> None:
        """Take note of nothing."""


def play(remote: Path, cache: Path, barrier: Barrier) -> None:
    """Be one daemon: place at 40 moments, then revert at 40 moments."""
    sky = Sky()
    with GitRepository(str(remote), cache=cache) as repository:
        world = World(repository=repository, clusters=sky, charts=Helm(), clock=sky, outbox=sky, author=OURS)
        memory = Memory(source=SourceReader(repository), branch=BranchReader(repository))
        for step in range(2 * STEPS):
            sky.short = min(WORKLOADS, A_STEP * (step + 1))
            sky.moment = START + seconds(10 * (step % STEPS)) + (timedelta(minutes=10) if step >= STEPS else seconds(0))
            barrier.wait(60)
            while True:
                try:
                    outcome = reconcile_once(world, memory)
                except Conflict:
                    continue
                if not outcome.commits:
                    break


def test_two_daemons_lose_nothing_and_double_nothing(remote: Remote, tmp_path: Path) -> None:
    template = SOURCE_FILES["template.yaml"]
    names = [f"vllm-{index}" for index in range(WORKLOADS)]
    files = {f"templates/{name}.yaml": template.replace("name: vllm", f"name: {name}") for name in names}
    policy = SOURCE_FILES["policy.yaml"].replace("coolDown: 1m", "coolDown: 2h")
    remote.commit("main", {**SOURCE_FILES, **files, "template.yaml": template, "policy.yaml": policy})
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.daemon.test_two_daemons"])
    barrier = context.Barrier(2)
    daemons = [context.Process(target=play, args=(remote.path, tmp_path / name, barrier)) for name in ("one", "other")]
    for daemon in daemons:
        daemon.start()
    for daemon in daemons:
        daemon.join(120)
        assert daemon.exitcode == 0
    parents = remote.git("log", "--format=%P", "placements").splitlines()
    assert all(len(line.split()) <= 1 for line in parents), "a merge commit"
    trailers = "%(trailers:key=Overspill-Action,valueonly,separator=%x2C) %(trailers:key=Overspill-Placement,valueonly)"
    counts = Counter(remote.git("log", f"--format={trailers}", "placements").split("\n"))
    counts.pop("", None)
    assert max(counts.values()) == 1, counts.most_common(3)
    actions = Counter(line.split()[0] for line in counts)
    assert actions == {"Start": 1, "Place": WORKLOADS, "Revert": WORKLOADS}
    assert remote.files("placements", "clusters") == {}
    remote.git("fsck", "--strict")
