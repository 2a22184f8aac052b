"""Checks of a LeaderWorkerSet as in its webhook (docs/background/upstream/groups.md, "LeaderWorkerSet").

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
    ("spec", "rolloutStrategy", "type"): ("RollingUpdate",),
    ("spec", "startupPolicy"): ("LeaderCreated", "LeaderReady"),
    (*_GROUP, "restartPolicy"): ("RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None", "Default"),
    (*_GROUP, "subGroupPolicy", "subGroupPolicyType"): ("LeaderWorker", "LeaderExcluded"),
    ("spec", "networkConfig", "subdomainPolicy"): ("Shared", "UniquePerReplica"),
}
_PERCENT, _ALL = re.compile(r"([0-9]{1,9})%"), 100
_NAME, _LONGEST_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?"), 63
"""The name of a Service (DNS-1035), as a set has one of its own name."""


def check_groups(manifest: Mapping[str, Json], loc: Loc = ()) -> Iterator[Finding]:
    """Check a LeaderWorkerSet, each problem at its field."""
    yield from _name(manifest, loc)
    for field_path, least, most in _NUMBERS:
        value = at(manifest, field_path)
        if type(value) is int and not least <= value <= most:
            message = f"is {value}, and LeaderWorkerSet takes {least} to {most}"
            yield Finding(loc=(*loc, *field_path), message=message, hint=f"try {max(least, 1)}")
    for field_path, words in _WORDS.items():
        value = at(manifest, field_path)
        if isinstance(value, str) and value and "{" not in value and value not in words:
            message = f"{shortened(value)!r} is nothing that LeaderWorkerSet knows"
            yield Finding(loc=(*loc, *field_path), message=message, hint=f"one of {', '.join(words)}")
    yield from _sizes(manifest, loc)
    yield from _check_rolling_update(manifest, loc)


def _name(manifest: Mapping[str, Json], loc: Loc) -> Iterator[Finding]:
    """Check that a Service can have the name of the set."""
    name = at(manifest, ("metadata", "name"))
    if not isinstance(name, str) or not name or "{" in name:
        return
    if len(name) > _LONGEST_NAME or _NAME.fullmatch(name) is None:
        message = f"{shortened(name)!r} cannot be the name of the set's Service: small letters, digits and '-'"
        likely = re.sub(r"[^-a-z0-9]", "-", name.lower()).strip("-")[:_LONGEST_NAME]
        hint = f"try {likely if likely[:1].isalpha() else f'set-{likely}'.strip('-')!r}"
        yield Finding(loc=(*loc, "metadata", "name"), message=message, hint=hint)


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


def _check_rolling_update(manifest: Mapping[str, Json], loc: Loc) -> Iterator[Finding]:
    """Check maxUnavailable and maxSurge of a rolling update; of the replicas, one of them has to be above zero."""
    replicas = at(manifest, ("spec", "replicas"))
    if at(manifest, _ROLLING) is None or replicas == 0:
        return
    allowed: list[int | None] = []
    # Of a percentage, LeaderWorkerSet rounds what may be unavailable down, and what may be beside it up.
    for name, default, up in (("maxUnavailable", 1, False), ("maxSurge", 0, True)):
        value, where = at(manifest, (*_ROLLING, name)), (*loc, *_ROLLING, name)
        value = default if value is None else value
        if isinstance(value, str) and "{" in value:
            allowed.append(None)
            continue
        percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
        number = int(percent[1]) if percent else value
        if type(number) is not int or number < 0 or (percent and number > _ALL):
            message = f"is {shortened(str(value))}, and LeaderWorkerSet takes a whole number or 0% to 100%"
            yield Finding(loc=where, message=message, hint="try 1")
            number = None
        elif percent and number:
            total = 1 if replicas is None else replicas
            number = None if type(total) is not int else -(-total * number // _ALL) if up else total * number // _ALL
        allowed.append(number)
    if allowed == [0, 0]:
        where = (*loc, *_ROLLING, "maxUnavailable")
        yield Finding(loc=where, message="may not come to 0 replicas where maxSurge is 0", hint="try 1")


def _number(manifest: Mapping[str, Json], field_path: tuple[str, ...]) -> int | None:
    """Read a whole number that defaults to 1; None for another value."""
    value = at(manifest, field_path)
    return 1 if value is None else value if type(value) is int else None
