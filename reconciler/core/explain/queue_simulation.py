"""The queue of waiting workloads, played forward: what starts when, if all that has begun ends at its time.

Each moment is served by the turns of a pass, so that limits, priorities, policies and reservations bind as they do
there. What no pass can know is assumed: a placement ends at its time in git and does not come back, pods of others
stay, nothing new is asked for, nothing is evicted, and an autoscaler adds the nodes that its Cluster declares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from reconciler.core.capacity.scalable_nodes import addable_nodes, with_added_nodes
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.enrolment import request_end, reservation_clusters
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.pass_memory import PassMemory
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.burst_turns import burst_turns
from reconciler.core.decide.steps.place_requests import request_turns
from reconciler.core.decide.steps.reserve import reservation_turns
from reconciler.core.decide.turns.fair_share import FairShares
from reconciler.core.decide.turns.queue import Turn, serve, urgency
from reconciler.core.observe.demand import Demands, next_due
from reconciler.model.action import Action
from reconciler.model.capacity import Observed
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement, RestraintKind
from reconciler.model.plan import Change, Plan
from reconciler.model.request import RequestRecord

MAX_TURNS = 10_000
"""Most turns that are simulated; each costs as much as in a pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The queue at one moment."""

    moment: datetime
    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    # The turns of what waits, in their order.
    turns: tuple[Turn, ...]

    @property
    def changes(self) -> Sequence[Change]:
        """The placements and reservations that start now."""
        return self.working_plan.changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A workload that gets room on a cluster in the simulation."""

    workload: WorkloadId
    cluster: ClusterName
    at: datetime
    # The end of its time there; None where it has none.
    ends_at: datetime | None


class QueueProbe(Protocol):
    """A follower of the simulation, perhaps with a place of its own in the queue."""

    def turn(self, stage: Stage) -> Turn | None:
        """Return its turn, which takes nothing: it finds out which clusters have room. None without a place."""
        ...

    def has_room(self) -> bool:
        """Tell whether its last turn has found a cluster with room, among those that it still asks for."""
        ...

    def accept(self, stage: Stage, starts: Sequence[Start]) -> bool:
        """Accept what its last turn has found, and what has started so far; tell whether it goes on asking."""
        ...


