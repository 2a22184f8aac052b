"""What the webhook and the definition of a DisaggregatedSet refuse, of LeaderWorkerSet's main 060ab4d (2026-08-21).

Its controller makes a LeaderWorkerSet of each role in each slice, which LeaderWorkerSet's own webhook is asked about
then: a role that this refuses leaves the set without pods, so that a set with one is refused as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from reconciler.core.capacity.exclusive_topology import SUBGROUPS
from reconciler.core.validation.admission import leaderworkerset
from reconciler.core.validation.admission.rule import LONGEST_LABEL, AdmissionRule, AdmissionSubject, is_dns_1035
from reconciler.text.findings import Finding, shortened
from reconciler.text.wording import join_names

DISAGGREGATED_SET = "disaggregatedset.x-k8s.io/DisaggregatedSet"
_FEWEST_ROLES, _MOST_ROLES, _MOST_SLICES = 2, 10, 100
_REVISION = "0" * 8
"""As long as the hash of a revision."""
_SERVICE = "-prv"
"""What follows the name of a LeaderWorkerSet in that of its Service."""
_ROLES, _SLICES, _POLICY = ("spec", "roles"), ("spec", "slices"), ("spec", "placementPolicy")
_EXCLUSIVE = ("leaderworkerset.sigs.k8s.io/exclusive-topology", SUBGROUPS)
"""Annotations that ask for domains of a group, and of a subgroup."""
_PLACEMENTS = ("None", "ExclusiveSlice", "ExclusiveTopology")
_ROLE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_MODES = ("Static", "External")
_GROUP = ("spec", "leaderWorkerTemplate")
_ANNOTATED = (("metadata",), (*_GROUP, "leaderTemplate", "metadata"), (*_GROUP, "workerTemplate", "metadata"))
"""Where a role may ask for a topology of its own."""


def _check_bounds(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check the number of slices and roles, the names of these, and the words of the set."""
    slices = subject.number(*_SLICES)
    if slices is not None and not 1 <= slices <= _MOST_SLICES:
        yield subject.finding(_SLICES, f"is {slices}, and a DisaggregatedSet has 1 to {_MOST_SLICES}", "try 1")
    roles = [*subject.items(*_ROLES)]
    if not _FEWEST_ROLES <= len(roles) <= _MOST_ROLES:
        message = f"a DisaggregatedSet has {_FEWEST_ROLES} to {_MOST_ROLES} roles, and this has {len(roles)}"
        yield subject.finding(_ROLES, message, "make a LeaderWorkerSet of one role" if len(roles) == 1 else "")
    seen = set[str]()
    for role in roles:
        name = subject.text(*role, "name")
        if name in seen:
            yield subject.finding((*role, "name"), f"role {shortened(name)!r} is there twice", "give each its own name")
        if name is not None:
            seen.add(name)
            if len(name) > LONGEST_LABEL or not _ROLE_NAME.fullmatch(name):
                message = f"{shortened(name)!r} cannot be the name of a role: small letters, digits and '-'"
                yield subject.finding((*role, "name"), message, "try 'prefill' or 'decode'")
        yield from _word(subject, (*role, "scaling", "mode"), _MODES)
    yield from _word(subject, (*_POLICY, "type"), _PLACEMENTS)


def _word(subject: AdmissionSubject, path: tuple[str, ...], words: tuple[str, ...]) -> Iterator[Finding]:
    value = subject.text(*path)
    if value and value not in words:
        yield subject.finding(path, f"{shortened(value)!r} is not one of {', '.join(words)}", f"try {words[0]!r}")


