"""Three simulated clusters: their schedulers, and an engine that applies the output branch in them.

They start as in the layout's example observations. No clock and no process in here: time and the content of the
output branch come in, observations go out.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import datetime
from pathlib import Path

from reconciler.core.schema import yaml
from reconciler.model.units import ONE, Resources, format_quantity, parse_quantity, total
from reconciler.model.workload import Json
from reconciler.text.gpu_cells import GpuUse
from reconciler.text.timestamps import format_time

Committed = Mapping[str, Mapping[str, int]]
"""Replicas on the output branch, by cluster and placement."""

_GPU = "nvidia.com/gpu"

_MANIFEST = 5
"""Parts of clusters/<cluster>/<placement>/manifests/<file>."""


class DemoCluster:
    """A cluster with our replicas: those applied by the engine, and those of them that are bound to a node."""

    def __init__(self, seen: Json, replica: Json) -> None:
        """Start from an Observation document; `replica` are the requests of each of our replicas."""
        self.name: str = seen["cluster"]
        self._seen = seen
        self._requests = _resources(replica["requests"])
        self._applied: dict[str, int] = {}
        self._seats: dict[str, list[str]] = {}
        self._waiting_since: dict[str, datetime] = {}

    @property
    def bound(self) -> dict[str, int]:
        """Count the bound replicas by placement."""
        return {name: len(seats) for name, seats in self._seats.items()}

    @property
    def settled(self) -> bool:
        """Return whether exactly the applied replicas are bound."""
        return self.bound == self._applied

    def schedule(self, now: datetime) -> None:
        """Free the nodes of removed replicas, and bind pending ones while there is capacity."""
        self._seats = {name: self._seats.get(name, [])[:count] for name, count in self._applied.items()}
        for name, count in sorted(self._applied.items()):
            free = [node for node in self._nodes() for _ in range(self._free(node).holds(self._requests))]
            lacking = count - len(self._seats[name])
            self._seats[name] += [node["name"] for node in free[:lacking]]
        self._waiting_since = {
            name: self._waiting_since.get(name, now)
            for name, count in self._applied.items()
            if count > len(self._seats[name])
        }

    def apply(self, replicas: Mapping[str, int]) -> None:
        """Apply the branch's replicas for this cluster, and prune others. They are bound at the next `schedule`."""
        self._applied = dict(replicas)

    def room(self) -> int:
        """Count the further replicas that would fit."""
        return sum(self._free(node).holds(self._requests) for node in self._nodes())

    def gpus(self) -> tuple[Mapping[GpuUse, int], ...]:
        """Count the GPUs of each node that takes pods by use; those of replicas without a node are still free."""
        nodes: list[Mapping[GpuUse, int]] = []
        starting = sum(self._applied.values()) - sum(self.bound.values())
        each = _gpus(self._requests)
        for node in self._nodes():
            free = _gpus(self._free(node))
            burst = sum(seats.count(node["name"]) for seats in self._seats.values()) * each
            coming = min(max(0, starting) * each, free)
            starting -= coming // each
            others = _gpus(_resources(node["allocatable"])) - burst - free
            nodes.append(
                {GpuUse.BURST: burst, GpuUse.STARTING: coming, GpuUse.OTHER: others, GpuUse.FREE: free - coming}
            )
        return tuple(nodes)

    def observation(self, now: datetime) -> Json:
        """Write the observation of this cluster."""
        seen = deepcopy(self._seen)
        seen["observedAt"] = format_time(now)
        for pool in seen["pools"]:
            for node in pool["nodes"]:
                amounts = self._used_resources(node).amounts
                node["used"] = {name: format_quantity(amount) for name, amount in sorted(amounts.items())}
        seen["placements"] = [self._placement_status(name) for name in sorted({*self._seats, *self._applied})]
        return seen

    def _placement_status(self, name: str) -> Json:
        """Write the status of a placement: bound pods, and since when the others are pending."""
        bound = self.bound.get(name, 0)
        waiting = self._applied.get(name, 0) - bound
        if waiting <= 0:
            return {"name": name, "bound": bound}
        since = self._waiting_since.get(name)  # replicas of this turn are scheduled in the next one
        waiting_file = {"pods": waiting} if since is None else {"pods": waiting, "since": format_time(since)}
        return {"name": name, "bound": bound, "waiting": [waiting_file]}

    def _nodes(self) -> Iterator[Json]:
        """Yield the nodes that take pods, each with its pool's ``allocatable``."""
        for pool in self._seen["pools"]:
            for node in pool["nodes"]:
                if node.get("ready", True) and not node.get("cordoned", False):
                    yield {"allocatable": pool["allocatable"], **node}

    def _used_resources(self, node: Json) -> Resources:
        here = sum(seats.count(node["name"]) for seats in self._seats.values())
        return total([_resources(node.get("used", {})), self._requests.times(here)])

    def _free(self, node: Json) -> Resources:
        return _resources(node["allocatable"]).minus(self._used_resources(node))


