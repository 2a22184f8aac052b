"""Random chains of passes over random fleets, of all kinds of units.

Each is drawn from a seed, so that all that a fleet may be is as likely as it says here: hypothesis' own choices repeat
the simplest ones. What fails is not made smaller, but a pass says all that a reader needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from random import Random

from hypothesis import settings
from hypothesis import strategies as st

from reconciler.model.approval import ApprovalRule
from reconciler.model.ids import ClusterName, PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.model.kubernetes.workload_spread import Bound, Subset, WorkloadSpread
from reconciler.model.placement import Restraint, RestraintKind
from reconciler.model.policy import (
    Availability,
    BurstPolicy,
    ClusterPreference,
    Distribution,
    MoveBudget,
    Renewal,
    SpreadConstraint,
    StrategyName,
)
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.inputs import GPU, NOW
from tests.oracle.world import SITES, Pass, Site, Step, Unit, Work, World, play

MOST = settings(max_examples=min(settings.default.max_examples, 60))
"""A chain is up to eight passes, so that each of these tests tries no more of them in `make properties`."""

REGIONS = ("eu", "us", "ap")
ZONES = ("a", "b")
TEAM = Taint(key="team")
EVICTING = Taint(key="team", effect="NoExecute")
TOLERATES = (Toleration(key="team", operator="Exists"),)
MINUTE = timedelta(minutes=1)
BURSTS = tuple(unit for unit in Unit if unit.is_burst)
Change = Callable[[Random], object]


def term(region: str) -> Requirements:
    """Select the clusters of a region."""
    return Requirements(labels=(Requirement(key="region", operator="In", values=(region,)),))


def spread(name: str, *subsets: Subset, reschedule: timedelta | None = None) -> WorkloadSpread:
    """Make a spread of a workload."""
    return WorkloadSpread(
        name="regions",
        namespace="demo",
        group="apps",
        target=WorkloadRef(namespace="demo", name=name, kind="Deployment"),
        subsets=subsets,
        reschedule=reschedule,
    )


def _nodes(random: Random) -> tuple[int, ...]:
    return tuple(random.choices([1, 2, 4, 8], k=random.randint(1, 2)))


CHANGES: Mapping[str, Change] = {
    "nodes": _nodes,
    "used": lambda random: tuple(random.choices([0, 2, 8], k=2)),
    "availability": lambda random: random.choice(list(Availability)),
    "region": lambda random: random.choice(REGIONS),
    "taints": lambda random: random.choice([(), (TEAM,), (EVICTING,)]),
    "seen": lambda random: random.random() < 0.5,
}
"""What may become of a cluster."""

CALM: Mapping[str, Change] = {
    "used": CHANGES["used"],
    "availability": lambda random: random.choice([Availability.ACTIVE, Availability.CORDONED]),
    "seen": CHANGES["seen"],
}
"""Changes after which nothing has to move."""


def _site(random: Random, name: ClusterName) -> Site:
    return Site(
        name=name,
        nodes=_nodes(random),
        region=random.choice(REGIONS),
        zone=random.choice(ZONES),
        taints=random.choice([(), (), (), (TEAM,), (EVICTING,)]),
        availability=random.choice([Availability.ACTIVE] * 5 + [Availability.CORDONED]),
    )


def _distribution(random: Random) -> Distribution:
    strategy = random.choice(list(StrategyName))
    tiers = strategy is not StrategyName.ORDERED and random.random() < 0.5
    if random.random() < 0.5:
        return Distribution(strategy=strategy, tiers=tiers)
    least, most = random.choice([(0, None), (2, None), (0, 2), (2, 2), (0, 1)])
    labels = random.choice([(), ("region",), ("region",), ("zone",), ("region", "zone"), ("zone", "region")])
    bounds = (random.choice([(2, None), (0, 1), (2, 2), (0, 2)]) for _ in labels)
    constraints = (
        SpreadConstraint(label=label, min_groups=few, max_groups=many)
        for label, (few, many) in zip(labels, bounds, strict=True)
    )
    return Distribution(
        strategy=strategy,
        min_clusters=least,
        max_clusters=most,
        spread_constraints=tuple(constraints),
        tiers=tiers,
    )


def _by_region(random: Random, candidates: Sequence[ClusterPreference]) -> tuple[ClusterPreference, ...]:
    """Make entries of the regions in some order, with the numbers of other entries."""
    regions = random.sample(REGIONS, k=len(REGIONS))
    numbers = (random.choice(candidates) for _ in regions)
    return tuple(
        replace(entry, name=None, match_labels={"region": region})
        for region, entry in zip(regions, numbers, strict=True)
    )


def _patch(random: Random) -> Json:
    """Draw what a subset changes in its pods: nothing, a label, or their GPUs."""
    resources = {"limits": {GPU: str(random.choice([1, 2, 4]))}}
    return random.choice(
        [
            {},
            {},
            {"metadata": {"labels": {"tier": "burst"}}},
            {"spec": {"containers": [{"name": "main", "resources": resources}]}},
        ]
    )


def _spread(random: Random, name: str) -> WorkloadSpread:
    bounds = (None, None, Bound(number=2), Bound(number=50, percent=True))
    subsets = (
        Subset(
            name=region,
            required=term(region),
            most=random.choice(bounds),
            least=random.choice([0, 0, 1]),
            patch=_patch(random),
        )
        for region in random.sample(REGIONS, k=random.randint(1, 3))
    )
    return spread(name, *subsets, reschedule=random.choice([None, timedelta(seconds=30)]))


def _of_one_size(made: WorkloadSpread | None) -> WorkloadSpread | None:
    """Return a spread whose patches leave the GPUs of pods as they are."""
    if made is None:
        return None
    return replace(
        made, subsets=tuple(replace(each, patch={} if "spec" in each.patch else each.patch) for each in made.subsets)
    )


def _policy(random: Random, name: str, unit: Unit, names: Sequence[ClusterName]) -> BurstPolicy:
    limit = random.choice([None, None, None, 2, 3])
    candidates = tuple(
        ClusterPreference(name=each, max_replicas=limit, weight=random.choice([1, 1, 2, 3]))
        for each in random.sample(names, k=len(names))
    )
    made = BurstPolicy(
        name=f"of-{name}",
        candidates=candidates,
        require_labels=random.choice([{}, {}, {}, {"region": "eu"}]),
        tolerations=random.choice([(), TOLERATES]),
        max_replicas=random.choice([None, None, 3]),
        priority=random.choice([0, 0, 10]),
        scale_down_window=random.choice([MINUTE, 5 * MINUTE]),
        cool_down=random.choice([timedelta(), 5 * MINUTE]),
        renew=random.choice(list(Renewal)),
        max_duration=random.choice([None, 25 * MINUTE]),
        moves=MoveBudget(most_per_hour=random.choice([0, 1, 6])),
    )
    if unit is Unit.SUBSET:
        strategy = Distribution(strategy=random.choice(list(StrategyName)))
        clusters = random.choice([(), candidates])
        return replace(made, spread=_spread(random, name), candidates=clusters, distribution=strategy)
    if unit is not Unit.REPLICA:
        return replace(made, distribution=_distribution(random)) if unit.is_divided else made
    entries = random.choice([candidates, candidates, _by_region(random, candidates)])
    return replace(made, candidates=entries, distribution=_distribution(random))


def _work(random: Random, number: int, units: Sequence[Unit], names: Sequence[ClusterName]) -> Work:
    name, unit = f"w{number}", random.choice(units)
    return Work(
        id=WorkloadId(
            WorkspaceName(random.choice(["llm", "llm", "vision"])), TemplateName(name), request=not unit.is_burst
        ),
        unit=unit,
        policy=_policy(random, name, unit, names),
        gpus=random.choice([1, 1, 2]),
    )


def _step(random: Random, names: Sequence[ClusterName], number: int, *, calm: bool) -> Step:
    known = CALM if calm else CHANGES
    changed: dict[ClusterName, Mapping[str, object]] = {}
    for name in names:
        if random.random() < 0.3:
            field = random.choice(list(known))
            changed[name] = {field: known[field](random)}
    fields: dict[str, object] = {}
    if random.random() < 0.2:
        fields["max_replicas"] = 2
    if not calm and random.random() < 0.2:
        fields["require_labels"] = random.choice([{}, {"region": "us"}])
    return Step(
        after=timedelta(seconds=random.choice([1, 31, 61, 131, 301, 480, 601])),
        missing={place: random.randint(0, 9) for place in range(number) if random.random() < 0.6},
        waited=random.choice([45, 45, 45, 5]),
        sites=changed,
        policies={random.randrange(number): fields} if fields else {},
        slow=random.random() < 0.3,
    )


def _cool_down(random: Random, names: Sequence[ClusterName]) -> Restraint:
    return Restraint(
        kind=RestraintKind.COOL_DOWN,
        cluster=random.choice([None, *names, *names]),
        since=NOW,
        until=NOW + random.choice([2, 5]) * MINUTE,
        reason="it failed there",
        placement=PlacementName("earlier"),
    )


def _approval(random: Random, names: Sequence[ClusterName]) -> ApprovalRule | None:
    above, some = ApprovalRule(above_gpus=random.choice([1, 3])), ApprovalRule(clusters=(random.choice(names),))
    return random.choice([None, ApprovalRule(), above, some])


def _asking(random: Random, step: Step) -> Step:
    return replace(step, approves=random.random() < 0.6, ends=random.random() < 0.1)


def chain(random: Random, *, units: Sequence[Unit] = BURSTS, calm: bool = False, people: bool = False) -> list[Pass]:
    """Draw a fleet and what becomes of it, and return its passes.

    In a `calm` one little moves: it is of one workspace, whose workloads have priorities and pods of one size. In one
    with `people` these approve bursts, and end some.
    """
    names, number = SITES[: random.randint(2, 4)], random.randint(1, 3 if calm else 2)
    works = [_work(random, place, units, names) for place in range(number)]
    if calm:
        llm, size = WorkspaceName("llm"), random.randint(1, 2)
        works = [
            replace(
                work,
                id=WorkloadId(llm, work.id.name),
                gpus=size,
                policy=replace(work.policy, priority=10 * place, spread=_of_one_size(work.policy.spread)),
            )
            for place, work in enumerate(works)
        ]
    if people:
        works = [replace(work, policy=replace(work.policy, approval=_approval(random, names))) for work in works]
    world = World(tuple(_site(random, name) for name in names), tuple(works))
    for work in works:
        if random.random() < 0.3:
            world.hold_back(work.id, _cool_down(random, names))
    first = Step(after=MINUTE, missing={place: random.randint(1, 9) for place in range(number)})
    rest = (_step(random, names, number, calm=calm) for _ in range(random.randint(1, 7)))
    return play(world, first, *((_asking(random, step) for step in rest) if people else rest))


def chains(
    units: Sequence[Unit] = BURSTS, *, calm: bool = False, people: bool = False
) -> st.SearchStrategy[list[Pass]]:
    """Draw chains, as `chain` does."""
    return st.randoms(use_true_random=True).map(partial(chain, units=units, calm=calm, people=people))
