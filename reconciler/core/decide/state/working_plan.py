"""The working plan: placements, requests and restraints as the steps of one pass change them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from reconciler.bulkhead import Seam, attempt
from reconciler.core.capacity.scalable_nodes import longest_delay
from reconciler.core.decide.state.gate import NO_GATES, Gates
from reconciler.core.decide.state.in_flight import InFlight, flight
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.pass_memory import PassMemory
from reconciler.core.decide.state.turn_record import KeptTurns
from reconciler.core.fleet.spread.drafts import SubsetDrafts
from reconciler.core.ledger.restraints import counts_as_move, is_in_force
from reconciler.errors import Bug
from reconciler.model.action import Action
from reconciler.model.approval import ProposalEnd
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.ledger import Ledger, PlacementGroup
from reconciler.model.placement import ClusterSubset, Placement, Restraint, RestraintKind
from reconciler.model.plan import Change, Plan, Reason, Suppressed
from reconciler.model.request import Answer, RequestRecord
from reconciler.model.sorted_map import sorted_map


def written_once(changes: Sequence[Change]) -> list[Change]:
    """Fold the record of a request that begins into the Receive or Amend of the same pass, so that it is written once.

    All commits of a pass are pushed together, so that no reader meets one without the other.
    """
    folded, last = list(changes), dict[WorkloadId, int]()
    for position, change in enumerate(changes):
        if change.action in (Action.RECEIVE, Action.AMEND):
            last[change.workload] = position
        elif change.action is Action.PLACE and change.record is not None and change.workload in last:
            at = last[change.workload]
            folded[at] = replace(folded[at], record=change.record, written=None)
            folded[position] = replace(change, record=None)
    return folded


T = TypeVar("T")

Frozen: TypeAlias = Mapping[WorkloadId | int, Bug]
"""Workloads, and orders by number, on which no decision could be made, and why."""

_NONE: Frozen = MappingProxyType({})


class WorkingPlan:
    """The state of a pass that is being decided. Every change goes through `change`, so that later steps see it."""

    def __init__(
        self,
        inputs: PassInput,
        frozen: Frozen = _NONE,
        gates: Gates = NO_GATES,
        *,
        memory: PassMemory | None = None,
        drafts: SubsetDrafts | None = None,
        keep: Collection[WorkloadId] = (),
    ) -> None:
        """Begin with the placements, requests and restraints of the ledger; nothing is decided on what is `frozen`.

        The turn of a workload with a gate places what the gate lets through. Without a `memory` of the passes before,
        this one is decided from its input alone. All decisions of one pass share its
        `drafts`; without any, this one begins with those of its input. The plan keeps the assessments of the workloads
        to `keep` them of.
        """
        ledger, now = inputs.ledger, inputs.now
        self.frozen = frozen
        self.gates = gates
        self.memory = PassMemory() if memory is None else memory
        self.memory.begin(inputs.fleet)
        self._drafts = drafts
        self.kept = KeptTurns(keep)
        self.bursts: dict[WorkloadId, list[Change]] = {}
        """What turns have placed."""
        self._ended_proposals: dict[WorkloadId, ProposalEnd] = {}
        self._approved_proposals: set[WorkloadId] = set()
        self.bugs: dict[WorkloadId | int, Bug] = {}
        self.other_bugs: list[Bug] = []
        self._recorded = ledger.requests
        self._requests: dict[WorkloadId, RequestRecord] | None = None
        self._snapshot: Mapping[WorkloadId, RequestRecord] = self._recorded
        self._rewritten: set[WorkloadId] = set()
        self._inputs = inputs
        self._desired = self.inputs.desired
        self._observed = inputs.observed
        self._rollouts = inputs.rollouts
        self._now = now
        self._before = ledger.placements
        self._moved: Counter[ClusterName] = Counter()
        self._touched_clusters: list[ClusterName] = []
        self._of: dict[WorkloadId, PlacementGroup] = {}
        self._groups = ledger.placements.by_workload
        self._on: dict[ClusterName, PlacementGroup] = {}
        self._arrivals: dict[ClusterName, list[Placement]] = {}
        """Placements that are not in `_on` yet: those of a cluster are many, and are sorted in when they are read."""
        self._flights: dict[ClusterName, InFlight] = {}
        self._begun: list[Placement] = []
        self._gprs: Counter[WorkspaceName] | None = None
        self._moments: list[datetime] = []
        self._restraints = {
            workload: tuple(
                restraint
                for restraint in restraints
                if now < restraint.until and is_in_force(restraint, self._desired.policies.get(workload))
            )
            for workload, restraints in ledger.restraints.items()
        }
        self.reservation_changes = 0
        """A number that grows with each change of a reservation."""
        self._answers: dict[int, Answer] = {}
        self._changes: list[Change] = []
        self._suppressed: dict[int, Suppressed] = {}
        self._noted = 0
        self._turns: dict[WorkloadId, list[int]] = {}
        self._short: dict[WorkloadId, Suppressed] = {}
        self._signal_change: datetime | None = None
        self.quotas: dict[WorkloadId, int] = {}
        """Most replicas that a workload may come to have in its turn, where room is divided; see `turns.queue`."""

    @classmethod
    def after(cls, inputs: PassInput, plan: Plan) -> WorkingPlan:
        """Return the state that a plan leaves of the ledger that it was made from."""
        working_plan = cls(inputs)
        for change in plan.changes:
            working_plan.change(change)
        return working_plan

    def ledger(self) -> Ledger:
        """Return the ledger as this pass has left it so far, with the restraints that are in force."""
        after = {placement.path: placement for group in self._of.values() for placement in group.placements}
        before = (placement.path for workload in self._of for placement in self._before.of(workload).placements)
        return replace(
            self._inputs.ledger,
            placements=self._before.changed(after, before),
            requests=self.requests_now(),
            restraints={workload: kept for workload, kept in self._restraints.items() if kept},
        )

    @property
    def inputs(self) -> PassInput:
        """The input of the pass, with the requests as this pass has left them so far among its workloads."""
        self._inputs = self._inputs.with_requests(self.requests_now())
        return self._inputs

    @property
    def drafts(self) -> SubsetDrafts:
        """The pods of subsets, rendered in advance."""
        if self._drafts is None:
            inputs = self._inputs
            self._drafts = SubsetDrafts(inputs.drafted, inputs.fleet, inputs.reach.patched, inputs.now)
        return self._drafts

    def wake_at_signal(self, moment: datetime | None) -> None:
        """Set the moment at which time alone next changes a signal, if there is one."""
        self._signal_change = moment

    def change(self, change: Change) -> None:
        """Add a change to the plan; later steps see its outcome."""
        self._changes.append(change)
        manual = change.action in (Action.HOLD, Action.RESTORE)  # the ledger has these placements as a person left them
        if change.before is not None and not manual:
            self._drop(change.before)
        if change.after is not None and not manual:
            self._put(change.after)  # in place of the one that a move joins, if there is one: they share a directory
        if change.record is not None:
            self._set_request(change.workload, None if change.action is Action.FORGET else change.record)
        if change.action is Action.APPROVE:
            self._approved_proposals.add(change.workload)
        if isinstance(change.why, ProposalEnd) and change.why is not ProposalEnd.TOO_LATE:
            self._ended_proposals[change.workload] = change.why
        if change.restraint is not None:
            self._restrain(change.workload, change.restraint)
        if change.restraints:
            left = (restraint for restraint in self.restraints(change.workload) if restraint not in change.restraints)
            self._restraints[change.workload] = tuple(left)

    def burst(self, workload: WorkloadId, changes: Sequence[Change]) -> None:
        """Add what the turn of a workload places; new placements come to its others all at once."""
        if not changes:
            return
        self.bursts.setdefault(workload, []).extend(changes)
        new = [change.placement for change in changes if change.begins and change.record is None]
        if len(new) < len(changes):
            for change in changes:
                self.change(change)
            return
        self._changes += changes
        self._put(*new)

    def proposal_ended(self, workload: WorkloadId, *, but_replaced: bool = False) -> bool:
        """Tell whether this pass has ended the proposal of a workload, or refused it, so that none takes its place."""
        why = self._ended_proposals.get(workload)
        return why is not None and not (but_replaced and why is not ProposalEnd.REFUSED)

    def proposal_approved(self, workload: WorkloadId) -> bool:
        """Tell whether this pass has approved the proposal of a workload; the next one places it."""
        return workload in self._approved_proposals

    def decide(self, about: WorkloadId | int, step: Callable[[], T], *, always: bool = False) -> T | None:
        """Make one decision about a workload, or carry out an order, behind the bulkhead; a frozen one gets none.

        `always` is for what must be done all the same: what a person did on the output branch is followed.
        """
        if about in self.frozen and not always:
            return None
        result = attempt(Seam.ORDER if isinstance(about, int) else Seam.DECISION, about, step)
        if not isinstance(result, Bug):
            return result
        self.bugs.setdefault(about, result)
        return None

    def is_frozen(self, placement: Placement) -> bool:
        """Tell whether a placement stays as it is, since nothing can be decided on its workload."""
        return placement.workload in self.frozen

    def note_bug(self, bug: Bug) -> None:
        """Note a bug that keeps nothing from being decided."""
        self.other_bugs.append(bug)

    def suppress(self, suppressed: Suppressed, *, in_turn: bool = False) -> None:
        """Note a change that is not made. What is noted `in_turn` is forgotten before the next turn of its workload."""
        self._suppressed[self._noted] = suppressed
        if in_turn:
            self._turns.setdefault(suppressed.workload, []).append(self._noted)
        self._noted += 1
        if suppressed.reason is Reason.NOTHING_FITS:
            self._short[suppressed.workload] = suppressed

    def told(self, reason: Reason) -> frozenset[WorkloadId]:
        """Return the workloads of which this pass has suppressed a change for a reason, in time linear in all such."""
        return frozenset(held.workload for held in self._suppressed.values() if held.reason is reason)

    def unplaceable(self, workload: WorkloadId) -> Suppressed | None:
        """Return the suppressed change of a workload that no cluster has room for."""
        return self._short.get(workload)

    @property
    def short(self) -> Collection[WorkloadId]:
        """The workloads that no cluster has room for."""
        return self._short.keys()

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Forget the suppressed changes that are noted in the context: what they are said of is only tried."""
        suppressed, short, noted = dict(self._suppressed), dict(self._short), self._noted
        turns = {workload: list(numbers) for workload, numbers in self._turns.items()}
        try:
            yield
        finally:
            self._suppressed, self._short, self._noted, self._turns = suppressed, short, noted, turns

    def retract(self, workload: WorkloadId) -> None:
        """Take back the suppressed changes of a workload's turn, before its next turn."""
        for number in self._turns.pop(workload, ()):
            del self._suppressed[number]
        self._short.pop(workload, None)

    def answer(self, number: int, answer: Answer) -> None:
        """Note the answer to an order."""
        self._answers[number] = answer

    @property
    def position(self) -> int:
        """The position in the plan that the next change will have."""
        return len(self._changes)

    @property
    def requests(self) -> Mapping[WorkloadId, RequestRecord]:
        """The requests as this pass has left them so far, in no order."""
        return self._recorded if self._requests is None else self._requests

    def requests_now(self) -> Mapping[WorkloadId, RequestRecord]:
        """Return a snapshot of the requests: the same object until this pass changes one, at first the ledger's own."""
        if self._rewritten:
            requests = self.requests
            put = {workload: requests[workload] for workload in self._rewritten if workload in requests}
            self._snapshot = sorted_map(self._snapshot).changed(put, self._rewritten)
            self._rewritten.clear()
        return self._snapshot

    def moved(self, cluster: ClusterName) -> int:
        """Return a number that changes with each change of the placements on a cluster."""
        return self._moved[cluster]

    @property
    def touched_clusters(self) -> Sequence[ClusterName]:
        """The cluster of each change of placements so far, in their order."""
        return self._touched_clusters

    def touched(self) -> tuple[WorkloadId, ...]:
        """List the workloads whose placements this pass has changed so far, by name."""
        return tuple(sorted(self._of))

    def wake(self, moment: datetime) -> None:
        """Have the next pass run at a moment."""
        self._moments.append(moment)

    def placed(self) -> tuple[WorkloadId, ...]:
        """List the workloads that have placements, by name."""
        if not self._of:
            return self._before.workloads()
        workloads = {*self._before.workloads(), *self._of}
        return tuple(sorted(workload for workload in workloads if self.group(workload).placements))

    def changed_workloads(self) -> Collection[WorkloadId]:
        """Name the workloads whose placements this pass has changed so far."""
        return self._of.keys()

    def group(self, workload: WorkloadId) -> PlacementGroup:
        """Return the placements of a workload with their totals."""
        changed = self._of.get(workload)
        return self._before.of(workload) if changed is None else changed

    def of(self, workload: WorkloadId) -> tuple[Placement, ...]:
        """Return a workload's placements, by path."""
        return self.group(workload).placements

    def on_slot(self, workload: WorkloadId, slot: ClusterSubset) -> tuple[Placement, ...]:
        """Return the placements of a workload with a policy that count for a cluster and subset, by path."""
        return tuple(placement for placement in self.of(workload) if self.inputs.slot(placement) == slot)

    def on(self, cluster: ClusterName) -> tuple[Placement, ...]:
        """Return a cluster's placements, by path."""
        return self._group_on(cluster).placements

    def replicas(self, workload: WorkloadId) -> int:
        """Count the replicas of a workload outside its primary."""
        group = self._of.get(workload) if self._of else None
        if group is None:
            group = self._groups.get(workload)
        return 0 if group is None else group.replicas

    def gprs(self, workspace: WorkspaceName) -> int:
        """Count the GPRs of a workspace that have begun: its placements."""
        if self._gprs is None:
            self._gprs = Counter(placement.workload.workspace for placement in self._before.values())
            for workload, group in self._of.items():
                self._gprs[workload.workspace] += len(group.placements) - len(self._before.of(workload).placements)
        return self._gprs[workspace]

    def expired(self) -> list[Placement]:
        """List the placements whose time is over, the longest overdue first, but none that this pass has changed."""
        expired = self._before.lapsed(self._now)
        return [placement for placement in expired if placement in self.of(placement.workload)]

    def ending(self, within: timedelta) -> list[Placement]:
        """List the placements that end within a time and have not yet, as this pass has left them, by path."""
        last = self._now + within
        before = [placement for placement in self._before.lapsed(last) if placement.expires_at > self._now]
        workloads = {placement.workload for placement in (*before, *self._begun)}
        present = (placement for workload in workloads for placement in self.of(workload))
        ending = (placement for placement in present if self._now < placement.expires_at <= last)
        return sorted(ending, key=lambda placement: placement.path)

    def next_expiry(self, moment: datetime) -> datetime | None:
        """Return when the first placement ends after a moment, by the ledger and by what this pass has begun."""
        begun = (placement.expires_at for placement in self._begun)
        ends = (self._before.next_expiry(moment), *(end for end in begun if end > moment))
        return min((end for end in ends if end is not None), default=None)

    @property
    def restrained(self) -> Collection[WorkloadId]:
        """The workloads that have restraints, or have had some before this pass."""
        return self._restraints

    def restraints(self, workload: WorkloadId) -> tuple[Restraint, ...]:
        """Return the restraints of a workload that have not run out."""
        return self._restraints.get(workload, ())

    def moves(self, workload: WorkloadId) -> tuple[Restraint, ...]:
        """Return the moves of a workload within the last hour, as the restraints that they left."""
        recorded = self._inputs.ledger.restraints.get(workload, ())
        kept = dict.fromkeys((*recorded, *self.restraints(workload)))
        return tuple(restraint for restraint in kept if counts_as_move(restraint, self._now))

    def cooling(self, workload: WorkloadId) -> Restraint | None:
        """Return the restraint that keeps a workload off all clusters; of several the longest-lasting."""
        own = self.restraints(workload)
        if not own:
            return None
        everywhere = (each for each in own if each.cluster is None and each.kind is not RestraintKind.TURN)
        return max(everywhere, key=lambda restraint: restraint.until, default=None)

    def in_flight(self, cluster: ClusterName) -> InFlight:
        """Return the replicas in flight in a cluster; the same object for as long as nothing changes there."""
        if cluster not in self._flights:
            seen = self._observed.clusters.get(cluster)
            policies = self._desired.policies
            delay = longest_delay(self._desired.clusters.get(cluster))
            self._flights[cluster] = flight(self.on(cluster), seen, self._rollouts, policies, self._now, delay=delay)
        return self._flights[cluster]

    @property
    def changes(self) -> Sequence[Change]:
        """The changes so far, in their order; the plan may fold two of them into one."""
        return self._changes

    def plan(self) -> Plan:
        """Return the plan. It wakes at the first expiry, change of a signal, or end of a window or restraint."""
        moments = [suppressed.until for suppressed in self._suppressed.values() if suppressed.until is not None]
        moments += (*self._moments, *(placement.expires_at for placement in self._begun))
        expiry = self._before.next_expiry(self._now)
        moments += [moment for moment in (expiry, self._signal_change) if moment is not None]
        return Plan(
            changes=tuple(written_once(self._changes)),
            suppressed=tuple(self._suppressed.values()),
            wake_at=min((moment for moment in moments if moment > self._now), default=None),
            answers=self._answers,
            bugs=(*self.frozen.values(), *self.other_bugs, *(() if self._drafts is None else self._drafts.bugs)),
            assessments=self.kept.assessments,
            drafted=self._inputs.drafted,
        )

    def _set_request(self, workload: WorkloadId, record: RequestRecord | None) -> None:
        """Put the record of a request, or take it out."""
        requests = self._writable(workload)
        if record is None:
            requests.pop(workload, None)
        else:
            requests[workload] = record
            self.reservation_changes += record.request.reserves

    def _writable(self, workload: WorkloadId) -> dict[WorkloadId, RequestRecord]:
        """Return the requests to change one of them in; the first change of a pass copies those of the ledger."""
        if self._requests is None:
            self._requests = sorted_map(self._recorded).unordered()
        before = self._requests.get(workload)
        self.reservation_changes += before is not None and before.request.reserves
        self._rewritten.add(workload)
        return self._requests

    def _put(self, *placements: Placement) -> None:
        """Add placements of one workload."""
        workload = placements[0].workload
        self._begun += placements
        self._set_group(workload, self.group(workload).with_all(placements))
        for placement in placements:
            self._arrivals.setdefault(placement.cluster, []).append(placement)
            self._note_change(placement.cluster)

    def _drop(self, placement: Placement) -> None:
        self._set_group(placement.workload, self.group(placement.workload).without(placement))
        self._on[placement.cluster] = self._group_on(placement.cluster).without(placement)
        self._note_change(placement.cluster)

    def _set_group(self, workload: WorkloadId, group: PlacementGroup) -> None:
        if self._gprs is not None:
            self._gprs[workload.workspace] += len(group.placements) - len(self.group(workload).placements)
        self._of[workload] = group

    def _note_change(self, cluster: ClusterName) -> None:
        self._moved[cluster] += 1
        self._touched_clusters.append(cluster)
        self._flights.pop(cluster, None)

    def _group_on(self, cluster: ClusterName) -> PlacementGroup:
        changed = self._on.get(cluster)
        group = self._before.on(cluster) if changed is None else changed
        arrivals = self._arrivals.pop(cluster, None)
        if arrivals is not None:
            group = self._on[cluster] = group.with_all(arrivals)
        return group

    def _restrain(self, workload: WorkloadId, restraint: Restraint) -> None:
        self._restraints[workload] = (*self.restraints(workload), restraint)