class Primary:
    """The primary cluster of the workload. It is full: further replicas stay pending."""

    def __init__(self, seen: Json) -> None:
        """Start from an Observation document of one workload without missing replicas."""
        self.name: str = seen["cluster"]
        self._seen = seen
        self._workload: Json = seen["workloads"][0]
        self.running: int = self._workload["running"]
        self.wanted: int = self.running
        self._waiting: list[tuple[datetime, int]] = []

    @property
    def replica(self) -> Json:
        """The requests of one replica."""
        return self._workload["replica"]

    @property
    def missing(self) -> int:
        """Count the replicas without a node."""
        return self.wanted - self.running

    def gpus(self) -> tuple[Mapping[GpuUse, int], ...]:
        """Count the GPUs of each node by use: all that are used are the workload's own."""
        return tuple(
            {GpuUse.HOME: used, GpuUse.FREE: int(pool["allocatable"][_GPU]) - used}
            for pool in self._seen["pools"]
            for node in pool["nodes"]
            for used in [int(node["used"][_GPU])]
        )

    def scale(self, missing: int, now: datetime) -> None:
        """Set the number of missing replicas; new ones are pending from now, and the newest are removed first."""
        more = missing - self.missing
        self.wanted = self.running + missing
        if more > 0:
            self._waiting.append((now, more))
        while more < 0:
            since, count = self._waiting.pop()
            if count + more > 0:
                self._waiting.append((since, count + more))
            more = min(0, more + count)

    def observation(self, now: datetime) -> Json:
        """Write the observation of this cluster."""
        waiting = [{"replicas": count, "since": format_time(since)} for since, count in self._waiting]
        workload = {**self._workload, "wanted": self.wanted, "running": self.running, "unschedulable": waiting}
        return {**self._seen, "observedAt": format_time(now), "workloads": [workload, *self._seen["workloads"][1:]]}


def read(path: Path) -> Json:
    """Read one example observation of the layout."""
    return yaml.parse(path.read_bytes(), str(path))[0].value


def read_branch(archive: bytes) -> Committed:
    """Sum up the replicas of every placement from the manifests of the output branch, given as a tar archive."""
    clusters: dict[str, dict[str, int]] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            content, parts = tar.extractfile(member), member.name.split("/")
            if content is None or len(parts) != _MANIFEST or parts[0] != "clusters" or parts[3] != "manifests":
                continue
            placements = clusters.setdefault(parts[1], {})
            placements.setdefault(parts[2], 0)
            for document in yaml.parse(content.read(), member.name):
                if document.value["kind"] == "Deployment":
                    placements[parts[2]] += document.value["spec"]["replicas"]
    return clusters


def _gpus(resources: Resources) -> int:
    return resources.amounts.get(_GPU, 0) // ONE


def _resources(amounts: Mapping[str, Json]) -> Resources:
    return Resources(amounts={name: parse_quantity(str(amount)) for name, amount in amounts.items()})