def _check_names(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check the names of the LeaderWorkerSets, ``set-slice-revision-role``, and of their Services."""
    name, slices = subject.text("metadata", "name"), subject.number(*_SLICES, default=1)
    if not name or slices is None or slices < 1:
        return
    for role in subject.items(*_ROLES):
        own = subject.text(*role, "name")
        made = f"{name}-{slices - 1}-{_REVISION}-{own}{_SERVICE}"
        if own and len(made) > LONGEST_LABEL:
            most = LONGEST_LABEL - len(made) + len(name) + len(own)
            message = f"makes a Service with a name of {len(made)} characters, and {LONGEST_LABEL} are the most"
            hint = f"the names of the set and of its role may have {most} characters together"
            yield subject.finding((*role, "name"), message, hint)
    if not is_dns_1035(f"{name}-0"):
        message = f"{shortened(name)!r} cannot begin the name of a Service: small letters, digits and '-'"
        yield subject.finding(("metadata", "name"), message, "begin it with a letter, and write '-' for other signs")


def _check_replicas(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check that all roles have replicas, or none has, but for those that an autoscaler scales."""
    external = [role for role in subject.items(*_ROLES) if subject.text(*role, "scaling", "mode") == "External"]
    slices = subject.number(*_SLICES)
    if external and slices is not None and slices > 1:
        message = "is more than 1, and a role has scaling.mode External, which takes one slice"
        yield subject.finding(_SLICES, message, "make a set for each slice")
    paths = [(*role, "spec", "replicas") for role in subject.items(*_ROLES) if role not in external]
    numbers = {path: subject.number(*path, default=1) for path in paths}
    if None in numbers.values() or len({number == 0 for number in numbers.values()}) < 2:  # noqa: PLR2004 - both kinds
        return
    empty = next(path for path, number in numbers.items() if number == 0)
    others = join_names(str(subject.get(*path[:-2], "name")) for path, number in numbers.items() if number)
    yield subject.finding(empty, f"is 0 while {shortened(others)} has replicas", "give each role some, or none any")


def _check_partition(subject: AdmissionSubject) -> Iterator[Finding]:
    for role in subject.items(*_ROLES):
        path = (*role, "spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition")
        if subject.number(*path, default=0):
            message = "a DisaggregatedSet updates all roles together, and takes no partition"
            yield subject.finding(path, message, "leave it out")


def _check_placement(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check that a placement policy names its domain, and that no role names one of its own beside it."""
    policy = subject.text(*_POLICY, "type")
    if policy in (None, "", "None"):
        return
    if not subject.states(*_POLICY, "topology") or subject.text(*_POLICY, "topology") == "":
        message = f"the placement {shortened(policy)!r} needs a topology"
        yield subject.finding(_POLICY, message, "name the label of nodes that makes a domain as its topology")
    for role in subject.items(*_ROLES):
        for place in _ANNOTATED:
            for key in _EXCLUSIVE:
                path = (*role, *place, "annotations", key)
                if subject.states(*path):
                    message = f"a role has no topology of its own beside the placement {shortened(policy)!r}"
                    yield subject.finding(path, message, "take one of them away")


def _check_roles(subject: AdmissionSubject) -> Iterator[Finding]:
    """Ask LeaderWorkerSet's rules, but for that of its name, about each role."""
    for role in subject.items(*_ROLES):
        made: Mapping[str, object] = {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": subject.mapping(*role, "metadata"),
            "spec": subject.mapping(*role, "spec"),
        }
        below = AdmissionSubject(manifest=made, kinds=subject.kinds, rendered=subject.rendered)
        for rule in leaderworkerset.RULES:
            for finding in rule.findings(below):
                if finding.loc != ("metadata", "name"):
                    yield subject.finding((*role, *map(str, finding.loc)), finding.message, finding.hint)


_WEBHOOK = "pkg/webhooks/disaggregatedset/disaggregatedset_webhook.go"
_TYPES = "api/disaggregatedset/v1/disaggregatedset_types.go"
_ONLY = frozenset({DISAGGREGATED_SET})

RULES = (
    AdmissionRule(
        kinds=_ONLY,
        refuses="other than 1 to 100 slices and 2 to 10 roles with own names, and words that it does not know",
        source=_TYPES,
        check=_check_bounds,
    ),
    AdmissionRule(
        kinds=_ONLY,
        refuses="names of the set and a role that together make none of a Service",
        source=_WEBHOOK,
        check=_check_names,
    ),
    AdmissionRule(
        kinds=_ONLY,
        refuses="replicas of some roles and none of others, and several slices with a role that is scaled from outside",
        source=_TYPES,
        check=_check_replicas,
    ),
    AdmissionRule(kinds=_ONLY, refuses="a `partition` of a role", source=_WEBHOOK, check=_check_partition),
    AdmissionRule(
        kinds=_ONLY,
        refuses="a `placementPolicy` without a topology, or beside the topology of a role",
        source=_WEBHOOK,
        check=_check_placement,
    ),
    AdmissionRule(
        kinds=_ONLY,
        refuses="a role of which LeaderWorkerSet refuses what is made of it",
        source="pkg/webhooks/leaderworkerset_webhook.go",
        check=_check_roles,
    ),
)