class QueueSimulation:
    """The queue of one fleet from now on, as far as it can touch some clusters and workspaces."""

    def __init__(
        self,
        inputs: PassInput,
        plan: Plan,
        clusters: Collection[ClusterName],
        workspaces: Collection[WorkspaceName],
        *,
        following: Collection[WorkloadId] = (),
        most: int = MAX_TURNS,
    ) -> None:
        """Begin with the ledger as a plan leaves it. `following` are workloads that wait; `most` bounds the turns."""
        self.most = most
        self._ledger = WorkingPlan.after(inputs, plan).ledger()
        inputs = inputs.with_requests(self._ledger.requests)
        self._inputs = PassMemory().own(replace(inputs, ledger=self._ledger))
        self._enrolment = self._inputs.enrolment
        self._begun: dict[str, Placement] = {}
        self._records: dict[WorkloadId, RequestRecord] = {}
        self._turns = 0
        near = {*clusters, *(name for workload in following for name in self.reach(workload))}
        self.clusters, self.workspaces = self._relevant(near, {*workspaces, *(item.workspace for item in following)})
        self.starts: list[Start] = []
        self.exhausted = False

    def play(self, probe: QueueProbe) -> Stage:
        """Serve the queue at each moment at which anything starts, until the probe has heard enough.

        Returns the last stage that was looked at.
        """
        stage = self._serve(self._inputs.now, probe)
        while True:
            self._accept(stage)
            if not probe.accept(stage, self.starts):
                return stage
            last, following = self._next(stage, probe)
            if following is None:
                return last
            stage = following

    def ends(self, cluster: ClusterName, workspace: WorkspaceName | None) -> Iterator[tuple[str, datetime]]:
        """Yield the ends that give a cluster room, or a limited workspace a GPR: the name of what ends, and when."""
        limited = workspace is not None and workspace in self._inputs.desired.limits
        placements = [*self._ledger.placements.on(cluster).placements]
        if limited:
            placements += (
                placement
                for placement in self._ledger.placements.values()
                if placement.workload.workspace == workspace and placement.cluster != cluster
            )
        yield from ((str(placement.name), placement.expires_at) for placement in placements)
        yield from (
            (str(start.workload), start.ends_at)
            for start in self.starts
            if start.ends_at is not None
            and (start.cluster == cluster or (limited and start.workload.workspace == workspace))
        )
        for record in self._reservations():
            own = record.request.workspace == workspace
            end = request_end(record, self._inputs.desired)
            if end is not None and (limited if own else record.cluster == cluster):
                yield f"reservation {record.workload}", end

    def placed(self, workload: WorkloadId) -> int:
        """Count the replicas that a workload has elsewhere once the plan is carried out."""
        return sum(placement.replicas for placement in self._ledger.placements.of(workload).placements)

    def _next(self, stage: Stage, probe: QueueProbe) -> tuple[Stage, Stage | None]:
        """Find the next moment at which anything starts: the last stage looked at, and that of the moment.

        Between two starts room only grows, so that the moment is found by doubling and halving steps.
        """
        moments = self._moments(stage.moment)
        low, high, step = 0, len(moments), 1
        last, following = stage, None
        while low < high and not self.exhausted:
            index = min(low + step, len(moments)) - 1 if following is None else (low + high) // 2
            last = self._serve(moments[index], probe)
            if last.changes or probe.has_room():
                high, following = index, last
            else:
                low, step = index + 1, step * 2
        if self.exhausted or following is None:
            return last, None
        # The probe answers for the stage that it has seen last.
        return last, following if last is following else self._serve(moments[high], probe)

    def _serve(self, moment: datetime, probe: QueueProbe) -> Stage:
        """Serve the queue at a moment, as it has come to be by what has started so far."""
        over = [placement for placement in self._ledger.placements.lapsed(moment) if placement.path not in self._begun]
        ended = [placement for placement in self._begun.values() if placement.expires_at <= moment]
        put = {path: placement for path, placement in self._begun.items() if placement.expires_at > moment}
        placements = self._ledger.placements.changed(put, [placement.path for placement in (*over, *ended)])
        restraints = {
            workload: tuple(each for each in held if each.until > moment or each.kind is RestraintKind.TURN)
            for workload, held in self._ledger.restraints.items()
        }
        ledger = replace(
            self._ledger,
            placements=placements,
            requests={**self._ledger.requests, **self._records} if self._records else self._ledger.requests,
            restraints=restraints,
        )
        demands = _demands_without(self._inputs.demands, (*over, *ended))
        later = replace(self._inputs, ledger=ledger, observed=self._observed_at(moment), now=moment, demands=demands)
        # Replicas in flight now stay so: they have no node yet, however late that moment is.
        working_plan = WorkingPlan(replace(self._inputs, ledger=ledger))
        finder = CandidateFinder(later, working_plan)
        before = self._ledger.placements
        finder.capacity.free_ended(before[item.path] for item in (*over, *ended) if item.path in before)
        done = {placement.workload for placement in (*over, *ended) if placement.workload.request}
        turns = tuple(
            sorted(
                (
                    turn
                    for turn in (
                        *burst_turns(later, working_plan, finder, FairShares(later, working_plan)),
                        *request_turns(later, working_plan, finder),
                        *reservation_turns(later, working_plan, finder),
                    )
                    if turn.workload not in done and self._touches(turn.workload)
                ),
                key=urgency,
            )
        )
        stage = Stage(moment=moment, inputs=later, working_plan=working_plan, finder=finder, turns=turns)
        self._turns += len(turns) + 1
        self.exhausted = self._turns > self.most
        own = probe.turn(stage)
        serve(turns if own is None else (*turns, own), lambda _: ())
        return stage

    def _accept(self, stage: Stage) -> None:
        """Keep what starts at a stage."""
        for change in stage.changes:
            record = change.record
            if change.action in (Action.PLACE, Action.RESIZE):
                self._begin(change.placement, stage.moment)
                if record is not None:
                    self._records[record.workload] = record
            elif change.action is Action.AMEND and record is not None and record.cluster is not None:
                self._records[record.workload] = record
                end = request_end(record, self._inputs.desired)
                self._note(record.workload, record.cluster, stage.moment, end)

    def _begin(self, placement: Placement, moment: datetime) -> None:
        self._begun[placement.path] = placement
        self._note(placement.workload, placement.cluster, moment, placement.expires_at)

    def _note(self, workload: WorkloadId, cluster: ClusterName, at: datetime, end: datetime | None) -> None:
        self.starts.append(Start(workload=workload, cluster=cluster, at=at, ends_at=end))

    def _moments(self, after: datetime) -> list[datetime]:
        """List the moments after another one at which room or a turn may come by time alone."""
        inputs, ledger = self._inputs, self._ledger
        moments = [placement.expires_at for placement in self._begun.values()]
        for name in self.clusters:
            moments += (placement.expires_at for placement in ledger.placements.on(name).placements)
            cluster, seen = inputs.desired.clusters.get(name), inputs.observed.clusters.get(name)
            if cluster is not None and seen is not None:
                moments += (inputs.now + nodes.delay for nodes, _ in addable_nodes(cluster, seen))
        moments += (
            placement.expires_at
            for placement in ledger.placements.values()
            if placement.workload.workspace in self.workspaces
        )
        moments += (end for record in self._reservations() if (end := request_end(record, inputs.desired)) is not None)
        moments += (restraint.until for held in ledger.restraints.values() for restraint in held)
        for demand in inputs.demands.values():
            if isinstance(demand, Demand) and demand.missing:
                window = inputs.desired.policies[demand.workload].scale_up_window
                moments += (due for due in [next_due(demand, window, after)] if due is not None)
        return sorted({moment for moment in moments if moment > after})

    def _reservations(self) -> Iterator[RequestRecord]:
        """Yield the reservations that have their GPUs, those that started in the simulation left out."""
        for workload in self._enrolment.reservations:
            record = self._ledger.requests.get(workload)
            if record is not None and record.cluster is not None and record.ended is None:
                yield record

    def _observed_at(self, moment: datetime) -> Observed:
        """Return the observations as if they were made at a moment, with the nodes that autoscalers have added."""
        inputs = self._inputs
        later = moment - inputs.now
        clusters = {}
        for name, seen in inputs.observed.clusters.items():
            cluster = inputs.desired.clusters.get(name)
            grown = with_added_nodes(cluster, seen, later) if cluster is not None and cluster.autoscaling else seen
            clusters[name] = replace(grown, observed_at=seen.observed_at + later) if later else grown
        return replace(inputs.observed, clusters=clusters)

    def _relevant(
        self, clusters: Collection[ClusterName], workspaces: Collection[WorkspaceName]
    ) -> tuple[frozenset[ClusterName], frozenset[WorkspaceName]]:
        """Return the clusters and limited workspaces that waiting workloads connect with some, themselves included."""
        limits = self._inputs.desired.limits
        near, bound = set(clusters), {name for name in workspaces if name in limits}
        waiting, size = [*self._waiting_workloads()], -1
        while size < len(near) + len(bound):
            size, apart = len(near) + len(bound), []
            for workload, reach in waiting:
                if workload.workspace in bound or not near.isdisjoint(reach):
                    near |= reach
                    bound |= {workload.workspace} & limits.keys()
                else:
                    apart.append((workload, reach))
            waiting = apart
        return frozenset(near), frozenset(bound)

    def _waiting_workloads(self) -> Iterator[tuple[WorkloadId, frozenset[ClusterName]]]:
        """Yield the workloads that wait for room, and the clusters of each."""
        inputs, enrolment = self._inputs, self._enrolment
        for demand in inputs.demands.values():
            if isinstance(demand, Demand) and demand.missing:
                yield demand.workload, inputs.reach.named(demand.workload)
        for workload in enrolment.unplaced_requests(inputs.ledger.placements):
            yield workload, inputs.reach.named(workload)
        for workload in enrolment.reservations:
            yield workload, self._reservable_clusters(workload)

    def _reservable_clusters(self, workload: WorkloadId) -> frozenset[ClusterName]:
        """Return the clusters that a reservation may use."""
        return frozenset(reservation_clusters(self._inputs.ledger.requests[workload].request, self._inputs.desired))

    def reach(self, workload: WorkloadId) -> frozenset[ClusterName]:
        """Return the clusters that a waiting workload may use."""
        if workload in self._inputs.desired.policies:
            return self._inputs.reach.named(workload)
        return self._reservable_clusters(workload)

    def _touches(self, workload: WorkloadId) -> bool:
        return workload.workspace in self.workspaces or not self.clusters.isdisjoint(self.reach(workload))


def _demands_without(demands: Demands, ended: Collection[Placement]) -> Demands:
    """Return demands less the replicas of bursts that have ended, which are not asked for again."""
    gone = Counter[WorkloadId]()
    for placement in ended:
        gone[placement.workload] += placement.replicas
    left = {}
    for workload, replicas in gone.items():
        demand = demands.get(workload)
        if isinstance(demand, Demand):
            left[workload] = _demand_without(demand, replicas)
    return {**demands, **left} if left else demands


def _demand_without(demand: Demand, replicas: int) -> Demand:
    """Return a demand less so many of its replicas, those that have waited longest first."""
    waiting = []
    for step in demand.waiting:
        served = min(step.replicas, replicas)
        replicas -= served
        if step.replicas > served:
            waiting.append(replace(step, replicas=step.replicas - served))
    return demand._replace(missing=sum(step.replicas for step in waiting), waiting=tuple(waiting))
