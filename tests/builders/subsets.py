"""Short ways to say a WorkloadSpread, the clusters that it is over, and what a pass makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from reconciler.core.decide.distribution import ClusterShare
from reconciler.core.decide.distribution.subsets import Layer, give_back, share_out
from reconciler.core.observe.demand import DemandHistory, Sample
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, Node, Pool
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.requirements import Requirement, Requirements, equals
from reconciler.model.kubernetes.workload_spread import Bound, Subset, WorkloadSpread
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan
from reconciler.model.policy import BurstPolicy, Cluster, Desired, Distribution, StrategyName
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.inputs import NOW, VLLM, cluster, desired, gpus, placement

POOL, TIER = "pool", "tier"


def term(**labels: str) -> Requirements:
    return Requirements(labels=tuple(equals(key, value) for key, value in labels.items()))


def named(*names: str) -> Requirements:
    return Requirements(fields=(Requirement(key="metadata.name", operator="In", values=names),))


def subset(
    name: str, required: Requirements | None = None, *, most: int | str | None = None, **fields: object
) -> Subset:
    """Make a subset; ``"30%"`` is a percentage."""
    bound = None if most is None else Bound(number=int(str(most).rstrip("%")), percent=isinstance(most, str))
    return Subset(name=name, required=required, most=bound, **fields)


def spreading(*subsets: Subset, **fields: object) -> BurstPolicy:
    spread = WorkloadSpread(
        name="pools",
        namespace="demo",
        group="apps",
        target=WorkloadRef(namespace="demo", name="vllm", kind="Deployment"),
        subsets=subsets,
    )
    return replace(BurstPolicy(name="gpu", spread=spread), **fields)


CLUSTERS = (
    cluster("worker-1", labels={TIER: "home"}),
    cluster("worker-2", labels={TIER: "own"}),
    cluster("worker-3", labels={TIER: "own"}),
    cluster("worker-4", labels={TIER: "rented"}),
)


def fleet(*subsets: Subset, pools: bool = False, clusters: tuple[Cluster, ...] = CLUSTERS, **fields: object) -> Desired:
    """Make a fleet with a spread; `pools` has the template name what it makes by subset."""
    made = desired(spreading(*subsets, **fields), clusters=clusters)
    if not pools:
        return made
    (one,) = made.templates.values()
    (resource,) = one.spec.manifests
    metadata = {"name": "vllm-{{ placement.subset }}", "namespace": "demo"}
    manifest = replace(resource, manifest={**resource.manifest, "metadata": metadata})
    return replace(made, templates={VLLM: replace(one, spec=replace(one.spec, manifests=(manifest,)))})


def with_pods(made: Desired, template: Mapping[str, Json]) -> Desired:
    """Let the pods of the workload be made from this template."""
    (one,) = made.templates.values()
    (resource,) = one.spec.manifests
    labels = (template.get("metadata") or {}).get("labels") or {}
    selector = {"matchLabels": {key: value for key, value in labels.items() if key == "app"}}
    manifest = {**resource.manifest, "spec": {"selector": selector, **resource.manifest["spec"], "template": template}}
    spec = replace(one.spec, manifests=(replace(resource, manifest=manifest),))
    return replace(made, templates={VLLM: replace(one, spec=spec)})


def unknown_pods(made: Desired) -> Desired:
    """Let nobody know the pods of the workload beforehand: they read how many replicas there are."""
    return with_pods(made, {"spec": {"containers": [{"name": "vllm", "image": "vllm", "args": ["{{ replicas }}"]}]}})


def adaptive(*subsets: Subset, after: int = 30) -> Desired:
    """Make a fleet whose spread gives up on a subset where replicas have had no node for so many seconds."""
    made = fleet(*subsets)
    policy = made.policies[VLLM]
    assert policy.spread is not None
    spread = replace(policy.spread, reschedule=timedelta(seconds=after))
    return replace(made, policies={VLLM: replace(policy, spread=spread)})


def numbered(*subsets: Subset, **fields: object) -> Desired:
    """Make a fleet whose spread targets a StatefulSet; it names by subset what it makes."""
    made = fleet(*subsets, pools=True, **fields)
    policy = made.policies[VLLM]
    assert policy.spread is not None
    target = replace(policy.spread.target, kind="StatefulSet")
    return replace(made, policies={VLLM: replace(policy, spread=replace(policy.spread, target=target))})


def pooled(name: str, **rooms: int) -> ClusterObservation:
    """Observe a cluster with pools that are labelled by their names, each with one node of so many free GPUs."""
    pools = tuple(
        Pool(name=pool, nodes=(Node(name=f"{pool}-0", free=gpus(room)),), labels={POOL: pool})
        for pool, room in rooms.items()
    )
    return ClusterObservation(cluster=ClusterName(name), observed_at=NOW, pools=pools)


def out(made: Plan) -> dict[str, int]:
    """Say what is placed where, as ``worker-2/h100``."""
    return {one.placement.where: one.placement.replicas for one in made.changes if one.action is Action.PLACE}


def kept(made: Plan) -> list[tuple[str, int]]:
    """Say in order what comes to have how many."""
    changed = [one for one in made.changes if one.action in (Action.REVERT, Action.RESIZE)]
    return [
        (one.placement.where, 0) if one.action is Action.REVERT else (one.after.where, one.after.replicas)
        for one in changed
    ]


def stands(name: str, replicas: int, subset: str = "", **fields: object) -> Placement:
    return placement(name, replicas, subset=subset, **fields)


OWN, RENTED = subset("own", term(tier="own"), most=4), subset("rented", term(tier="rented"))


def wanted_before(missing: int) -> DemandHistory:
    """Let so many have been missing for an hour."""
    return {VLLM: (Sample(at=NOW - timedelta(hours=1), missing=missing),)}


LAYERS = {"reserved": (2, None), "shared": (6, 3), "spot": (8, None)}
"""Three subsets in order: what fits on their nodes, and the most that each may hold. The golden story has the same."""

MANY, FEW = 7, 4
"""How many are wanted at first, and how many are needed later."""


def picture() -> str:
    """Draw where replicas of subsets in order go (#), and which of them come home when fewer are needed (o)."""
    rows = [("", list(LAYERS)), ("room", ["." * room for room, _ in LAYERS.values()])]
    rows += [
        (f"{wanted} wanted", ["#" * row[0] for row in share_out(wanted, _layers(), StrategyName.ORDERED)])
        for wanted in (3, MANY)
    ]
    (has,) = zip(*share_out(MANY, _layers(), StrategyName.ORDERED), strict=True)
    for told, least, gone in (("", {}, ""), ("spot at least 1", {"spot": 1}, ""), ("shared is gone", {}, "shared")):
        there = _layers(has=dict(zip(LAYERS, has, strict=True)), least=least, gone=gone)
        kept = dict(
            zip([*(name for name in LAYERS if name != gone), gone], give_back(FEW, there, Distribution()), strict=False)
        )
        line = ["#" * kept[name][0] + "o" * (now - kept[name][0]) for name, now in zip(LAYERS, has, strict=True)]
        rows.append((f"then {FEW}, {told}" if told else f"then {FEW}", line))
    lines = ([name.ljust(24), *(cell.ljust(10) for cell in cells)] for name, cells in rows)
    return "".join("".join(line).rstrip() + "\n" for line in lines)


def _layers(
    *, has: Mapping[str, int] | None = None, least: Mapping[str, int] | None = None, gone: str = ""
) -> list[Layer]:
    """Make layers of what is free, or of what is there; one that is gone comes last and may hold nothing."""
    made = []
    for name in (*(one for one in LAYERS if one != gone), *([gone] if gone else [])):
        room, most = LAYERS[name]
        fits = room if has is None else has[name]
        target = ClusterShare(cluster=ClusterName(name), rank=1, most=fits, capacity=fits)
        made.append(Layer(shares=(target,), most=0 if name == gone else most, least=(least or {}).get(name, 0)))
    return made
