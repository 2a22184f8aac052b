"""Controllers of a run: the production pass, and simpler rules to compare it with.

The rules are those of peers, as far as they can be said in a few lines; each sees the same world at the same moments,
and its commits take as long to be applied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from reconciler.core.commits.trailers import is_trailer
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, Outcome, World, reconcile_once
from reconciler.daemon.source import SourceReader
from reconciler.errors import InvalidInput
from reconciler.lab.memory_repository import OURS, MemoryRepository
from reconciler.lab.observe import SimulatedView
from reconciler.lab.scenario import BEGIN, DemandScenario
from reconciler.lab.world import Placed, PlacedReplicas, SimulatedWorld
from reconciler.model.action import Action
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.plan import Plan, Suppressed
from reconciler.model.workload import HelmConfig, Json

_WINDOW = 300


class Controller(Protocol):
    """Decides where replicas go, and commits it to the world."""

    name: str

    def act(self, now: int) -> int | None:
        """Look at the world and commit; return the second at which it has to act again, at the latest."""
        ...

    @property
    def counts(self) -> ActionCounts:
        """What it has done so far."""
        ...

    def history(self) -> Sequence[CommitNote]:
        """List its commits, the oldest first; none where it makes none that say anything."""
        ...

    def held_back(self) -> Mapping[str, Sequence[Suppressed]]:
        """Say for each workload why replicas are not placed, by the last decision; empty where it gives no reasons."""
        ...


@dataclass(slots=True)
class ActionCounts:
    """The actions of a controller."""

    commits: int = 0
    moves: int = 0
    ended_while_needed: int = 0
    """Placements that expired although their replicas were still missing."""


@dataclass(frozen=True, slots=True)
class CommitNote:
    """A commit of a run."""

    second: int
    subject: str
    reason: str
    """The body of its message, without trailers."""


class NoCharts:
    """Renders no charts: templates of scenarios have none."""

    def available(self) -> bool:
        """Tell that charts cannot be rendered."""
        return False

    def template(
        self,
        chart: HelmConfig,
        *,
        hooks: bool,  # noqa: ARG002 - the port
        workspace: WorkspaceName,  # noqa: ARG002 - the port
    ) -> tuple[Mapping[str, Json], ...]:
        """Refuse."""
        raise InvalidInput(f"chart {chart.name} is not rendered in the lab")


class OverspillController:
    """The production pass over a repository in memory."""

    def __init__(self, world: SimulatedWorld, files: Mapping[str, bytes], name: str = "overspill") -> None:
        """Begin with the files of a fleet repository."""
        self.name = name
        self.counts = ActionCounts()
        self.repository = MemoryRepository(files)
        self._world = world
        self._view = SimulatedView(world)
        self._ports = World(
            repository=self.repository, clusters=self._view, charts=NoCharts(), clock=self._view, author=OURS
        )
        self._memory = Memory(source=SourceReader(self.repository), branch=BranchReader(self.repository))
        self._plan = Plan()

    def act(self, now: int) -> int | None:
        """Run one pass."""
        self._view.look(now)
        outcome = reconcile_once(self._ports, self._memory)
        self._complain(outcome)
        self._plan = outcome.plan
        if outcome.commits:
            self._count(outcome)
            self._world.commit(self._placed(), now)
        wake_at = outcome.wake_at
        return None if wake_at is None else _second(wake_at)

    def history(self) -> Sequence[CommitNote]:
        """Read the log of the output branch."""
        tip = self.repository.tips().output
        logged = self.repository.log(tip) if tip is not None else ()
        return [CommitNote(_second(commit.at), commit.subject, _reason(commit.body)) for commit in reversed(logged)]

    def held_back(self) -> Mapping[str, Sequence[Suppressed]]:
        """Return what the last pass suppressed, by workload."""
        suppressed: dict[str, list[Suppressed]] = {}
        for item in self._plan.suppressed:
            suppressed.setdefault(item.workload.name, []).append(item)
        return suppressed

    def _complain(self, outcome: Outcome) -> None:
        """Raise InvalidInput for a fleet that is not in force as a whole: figures of it would mislead."""
        errors = [str(problem) for problem in outcome.problems if problem.severity.name == "ERROR"]
        if errors:
            raise InvalidInput("the fleet of the run has errors:\n" + "\n".join(errors))

    def _count(self, outcome: Outcome) -> None:
        self.counts.commits += len(outcome.commits)
        for change in outcome.plan.changes:
            self.counts.moves += change.action is Action.MOVE
            if change.action is Action.REVERT and change.why is EndReason.EXPIRED:
                workload = change.placement.workload.name
                self.counts.ended_while_needed += self._world.primary.missing(workload) > 0

    def _placed(self) -> Mapping[ClusterName, Placed]:
        """Read what the output branch asks for: the replicas of each placement, by cluster."""
        placed: dict[ClusterName, dict[str, PlacedReplicas]] = {}
        for placement in self._memory.branch.ledger(self.repository.tips().output).placements.values():
            replicas = PlacedReplicas(placement.workload.name, placement.replicas)
            placed.setdefault(placement.cluster, {})[placement.name] = replicas
        return placed


def _second(moment: datetime) -> int:
    return int((moment - BEGIN).total_seconds())


def _reason(body: str) -> str:
    """Return the paragraphs of a message that are no trailers."""
    paragraphs = body.split("\n\n")
    return "\n".join(
        " ".join(paragraph.split()) for paragraph in paragraphs if not is_trailer(paragraph.partition("\n")[0])
    )


@dataclass(slots=True)
class Rule:
    """A rule that fills clusters in an order with the replicas that it wants elsewhere."""

    name: str
    world: SimulatedWorld
    order: Sequence[ClusterName]
    scale_down_window: int = 0
    """Replicas stay as long as they were missing within this many seconds."""
    peak: Mapping[str, int] = field(default_factory=dict)
    """Replicas that are placed from the beginning and for ever, by workload."""
    counts: ActionCounts = field(default_factory=ActionCounts)
    _history: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    _placed: dict[str, Counter[ClusterName]] = field(default_factory=dict)

    def act(self, now: int) -> int | None:
        """Place what is wanted and has room; take the last cluster's replicas back first."""
        before = {name: Counter(placed) for name, placed in self._placed.items()}
        for workload, demand in self.world.primary.demands.items():
            self._follow(workload, demand, now)
        if self._placed != before:
            self.counts.commits += 1
            self.world.commit(self._committed(), now)
        if not self.scale_down_window:
            return None
        moments = [at + self.scale_down_window for history in self._history.values() for at, _ in history]
        return min((moment for moment in moments if moment > now), default=None)

    def history(self) -> Sequence[CommitNote]:
        """List none: a rule says nothing."""
        return ()

    def held_back(self) -> Mapping[str, Sequence[Suppressed]]:
        """Give no reasons."""
        return {}

    def _follow(self, workload: str, demand: DemandScenario, now: int) -> None:
        placed = self._placed.setdefault(workload, Counter())
        surplus = placed.total() - self._wanted(workload, now)
        for name in reversed(self.order):
            less = max(0, min(surplus, placed[name]))
            placed[name] -= less
            surplus -= less
        for name in self.order:
            more = min(-surplus, self._room(name, demand, now))
            if more > 0:
                placed[name] += more
                surplus += more

    def _wanted(self, workload: str, now: int) -> int:
        missing = self.world.primary.missing(workload)
        if workload in self.peak:
            return self.peak[workload]
        history = self._history.setdefault(workload, [])
        if not history or history[-1][1] != missing:
            history.append((now, missing))
        while len(history) > 1 and history[1][0] <= now - self.scale_down_window:
            history.pop(0)
        # The sample before the window's first counts as long as it reached into the window.
        return max(count for _, count in history)

    def _room(self, name: ClusterName, demand: DemandScenario, now: int) -> int:
        """Count what a cluster has room for, less what is committed there and has no node yet."""
        cluster = self.world.clusters[name]
        if cluster.unseen:
            return 0
        seated = Counter(pod.workload for pod in cluster.pods if pod.node is not None)
        gpus = self.world.primary.demands
        coming = sum(
            max(0, placed[name] - seated[workload]) * gpus[workload].gpus for workload, placed in self._placed.items()
        )
        return max(0, cluster.room(demand.name, now) - -(-coming // demand.gpus))

    def _committed(self) -> Mapping[ClusterName, Placed]:
        return {
            name: {
                workload: PlacedReplicas(workload, placed[name])
                for workload, placed in self._placed.items()
                if placed[name]
            }
            for name in self.order
        }


def _by_price(world: SimulatedWorld) -> Sequence[ClusterName]:
    """Order clusters by price, those without one last."""
    clusters = world.scenario.clusters
    return [
        cluster.name
        for cluster in sorted(clusters, key=lambda each: (each.price is None, each.price or 0.0, each.name))
    ]


def _as_listed(world: SimulatedWorld) -> Sequence[ClusterName]:
    return [cluster.name for cluster in world.scenario.clusters]


def _overflow(world: SimulatedWorld) -> Rule:
    return Rule(name="overflow", world=world, order=_as_listed(world))


def _window(world: SimulatedWorld) -> Rule:
    return Rule(name="window", world=world, order=_as_listed(world), scale_down_window=_WINDOW)


def _cheapest_window(world: SimulatedWorld) -> Rule:
    return Rule(name="window, cheapest first", world=world, order=_by_price(world), scale_down_window=_WINDOW)


def _static_peak(world: SimulatedWorld) -> Rule:
    peak = {
        demand.name: max(demand.missing(second) for second, _ in demand.wanted.points)
        for demand in world.scenario.demands
    }
    return Rule(name="static peak", world=world, order=_by_price(world), peak=peak)


RULES: Mapping[str, Callable[[SimulatedWorld], Rule]] = {
    "overflow": _overflow,
    "window": _window,
    "window, cheapest first": _cheapest_window,
    "static peak": _static_peak,
}
"""What peers do, by name: what overflows goes elsewhere at once and comes home at once; the same with five minutes'
scale-down window, in the order listed or by price; and as many replicas as the peak needs, all the time."""
