"""A fleet with a past of some hours, behind a real daemon, for pictures of its page and for browsers that try it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reconciler.model.capacity import (
    ClusterObservation,
    MissingReplicas,
    Node,
    Observed,
    Pool,
    WorkloadObservation,
)
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.placement import Placement
from reconciler.model.workload import WorkloadRef
from tests.builders.daemon import Daemon, Sight, daemon
from tests.builders.inputs import gpus, shape
from tests.builders.remote import Remote

PRODUCT = "nvidia.com/gpu.product"
MODELS = ("H100", "A100", "L40S")
FEW = 9


@dataclass
class PictureClock:
    """The time of the machine less a lag, so that hours pass in seconds."""

    lag: timedelta = timedelta()

    def now(self) -> datetime:
        return (datetime.now(UTC) - self.lag).replace(microsecond=0)


@dataclass
class Need:
    """What a workload wants on its primary, and what runs there."""

    workspace: str
    name: str
    primary: str
    wanted: int
    running: int
    since: datetime | None = None
    gpus: int = 1


@dataclass
class PictureSight(Sight):
    """Clusters as they are seen: what is placed gets its nodes, but for what `slow` names."""

    clock: PictureClock
    clusters: Mapping[str, Sequence[int]]
    """The GPUs of each node that nobody of the fleet uses."""
    needs: list[Need]
    blind: set[str] = field(default_factory=set)
    slow: set[str] = field(default_factory=set)
    running: Daemon | None = None

    def observe(self) -> Observed:
        now = self.clock.now()
        clusters = {}
        for number, (name, free) in enumerate(self.clusters.items()):
            if name in self.blind:
                continue
            bound = self._bound(name)
            clusters[ClusterName(name)] = ClusterObservation(
                cluster=ClusterName(name),
                observed_at=now - timedelta(seconds=number % 7),
                pools=(_pool(name, free, sum(bound.values()), MODELS[number % len(MODELS)]),),
                workloads=tuple(_workload(need, now) for need in self.needs if need.primary == name),
                bound=bound,
                ready=bound,
            )
        return Observed(clusters=clusters)

    def _bound(self, cluster: str) -> dict[PlacementName, int]:
        """Give the replicas of the branch their nodes."""
        if self.running is None or cluster in self.slow:
            return {}
        try:
            snapshot = self.running.latest.read()
        except Exception:  # noqa: BLE001 - before the first pass
            return {}
        placements = snapshot.decision.inputs.ledger.placements.on(ClusterName(cluster)).placements
        return {placement.name: placement.replicas for placement in placements}


def _workload(need: Need, now: datetime) -> WorkloadObservation:
    missing = need.wanted - need.running
    since = need.since or now - timedelta(minutes=5)
    return WorkloadObservation(
        ref=WorkloadRef(namespace="demo", name=need.name),
        wanted=need.wanted,
        running=need.running,
        waiting=(MissingReplicas(replicas=missing, since=since),) if missing else (),
        shape=shape(need.gpus),
    )


def _pool(cluster: str, free: Sequence[int], used: int, model: str) -> Pool:
    nodes = []
    for number, left in enumerate(free):
        taken = min(left, used)
        used -= taken
        nodes.append(Node(name=f"{cluster}-{number}", free=gpus(left - taken), allocatable=gpus(8)))
    return Pool(name="gpu", nodes=tuple(nodes), labels={PRODUCT: model})


def _names(clusters: int) -> list[str]:
    regions = ("fra", "ams", "dub", "iad", "pdx", "sin", "syd", "nrt", "gru")
    return [f"{regions[number % len(regions)]}-{number // len(regions) + 1}" for number in range(clusters)]


def _files(names: Sequence[str]) -> Mapping[str, str]:
    """Write the fleet: two workspaces, a policy with scores and one without, and a budget."""
    cluster = (
        "apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\n"
        "spec: {{engine: argocd, pricePerGPUHour: {price}, timeToReady: {ready}s}}\n"
    )
    clusters = "---\n".join(
        cluster.format(name=name, price=f"{1.49 + (number * 37) % 190 / 100:.2f}", ready=40 + (number * 13) % 80)
        for number, name in enumerate(names)
    )
    listed = ", ".join(names)
    others = ", ".join(names[1:5])
    return {
        "fleet.yaml": "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: gpu-fleet}\n"
        "spec: {engine: argocd}\n",
        "clusters.yaml": clusters,
        "workspaces.yaml": "apiVersion: overspill.dev/v1alpha1\nkind: Workspace\nmetadata: {name: llm}\n"
        f"spec: {{primaryCluster: {names[0]}, clusters: [{listed}], namespaces: [demo], budget: {{perDay: 400}}}}\n"
        "---\napiVersion: overspill.dev/v1alpha1\nkind: Workspace\nmetadata: {name: vision}\n"
        f"spec: {{primaryCluster: {names[1]}, clusters: [{others}], namespaces: [demo], budget: {{perMonth: 250}}}}\n",
        "policies.yaml": "apiVersion: overspill.dev/v1alpha1\nkind: BurstPolicy\nmetadata: {name: serving}\nspec:\n"
        "  workspaces: [llm]\n  scaleUp: {window: 30s}\n  scaleDown: {window: 1m}\n  coolDown: 1m\n  hold: 1h\n"
        "  scoring: [{name: Price, weight: 2}, {name: TimeToReady}]\n"
        "---\napiVersion: overspill.dev/v1alpha1\nkind: BurstPolicy\nmetadata: {name: batch}\nspec:\n"
        "  workspaces: [vision]\n  scaleUp: {window: 30s}\n  scaleDown: {window: 1m}\n  coolDown: 1m\n",
        **{
            f"templates/{workspace}-{name}.yaml": _template(workspace, name)
            for workspace, name in (
                ("llm", "vllm"),
                ("llm", "embeddings"),
                ("llm", "reranker"),
                ("vision", "sdxl"),
                ("vision", "captions"),
            )
        },
    }


def _template(workspace: str, name: str) -> str:
    return f"""\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadTemplate
