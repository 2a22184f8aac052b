"""Which pods of an object want a topology domain for themselves, by its annotations.

LeaderWorkerSet has an annotation for its groups and one for its subgroups, JobSet one for its jobs, on the set or on
one of its replicated jobs (spread-and-groups.md, section 5; the projects' own documentation of exclusive placement).
Whether or not they want domains, their pods have labels that keep others' groups out of where they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from reconciler.core.dialect import has_expression
from reconciler.core.domains import DomainUnit, Pods, TopologyDomains
from reconciler.core.fieldpath import at
from reconciler.core.gpushape import gpus_of_pod
from reconciler.core.keeping import joined
from reconciler.core.kinds import group_kind
from reconciler.core.kubernetes.neighbours import who
from reconciler.core.kubernetes.shapes import replica_shape
from reconciler.core.podsof import PodsMade, PodTemplateSite, groups, made, metadata_of
from reconciler.core.workloadkinds import Kinds, known
from reconciler.model.capacity import ReplicaShape
from reconciler.model.neighbours import Who
from reconciler.model.workload import Json
from reconciler.model.workloadkind import WorkloadKind

SUBGROUPS = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
_LWS, _JOBSET = "leaderworkerset.x-k8s.io/LeaderWorkerSet", "jobset.x-k8s.io/JobSet"
_GROUP_KEY, _SUBGROUP_KEY = "leaderworkerset.sigs.k8s.io/group-key", "leaderworkerset.sigs.k8s.io/subgroup-key"
_JOB_KEY = "jobset.sigs.k8s.io/job-key"
"""Labels that tell groups apart; every pod of a set has them."""

_GROUP = ("spec", "leaderWorkerTemplate")
_MOST = 10_000
"""Domains that are listed; no cluster has as many nodes (Kubernetes is made for 5,000), so that more fit nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusiveTopology:
    """The domains that pods of an object want, and its other pods.

    `marked` counts by label the pods that are in the way of groups elsewhere, and want no domain for that themselves.
    """

    domains: TopologyDomains | None = None
    loose: Pods = ()
    marked: Mapping[str, int] = field(default_factory=dict)


def exclusive(manifest: Mapping[str, Json], kinds: Kinds) -> ExclusiveTopology | None:
    """Read the domains that an object wants, and who is in its way; None for other kinds, or where it makes no pods.

    Raises LookupError and ValueError as `podsof.made` does.
    """
    kind = known(manifest, kinds)
    if kind is None:
        return None
    pods = [one for one in made(manifest, kinds) if one.replicas] if kind.name in (_LWS, _JOBSET) else []
    if not pods:
        return None
    return _of_set(manifest, kind, pods) if kind.name == _LWS else _of_jobs(manifest, kind, pods)


def who_of(manifest: Mapping[str, Json], place: PodTemplateSite) -> tuple[Who, ...]:
    """Return what the rules of other pods see in the pods of a template, with the labels that tell groups apart.

    What a group's key will be nobody knows; it is none that is there.
    """
    (seen,) = who(metadata_of(manifest, place))
    kind, marks = group_kind(manifest), dict[str, str]()
    if kind == _LWS:
        marks = {_GROUP_KEY: ""} | ({_SUBGROUP_KEY: ""} if at(manifest, (*_GROUP, "subGroupPolicy")) else {})
    elif kind == _JOBSET:
        marks = {_JOB_KEY: ""}
    return (seen._replace(labels=tuple(sorted({**dict(seen.labels), **marks}.items()))),) if marks else (seen,)


def subgroup_of(size: int, subgroup: int, worker: int) -> int:
    """Say which subgroup a pod of a group is in; worker 0 is the leader.

    Where the leader is one too many for even subgroups, the first has it beside its own (LeaderWorkerSet's
    getSubGroupIndex).
    """
    return worker // subgroup if size % subgroup == 0 else max(0, worker - 1) // subgroup


