"""The simulated world: clusters that report to files, and an engine that follows the output branch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from reconciler.core.schema import yaml
from reconciler.demo.clusters import DemoCluster, Primary, read, read_branch
from reconciler.demo.stage import OUTPUT, DemoDirectory
from reconciler.demo.story import OTHERS, PRIMARY
from reconciler.demo.view import ClusterScene, PlacementScene
from reconciler.model.workload import Json
from reconciler.text.wording import count


class DemoWorld:
    """The clusters, and the output branch's tip as their engine last saw it (empty: there is none yet)."""

    def __init__(self, stage: DemoDirectory) -> None:
        """Start from the layout's example observations without missing replicas."""
        self._stage = stage
        layout = stage.fleet / "observations"
        self.primary = Primary(read(layout / f"{PRIMARY}.yaml"))
        self._clusters = [DemoCluster(read(layout / f"{name}.yaml"), self.primary.replica) for name in OTHERS]
        self.tip = ""
        self._observed_at: datetime | None = None

    @property
    def placed(self) -> dict[str, int]:
        """Count our bound replicas by cluster, without clusters that have none."""
        return {cluster.name: sum(cluster.bound.values()) for cluster in self._clusters if cluster.bound}

    @property
    def settled(self) -> bool:
        """Return whether the engine has applied everything of the last tip."""
        return all(cluster.settled for cluster in self._clusters)

    def scenes(self) -> tuple[ClusterScene, ...]:
        """Describe the clusters as they are now, the primary first; no placement has an end yet."""
        home = ClusterScene(name=self.primary.name, nodes=self.primary.gpus(), waiting=self.primary.missing, home=True)
        others = (
            ClusterScene(
                name=cluster.name,
                nodes=cluster.gpus(),
                placements=tuple(
                    PlacementScene(name=name, replicas=replicas) for name, replicas in sorted(cluster.bound.items())
                ),
            )
            for cluster in self._clusters
        )
        return (home, *others)

    def turn(self, now: datetime) -> Iterator[str]:
        """Advance by one turn, and yield its visible changes.

        Schedulers bind the replicas of earlier turns, then the engine applies the newest commit.
        """
        for cluster in self._clusters:
            before = cluster.bound
            cluster.schedule(now)
            yield from _changes(cluster, before)
        tip = self._stage.git(
            "for-each-ref", "--format=%(objectname)", f"refs/heads/{OUTPUT}", directory=self._stage.remote
        )
        if tip != self.tip:
            self.tip = tip
            replicas = read_branch(self._stage.archive(tip))
            for cluster in self._clusters:
                cluster.apply(replicas.get(cluster.name, {}))
        self.observe(now)

    def observe(self, now: datetime) -> None:
        """Write an observation of each cluster, once a second, beside its place and then into it."""
        if now == self._observed_at:
            return
        self._observed_at = now
        for seen in (self.primary.observation(now), *(cluster.observation(now) for cluster in self._clusters)):
            self._write(seen)

    def _write(self, seen: Json) -> None:
        path = self._stage.observations / f"{seen['cluster']}.yaml"
        beside = path.with_name(f".{path.name}.tmp")
        beside.write_text(yaml.emit(seen))
        beside.replace(path)


def _changes(cluster: DemoCluster, before: Mapping[str, int]) -> Iterator[str]:
    """Describe the changes on a cluster."""
    for name in sorted(before.keys() | cluster.bound.keys()):
        more = cluster.bound.get(name, 0) - before.get(name, 0)
        if more:
            what = f"{count(more, 'replica')} of {name} found a node" if more > 0 else f"{count(-more, 'replica')} gone"
            yield f"{cluster.name}: {what}; room for {cluster.room()} more"
