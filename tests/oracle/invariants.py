"""What holds of every pass, whatever the fleet, the demand and the units are. Each rule yields what breaks it.

The rules are read off the documentation, and share no code with the functions that decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from reconciler.model.action import Action
from reconciler.model.approval import ProposalEnd
from reconciler.model.demand import Demand
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement, RestraintKind
from reconciler.model.plan import Change, Reason
from reconciler.model.policy import Availability
from reconciler.model.units import ONE
from tests.builders.inputs import GPU
from tests.oracle.world import COPY, Pass, Site, Unit, Work

HOUR = timedelta(hours=1)


def no_bugs(made: Pass) -> Iterator[str]:
    """Nothing raises."""
    yield from (bug.summary for bug in made.plan.bugs)


def within_limits(made: Pass) -> Iterator[str]:
    """No workload has more than its policy allows, in all and on one cluster, nor a subset more than its maximum."""
    for work in made.works.values():
        policy, has = work.policy, held(made.after, work.id)
        if policy.max_replicas is not None and has.total() > policy.max_replicas:
            yield f"{work.id} has {has.total()} replicas, and its policy allows {policy.max_replicas}"
        for name, number in made.entries(work).items():
            most = policy.candidates[number].max_replicas
            if most is not None and policy.spread is None and has[name] > most:
                yield f"{work.id} has {has[name]} replicas on {name}, which may have {most}"
        for subset in policy.spread.subsets if policy.spread is not None else ():
            demand = made.inputs.demands[work.id]
            if subset.most is None or (subset.most.percent and not isinstance(demand, Demand)):
                continue
            most_placed = max(held(made.before, work.id).total(), has.total())  # what ends in the pass still counts
            total = max(demand.wanted, demand.running + max(demand.missing, most_placed))
            here = sum(each.replicas for each in of(made.after, work.id) if each.subset == subset.name)
            if here > subset.most.of(total):
                yield f"subset {subset.name} of {work.id} has {here} replicas, and may have {subset.most} of {total}"


def within_room(made: Pass) -> Iterator[str]:
    """What begins or grows on a cluster has nodes there, beside what is on its way to them."""
    for name, seen in made.inputs.observed.clusters.items():
        free = [node.free.amounts.get(GPU, 0) // ONE for pool in seen.pools for node in pool.nodes]
        flying, new = Counter[int](), Counter[int]()
        for placement in made.after.placements.on(name).placements:
            before = made.before.placements.get(placement.path)
            size, pods = _gpus(placement), _pods(placement)
            had = _pods(before) if before is not None else 0
            new[size] += max(0, pods - had)
            timed_out = before is not None and made.now - before.changed_at >= timedelta(minutes=10)
            unbound = max(0, min(pods, had) - seen.bound.get(placement.name, 0))
            waiting = seen.pending_pods.get(placement.name)
            flying[size] += min(unbound, waiting.replicas if waiting is not None else 0) if timed_out else unbound
        _fill(free, flying)
        left = _fill(free, new)
        if left:
            yield f"{left} new pods have no node on {name}"


def never_more_than_missing(made: Pass) -> Iterator[str]:
    """No workload gets more replicas elsewhere than it misses, or had."""
    for work in made.works.values():
        demand = made.inputs.demands[work.id]
        missing = demand.missing if isinstance(demand, Demand) else 0
        before, after = held(made.before, work.id).total(), held(made.after, work.id).total()
        if after > max(before, missing):
            yield f"{work.id} comes from {before} to {after} replicas, and misses {missing}"


def nothing_outlives_its_end(made: Pass) -> Iterator[str]:
    """A placement whose time is over is gone, and no renewal goes beyond the longest time of its policy."""
    for placement in made.after.placements.values():
        longest = made.works[placement.workload].policy.max_duration
        if placement.expires_at <= made.now:
            yield f"{placement.path} has ended at {placement.expires_at} and is still there"
        if longest is not None and placement.expires_at > placement.created_at + longest:
            yield f"{placement.path} lasts longer than {longest}"


def units_stay_whole(made: Pass) -> Iterator[str]:
    """A gang has one cluster, a copy is one placement of its size, and a cluster has one placement of a workload."""
    for work in made.works.values():
        placements = of(made.after, work.id)
        places = Counter((each.cluster, each.subset) for each in placements)
        if len(places) < len(placements):
            yield f"{work.id} has two placements in one place"
        if work.unit.is_gang and len(placements) > 1:
            yield f"{work.id} goes whole, and has {len(placements)} placements"
        if work.unit in (Unit.COPY, Unit.RUN_COPY) and any(each.replicas != COPY for each in placements):
            yield f"{work.id} has a part of a copy"


def one_living_copy(made: Pass) -> Iterator[str]:
    """What runs once has one placement."""
    for work in made.works.values():
        if work.unit.runs_once and len(of(made.after, work.id)) > 1:
            yield f"{work.id} is {work.unit}, and has {len(of(made.after, work.id))} placements"


def newcomers_are_admitted(made: Pass) -> Iterator[str]:
    """Nothing begins, grows or arrives where the cluster or its files refuse newcomers."""
    for work, placement in arrivals(made):
        site = made.sites[placement.cluster]
        for why in (*forbids(work, site, placement.subset), *_refuses(made, work, site, placement.subset)):
            yield f"{placement.path} arrives, and {why}"


def approved_first(made: Pass) -> Iterator[str]:
    """What a policy wants to have approved begins, grows and moves only in the pass that ends its proposal as approved.

    What moves within the GPUs that were approved needs no other approval.
    """
    approved = {change.workload for change in made.plan.changes if change.why is ProposalEnd.APPROVED}
    for work in made.works.values():
        rule = work.policy.approval
        if rule is None or work.id in approved:
            continue
        before, after = (
            sum(_gpus(each) * _pods(each) for each in of(ledger, work.id)) for ledger in (made.before, made.after)
        )
        if rule.above_gpus is not None and after > max(rule.above_gpus, before):
            yield f"{work.id} has {after} GPUs, and nobody has approved more than {rule.above_gpus}"
        for each, placement in arrivals(made):
            if each is work and (rule.always or placement.cluster in rule.clusters):
                yield f"{placement.path} arrives, and nobody has approved it"


def nothing_stays_where_it_may_not(made: Pass) -> Iterator[str]:
    """What the files forbid on a cluster leaves it in the same pass."""
    for placement in made.after.placements.values():
        for why in forbids(made.works[placement.workload], made.sites[placement.cluster], placement.subset):
            yield f"{placement.path} stays, and {why}"


def nothing_forbidden_is_renewed(made: Pass) -> Iterator[str]:
    """Nothing is renewed where the files forbid it."""
    for change in made.plan.changes:
        if change.action is Action.EXTEND:
            after = change.after
            for why in forbids(made.works[after.workload], made.sites[after.cluster], after.subset):
                yield f"{after.path} is renewed, and {why}"


def lower_bounds_hold_or_are_told(made: Pass) -> Iterator[str]:
    """A workload is on as many clusters and groups as its policy wants at least, or the plan says that it is not.

    It says so for as long as it is so, by a reason of its own, whatever else keeps the workload back.
    """
    told = {held.workload for held in made.plan.suppressed if held.reason is Reason.BOUND_UNMET}
    for work in made.works.values():
        distribution, has = work.policy.distribution, held(made.after, work.id)
        if work.id in told or not has:
            continue
        units = has.total() // work.unit.size
        if len(has) < min(distribution.min_clusters, units):
            yield f"{work.id} is on {len(has)} clusters of {distribution.min_clusters}, and nothing says so"
        for bound in distribution.spread_constraints:
            groups = len({made.sites[name].cluster.labels.get(bound.label) for name in has})
            if groups < min(bound.min_groups, units):
                yield f"{work.id} has {groups} of {bound.min_groups} values of {bound.label}, and nothing says so"


def upper_bounds_hold(made: Pass) -> Iterator[str]:
    """No workload gets more clusters, or values of a label, than its policy allows, or than it had before.

    One that has more says so.
    """
    told = {held.workload for held in made.plan.suppressed if held.reason is Reason.BOUND_UNMET}
    for work in made.works.values():
        distribution = work.policy.distribution
        before, after = held(made.before, work.id), held(made.after, work.id)
        if distribution.max_clusters is not None and len(after) > max(distribution.max_clusters, len(before)):
            yield f"{work.id} is on {len(after)} clusters of at most {distribution.max_clusters}"
        if distribution.max_clusters is not None and len(after) > distribution.max_clusters and work.id not in told:
            yield f"{work.id} is on {len(after)} clusters of {distribution.max_clusters}, and nothing says so"
        for bound in distribution.spread_constraints:
            had, has = (
                len({made.sites[name].cluster.labels.get(bound.label) for name in names}) for names in (before, after)
            )
            if bound.max_groups is not None and has > max(bound.max_groups, had):
                yield f"{work.id} has {has} values of {bound.label}, of at most {bound.max_groups}"
            if bound.max_groups is not None and has > bound.max_groups and work.id not in told:
                yield f"{work.id} has {has} of {bound.max_groups} values of {bound.label}, and nothing says so"


def what_waits_is_told(made: Pass) -> Iterator[str]:
    """A workload that misses replicas after a pass is suppressed with a reason; a run that is placed misses nothing.

    One that gives its room to another in this pass is told so by that commit.
    """
    told = {held.workload for held in made.plan.suppressed}
    told |= {change.workload for change in made.plan.changes if change.why is EndReason.FAIR_SHARE}
    for work in made.works.values():
        demand, has = made.inputs.demands[work.id], held(made.after, work.id).total()
        if work.unit.runs_once and has:
            continue
        if work.id not in told and (not isinstance(demand, Demand) or demand.missing > has):
            yield f"{work.id} waits, and nothing says why"


def what_shrinks_says_why(made: Pass) -> Iterator[str]:
    """A change that takes replicas away says why by a word, and no other change of a placement but a move does."""
    for change in made.plan.changes:
        has_reason = isinstance(change.why, EndReason)
        if has_reason != (change.growth < 0) and change.action not in (Action.HOLD, Action.MOVE):
            yield f"{change.action} of {change.workload} by {change.growth} replicas says {change.why}"


def moves_keep_to_the_budget(passes: Sequence[Pass]) -> Iterator[str]:
    """Replicas that cannot run where they are leave no more often within an hour than their policy allows."""
    moved: dict[WorkloadId, list[datetime]] = {}
    for made in passes:
        for change in made.plan.changes:
            if is_departure(change):
                workload = change.workload
                moved.setdefault(workload, []).append(made.now)
                work, within = made.works[workload], [at for at in moved[workload] if at > made.now - HOUR]
                most = work.policy.moves.most_per_hour
                if len(within) > most:
                    yield f"{workload} is {work.unit}, and moves {len(within)} times within an hour of at most {most}"


def time_alone_begins_no_second_run(passes: Sequence[Pass]) -> Iterator[str]:
    """What runs once and has had a node is not begun again after its time is over, until its demand has gone once."""
    over: set[WorkloadId] = set()
    for made in passes:
        gone = (work.id for work in made.works.values() if not _missing(made, work))
        over.difference_update(gone)
        for change in made.plan.changes:
            if (
                change.action is Action.REVERT
                and change.why is EndReason.EXPIRED
                and change.placement.path in made.begun
            ):
                over.add(change.placement.workload)
            if change.action is Action.PLACE and change.placement.workload in over:
                work = made.works[change.placement.workload]
                if work.unit.runs_once:
                    yield f"{work.id} is {work.unit}, and begins again after its time was over"


# What the rules ask for


def is_departure(change: Change) -> bool:
    """Return whether a change sends replicas elsewhere since they cannot run where they are, or for a lower bound."""
    if change.action is Action.MOVE and change.why in (EndReason.FAILED, EndReason.CLUSTER_LOST):
        return True
    restraint = change.restraint
    return restraint is not None and (restraint.move or restraint.kind is RestraintKind.UNSCHEDULABLE)


def forbids(work: Work, site: Site, subset: str) -> Iterator[str]:
    """Yield why the files say that a workload, or its part in a subset, may not be on a cluster."""
    policy = work.policy
    for each in policy.spread.subsets if policy.spread is not None else ():
        regions = [value for label in (each.required.labels if each.required else ()) for value in label.values]
        if each.name == subset and site.region not in regions:
            yield f"subset {subset} does not select {site.name}"
    if site.availability is Availability.DRAINING:
        yield f"{site.name} is draining"
    if policy.spread is None and not any(site.is_selected_by(entry) for entry in policy.candidates):
        yield f"the policy does not name {site.name}"
    for key, value in policy.require_labels.items():
        if (site.region if key == "region" else None) != value:
            yield f"{site.name} has no label {key}={value}"
    for bound in policy.distribution.spread_constraints:
        if bound.label not in site.cluster.labels:
            yield f"{site.name} has no label to spread over"
    if any(taint.effect == "NoExecute" for taint in site.taints) and not policy.tolerations:
        yield f"{site.name} has a NoExecute taint"


def _refuses(made: Pass, work: Work, site: Site, subset: str) -> Iterator[str]:
    """Yield why a cluster takes nothing new of a workload, though what stands may stay."""
    if site.availability is Availability.CORDONED:
        yield f"{site.name} is cordoned"
    if site.taints and not work.policy.tolerations:
        yield f"{site.name} is tainted"
    if not site.seen:
        yield f"{site.name} is not seen"
    for restraint in made.before.restraints.get(work.id, ()):
        held_off = restraint.kind is not RestraintKind.TURN and restraint.cluster in (None, site.name)
        if held_off and restraint.subset in ("", subset) and made.now < restraint.until:
            yield f"{site.name} is held back: {restraint.reason}"


def arrivals(made: Pass) -> Iterator[tuple[Work, Placement]]:
    """Yield each placement that begins, grows, or arrives on another cluster."""
    for placement in made.after.placements.values():
        before = made.before.placements.get(placement.path)
        if before is None or _pods(placement) > _pods(before):
            yield made.works[placement.workload], placement


def of(ledger: Ledger, workload: WorkloadId) -> tuple[Placement, ...]:
    return tuple(placement for placement in ledger.placements.values() if placement.workload == workload)


def held(ledger: Ledger, workload: WorkloadId) -> Counter[ClusterName]:
    """Count the replicas of a workload on each cluster."""
    counts = Counter[ClusterName]()
    for placement in of(ledger, workload):
        counts[placement.cluster] += placement.replicas
    return counts


def _missing(made: Pass, work: Work) -> int:
    demand = made.inputs.demands[work.id]
    return demand.missing if isinstance(demand, Demand) else 1


def _pods(placement: Placement) -> int:
    return placement.replicas * placement.shape.group_size


def _gpus(placement: Placement) -> int:
    return placement.shape.requests.amounts.get(GPU, 0) // ONE


def _fill(free: list[int], pods: Counter[int]) -> int:
    """Put pods on nodes, the largest first, and count those without room. Their sizes divide one another."""
    left = 0
    for size, number in sorted(pods.items(), reverse=True):
        for _ in range(number):
            place = next((index for index, room in enumerate(free) if room >= size), None)
            if place is None:
                left += 1
            else:
                free[place] -= size
    return left
