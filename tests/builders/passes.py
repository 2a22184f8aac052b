"""Runs whole passes, with time and observations set by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reconciler.adapters.helm.rendering import Helm
from reconciler.core.decide.state.order import Order
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, Outcome, PassDecision, World, observe_and_decide, reconcile_once
from reconciler.daemon.source import SourceReader
from reconciler.errors import Conflict
from reconciler.model.capacity import ClusterObservation, MissingReplicas, Observed, ObservedObject, WorkloadObservation
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement
from reconciler.model.plan import Refusal
from reconciler.model.workload import WorkloadRef
from reconciler.ports import Recording, Repository
from tests.builders.inputs import free, shape
from tests.fakes.memory_repository import OURS

START = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
SOURCE_FILES = {
    "fleet.yaml": """\
apiVersion: overspill.dev/v1alpha1
kind: Fleet
metadata: {name: demo}
spec: {engine: manifests}
""",
    "clusters.yaml": "---\n".join(
        f"apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: worker-{number}}}\nspec: {{}}\n"
        for number in (1, 2, 3)
    ),
    "workspaces.yaml": """\
apiVersion: overspill.dev/v1alpha1
kind: Workspace
metadata: {name: llm}
spec: {primaryCluster: worker-1, clusters: [worker-1, worker-2, worker-3], namespaces: [demo]}
""",
    "policies.yaml": """\
apiVersion: overspill.dev/v1alpha1
kind: BurstPolicy
metadata: {name: gpu}
spec:
  clusters: [{name: worker-2}, {name: worker-3}]
  scaleUp: {window: 30s}
  scaleDown: {window: 1m}
  coolDown: 1m
  hold: 1h
""",
    "template.yaml": """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadTemplate
metadata: {name: vllm, namespace: kubeslice-demo}
spec:
  workspaceName: llm
  burstDuration: 10m
  manifestResources:
    - name: server
      manifest:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: vllm, namespace: demo}
        spec:
          replicas: "{{ replicas }}"
          selector: {matchLabels: {app: vllm}}
          template:
            metadata: {labels: {app: vllm}}
            spec: {containers: [{name: server, image: registry.example.com/vllm:1.0}]}
  steps: [{name: server, type: manifest}]
""",
}

QUIET = {name: text for name, text in SOURCE_FILES.items() if name not in ("policies.yaml", "template.yaml")}
"""The fleet in which nothing bursts."""

BRANCHES = {
    "fleet.yaml": SOURCE_FILES["fleet.yaml"].replace("engine: manifests", "engine: manifests, branchPerCluster: true")
}
"""The fleet with a branch for each cluster, to be put over `SOURCE_FILES`."""

RENEWING = {"policies.yaml": SOURCE_FILES["policies.yaml"] + "  duration: {renew: WhileNeeded}\n"}
"""The policy by which a burst lasts as long as it is needed, to be put over `SOURCE_FILES`."""


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


class Passes:
    """A daemon over any repository. `free` are a cluster's GPUs before our replicas, `missing` is the deficit.

    `orders` are what callers of the API want in every pass, as those do who never hear an answer. `moment` is the true
    time, which the daemon's clock is `ahead` of.
    """

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.moment = START
        self.ahead = timedelta()
        self.free = {"worker-2": 4, "worker-3": 8}
        self.missing = 0
        self.names: tuple[str, ...] = ("vllm",)
        self.since = START - seconds(600)
        self.steady_since: datetime | None = None
        self.bound: dict[str, int] = {}
        self.blind: frozenset[str] = frozenset()
        self.objects: tuple[ObservedObject, ...] = ()
        self.orders: tuple[Order, ...] = ()
        self.recording: Recording | None = None
        self._observed = Observed()
        self.restart()

    # the ports that are only a value here

    def now(self) -> datetime:
        return self.moment + self.ahead

    def uptime(self) -> timedelta:
        return self.moment - START

    def follow(self, desired: object) -> None:
        """Show the same whatever is asked for."""

    def observe(self) -> Observed:
        return self._observed

    def burst(self, *names: str) -> list[Refusal]:
        """Run a pass in which two replicas of these are missing; return why clusters were refused to what waits."""
        self.names = names
        self.missing, self.steady_since = 2, self.moment - seconds(61)
        outcome = self.run_once()
        return [refusal for entry in outcome.plan.suppressed for refusal in entry.refusals]

    def where(self) -> dict[str, str]:
        return {placement.workload.name: placement.cluster for placement in self.placements()}

    def restart(self) -> None:
        """Forget everything but git."""
        repository = self.repository
        self.memory = Memory(source=SourceReader(repository), branch=BranchReader(repository))

    def advance(self, by: float) -> None:
        """Let time pass, in which everything that was committed gets its nodes and what was reverted leaves them."""
        self.moment += seconds(by)
        self.bound = {placement.name: placement.replicas for placement in self.placements()}

    def placements(self) -> list[Placement]:
        """Read the placements of the output branch."""
        return list(BranchReader(self.repository).ledger(self.repository.tips().output).placements.values())

    def run_once(self, observed_at: datetime | None = None) -> Outcome:
        """Run one pass on what is to be seen now."""
        self._observed = self._look(observed_at or self.now())
        return reconcile_once(self.world(), self.memory, orders=self.orders)

    def look(self) -> PassDecision:
        """Decide on what is to be seen now, and change nothing."""
        self._observed = self._look(self.now())
        return observe_and_decide(self.world(), self.memory)

    def world(self) -> World:
        return World(
            repository=self.repository,
            clusters=self,
            charts=Helm(),
            clock=self,
            author=OURS,
            recording=self.recording,
            uptime=self.uptime,
        )

    def run(self, observed_at: datetime | None = None) -> Outcome:
        """Run passes until one changes nothing, as the loop would; a moved tip is tried again."""
        for _ in range(10):
            try:
                outcome = self.run_once(observed_at)
            except Conflict:
                continue
            if not outcome.commits:
                return outcome
        raise AssertionError("ten passes in a row changed something")

    def _look(self, at: datetime) -> Observed:
        waiting = (MissingReplicas(replicas=self.missing, since=self.since),) if self.missing else ()
        workloads = tuple(
            WorkloadObservation(
                ref=WorkloadRef(namespace="demo", name=name),
                wanted=4 + self.missing,
                running=4,
                waiting=waiting,
                deficit_since=self.steady_since,
                shape=shape(),
            )
            for name in self.names
        )
        clusters = [
            ClusterObservation(
                cluster=ClusterName("worker-1"), observed_at=at, workloads=workloads, objects=self.objects
            )
        ]
        names = {placement.name: placement.cluster for placement in self.placements()}
        for name, gpus in self.free.items():
            bound = {one: count for one, count in self.bound.items() if names.get(one) == name}
            clusters.append(free(name, max(0, gpus - sum(bound.values())), at=at, bound=bound))
        return Observed(clusters={one.cluster: one for one in clusters if one.cluster not in self.blind})
