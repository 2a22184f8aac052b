"""Replicas that go elsewhere because their primary has had no room for them for long enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.core.capacity.best_fit import tightest_first
from reconciler.core.capacity.devices import asked
from reconciler.core.capacity.gangs import GangWorkload, more
from reconciler.core.decide.assign import gang_placement
from reconciler.core.decide.assign.share import Share
from reconciler.core.decide.assign.share_out import share_out_replicas
from reconciler.core.decide.candidates.finder import CandidateFinder, Offer, why_not
from reconciler.core.decide.candidates.gang import whole
from reconciler.core.decide.candidates.gpr_terms import priority
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.queue import Turn
from reconciler.core.decide.steps.reschedule import moving_on
from reconciler.core.fleet.cluster_order import Candidate, candidate_of
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import UnseenPrimary, matured, next_maturity
from reconciler.core.spread.placement_subset import Site, site
from reconciler.core.workloads.node_affinity import wanted_labels
from reconciler.model.capacity import ReplicaShape
from reconciler.model.demand import Demand
from reconciler.model.placement import RestraintKind
from reconciler.model.plan import Change, Choice, Place, Reason, Refusal, Resize, Shortage, Suppressed
from reconciler.model.policy import StrategyName
from reconciler.model.units import format_duration
from reconciler.text.wording import clause, count, listed, plain


def bursts_that_wait(inputs: PassInput, working_plan: WorkingPlan, finder: CandidateFinder) -> Iterator[Turn]:
    """Yield a turn for each workload with a deficit, in which it gets the clusters it may have, as far as they go.

    It has the priority of its GPR or of its policy, and waits for as long as the first of its replicas does.
    """
    for demand in inputs.demands.values():
        if isinstance(demand, UnseenPrimary):
            working_plan.suppress(_blind(demand, working_plan.replicas(demand.workload)))
        elif demand.deficit > working_plan.replicas(demand.workload):
            yield Turn(
                priority=priority(demand.workload, inputs),
                since=min(wait.since for wait in demand.waiting),
                workload=demand.workload,
                take=_ScaleUp(inputs=inputs, working_plan=working_plan, finder=finder, demand=demand).make,
            )


def _blind(demand: UnseenPrimary, placed: int) -> Suppressed:
    kept = f"its {count(placed, 'replica')} elsewhere stay until they expire" if placed else "it gets nothing new"
    return Suppressed(
        workload=demand.workload,
        reason=Reason.PRIMARY_UNSEEN,
        message=f"{demand.message}; {kept}",
        replicas=placed,
    )


def _filled(choice: Choice, replicas: int) -> Refusal:
    """Say of a cluster that took its share why it did not take more."""
    limited = choice.limit is not None and choice.fits > replicas
    more = f"may have {choice.limit} at most" if limited else "has no room for more"
    return Refusal(
        cluster=choice.cluster,
        reason=Reason.CLUSTER_LIMIT if limited else Reason.NO_CAPACITY,
        message=f"took {count(replicas, 'replica')} and {more}",
        subset=choice.subset,
    )


def _shortage(demand: Demand, shape: ReplicaShape, now: datetime) -> Shortage:
    """Say what is missing, since when, and by whose word."""
    pods = [step for step in demand.waiting if not step.signal]
    return Shortage(
        primary=demand.primary,
        replicas=demand.deficit,
        waited=now - min(step.since for step in demand.waiting),
        requests=asked(shape),
        node_selector=wanted_labels(shape),
        causes=tuple(sorted({step.cause for step in pods if step.cause})),
        unschedulable=sum(step.replicas for step in pods),
        asks=tuple(dict.fromkeys(f"{step.signal} {step.cause}" for step in demand.waiting if step.signal)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScaleUp:
    """What is done about one workload's missing replicas."""

    inputs: PassInput
    working_plan: WorkingPlan
    finder: CandidateFinder
    demand: Demand

    def make(self) -> None:
        """Place what may be placed, and tell what is held back."""
        lacking = self._due()
        if lacking <= 0 or self._hindered():
            return
        goes_whole = self._whole()
        if goes_whole is not None and goes_whole.unknown:
            self._suppress(Reason.NO_SHAPE, f"{goes_whole.unknown}, so nobody knows where all of it fits")
            return
        shape = self.demand.shape
        if shape is None:
            primary = self.demand.primary
            known = (
                f"the observation of {primary} does not say what one replica requests (add it as workloads[].replica)"
                if self.demand.reported
                else f"{primary} reports no such object, so nobody knows what one replica requests"
            )
            self._suppress(Reason.NO_SHAPE, known)
            return
        if goes_whole is not None:
            self._lend(goes_whole, shape, lacking)
            return
        workload = self.demand.workload
        template, policy = self.inputs.desired.templates[workload], self.inputs.desired.policies[workload]
        found = share_out_replicas(self.finder, template, policy, shape, lacking)
        passed = found.refusals
        choices = self._taken(found.shares)
        for share in found.shares:
            own, choice = share.offer.shape, choices[share.offer.candidate.site]
            self.working_plan.change(self._change(share, choice, own, passed, lacking))
            if share.replicas == share.offer.replicas:
                passed = (*passed, _filled(choice, share.replicas))
        left = lacking - found.home - sum(share.replicas for share in found.shares)
        if found.home:
            self._suppress(Reason.SPREAD_LIMIT, self._stays(found.home), short=found.home)
        if left:
            why = why_not(found.refusals, f"{count(left, 'replica')} of {self.demand.deficit} fit on no cluster")
            self._suppress(
                *((Reason.SPREAD_LIMIT, found.lacking) if found.lacking else why),
                self.finder.next_change(workload),
                short=left,
                refusals=found.refusals,
            )

    def _taken(self, shares: Sequence[Share]) -> Mapping[Site, Choice]:
        """Take the room of what was shared out, and say what spoke for each part of it then."""
        found, workspace = dict[Site, Choice](), self.demand.workload.workspace
        for cluster in dict.fromkeys(share.offer.candidate.cluster for share in shares):
            here = [share for share in shares if share.offer.candidate.cluster == cluster]
            room = self.finder.rooms.room(cluster, workspace)
            for share in tightest_first(room, here, lambda one: one.offer.shape):
                own = share.offer.shape
                choice = self.finder.choice(share.offer, own, workspace)
                found[share.offer.candidate.site] = replace(choice, because=share.because)
                self.finder.rooms.take(cluster, own, share.replicas)
        return found

    def _whole(self) -> GangWorkload | None:
        """Return what it takes if it goes whole."""
        return whole(self.inputs, self.demand.workload)

    def _lend(self, goes_whole: GangWorkload, shape: ReplicaShape, lacking: int) -> None:
        """Place all of it on the first cluster that has room for all of it, or let it grow where it is.

        A set has one cluster: what has no room beside the rest of it waits, and never goes elsewhere.
        """
        workload, reach = self.demand.workload, self.inputs.reach
        here = max(self.working_plan.of(workload), key=lambda one: (one.created_at, one.name), default=None)
        candidates = reach.order(workload) if here is None else (candidate_of(reach.order(workload), here.cluster),)
        total = lacking + (0 if here is None else here.replicas)
        there = None if here is None else goes_whole.of(here.replicas)
        needed = goes_whole.of(total) if there is None else more(goes_whole.of(total), there)

        def asked(candidate: Candidate, *, least: bool) -> Offer | Refusal:
            return gang_placement.assess(
                self.inputs, self.finder, workload, candidate, goes_whole, replicas=total, there=there, least=least
            )

        offer, refusals = gang_placement.first(needed, candidates, asked)
        if offer is not None:
            choice = gang_placement.taken(self.finder, offer, needed, shape, workload, replicas=lacking)
            share = Share(offer=offer, replicas=lacking)
            self.working_plan.change(self._change(share, choice, shape, refusals, lacking))
            return
        beside = f"{count(lacking, 'replica')} more can go only where the rest is, on {here.cluster}" if here else ""
        nor = f", nor with {gang_placement.named(needed)}" if gang_placement.named(needed) else ""
        fits = beside or f"it fits on no cluster as a whole, with {count(total, 'replica')}{nor}"
        first = next((refusal for refusal in refusals if refusal.remedy), None)
        hint = f"; {first.cluster}: {clause(first.message)} ({first.remedy})" if first is not None else ""
        reason, message = why_not(refusals, f"{fits}{hint}")
        self._suppress(reason, message, self.finder.next_change(workload), short=lacking, refusals=refusals)

    def _due(self) -> int:
        """Count the replicas that are due to be placed: matured, and within the policy's limit.

        Of what goes whole nothing is, until all that is missing has matured: its cluster has to hold all.
        """
        demand, now = self.demand, self.inputs.now
        policy = self.inputs.desired.policies[demand.workload]
        placed = self.working_plan.replicas(demand.workload)
        lacking = matured(demand, policy.scale_up_window, now) - placed
        ripe_at = next_maturity(demand, policy.scale_up_window, now)
        if ripe_at is not None and self._whole() is not None:
            lacking = 0
        if ripe_at is not None:
            self._suppress(
                Reason.SCALE_UP_WINDOW,
                f"not every replica has been {self._lack()} for the scale-up window of"
                f" {format_duration(policy.scale_up_window)}",
                ripe_at,
                short=demand.deficit - placed - max(0, lacking),
            )
        if policy.max_replicas is None or lacking <= policy.max_replicas - placed:
            return lacking
        self._suppress(
            Reason.POLICY_LIMIT,
            f"policy {policy.name} allows {count(policy.max_replicas, 'replica')} of this workload",
            short=lacking - max(0, policy.max_replicas - placed),
        )
        return policy.max_replicas - placed

    def _hindered(self) -> bool:
        """Tell whether the workload as a whole is held back, and say so in the plan."""
        # 1. It came home only just now, or a person sent it home.
        cooling = self.working_plan.cooling(self.demand.workload)
        if cooling is not None:
            held = cooling.kind is RestraintKind.HOLD
            reason = Reason.HELD if held else Reason.COOLING_DOWN
            self._suppress(reason, f"held back: {cooling.reason}", cooling.until)
            return True
        # 2. What holds it back cannot be read.
        if self.demand.workload in self.inputs.ledger.blocked:
            message = "a file of its on the output branch cannot be read; see the problems"
            self._suppress(Reason.LEDGER_UNREADABLE, message)
            return True
        return False

    def _change(
        self, share: Share, choice: Choice, shape: ReplicaShape, refusals: tuple[Refusal, ...], missing: int
    ) -> Change:
        """Make a placement on the chosen cluster, or let the one that is there grow."""
        demand, now, cluster = self.demand, self.inputs.now, choice.cluster
        # In order, only a cluster that would have come first explains why this one was taken; else all of them do.
        ranks = {candidate.site: candidate.rank for candidate in self.inputs.reach.order(demand.workload)}
        desired, subset = self.inputs.desired, choice.subset
        policy, clusters = desired.policies[demand.workload], desired.clusters
        in_order = policy.spread is not None or policy.distribution.strategy is StrategyName.ORDERED
        refused = tuple(one for one in refusals if not in_order or ranks[one.cluster, one.subset] < choice.rank)
        shortage, detail = self._why(share.replicas, missing, shape)
        here = [placement for placement in self.working_plan.of(demand.workload) if placement.cluster == cluster]
        if policy.spread is not None:
            here = [placement for placement in here if site(placement, policy, clusters) == (cluster, subset)]
        if not here:
            template = desired.templates[demand.workload]
            placement = self.finder.placement(template, policy, shape, cluster, share.replicas, subset=subset)
            told = "" if shortage is not None else detail
            return Place(placement=placement, shortage=shortage, choice=choice, refused=refused, detail=told)
        before = max(here, key=lambda placement: (placement.created_at, placement.name))
        grown = lifecycle.renewed(before, self.inputs.desired, now, before.replicas + share.replicas)
        after = replace(grown, shape=shape.recorded, subset=subset)
        return Resize(before=before, after=after, detail=detail, shortage=shortage, choice=choice, refused=refused)

    def _why(self, replicas: int, missing: int, shape: ReplicaShape) -> tuple[Shortage | None, str]:
        """Say why so many of what is missing go: their primary lacks them, or they found no node where they were."""
        demand, now = self.demand, self.inputs.now
        left = moving_on(self.working_plan, demand.workload, now)
        waited, home = listed(plain(place) for place in left), max(0, missing - left.total())
        shortage = _shortage(demand, demand.shape or shape, now)
        if not left:
            return shortage, f"{replicas} of {count(missing, 'more replica')} that {demand.primary} is missing"
        if not home:
            return None, f"{replicas} of {count(missing, 'replica')} that found no node on {waited} and move on"
        moved = f"{left.total()} found no node on {waited} and move on"
        return shortage, f"{replicas} of {count(missing, 'replica')}: {moved}, {home} more {demand.primary} is missing"

    def _stays(self, replicas: int) -> str:
        """Say that the primary is in a subset, and has room for some of what it is missing."""
        return f"{self.demand.primary} has room for {count(replicas, 'replica')} of them itself, as its subset has"

    def _lack(self) -> str:
        return "missing" if any(step.signal for step in self.demand.waiting) else "unschedulable"

    def _suppress(
        self,
        reason: Reason,
        message: str,
        until: datetime | None = None,
        *,
        short: int | None = None,
        refusals: tuple[Refusal, ...] = (),
    ) -> None:
        missing = self.demand.deficit - self.working_plan.replicas(self.demand.workload)
        self.working_plan.suppress(
            Suppressed(
                workload=self.demand.workload,
                reason=reason,
                message=message,
                replicas=missing if short is None else short,
                until=until,
                refusals=refusals,
            )
        )
