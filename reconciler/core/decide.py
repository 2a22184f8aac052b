"""What to change now: the whole decision, as one pure function of what is wanted, what is there, and what was seen.

The order of the steps is the order of the commits. What people did comes first, then what ends, then what moves, then
what grows; there workloads go by priority, then by how long they have waited, then by name. Each step sees the
placements as the steps before it leave them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.core import demand as demands_of
from reconciler.core import lifecycle
from reconciler.core.demand import Blind, Demands
from reconciler.core.distribute import drained
from reconciler.core.growth import Growth
from reconciler.core.reach import Reach
from reconciler.core.situation import Situation
from reconciler.core.standing import Standing
from reconciler.core.wording import count
from reconciler.model.demand import Demand
from reconciler.model.ids import WorkloadId
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement, RestraintKind
from reconciler.model.plan import (
    Change,
    Choice,
    Hold,
    Move,
    Place,
    Plan,
    Reason,
    Refusal,
    Release,
    Resize,
    Restore,
    Revert,
    Shortage,
    Suppressed,
    Why,
)
from reconciler.model.policy import BurstPolicy, Desired
from reconciler.model.units import format_duration


def decide(situation: Situation) -> Plan:
    """Decide what to change, what not to and why, and when to look again. Same inputs, same plan."""
    steps = _steps(situation)
    steps.respect_people()
    steps.end_what_has_lapsed()
    steps.move_what_may_not_stay()
    steps.give_back_what_is_not_needed()
    steps.place_what_is_missing()
    return steps.standing.plan()


def sweep(situation: Situation) -> Plan:
    """Decide only what needs the output branch alone: respect what people did, and end what has lapsed."""
    steps = _steps(situation)
    steps.respect_people()
    steps.end_what_has_lapsed()
    return steps.standing.plan()


def _steps(situation: Situation) -> _Steps:
    standing = Standing(situation)
    return _Steps(
        desired=situation.desired,
        ledger=situation.ledger,
        demands=situation.demands,
        now=situation.now,
        reach=situation.reach,
        standing=standing,
        growth=Growth(situation, standing),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """The steps of one decision over the same inputs."""

    desired: Desired
    ledger: Ledger
    demands: Demands
    now: datetime
    reach: Reach
    standing: Standing
    growth: Growth

    def respect_people(self) -> None:
        """Hold back what a person deleted, put right what a person edited, and let go of holds that are done."""
        for tampered in self.ledger.tampered:
            placement = tampered.placement
            if tampered.removed:
                restraint = lifecycle.hold(placement, self._policy(placement.workload), self.now)
                self.standing.change(Hold(workload=placement.workload, placement=placement, restraint=restraint))
            else:
                self.standing.change(Restore(tampered=tampered, detail="its files were edited by hand"))
        for workload in sorted(self.ledger.restraints):
            demand = self.demands.get(workload)
            holds = tuple(
                restraint
                for restraint in self.ledger.restraints[workload]
                if restraint.kind is RestraintKind.HOLD and self.now < restraint.until
            )
            if holds and isinstance(demand, Demand) and not demand.deficit:
                detail = f"nothing is missing on {demand.primary} any more"
                self.standing.change(Release(workload=workload, restraints=holds, detail=detail))

    def end_what_has_lapsed(self) -> None:
        """Revert every burst whose time is over, whether or not anything can be seen."""
        for placement in self.standing.lapsed():
            lasted = format_duration(placement.expires_at - placement.created_at)
            late = self.now - placement.expires_at
            overdue = f", {format_duration(late)} late" if late.total_seconds() >= 1 else ""
            self._revert(placement, Why.EXPIRED, f"its {lasted} are over{overdue}")

    def move_what_may_not_stay(self) -> None:
        """Take back what people no longer allow, to another cluster where one has room."""
        for workload in self.standing.placed():
            # 1. Neither template nor policy: its absence counts only when every file could be read.
            missing = self._missing(workload)
            if missing:
                if not self.desired.incomplete:
                    for placement in self.standing.of(workload):
                        self._revert(placement, Why.POLICY, missing)
                continue
            # 2. A cluster that it may not stay on.
            template, policy = self.desired.templates[workload], self.desired.policies[workload]
            allowed = self.reach.allowed(workload)
            for placement in self.standing.of(workload):
                refusal = None if placement.cluster in allowed else self.reach.banned(workload, placement.cluster)
                if refusal is None or (refusal.reason is Reason.UNKNOWN_CLUSTER and self.desired.incomplete):
                    continue
                detail = f"{placement.cluster}: {refusal.message}"
                offer, refusals = self.growth.elsewhere(template, policy, placement)
                if offer is None:
                    self._revert(placement, Why.POLICY, detail)
                    continue
                moved = replace(
                    placement,
                    name=lifecycle.placement_name(workload, offer.rung.cluster, self.now),
                    cluster=offer.rung.cluster,
                    engine=self.desired.clusters[offer.rung.cluster].engine,
                    changed_at=self.now,
                    source_commit=self.desired.commit,
                    digest="",
                )
                choice = self.growth.choice(offer, placement.shape)
                self.growth.take(offer.rung.cluster, placement.shape, placement.replicas)
                self.standing.change(
                    Move(before=placement, after=moved, why=Why.POLICY, detail=detail, choice=choice, refused=refusals)
                )

    def give_back_what_is_not_needed(self) -> None:
        """Shrink and revert, last cluster first, once the demand has been lower for the whole scale-down window."""
        for workload in self.standing.placed():
            demand, policy = self.demands.get(workload), self.desired.policies.get(workload)
            if policy is None or demand is None:
                continue
            placed = self.standing.replicas(workload)
            if isinstance(demand, Blind):
                self.standing.suppress(
                    Suppressed(
                        workload=workload,
                        reason=Reason.PRIMARY_UNSEEN,
                        message=f"{demand.message}; its {count(placed, 'replica')} stay until they expire",
                        replicas=placed,
                    )
                )
                continue
            self._give_back(workload, demand, policy, placed)

    def _give_back(self, workload: WorkloadId, demand: Demand, policy: BurstPolicy, placed: int) -> None:
        window = policy.scale_down_window
        highest = demands_of.ceiling(demand, window, self.now)
        needed = placed if highest is None else min(placed, highest)
        keep = needed if policy.max_replicas is None else min(needed, policy.max_replicas)
        if keep > demand.deficit and demand.deficit < placed:
            until = demands_of.fall_complete(demand, window, self.now)
            self.standing.suppress(
                Suppressed(
                    workload=workload,
                    reason=Reason.SCALE_DOWN_WINDOW,
                    message=f"{demand.deficit} of {placed} placed replicas are needed now, but"
                    f" {'nobody has watched' if highest is None else f'up to {highest} were needed'}"
                    f" for the whole scale-down window of {format_duration(window)}",
                    replicas=placed - demand.deficit,
                    until=until,
                )
            )
        if keep == placed:
            return
        limited = keep < needed
        detail = (
            f"policy {policy.name} allows {count(keep, 'replica')}"
            if limited
            else f"no more than {keep} of {placed} replicas were needed in the last {format_duration(window)}"
        )
        rungs = self.reach.order(workload)
        for placement, rest in drained(placed - keep, self.standing.of(workload), rungs):
            if rest == 0:
                self._revert(placement, Why.POLICY if limited else Why.DEMAND_GONE, detail)
            else:
                after = replace(placement, replicas=rest, changed_at=self.now, digest="")
                self.standing.change(Resize(before=placement, after=after, detail=detail))

    def place_what_is_missing(self) -> None:
        """Give each workload with a lasting deficit the clusters it may have, as far as they go."""
        lacking = [
            demand
            for demand in self.demands.values()
            if isinstance(demand, Demand) and demand.deficit > self.standing.replicas(demand.workload)
        ]
        for demand in sorted(lacking, key=self._urgency):
            self._grow(demand)

    def _grow(self, demand: Demand) -> None:
        workload = demand.workload
        template, policy = self.desired.templates[workload], self.desired.policies[workload]
        placed = self.standing.replicas(workload)
        lacking = demands_of.matured(demand, policy.scale_up_window, self.now) - placed

        def suppress(reason: Reason, message: str, until: datetime | None = None, *, short: int | None = None) -> None:
            self.standing.suppress(
                Suppressed(
                    workload=workload,
                    reason=reason,
                    message=message,
                    replicas=demand.deficit - placed if short is None else short,
                    until=until,
                )
            )

        # 1. What is missing has not been missing for long enough.
        ripe_at = demands_of.next_maturity(demand, policy.scale_up_window, self.now)
        if ripe_at is not None:
            window = format_duration(policy.scale_up_window)
            suppress(
                Reason.SCALE_UP_WINDOW,
                f"not every replica has been unschedulable for the scale-up window of {window}",
                ripe_at,
                short=demand.deficit - placed - max(0, lacking),
            )
        # 2. The policy's own limit.
        if policy.max_replicas is not None and lacking > policy.max_replicas - placed:
            suppress(
                Reason.POLICY_LIMIT,
                f"policy {policy.name} allows {count(policy.max_replicas, 'replica')} of this workload",
                short=lacking - max(0, policy.max_replicas - placed),
            )
            lacking = policy.max_replicas - placed
        if lacking <= 0:
            return
        # 3. It came home only just now.
        cooling = self.standing.cooling(workload)
        if cooling is not None:
            suppress(Reason.COOLING_DOWN, f"cooling down: {cooling.reason}", cooling.until)
            return
        # 4. What holds it back cannot be read.
        if workload in self.ledger.blocked:
            suppress(Reason.LEDGER_UNREADABLE, "a file of its on the output branch cannot be read; see the problems")
            return
        # 5. Nobody knows what a replica needs.
        if demand.shape is None:
            suppress(Reason.NO_SHAPE, f"the observation of {demand.primary} does not say what one replica requests")
            return
        # 6. Clusters, in order.
        waited = self.now - min(wait.since for wait in demand.waiting)
        shortage = Shortage(
            primary=demand.primary,
            replicas=demand.deficit,
            waited=waited,
            requests=demand.shape.requests,
            node_selector=tuple(sorted(demand.shape.node_selector.items())),
        )
        missing = lacking
        shares, refusals = self.growth.spread(template, policy, demand.shape, missing)
        for share in shares:
            cluster = share.offer.rung.cluster
            choice = self.growth.choice(share.offer, demand.shape)
            self.growth.take(cluster, demand.shape, share.replicas)
            here = [placement for placement in self.standing.of(workload) if placement.cluster == cluster]
            refused = tuple(refusal for refusal in refusals if self._before(workload, refusal, choice))
            if here:
                before = max(here, key=lambda placement: (placement.created_at, placement.name))
                after = replace(
                    before,
                    replicas=before.replicas + share.replicas,
                    changed_at=self.now,
                    source_commit=self.desired.commit,
                    shape=demand.shape,
                    digest="",
                )
                detail = f"{share.replicas} of {count(missing, 'more replica')} that {demand.primary} is missing"
                change: Change = Resize(
                    before=before, after=after, detail=detail, shortage=shortage, choice=choice, refused=refused
                )
            else:
                placement = self.growth.placement(template, policy, demand.shape, cluster, share.replicas)
                change = Place(placement=placement, shortage=shortage, choice=choice, refused=refused)
            self.standing.change(change)
            lacking -= share.replicas
        # 7. What is left stays pending at home.
        if lacking:
            self.standing.suppress(
                Suppressed(
                    workload=workload,
                    reason=Reason.NOTHING_FITS,
                    message=f"{count(lacking, 'replica')} of {demand.deficit} fit on no cluster",
                    replicas=lacking,
                    until=self.growth.next_change(workload, refusals),
                    refusals=refusals,
                )
            )

    def _before(self, workload: WorkloadId, refusal: Refusal, choice: Choice) -> bool:
        """Tell whether a refused cluster would have come before the chosen one: only that explains the choice."""
        ranks = {rung.cluster: rung.rank for rung in self.reach.order(workload)}
        return ranks.get(refusal.cluster, 0) < choice.rank

    def _urgency(self, demand: Demand) -> tuple[int, datetime, WorkloadId]:
        oldest = min(wait.since for wait in demand.waiting)
        return (-self.desired.policies[demand.workload].priority, oldest, demand.workload)

    def _policy(self, workload: WorkloadId) -> BurstPolicy:
        """Return the workload's policy, or the defaults for one that is gone and still has to be ended decently."""
        return self.desired.policies.get(workload) or BurstPolicy(name="")

    def _missing(self, workload: WorkloadId) -> str:
        if workload not in self.desired.templates:
            return f"template {workload} is no longer in the fleet repository"
        if workload not in self.desired.policies:
            return f"no policy lets {workload} burst any more"
        return ""

    def _revert(self, placement: Placement, why: Why, detail: str) -> None:
        restraint = lifecycle.cool_down(placement, self._policy(placement.workload), why, self.now)
        self.standing.change(Revert(placement=placement, why=why, detail=detail, restraint=restraint))