metadata: {{name: {name}, namespace: kubeslice-{workspace}}}
spec:
  workspaceName: {workspace}
  burstDuration: 2h
  manifestResources:
    - name: server
      manifest:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {{name: {name}, namespace: demo}}
        spec:
          replicas: "{{{{ replicas }}}}"
          selector: {{matchLabels: {{app: {name}}}}}
          template:
            metadata: {{labels: {{app: {name}}}}}
            spec: {{containers: [{{name: server, image: "registry.example.com/{name}:1.0"}}]}}
  steps: [{{name: server, type: manifest}}]
"""


@contextmanager
def picture_fleet(directory: Path, *, clusters: int = FEW, reports: Path | None = None) -> Iterator[Daemon]:
    """Run a daemon over a fleet that has lived through half a day."""
    names = _names(clusters)
    clock = PictureClock(timedelta(hours=5))
    room: dict[str, Sequence[int]] = {name: (8, 6, 0, 2)[: 2 + number % 3] for number, name in enumerate(names)}
    room[names[0]] = room[names[1]] = (0, 0, 0, 0)
    needs = {
        "vllm": Need("llm", "vllm", names[0], 12, 12),
        "embeddings": Need("llm", "embeddings", names[0], 6, 6),
        "reranker": Need("llm", "reranker", names[0], 4, 4, gpus=8),
        "sdxl": Need("vision", "sdxl", names[1], 8, 8),
        "captions": Need("vision", "captions", names[1], 3, 3),
    }
    sight = PictureSight(clock=clock, clusters=room, needs=list(needs.values()))
    remote = Remote(directory / "remote.git")
    with daemon(remote, directory / "cache", files=_files(names), clock=clock, sight=sight, reports=reports) as running:
        sight.running = running
        _live(running, clock, sight, needs, names)
        yield running


def _live(
    running: Daemon, clock: PictureClock, sight: PictureSight, needs: Mapping[str, Need], names: Sequence[str]
) -> None:
    """Let half a day pass: demand comes and goes, a cluster gets lost, and what fits nowhere waits."""

    def pass_time(to: timedelta) -> None:
        clock.lag = to
        for _ in range(2):
            before = running.latest.read()
            running.wake("observation")
            running.until(lambda before=before: running.latest.read() is not before)

    def want(name: str, wanted: int, running_: int | None = None) -> None:
        need = needs[name]
        need.wanted, need.running = wanted, need.running if running_ is None else running_
        need.since = clock.now() - timedelta(seconds=50)

    hours = timedelta(hours=1)
    want("vllm", 15)
    pass_time(4.8 * hours)
    want("sdxl", 10)
    pass_time(4.2 * hours)
    want("vllm", 19)
    pass_time(3.6 * hours)
    want("sdxl", 8)
    pass_time(3.3 * hours)
    pass_time(3.1 * hours)
    want("vllm", 12)
    pass_time(2.5 * hours)
    pass_time(2.3 * hours)
    want("embeddings", 9)
    pass_time(1.6 * hours)
    want("vllm", 17)
    pass_time(1.0 * hours)
    want("sdxl", 11)
    pass_time(0.6 * hours)
    want("reranker", 12)
    pass_time(0.2 * hours)
    sight.slow = {placement.cluster for placement in _placements(running) if placement.workload.name == "sdxl"}
    sight.blind = {names[-1]}
    want("vllm", 20)
    pass_time(timedelta(minutes=4))
    pass_time(timedelta())


def _placements(running: Daemon) -> Sequence[Placement]:
    return tuple(running.latest.read().decision.inputs.ledger.placements.values())
