"""Random chains of passes over random fleets, of all kinds of units."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st

from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.scheduling import NodeRequirement, NodeTerm, Taint, Toleration
from reconciler.model.kubernetes.workload_spread import Bound, Subset, WorkloadSpread
from reconciler.model.policy import (
    Availability,
    BurstPolicy,
    ClusterPreference,
    Distribution,
    MoveBudget,
    Renewal,
    StrategyName,
)
from reconciler.model.workload import WorkloadRef
from tests.oracle.world import SITES, Pass, Site, Step, Unit, Work, World, play

REGIONS = ("eu", "us", "ap")
TEAM = Taint(key="team")
EVICTING = Taint(key="team", effect="NoExecute")
TOLERATES = (Toleration(key="team", operator="Exists"),)
MINUTE = timedelta(minutes=1)


def term(region: str) -> NodeTerm:
    """Select the clusters of a region."""
    return NodeTerm(labels=(NodeRequirement(key="region", operator="In", values=(region,)),))


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


@st.composite
def sites(draw: st.DrawFn, number: int) -> Site:
    return Site(
        name=SITES[number],
        nodes=tuple(draw(st.lists(st.sampled_from([2, 4, 8]), min_size=1, max_size=2))),
        region=draw(st.sampled_from(REGIONS)),
        taints=draw(st.sampled_from([(), (), (), (TEAM,), (EVICTING,)])),
        availability=draw(st.sampled_from([Availability.ACTIVE] * 5 + [Availability.CORDONED])),
    )


@st.composite
def distributions(draw: st.DrawFn) -> Distribution:
    strategy = draw(st.sampled_from(list(StrategyName)))
    least, most = draw(st.sampled_from([(0, None), (0, None), (2, None), (0, 2), (2, 2), (0, 1)]))
    groups = draw(st.sampled_from([(0, None), (0, None), (2, None), (0, 1), (2, 2)]))
    label = "region" if groups != (0, None) or draw(st.booleans()) else ""
    return Distribution(
        strategy=strategy,
        min_clusters=least,
        max_clusters=most,
        spread_by=label,
        min_groups=groups[0],
        max_groups=groups[1],
    )


@st.composite
def spreads(draw: st.DrawFn, name: str) -> WorkloadSpread:
    regions = draw(st.permutations(REGIONS))[: draw(st.integers(1, 3))]
    subsets = [
        Subset(
            name=region,
            required=term(region),
            most=draw(st.sampled_from([None, None, Bound(number=2), Bound(number=50, percent=True)])),
            least=draw(st.sampled_from([0, 0, 1])),
        )
        for region in regions
    ]
    reschedule = draw(st.sampled_from([None, timedelta(seconds=30)]))
    return spread(name, *subsets, reschedule=reschedule)


@st.composite
def policies(draw: st.DrawFn, name: str, unit: Unit, names: list[ClusterName]) -> BurstPolicy:
    limit = draw(st.sampled_from([None, None, None, 2, 3]))
    weights = st.sampled_from([1, 1, 2, 3])
    order = draw(st.permutations(names))
    candidates = tuple(ClusterPreference(name=each, max_replicas=limit, weight=draw(weights)) for each in order)
    made = BurstPolicy(
        name=f"of-{name}",
        candidates=candidates,
        require_labels=draw(st.sampled_from([{}, {}, {}, {"region": "eu"}])),
        tolerations=draw(st.sampled_from([(), TOLERATES])),
        max_replicas=draw(st.sampled_from([None, None, 3])),
        priority=draw(st.sampled_from([0, 0, 10])),
        scale_down_window=draw(st.sampled_from([MINUTE, 5 * MINUTE])),
        cool_down=draw(st.sampled_from([timedelta(), 5 * MINUTE])),
        renew=draw(st.sampled_from(list(Renewal))),
        max_duration=draw(st.sampled_from([None, 25 * MINUTE])),
        moves=MoveBudget(most_per_hour=draw(st.sampled_from([0, 1, 6]))),
    )
    if unit is Unit.SUBSET:
        return replace(made, spread=draw(spreads(name)), candidates=draw(st.sampled_from([(), candidates])))
    if unit is Unit.REPLICA:
        return replace(made, distribution=draw(distributions()))
    return made


@st.composite
def works(draw: st.DrawFn, number: int, units: list[Unit], names: list[ClusterName]) -> Work:
    name, unit = f"w{number}", draw(st.sampled_from(units))
    return Work(
        id=WorkloadId(WorkspaceName(draw(st.sampled_from(["llm", "llm", "vision"]))), TemplateName(name)),
        unit=unit,
        policy=draw(policies(name, unit, names)),
        gpus=draw(st.sampled_from([1, 1, 2])),
    )


CHANGES: dict[str, st.SearchStrategy[object]] = {
    "nodes": st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=2).map(tuple),
    "used": st.lists(st.sampled_from([0, 2, 8]), min_size=2, max_size=2).map(tuple),
    "availability": st.sampled_from(list(Availability)),
    "region": st.sampled_from(REGIONS),
    "taints": st.sampled_from([(), (TEAM,), (EVICTING,)]),
    "seen": st.booleans(),
}


@st.composite
def steps(draw: st.DrawFn, names: list[ClusterName], number: int) -> Step:
    missing = draw(st.dictionaries(st.integers(0, number - 1), st.integers(0, 6), max_size=number))
    changed = {
        name: {field: draw(CHANGES[field]) for field in draw(st.lists(st.sampled_from(sorted(CHANGES)), max_size=1))}
        for name in names
    }
    labels = draw(st.sampled_from([None, None, None, {}, {"region": "us"}]))
    most = draw(st.sampled_from([None, None, None, 2]))
    fields: dict[str, object] = {} if labels is None else {"require_labels": labels}
    fields |= {} if most is None else {"max_replicas": most}
    return Step(
        after=draw(st.sampled_from([1, 31, 61, 131, 301, 480, 601])) * timedelta(seconds=1),
        missing=missing,
        sites={name: values for name, values in changed.items() if values},
        policies={draw(st.integers(0, number - 1)): fields} if fields else {},
    )


@st.composite
def chains(draw: st.DrawFn, units: tuple[Unit, ...] = tuple(Unit)) -> list[Pass]:
    """Draw a fleet and what becomes of it, and return its passes."""
    names = list(SITES[: draw(st.integers(2, 4))])
    number = draw(st.integers(1, 2))
    world = World(
        tuple(draw(sites(place)) for place in range(len(names))),
        tuple(draw(works(place, list(units), names)) for place in range(number)),
    )
    first = Step(after=MINUTE, missing={place: draw(st.integers(1, 6)) for place in range(number)})
    return play(world, first, *draw(st.lists(steps(names, number), min_size=1, max_size=6)))
