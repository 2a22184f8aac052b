"""What LeaderWorkerSet's webhooks and its definition refuse, of main 060ab4d (2026-08-21, after 0.10.0).

Changes of immutable fields are in `immutable_rules`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from reconciler.core.capacity.exclusive_topology import SUBGROUPS
from reconciler.core.validation.admission.rule import (
    LONGEST_LABEL,
    AdmissionRule,
    AdmissionSubject,
    is_dns_1035,
    is_number_or_percent,
    scaled,
)
from reconciler.text.findings import Finding, shortened

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


def _check_name(subject: AdmissionSubject) -> Iterator[Finding]:
    name = subject.text("metadata", "name")
    if name and not is_dns_1035(name):
        message = f"{shortened(name)!r} cannot be the name of the set's Service: small letters, digits and '-'"
        likely = re.sub(r"[^-a-z0-9]", "-", name.lower()).strip("-")[:LONGEST_LABEL]
        hint = f"try {likely if likely[:1].isalpha() else f'set-{likely}'.strip('-')!r}"
        yield subject.finding(("metadata", "name"), message, hint)


def _check_numbers(subject: AdmissionSubject) -> Iterator[Finding]:
    for path, least, most in _NUMBERS:
        value = subject.number(*path)
        if value is not None and not least <= value <= most:
            message = f"is {value}, and LeaderWorkerSet takes {least} to {most}"
            yield subject.finding(path, message, f"try {max(least, 1)}")
    replicas, size = subject.number("spec", "replicas", default=1), subject.number(*_GROUP, "size", default=1)
    if replicas is not None and size is not None and 1 <= replicas <= MOST_GROUPS and replicas * size > _MOST_PODS:
        message = f"{replicas} groups of {size} pods are more than LeaderWorkerSet can count"
        yield subject.finding((*_GROUP, "size"), message, "make the groups smaller, or fewer")


def _check_words(subject: AdmissionSubject) -> Iterator[Finding]:
    for path, words in _WORDS.items():
        value = subject.text(*path)
        if value and value not in words:
            message = f"{shortened(value)!r} is nothing that LeaderWorkerSet knows"
            yield subject.finding(path, message, f"one of {', '.join(words)}")


def _check_subgroups(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check that subgroups divide a group evenly, with or without its leader."""
    if not subject.states(*_GROUP, "subGroupPolicy"):
        if subject.states("metadata", "annotations", SUBGROUPS):
            message = "asks for domains of subgroups, and the set has no subgroups"
            hint = "set spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"
            yield subject.finding(("metadata", "annotations", SUBGROUPS), message, hint)
        return
    path = (*_GROUP, "subGroupPolicy", "subGroupSize")
    subgroup, size = subject.number(*path), subject.number(*_GROUP, "size", default=1)
    if subgroup is None or subgroup < 1 or size is None or size < 1:
        return
    excluded = subject.text(*_GROUP, "subGroupPolicy", "subGroupPolicyType") == "LeaderExcluded"
    even = (size - 1) % subgroup == 0 or (size % subgroup == 0 and not excluded)
    if subgroup > size or not even:
        workers = f"{size - 1} workers" if excluded else f"{size} pods, or {size - 1} without the leader,"
        yield subject.finding(path, f"subgroups of {subgroup} do not share {workers} evenly", "try a divisor")


def _check_rolling_update(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check maxUnavailable and maxSurge of a rolling update; of the replicas, one of them has to be above zero.

    Of a percentage, LeaderWorkerSet rounds what may be unavailable down, and what may be beside it up.
    """
    replicas = subject.number("spec", "replicas", default=1)
    if not subject.states(*_ROLLING) or replicas == 0:
        return
    allowed: list[int | None] = []
    for name, default, up in (("maxUnavailable", 1, False), ("maxSurge", 0, True)):
        path = (*_ROLLING, name)
        value = default if not subject.states(*path) else subject.get(*path)
        if value is not None and not is_number_or_percent(value):
            message = f"is {shortened(str(value))}, and LeaderWorkerSet takes a whole number or 0% to 100%"
            yield subject.finding(path, message, "try 1")
            value = None
        allowed.append(scaled(value, replicas, up=up))
    if allowed == [0, 0]:
        yield subject.finding((*_ROLLING, "maxUnavailable"), "may not come to 0 replicas where maxSurge is 0", "try 1")


_WEBHOOK = "pkg/webhooks/leaderworkerset_webhook.go"
_TYPES = "api/leaderworkerset/v1/leaderworkerset_types.go"
_ONLY = frozenset({LWS})

RULES = (
    AdmissionRule(
        kinds=_ONLY, refuses="a name that no Service can have (RFC 1035)", source=_WEBHOOK, check=_check_name
    ),
    AdmissionRule(
        kinds=_ONLY,
        refuses="`replicas`, `size`, `subGroupSize` and `partition` out of their bounds",
        source=_WEBHOOK,
        check=_check_numbers,
    ),
    AdmissionRule(kinds=_ONLY, refuses="words that it does not know", source=_TYPES, check=_check_words),
    AdmissionRule(
        kinds=_ONLY,
        refuses="subgroups that do not divide a group, and domains of subgroups without any",
        source=_WEBHOOK,
        check=_check_subgroups,
    ),
    AdmissionRule(
        kinds=_ONLY,
        refuses="`maxUnavailable` and `maxSurge` that are neither a number nor 0% to 100%, or both 0 of its replicas",
        source=_WEBHOOK,
        check=_check_rolling_update,
    ),
)