def _of_set(manifest: Mapping[str, Json], kind: WorkloadKind, pods: list[PodsMade]) -> ExclusiveTopology | None:
    number = groups(manifest, kind) or 0
    if not number:
        return None
    whole, part = _annotated(manifest, (), kind.apart), _annotated(manifest, (), SUBGROUPS)
    shapes = [(_shape(manifest, one), (one.replicas or 0) // number) for one in pods]
    inner, outside = _subgroups(manifest, shapes, part) if part else (None, ())
    every = number * sum(each for _, each in shapes)
    marked = {} if whole else {_GROUP_KEY: every}
    if inner is None and at(manifest, (*_GROUP, "subGroupPolicy")):
        marked[_SUBGROUP_KEY] = every
    if whole:
        unit = DomainUnit(pods=_summed(shapes), inner=inner)
        units, namespace = (unit,) * min(number, _MOST), _namespace(manifest)
        return ExclusiveTopology(
            domains=TopologyDomains(key=whole, units=units, mark=_GROUP_KEY, namespace=namespace), marked=marked
        )
    if inner is None:
        return ExclusiveTopology(marked=marked)
    domains = replace(inner, units=inner.units * min(number, -(-_MOST // len(inner.units))))
    loose = tuple((shape, each * number) for shape, each in outside)
    return ExclusiveTopology(domains=domains, loose=loose, marked=marked)


def _subgroups(
    manifest: Mapping[str, Json], shapes: list[tuple[ReplicaShape, int]], key: str
) -> tuple[TopologyDomains | None, Pods]:
    """Share the pods of one group out over its subgroups; with LeaderExcluded the leader is in none."""
    policy = at(manifest, (*_GROUP, "subGroupPolicy")) or {}
    subgroup = policy.get("subGroupSize")
    if type(subgroup) is not int or subgroup < 1:
        return None, ()
    outside: Pods = ()
    if policy.get("subGroupPolicyType") == "LeaderExcluded":
        (leader, leaders), *workers = shapes  # the leader's template comes first
        outside, shapes = ((leader, 1),), [(leader, leaders - 1), *workers]
    size = sum(number for _, number in shapes)
    number = subgroup_of(size, subgroup, size - 1) + 1 if size else 0
    firsts = [_first(size, subgroup, index) for index in range(min(number, _MOST) + 1)]
    made_of = tuple(DomainUnit(pods=_summed(_between(shapes, *ends))) for ends in pairwise(firsts))
    if not made_of:
        return None, ()
    domains = TopologyDomains(
        key=key, units=made_of, called="subgroup", mark=_SUBGROUP_KEY, namespace=_namespace(manifest)
    )
    return domains, outside


def _first(size: int, subgroup: int, index: int) -> int:
    """Say which pod of a group is the first of a subgroup, as `subgroup_of` has it."""
    return min(size, index * subgroup + (1 if index and size % subgroup else 0))


def _between(shapes: list[tuple[ReplicaShape, int]], first: int, end: int) -> list[tuple[ReplicaShape, int]]:
    """Count the pods from one to another by shape, of so many of each in a row."""
    found: list[tuple[ReplicaShape, int]] = []
    start = 0
    for shape, number in shapes:
        within = min(end, start + number) - max(first, start)
        found += [(shape, within)] if within > 0 else []
        start += number
    return found


def _of_jobs(manifest: Mapping[str, Json], kind: WorkloadKind, pods: list[PodsMade]) -> ExclusiveTopology | None:
    units: list[DomainUnit] = []
    loose: list[tuple[ReplicaShape, int]] = []
    keys: set[str] = set()
    for one in pods:
        shape, number = _shape(manifest, one), one.replicas or 0
        key = _annotated(manifest, (*one.place.item, "template"), kind.apart) or _annotated(manifest, (), kind.apart)
        if not key:
            loose.append((shape, number))
            continue
        jobs = at(manifest, (*one.place.item, "replicas"))
        several = jobs if type(jobs) is int and jobs > 0 else 1
        keys.add(key)
        units += [DomainUnit(pods=((shape, number // several),))] * min(several, _MOST)
    marked = {_JOB_KEY: sum(number for _, number in loose)}
    if not units:
        return ExclusiveTopology(marked=marked)
    if len(keys) > 1:
        raise ValueError(f"its jobs want domains of several labels: {', '.join(sorted(keys))}")
    domains = TopologyDomains(key=keys.pop(), units=tuple(units), called="job", mark=_JOB_KEY)
    return ExclusiveTopology(domains=domains, loose=tuple(loose), marked=marked)


def _shape(manifest: Mapping[str, Json], pods: PodsMade) -> ReplicaShape:
    """Read what pods ask of nodes; their rules are counted with all pods together."""
    return replace(replica_shape(pods.spec), who=who_of(manifest, pods.place))


def _namespace(manifest: Mapping[str, Json]) -> str:
    """Return the namespace that an object names; empty where nobody knows it."""
    namespace = at(manifest, ("metadata", "namespace"))
    return namespace if isinstance(namespace, str) and not has_expression(namespace) else ""


def _annotated(manifest: Mapping[str, Json], way: tuple[str, ...], name: str) -> str:
    """Return the value of an annotation; empty where there is none."""
    value = at(manifest, (*way, "metadata", "annotations", name)) if name else None
    return value if isinstance(value, str) else ""


def _summed(shapes: list[tuple[ReplicaShape, int]]) -> Pods:
    """Count pods that are alike together, those that take most of a node first."""
    found: dict[Hashable, tuple[ReplicaShape, int]] = {}
    for shape, number in shapes:
        alike, before = found.get(shape.likeness, (shape, 0))
        found[shape.likeness] = replace(shape, who=joined((alike, shape))), before + number
    return tuple(sorted(found.values(), key=lambda one: -gpus_of_pod(one[0])))
