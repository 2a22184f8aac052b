"""A naive decider, to be compared with the product's: one workload after the other, one replica after the other.

It has no caches, classes or columns, and shares no rule's code with the product; it reads the values of a pass alone.
It says how many replicas each workload has on each cluster and subset after a pass, and until when.

It models what most passes do: ends, limits, the scale-down window, turns by priority, filters and room, each unit's
way to be placed, strategies with their bounds, subsets with theirs, cool-downs, and renewal. It leaves out:

- moves: it declines a pass (`DeclinedError`) in which replicas stand where files forbid them, wait for a node, or are
  on fewer clusters or groups than their policy wants;
- fair shares: the workloads of a pass have priorities of their own, and one workspace;
- pods of several sizes at once: all pods of a fleet ask for the same number of GPUs;
- which clusters a bound on clusters or groups chooses: there it says how many replicas, clusters and groups at best,
  and of several labels only where neither clusters nor replicas are few;
- requests, reservations, eviction, approvals, budgets, headroom, signals, scorers, gangs with a minimum, topology,
  autoscalers, minimums and weights of nothing, charts, and what engines report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from itertools import combinations

from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_spread import Subset
from reconciler.model.placement import Placement, RestraintKind
from reconciler.model.policy import Availability, Distribution, Renewal, StrategyName
from reconciler.model.units import ONE
from tests.builders.inputs import GPU
from tests.oracle.world import COPY, HOME, Pass, Site, Unit, Work

Place = tuple[ClusterName, str]
"""A cluster, and the subset on it."""

LASTS = timedelta(minutes=10)
"""The burstDuration of all templates."""
IN_FLIGHT = timedelta(minutes=10)
LEAD = timedelta(minutes=10)
PATIENCE = timedelta(seconds=30)
LOST = timedelta(minutes=5)
MANY = 10**6


class DeclinedError(Exception):
    """A pass has something that is not modelled."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """A cluster that replicas are divided over."""

    name: ClusterName
    rank: int
    weight: int
    groups: tuple[str, ...]
    keeps: int
    free: int
    tier: int = 0

    @property
    def room(self) -> int:
        """All that it could have."""
        return self.keeps + self.free


@dataclass(frozen=True, kw_only=True)
class Reach:
    """The best result of a bounded division, whichever clusters it chooses."""

    replicas: int
    clusters: int
    groups: tuple[int, ...]


class Decider:
    """The state of a pass while it is decided again."""

    def __init__(self, made: Pass) -> None:
        """Begin with the ledger that the pass has read."""
        self.made, self.now = made, made.now
        self.standing = dict(made.before.placements)
        self.held_back = {
            workload: [each for each in held if self.now < each.until and each.kind is not RestraintKind.TURN]
            for workload, held in made.before.restraints.items()
        }

    def decide(self) -> Iterator[str]:
        """Decide, and yield where the product's plan differs. Raises DeclinedError for what is not modelled."""
        self._end()
        works = sorted(self.made.works.values(), key=lambda work: -work.policy.priority)
        for work in works:
            self._shrink(work)
        self._decline_moves()
        for work in works:
            yield from self._begin(work)
        yield from self._differing_ends()

    # Steps

    def _end(self) -> None:
        for path, placement in list(self.standing.items()):
            if placement.expires_at > self.now:
                continue
            del self.standing[path]
            policy = self.made.works[placement.workload].policy
            longest = policy.max_duration
            renewed_to_the_last = (
                policy.renew is Renewal.WHILE_NEEDED
                and longest is not None
                and placement.expires_at >= placement.created_at + longest
            )
            if self.made.works[placement.workload].unit.runs_once:
                raise DeclinedError("a run whose time is over")
            if renewed_to_the_last and policy.cool_down:
                self._hold_back(placement)

    def _hold_back(self, placement: Placement) -> None:
        raise DeclinedError(f"a cool-down that begins with the end of {placement.path}")

    def _shrink(self, work: Work) -> None:
        policy, demand = work.policy, self.made.inputs.demands[work.id]
        if policy.spread is not None:
            self._keep_subsets(work)
        if policy.spread is None:
            for name in self._order(work):
                most = self._limit(work, name)
                if most is not None:
                    here = [each for each in self._of(work) if each.cluster == name]
                    self._take(work, sum(map(_replicas, here)) - most, here, partly=True)
        if policy.max_replicas is not None:
            self._take(work, self._total(work) - policy.max_replicas, self._of(work), partly=True)
        if isinstance(demand, Demand) and self._total(work) > demand.missing:
            peak = self._peak(demand, policy.scale_down_window)
            if peak is not None:
                self._take(work, self._total(work) - peak, self._of(work), partly=False)
        if policy.spread is not None:
            self._keep_subsets(work)

    def _keep_subsets(self, work: Work) -> None:
        spread = work.policy.spread
        assert spread is not None
        before = -1
        while before != self._total(work):
            before = self._total(work)
            for subset in reversed(spread.subsets):
                most = self._most(work, subset, before)
                here = [each for each in self._of(work) if each.subset == subset.name]
                if most is not None:
                    self._take(work, sum(map(_replicas, here)) - most, here, partly=True)

    def _peak(self, demand: Demand, window: timedelta) -> int | None:
        """Return the most that was missing within the window before the primary was seen; None where nobody watched."""
        seen = self.made.inputs.observed.clusters[HOME].observed_at
        samples = demand.history
        if samples[0].at > seen - window:
            return None
        ends = [*(each.at for each in samples[1:]), seen + window]
        return max(each.missing for each, end in zip(samples, ends, strict=True) if end > seen - window)

    def _take(self, work: Work, surplus: int, here: Sequence[Placement], *, partly: bool) -> None:
        """Take a surplus from placements of one workload, as what serves least goes first: here all of it serves."""
        if surplus <= 0 or not here:
            return
        if not all(self._serves(each) for each in here):
            raise DeclinedError("a surplus of which not all serves")
        if work.unit.runs_once:
            raise DeclinedError("a surplus of what runs once")
        kept = Counter({each.path: each.replicas for each in here})
        if (
            work.policy.spread is None
            and work.policy.distribution.is_bounded
            and len({each.cluster for each in here}) > 1
        ):
            raise DeclinedError("what is given back by a policy with bounds")
        if work.unit is Unit.COPY:
            for each in self._last_first(work, here):
                if surplus > 0 and (partly or each.replicas <= surplus):
                    surplus -= each.replicas
                    kept[each.path] = 0
        else:
            self._give_back(work, surplus, here, kept)
        for each in here:
            if not kept[each.path]:
                del self.standing[each.path]
            elif kept[each.path] < each.replicas:
                self.standing[each.path] = replace(each, replicas=kept[each.path], changed_at=self.now)

    def _give_back(self, work: Work, surplus: int, here: Sequence[Placement], kept: Counter[str]) -> None:
        places = {each.path: (each.cluster, each.subset) for each in here}
        stays = Counter[Place]()
        for each in here:
            stays[places[each.path]] += each.replicas
        stays = self._left(work, stays, stays.total() - surplus)
        for place in {*places.values()}:
            newest = sorted(
                (each for each in here if places[each.path] == place), key=lambda each: (each.created_at, each.name)
            )
            above = sum(each.replicas for each in newest) - stays[place]
            for each in reversed(newest):
                back = min(above, each.replicas)
                kept[each.path] -= back
                above -= back

    def _left(self, work: Work, has: Counter[Place], total: int) -> Counter[Place]:
        """Return the replicas of each place once so many are left, by the reverse of how they are placed."""
        if work.policy.spread is not None:
            return self._left_in_subsets(work, has, total)
        shares = []
        for rank, (name, entry) in enumerate(self.made.entries(work).items()):
            if has[name, ""]:
                room = 0
                if (
                    work.policy.distribution.strategy is StrategyName.BALANCED
                    and name in self.made.inputs.observed.clusters
                ):
                    limit = self._limit(work, name)
                    room = self._room(work, name)
                    room = room if limit is None else min(room, max(0, limit - has[name, ""]))
                weight, tier = work.policy.candidates[entry].weight, self._tier(work, entry)
                free = has[name, ""] + room
                shares.append(Share(name=name, rank=rank, weight=weight, groups=(), keeps=0, free=free, tier=tier))
        stays = Counter[Place]()
        for tier in sorted({share.tier for share in shares}):
            here = [share for share in shares if share.tier == tier]
            counts = _kept(work, total - stays.total(), here, {share.name: has[share.name, ""] for share in here})
            stays.update({(name, ""): count for name, count in counts.items()})
        return stays

    @staticmethod
    def _tier(work: Work, entry: int) -> int:
        return entry if work.policy.distribution.tiers else 0

    def _left_in_subsets(self, work: Work, has: Counter[Place], total: int) -> Counter[Place]:
        """Take replicas away one by one: above maximums, in no subset, of the last subset, and minimums last."""
        spread, stays = work.policy.spread, Counter(has)
        assert spread is not None
        after = self._total(work) - (has.total() - total)
        names = [subset.name for subset in spread.subsets]
        most = {subset.name: self._most(work, subset, after) for subset in spread.subsets}
        rows = {name: self._row(work, name, self._free_of_held(has)) for name in ("", *names)}

        def count(name: str) -> int:
            return sum(replicas for (_, subset), replicas in stays.items() if subset == name)

        def victim() -> str:
            for name in reversed(names):
                bound = most[name]
                if bound is not None and count(name) > bound:
                    return name
            if count(""):
                return ""
            for least in (True, False):
                for subset in reversed(spread.subsets):
                    floor = subset.least if least else 0
                    if count(subset.name) > floor:
                        return subset.name
            raise AssertionError("nothing is left to take")

        counts = {name: count(name) for name in ("", *names)}
        while stays.total() > total:
            name = victim()
            place = next(place for place in reversed(rows[name]) if stays[place])
            stays[place] -= 1
            counts[name] -= 1
        return self._left_within(work, has, rows, counts)

    def _left_within(
        self, work: Work, has: Counter[Place], rows: Mapping[str, Sequence[Place]], counts: Mapping[str, int]
    ) -> Counter[Place]:
        """Divide what each subset keeps over its clusters: its minimum first, then the rest."""
        spread, free, stays = work.policy.spread, self._free_of_held(has), Counter[Place]()
        assert spread is not None
        least = {subset.name: subset.least for subset in spread.subsets}
        for subset, row in rows.items():
            for part in (min(least.get(subset, 0), counts[subset]), counts[subset]):
                places = [place for place in row if has[place]]
                before = {place[0]: stays[place] for place in places}
                shares = [
                    self._place_share(work, place, rank, keeps=0, free=has[place] + free(place) - stays[place])
                    for rank, place in enumerate(places)
                ]
                held = {place[0]: has[place] for place in places}
                for name, more in _kept(work, part - sum(before.values()), shares, held, before).items():
                    stays[name, subset] += more
        return stays

    def _place_share(self, work: Work, place: Place, rank: int, *, keeps: int, free: int) -> Share:
        """Make the share of a cluster in a subset, with its weight by the policy; no terms are preferred."""
        entries = self.made.entries(work)
        weight = work.policy.candidates[entries[place[0]]].weight if place[0] in entries else 1
        return Share(name=place[0], rank=rank, weight=weight, groups=(), keeps=keeps, free=free)

    def _free_of_held(self, has: Mapping[Place, int]) -> Callable[[Place], int]:
        seen = self.made.inputs.observed.clusters
        work = next(iter(self.made.works.values()))
        return lambda place: self._room(work, place[0]) if place in has and place[0] in seen else 0

    def _decline_moves(self) -> None:
        """Decline passes in which replicas may have to move."""
        for work in self.made.works.values():
            has, distribution = self._has(work), work.policy.distribution
            units = has.total() // work.unit.size
            few = len(has) < min(distribution.min_clusters, units)
            for bound in distribution.spread_constraints:
                values = {self._value(name, bound.label) for name, _ in has}
                few |= len(values) < min(bound.min_groups, units)
            if has and few:
                raise DeclinedError(f"a lower bound of {work.id} is not met")
        lost = self.made.inputs.lost
        for placement in self.standing.values():
            site, work = self.made.sites[placement.cluster], self.made.works[placement.workload]
            if any(True for _ in self._why_forbidden(work, site, placement.subset)):
                raise DeclinedError(f"{placement.path} may not stay")
            if site.name in lost and lost[site.name] + LOST <= self.now:
                raise DeclinedError(f"{site.name} is lost")
            seen = self.made.inputs.observed.clusters.get(site.name)
            waiting = seen.pending_pods.get(placement.name) if seen is not None else None
            if waiting is not None and waiting.since is not None and waiting.since + PATIENCE <= self.now:
                raise DeclinedError(f"{placement.path} waits for a node")

    def _begin(self, work: Work) -> Iterator[str]:
        """Take the turn of a workload, and yield where the product places something else."""
        missing, free = self._due(work), self._candidates(work)
        actual = Counter[Place]()
        for each in self.made.after.placements.values():
            if each.workload == work.id:
                actual[each.cluster, each.subset] += each.replicas
        has = self._has(work)
        if work.unit.is_divided and work.policy.distribution.is_bounded and missing > 0:
            yield from self._compare_reach(work, has, actual, missing, free)
        else:
            expected = has + self._gains(work, missing, free)
            if expected != actual:
                yield f"{work.id}: {dict(actual)}, expected {dict(expected)} of {dict(has)}, {missing} more due"
        self._adopt(work, actual)

    def _adopt(self, work: Work, actual: Counter[Place]) -> None:
        """Go on with what the product has placed, so that one difference is told once."""
        del actual
        for path in [each.path for each in self._of(work)]:
            del self.standing[path]
        for path, placement in self.made.after.placements.items():
            if placement.workload == work.id:
                self.standing[path] = placement

    def _differing_ends(self) -> Iterator[str]:
        """Yield the placements that end at another time than they should."""
        for path, placement in self.made.after.placements.items():
            work, before = self.made.works[placement.workload], self.made.before.placements.get(path)
            policy = work.policy
            longest = policy.max_duration
            lasts = LASTS if longest is None else min(LASTS, longest)
            if before is None:
                expected = self.now + lasts
            else:
                expected = before.expires_at
                due = before.expires_at - min(lasts / 4, LEAD) <= self.now
                if policy.renew is Renewal.WHILE_NEEDED and due and self._is_needed(work, placement):
                    end = expected + lasts
                    expected = end if longest is None else max(expected, min(end, before.created_at + longest))
            if placement.expires_at != expected:
                yield f"{path} ends at {placement.expires_at:%H:%M:%S}, expected {expected:%H:%M:%S}"

    def _is_needed(self, work: Work, placement: Placement) -> bool:
        """Return whether the replicas that are missing, or were lately, need any of a placement."""
        demand = self.made.inputs.demands[work.id]
        if not isinstance(demand, Demand):
            return False
        peak = self._peak(demand, work.policy.scale_down_window)
        if self._total(work) > max(demand.missing, peak or 0):
            raise DeclinedError("a renewal of what is partly a surplus")
        return True

    # Turns

    def _due(self, work: Work) -> int:
        demand, policy = self.made.inputs.demands[work.id], work.policy
        if not isinstance(demand, Demand) or demand.missing <= self._total(work):
            return 0
        if any(each.cluster is None for each in self.held_back.get(work.id, ())):
            return 0
        if work.unit.runs_once and self._of(work):
            return 0
        late = [step for step in demand.waiting if step.since + policy.scale_up_window > self.now]
        if late and (work.unit.is_gang or work.unit.runs_once):
            return 0
        due = demand.missing - sum(step.replicas for step in late) - self._total(work)
        allowed = due if policy.max_replicas is None else policy.max_replicas - self._total(work)
        return 0 if work.unit is Unit.WHOLE and allowed < due else min(due, allowed)

    def _candidates(self, work: Work) -> dict[Place, int]:
        """Return the places that take something new, with the replicas for which each has room within its limit."""
        free = {}
        for name, subset in self._places(work):
            if any(True for _ in self._why_refused(work, self.made.sites[name], subset)):
                continue
            room, limit = self._room(work, name), self._limit(work, name) if not subset else None
            has = sum(each.replicas for each in self._of(work) if (each.cluster, each.subset) == (name, subset))
            if room > 0 and (limit is None or limit > has):
                free[name, subset] = room if limit is None else min(room, limit - has)
        return free

    def _gains(self, work: Work, missing: int, free: Mapping[Place, int]) -> Counter[Place]:
        """Return the replicas that each place gets."""
        if missing <= 0:
            return Counter()
        match work.unit:
            case Unit.COPY | Unit.RUN_COPY:
                return self._copies(work, missing, free)
            case Unit.WHOLE:
                return self._first(missing, free)
            case Unit.RUN_GANG | Unit.SET:
                return self._gang(work, missing, free)
            case Unit.SUBSET:
                return self._by_subset(work, missing, free)
            case Unit.REPLICA:
                return self._by_strategy(work, missing, free)

    def _copies(self, work: Work, missing: int, free: Mapping[Place, int]) -> Counter[Place]:
        gains, has = Counter[Place](), self._has(work)
        for place, room in free.items():
            enough = missing - gains.total() >= COPY
            if enough and room >= COPY and not has[place] and not (work.unit.runs_once and gains):
                gains[place] = COPY
        return gains

    def _first(self, missing: int, free: Mapping[Place, int]) -> Counter[Place]:
        place = next((place for place, room in free.items() if room >= missing), None)
        return Counter() if place is None else Counter({place: missing})

    def _gang(self, work: Work, missing: int, free: Mapping[Place, int]) -> Counter[Place]:
        """Place all of it on the first cluster, or where the rest is; else as much as the limit of a cluster allows."""
        has = self._has(work)
        if has:
            ((place, _),) = has.items()
            return Counter({place: missing}) if free.get(place, 0) >= missing else Counter()
        gains = self._first(missing, free)
        if gains or work.unit.runs_once:
            return gains
        limits = [(self._limit(work, name), (name, subset)) for name, subset in self._places(work)]
        for limit, place in sorted(((limit, place) for limit, place in limits if limit), key=lambda pair: -pair[0]):
            if limit < missing and free.get(place, 0) >= limit:
                return Counter({place: limit})
        return Counter()

    def _by_subset(self, work: Work, missing: int, free: Mapping[Place, int]) -> Counter[Place]:
        """Fill the minimums of all subsets, then each up to its maximum, one replica after the other."""
        spread, has, gains = work.policy.spread, self._has(work), Counter[Place]()
        assert spread is not None
        for only_least in (True, False):
            for subset in (*spread.subsets, None):
                name = "" if subset is None else subset.name
                row = self._row(work, name, lambda place: free.get(place, 0))
                bound = None if subset is None else self._most(work, subset, has.total())
                if only_least:
                    least = 0 if subset is None else subset.least
                    bound = least if bound is None else min(least, bound)
                count = sum(replicas for (_, other), replicas in (has + gains).items() if other == name)
                more = missing - gains.total()
                more = more if bound is None else min(more, max(0, bound - count))
                shares = [
                    self._place_share(
                        work,
                        place,
                        rank,
                        keeps=has[place] + gains[place],
                        free=max(0, free.get(place, 0) - gains[place]),
                    )
                    for rank, place in enumerate(row)
                ]
                gains.update({(each, name): new for each, new in self._divide(work, more, shares).items()})
        return gains

    def _row(self, work: Work, subset: str, free: Callable[[Place], int]) -> list[Place]:
        """Order the clusters of a subset: the roomiest first; those of none as the policy names them."""
        places = [place for place in self._places(work) if place[1] == subset]
        if subset:
            places.sort(key=lambda place: (-free(place), place[0]))
        return [*places, *sorted(place for place in self._has(work) if place[1] == subset and place not in places)]

    def _by_strategy(self, work: Work, missing: int, free: Mapping[Place, int]) -> Counter[Place]:
        shares, counts = self._shares(work, self._has(work), free), Counter[Place]()
        for tier in sorted({share.tier for share in shares}):
            here = [share for share in shares if share.tier == tier]
            divided = self._divide(work, missing - counts.total(), here)
            counts.update({(name, ""): more for name, more in divided.items() if more})
        return counts

    def _shares(self, work: Work, has: Counter[Place], free: Mapping[Place, int]) -> list[Share]:
        policy = work.policy
        labels = [bound.label for bound in policy.distribution.spread_constraints]
        return [
            Share(
                name=name,
                rank=rank,
                weight=policy.candidates[entry].weight,
                tier=self._tier(work, entry),
                groups=tuple(self._value(name, label) for label in labels),
                keeps=has[name, ""],
                free=free.get((name, ""), 0),
            )
            for rank, (name, entry) in enumerate(self.made.entries(work).items())
            if has[name, ""] or free.get((name, ""), 0)
        ]

    def _value(self, name: ClusterName, label: str) -> str:
        return {"region": self.made.sites[name].region, "zone": self.made.sites[name].zone}[label]

    @staticmethod
    def _divide(work: Work, more: int, shares: Sequence[Share]) -> dict[ClusterName, int]:
        """Divide replicas over clusters, on top of what each keeps."""
        match work.policy.distribution.strategy:
            case StrategyName.ORDERED:
                counts = _in_turn(more, [replace(share, keeps=0) for share in shares])
            case StrategyName.WEIGHTED:
                most = {share.name: share.room for share in shares}
                total = _seats(
                    more + sum(share.keeps for share in shares),
                    shares,
                    lambda share: share.weight,
                    lambda share: most[share.name],
                    begin={share.name: share.keeps for share in shares},
                )
                counts = {share.name: total[share.name] - share.keeps for share in shares}
            case StrategyName.BALANCED:
                counts = _seats(more, shares, lambda share: share.free, lambda share: share.free)
            case StrategyName.AGGREGATED:
                chosen: list[Share] = []
                for share in sorted(shares, key=lambda share: (not share.keeps, -share.free, share.rank)):
                    if sum(each.free for each in chosen) < more:
                        chosen.append(share)
                counts = _seats(more, chosen, lambda share: share.free, lambda share: share.free)
        return counts

    def _compare_reach(
        self, work: Work, has: Counter[Place], actual: Counter[Place], missing: int, free: Mapping[Place, int]
    ) -> Iterator[str]:
        """Yield what a bounded division lacks of the best choice of clusters; copies are counted, one on a cluster."""
        size = work.unit.size
        if size > 1:
            free = {place: int(room >= size and not has[place]) for place, room in free.items()}
            has, actual, missing = _in_copies(has), _in_copies(actual), missing // size
            missing = min(missing, 1) if work.unit.runs_once else missing
        distribution, shares = work.policy.distribution, self._shares(work, has, free)
        constraints = distribution.spread_constraints
        if len(constraints) > 1 and (distribution.max_clusters is not None or missing < 4):
            raise DeclinedError("labels that cross where clusters or replicas are few: the product may miss the best")
        best = _best(missing, shares, distribution)
        used = {name for (name, _), replicas in actual.items() if replicas}
        groups = tuple(len({self._value(name, bound.label) for name in used}) for bound in constraints)
        most = len({name for name, _ in has})
        reached = Reach(
            replicas=actual.total(),
            clusters=min(len(used), best.clusters),
            groups=tuple(map(min, groups, best.groups)),
        )
        if reached != best:
            yield f"{work.id}: {dict(actual)}, expected {best} of {dict(has)}, {missing} more due: {shares}"
        if distribution.max_clusters is not None and len(used) > max(most, distribution.max_clusters):
            yield f"{work.id} is on {len(used)} clusters of at most {distribution.max_clusters}"
        lost = [place for place in has if actual[place] < has[place]]
        if lost:
            yield f"{work.id} has less on {lost}"

    # What clusters have and allow

    def _of(self, work: Work) -> list[Placement]:
        return [each for each in self.standing.values() if each.workload == work.id]

    def _has(self, work: Work) -> Counter[Place]:
        has = Counter[Place]()
        for each in self._of(work):
            has[each.cluster, each.subset] += each.replicas
        return has

    def _total(self, work: Work) -> int:
        return self._has(work).total()

    def _order(self, work: Work) -> list[ClusterName]:
        return list(self.made.entries(work))

    def _places(self, work: Work) -> list[Place]:
        """List the places of a workload in order: subsets with their clusters by name, then what the policy names."""
        spread = work.policy.spread
        if spread is None:
            return [(name, "") for name in self._order(work)]
        inside = [
            (name, subset.name)
            for subset in spread.subsets
            for name in sorted(self.made.sites)
            if self._selects(subset, name)
        ]
        taken = {name for name, _ in inside}
        return [*inside, *((name, "") for name in self._order(work) if name not in taken)]

    def _selects(self, subset: Subset, name: ClusterName) -> bool:
        assert subset.required is not None
        (label,) = subset.required.labels
        return self.made.sites[name].region in label.values

    def _limit(self, work: Work, name: ClusterName) -> int | None:
        entry = self.made.entries(work).get(name)
        return None if entry is None else work.policy.candidates[entry].max_replicas

    def _most(self, work: Work, subset: Subset, placed: int) -> int | None:
        """Return the maximum of a subset; a percentage is of all replicas, wanted or placed."""
        demand = self.made.inputs.demands[work.id]
        if subset.most is None:
            return None
        if not isinstance(demand, Demand):
            return None if subset.most.percent else subset.most.number
        total = max(demand.wanted, demand.running + max(demand.missing, placed))
        return -(-subset.most.number * total // 100) if subset.most.percent else subset.most.number

    def _room(self, work: Work, name: ClusterName) -> int:
        """Count the replicas for which nodes are free, less those that are on their way to them."""
        seen = self.made.inputs.observed.clusters.get(name)
        if seen is None:
            return 0
        pods = sum(node.free.amounts.get(GPU, 0) // (ONE * work.gpus) for pool in seen.pools for node in pool.nodes)
        on = [each for each in self.standing.values() if each.cluster == name]
        for each in on:
            size = each.shape.group_size
            unbound = max(0, each.replicas - seen.bound.get(each.name, 0) // size)
            waiting = seen.pending_pods.get(each.name)
            waits = 0 if waiting is None else min(each.replicas, -(-waiting.replicas // size))
            if self.now - each.changed_at < IN_FLIGHT:
                waits = max(waits, unbound)
            pods -= waits * size
        names = {each.name for each in on}
        pods -= sum(each.replicas for other, each in seen.pending_pods.items() if other not in names)
        return max(0, pods) // work.unit.pods

    def _serves(self, placement: Placement) -> bool:
        seen = self.made.inputs.observed.clusters.get(placement.cluster)
        return seen is not None and seen.bound.get(placement.name, 0) >= placement.replicas * placement.shape.group_size

    def _last_first(self, work: Work, here: Sequence[Placement]) -> list[Placement]:
        ranks = {place: rank for rank, place in enumerate(self._places(work))}
        return sorted(here, key=lambda each: (ranks[each.cluster, each.subset], each.created_at), reverse=True)

    def _why_forbidden(self, work: Work, site: Site, subset: str) -> Iterator[str]:
        policy = work.policy
        if site.availability is Availability.DRAINING:
            yield "draining"
        if (site.name, subset) not in self._places(work):
            yield "not named"
        if any(value != (site.region if key == "region" else "") for key, value in policy.require_labels.items()):
            yield "labels"
        if any(taint.effect == "NoExecute" for taint in site.taints) and not policy.tolerations:
            yield "taint"

    def _why_refused(self, work: Work, site: Site, subset: str) -> Iterator[str]:
        yield from self._why_forbidden(work, site, subset)
        if site.availability is not Availability.ACTIVE:
            yield "cordoned"
        if site.taints and not work.policy.tolerations:
            yield "taint"
        if not site.seen:
            yield "not seen"
        for restraint in self.held_back.get(work.id, ()):
            if restraint.cluster == site.name and restraint.subset in ("", subset):
                yield restraint.reason


def _replicas(placement: Placement) -> int:
    return placement.replicas


def _kept(
    work: Work,
    more: int,
    shares: Sequence[Share],
    has: Mapping[ClusterName, int],
    before: Mapping[ClusterName, int] | None = None,
) -> dict[ClusterName, int]:
    """Return the replicas that each cluster of one tier or subset keeps by the reverse of placing.

    This number is kept beside what is kept `before` in any case, such as a minimum.
    """
    before = before if before is not None else {share.name: 0 for share in shares}
    most = {share.name: has[share.name] - before[share.name] for share in shares}
    match work.policy.distribution.strategy:
        case StrategyName.AGGREGATED:
            order = sorted(shares, key=lambda share: (-has[share.name], share.rank))
            return _in_turn(more, [replace(share, free=most[share.name]) for share in order])
        case StrategyName.ORDERED:
            return _in_turn(more, [replace(share, free=most[share.name]) for share in shares])
        case StrategyName.WEIGHTED:
            total = more + sum(before.values())
            seats = _seats(total, shares, lambda share: share.weight, lambda share: has[share.name], begin=before)
            return {name: number - before[name] for name, number in seats.items()}
        case StrategyName.BALANCED:
            return _seats(more, shares, lambda share: share.free, lambda share: most[share.name])


def _in_copies(has: Counter[Place]) -> Counter[Place]:
    return Counter({place: replicas // COPY for place, replicas in has.items()})


def _in_turn(more: int, shares: Sequence[Share]) -> dict[ClusterName, int]:
    """Fill one cluster after the other."""
    counts = {}
    for share in shares:
        counts[share.name] = min(more, share.free)
        more -= counts[share.name]
    return counts


def _seats(
    total: int,
    shares: Sequence[Share],
    weight: Callable[[Share], int],
    most: Callable[[Share], int],
    begin: Mapping[ClusterName, int] | None = None,
) -> dict[ClusterName, int]:
    """Hand out seats one by one by Webster's method: to the largest weight / (2 x seats + 1), then the fewest seats."""
    seats = dict(begin) if begin is not None else {share.name: 0 for share in shares}
    while sum(seats.values()) < total:
        able = [share for share in shares if seats[share.name] < most(share) and weight(share)]
        if not able:
            break
        bids = {
            share.name: (-Fraction(weight(share), 2 * seats[share.name] + 1), seats[share.name], share.rank)
            for share in able
        }
        seats[min(able, key=lambda share: bids[share.name]).name] += 1
    return seats


def _best(more: int, shares: Sequence[Share], distribution: Distribution) -> Reach:
    """Try every choice of clusters within the upper bounds: most groups and clusters that are wanted, then replicas."""
    begun = [share for share in shares if share.keeps]
    others = [share for share in shares if not share.keeps]
    total, constraints = more + sum(share.keeps for share in begun), distribution.spread_constraints
    best: tuple[int, ...] = ()
    for number in range(len(others) + 1):
        for chosen in combinations(others, number):
            taken = [*begun, *chosen]
            groups = _count_groups(taken, distribution)
            # Where groups are lacking, places of clusters are kept for them: no group takes a second one of these.
            kept = [
                max(0, bound.min_groups - has) if len(chosen) > has - had else 0
                for bound, has, had in zip(constraints, groups, _count_groups(begun, distribution), strict=True)
            ]
            over = distribution.max_clusters is not None and len(taken) + max((0, *kept)) > distribution.max_clusters
            over |= any(
                bound.max_groups is not None and has > max(bound.max_groups, had)
                for bound, has, had in zip(constraints, groups, _count_groups(begun, distribution), strict=True)
            )
            if over and chosen:
                continue
            reach = (
                *(min(has, bound.min_groups, total) for has, bound in zip(groups, constraints, strict=True)),
                min(len(taken), distribution.min_clusters, total),
                min(more, sum(share.free for share in taken)),
            )
            best = max(best, reach)
    *groups_reached, clusters_reached, placed = best
    short = clusters_reached < min(distribution.min_clusters, total) or any(
        has < min(bound.min_groups, total) for has, bound in zip(groups_reached, constraints, strict=True)
    )
    if short:
        # Each that can be reached gets one replica and no more.
        placed = min(more, max(0, max(clusters_reached, *groups_reached, 0) - len(begun)))
        if len(constraints) > 1:
            raise DeclinedError("labels that cross, of which one is out of reach")
    replicas = sum(share.keeps for share in begun) + placed
    return Reach(replicas=replicas, clusters=clusters_reached, groups=tuple(groups_reached))


def _count_groups(shares: Sequence[Share], distribution: Distribution) -> tuple[int, ...]:
    """Count the values of each label."""
    labels = range(len(distribution.spread_constraints))
    return tuple(len({share.groups[index] for share in shares}) for index in labels)


def differences(made: Pass) -> list[str] | None:
    """Compare a pass with what the naive decider makes of its input; None where that declines."""
    try:
        return list(Decider(made).decide())
    except DeclinedError:
        return None


__all__ = ["Decider", "DeclinedError", "differences"]
