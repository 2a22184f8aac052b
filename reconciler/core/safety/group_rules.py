"""Checks of a LeaderWorkerSet as in its webhook (docs/reference/groups.md, "LeaderWorkerSet").

Only checks of a single manifest: changes of immutable fields are for the cluster to refuse. Values with an expression
are skipped until they are rendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from reconciler.core.capacity.exclusive_topology import SUBGROUPS
from reconciler.core.workloads.paths import at
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, Loc, shortened

LWS = "leaderworkerset.x-k8s.io/LeaderWorkerSet"
MOST_GROUPS = 1_000_000
_MOST_PODS = 2**31 - 1
_GROUP = ("spec", "leaderWorkerTemplate")
_ROLLING = ("spec", "rolloutStrategy", "rollingUpdateConfiguration")
_NUMBERS: tuple[tuple[tuple[str, ...], int, int], ...] = (
    (("spec", "replicas"), 0, MOST_GROUPS),
    ((*_GROUP, "size"), 1, _MOST_PODS),
    ((*_GROUP, "subGroupPolicy", "subGroupSize"), 1, _MOST_PODS),
    ((*_ROLLING, "partition"), 0, _MOST_PODS),
)
_WORDS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("spec", "startupPolicy"): ("LeaderCreated", "LeaderReady"),
    (*_GROUP, "restartPolicy"): ("RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None", "Default"),
    (*_GROUP, "subGroupPolicy", "subGroupPolicyType"): ("LeaderWorker", "LeaderExcluded"),
    ("spec", "networkConfig", "subdomainPolicy"): ("Shared", "UniquePerReplica"),
}
_PERCENT, _ALL = re.compile(r"(\d{1,9})%"), 100


def check_groups(manifest: Mapping[str, Json], loc: Loc = ()) -> Iterator[Finding]:
    """Check a LeaderWorkerSet, each problem at its field."""
    for way, least, most in _NUMBERS:
        value = at(manifest, way)
        if type(value) is int and not least <= value <= most:
            message = f"is {value}, and LeaderWorkerSet takes {least} to {most}"
            yield Finding(loc=(*loc, *way), message=message, hint=f"try {max(least, 1)}")
    for way, words in _WORDS.items():
        value = at(manifest, way)
        if isinstance(value, str) and value and "{" not in value and value not in words:
            message = f"{shortened(value)!r} is nothing that LeaderWorkerSet knows"
            yield Finding(loc=(*loc, *way), message=message, hint=f"one of {', '.join(words)}")
    yield from _sizes(manifest, loc)
    yield from _rolling(manifest, loc)


def _sizes(manifest: Mapping[str, Json], loc: Loc) -> Iterator[Finding]:
    """Check numbers against each other: the pods of a set are countable, and subgroups divide a group evenly."""
    replicas, size = _number(manifest, ("spec", "replicas")), _number(manifest, (*_GROUP, "size"))
    if replicas is not None and size is not None and 1 <= replicas <= MOST_GROUPS and replicas * size > _MOST_PODS:
        message = f"{replicas} groups of {size} pods are more than LeaderWorkerSet can count"
        yield Finding(loc=(*loc, *_GROUP, "size"), message=message, hint="make the groups smaller, or fewer")
    policy = at(manifest, (*_GROUP, "subGroupPolicy"))
    annotations = at(manifest, ("metadata", "annotations"))
    if policy is None and isinstance(annotations, Mapping) and SUBGROUPS in annotations:
        message = "asks for domains of subgroups, and the set has no subgroups"
        hint = "set spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"
        yield Finding(loc=(*loc, "metadata", "annotations", SUBGROUPS), message=message, hint=hint)
    subgroup = at(manifest, (*_GROUP, "subGroupPolicy", "subGroupSize"))
    if type(subgroup) is not int or subgroup < 1 or size is None or size < 1:
        return
    excluded = at(manifest, (*_GROUP, "subGroupPolicy", "subGroupPolicyType")) == "LeaderExcluded"
    even = (size - 1) % subgroup == 0 or (size % subgroup == 0 and not excluded)
    if subgroup > size or not even:
        workers = f"{size - 1} workers" if excluded else f"{size} pods, or {size - 1} without the leader,"
        message = f"subgroups of {subgroup} do not share {workers} evenly"
        yield Finding(loc=(*loc, *_GROUP, "subGroupPolicy", "subGroupSize"), message=message, hint="try a divisor")


def _rolling(manifest: Mapping[str, Json], loc: Loc) -> Iterator[Finding]:
    """Check maxUnavailable and maxSurge of a rolling update; one of them has to be above zero."""
    none = []
    for name in ("maxUnavailable", "maxSurge"):
        value, where = at(manifest, (*_ROLLING, name)), (*loc, *_ROLLING, name)
        percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
        if (percent and int(percent[1]) > _ALL) or (type(value) is int and value < 0):
            yield Finding(loc=where, message=f"is {value}, and LeaderWorkerSet takes 0 to 100%", hint="try 1")
        none.append((percent is not None and int(percent[1]) == 0) or (type(value) is int and value == 0))
    if all(none):
        where = (*loc, *_ROLLING, "maxUnavailable")
        yield Finding(loc=where, message="may not be 0 where maxSurge is 0", hint="try 1")


def _number(manifest: Mapping[str, Json], way: tuple[str, ...]) -> int | None:
    """Read a whole number that defaults to 1; None for another value."""
    value = at(manifest, way)
    return 1 if value is None else value if type(value) is int else None
