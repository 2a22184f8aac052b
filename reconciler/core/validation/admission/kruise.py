"""What OpenKruise's webhooks refuse of its workloads, of master 07169cf (2026-07-02, after 1.8).

They check pods as API servers do, which `pod_rules` does here for every kind. WorkloadSpreads are files of the fleet,
and are checked when they are read (`fleet.spread.rules`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from reconciler.core.validation import kubernetes
from reconciler.core.validation.admission.rule import (
    LONGEST_LABEL,
    AdmissionRule,
    AdmissionSubject,
    is_number_or_percent,
    scaled,
)
from reconciler.core.validation.pod_rules import ends_by_itself, runs_until_deleted, selects_its_pods
from reconciler.core.validation.rules import DNS_LABEL, Place, Rule, RuleJudgement
from reconciler.core.workloads.paths import at
from reconciler.model.kubernetes.workload_kind import Path
from reconciler.model.workload import Json
from reconciler.text.digits import is_digits
from reconciler.text.findings import Finding, shortened
from reconciler.text.spelling import nearest
from reconciler.text.wording import count

_GROUP = "apps.kruise.io"
CLONE_SET, STATEFUL_SET, DAEMON_SET = f"{_GROUP}/CloneSet", f"{_GROUP}/StatefulSet", f"{_GROUP}/DaemonSet"
UNITED, BROADCAST, CRON = f"{_GROUP}/UnitedDeployment", f"{_GROUP}/BroadcastJob", f"{_GROUP}/AdvancedCronJob"
_UPDATE = ("spec", "updateStrategy")
_ROLLING = (*_UPDATE, "rollingUpdate")
_IN_PLACE_ONLY = "InPlaceOnly"
_IN_PLACE = ("InPlaceIfPossible", _IN_PLACE_ONLY)
_READY_GATE = "InPlaceUpdateReady"
_LONGEST_READY = 300
"""Seconds of minReadySeconds."""
_RANGE = re.compile(r"[0-9]{1,9}-[0-9]{1,9}")
_JOB_NAME = re.compile(r"[a-zA-Z0-9-]+")
_UNITED_TEMPLATES = ("advancedStatefulSetTemplate", "cloneSetTemplate", "deploymentTemplate", "statefulSetTemplate")
_CRON_TEMPLATES = ("broadcastJobTemplate", "imageListPullJobTemplate", "jobTemplate")
_SUBSETS = ("spec", "topology", "subsets")
_DEFAULT_UNAVAILABLE = "20%"
"""Of a CloneSet."""


def _like_kubernetes(subject: AdmissionSubject, rules: tuple[Rule, ...], *path: str) -> Iterator[Finding]:
    """Apply rules of Kubernetes' own kinds to the spec at a path."""
    spec = subject.mapping(*path)
    if not spec:
        return
    place = Place(
        value=spec,
        schema=kubernetes.definition("apps.v1.StatefulSetSpec"),
        loc=path,
        judgement=RuleJudgement(rendered=subject.rendered, partial=False),
    )
    for rule in rules:
        yield from rule(place)


def _check_scaled(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check what Kruise's kinds that run until they are deleted have as those of Kubernetes do."""
    if not subject.states("spec", "selector") and subject.mapping("spec"):
        yield subject.finding(("spec",), "selector is required", "name a label of the pods")
    yield from _like_kubernetes(subject, (selects_its_pods, runs_until_deleted), "spec")


def _word(subject: AdmissionSubject, path: Path, *words: str) -> Iterator[Finding]:
    text = subject.text(*path)
    if text and text not in words:
        yield subject.finding(path, f"{shortened(text)!r} is not one of {', '.join(words)}", nearest(text, words))


def _amount(subject: AdmissionSubject, path: Path, default: Json, replicas: int | None) -> int | None:
    """Return a number or a percentage of the replicas, which Kruise rounds up; None where it is unknown or wrong."""
    value = subject.get(*path) if subject.states(*path) else default
    return scaled(value, replicas, up=True)


def _check_amounts(subject: AdmissionSubject, root: Path, *names: str) -> Iterator[Finding]:
    for name in names:
        value = subject.get(*root, name)
        if value is not None and type(value) is not int and not is_number_or_percent(value, None):
            message = f"{shortened(str(value))!r} is neither a number nor a percentage"
            yield subject.finding((*root, name), message, "try 1 or 25%")


def _check_clone_set(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check the update strategy of a CloneSet, whose fields v1beta1 has one level deeper."""
    is_beta = subject.version == "v1beta1"
    root, policy = (_ROLLING, "podUpdatePolicy") if is_beta else (_UPDATE, "type")
    if is_beta:
        yield from _word(subject, (*_UPDATE, "type"), "RollingUpdate", "OnDelete")
    yield from _word(subject, (*root, policy), "ReCreate", *_IN_PLACE)
    yield from _check_amounts(subject, root, "partition", "maxUnavailable", "maxSurge")
    partition = subject.number(*root, "partition")
    if partition is not None and partition < 0:
        yield subject.finding((*root, "partition"), f"{partition} is less than 0", "try 0")
    replicas = subject.number("spec", "replicas", default=1)
    unavailable = _amount(subject, (*root, "maxUnavailable"), _DEFAULT_UNAVAILABLE, replicas)
    surge = _amount(subject, (*root, "maxSurge"), 0, replicas)
    if surge is not None and surge > 0 and subject.text(*root, policy) == _IN_PLACE_ONLY:
        message = "pods that are only updated in place have no surge"
        yield subject.finding((*root, "maxSurge"), message, "leave it out, or try InPlaceIfPossible")
    if replicas and unavailable is not None and unavailable < 1 and surge is not None and surge < 1:
        message = "maxSurge and maxUnavailable cannot both be 0"
        yield subject.finding((*root, "maxUnavailable"), message, "try 1")
    yield from _check_deadline(subject)


def _check_deadline(subject: AdmissionSubject) -> Iterator[Finding]:
    ready = subject.number("spec", "minReadySeconds", default=0)
    deadline = subject.number("spec", "progressDeadlineSeconds")
    if deadline is not None and ready is not None and deadline <= ready:
        message = f"{deadline} is not more than minReadySeconds, {ready}"
        yield subject.finding(("spec", "progressDeadlineSeconds"), message, "raise it")


def _check_stateful_set(subject: AdmissionSubject) -> Iterator[Finding]:
    parallel = subject.text("spec", "podManagementPolicy") == "Parallel"
    open_policy = subject.is_open("spec", "podManagementPolicy")
    yield from _word(subject, ("spec", "podManagementPolicy"), "OrderedReady", "Parallel")
    yield from _word(subject, (*_UPDATE, "type"), "RollingUpdate", "OnDelete")
    yield from _word(subject, (*_ROLLING, "podUpdatePolicy"), "ReCreate", *_IN_PLACE)
    for name in ("whenDeleted", "whenScaled"):
        yield from _word(subject, ("spec", "persistentVolumeClaimRetentionPolicy", name), "Retain", "Delete")
    if subject.text(*_UPDATE, "type") == "OnDelete" and subject.states(*_ROLLING):
        yield subject.finding(_ROLLING, "OnDelete does not roll", "leave it out, or set type: RollingUpdate")
    for path in ((*_ROLLING, "maxUnavailable"), ("spec", "scaleStrategy", "maxUnavailable")):
        yield from _check_amounts(subject, path[:-1], path[-1])
        value = subject.get(*path)
        least = scaled(value, 1, up=True)
        if least is None:
            continue
        if least < 1:
            yield subject.finding(path, f"{value} is less than 1", "try 1")
        elif value != 1 and not parallel and not open_policy:
            message = f"{shortened(str(value))} needs pods that are managed in parallel"
            yield subject.finding(path, message, "try 1, or set podManagementPolicy: Parallel")
    ready = subject.number(*_ROLLING, "minReadySeconds")
    if ready is not None and not 0 <= ready <= _LONGEST_READY:
        message = f"{ready} is no time for a pod to be ready: 0 to {_LONGEST_READY} seconds"
        yield subject.finding((*_ROLLING, "minReadySeconds"), message, f"try {min(max(ready, 0), _LONGEST_READY)}")
    partition = subject.number(*_ROLLING, "partition")
    if partition is not None and partition < 0:
        yield subject.finding((*_ROLLING, "partition"), f"{partition} is less than 0", "try 0")
    if subject.states(*_ROLLING, "unorderedUpdate") and not parallel and not open_policy:
        message = "pods that are managed in order are not updated out of it"
        yield subject.finding((*_ROLLING, "unorderedUpdate"), message, "set podManagementPolicy: Parallel")
    yield from _check_in_place(subject)
    yield from _check_reserved(subject)


def _check_in_place(subject: AdmissionSubject) -> Iterator[Finding]:
    policy, gates = subject.text(*_ROLLING, "podUpdatePolicy"), ("spec", "template", "spec", "readinessGates")
    if policy not in _IN_PLACE or subject.is_open(*gates):
        return
    conditions = [subject.get(*gate, "conditionType") for gate in subject.items(*gates)]
    if _READY_GATE not in conditions and None not in conditions:
        message = f"{policy} needs the readiness gate {_READY_GATE} in the pods"
        hint = f"add readinessGates: [{{conditionType: {_READY_GATE}}}] to the template"
        yield subject.finding((*_ROLLING, "podUpdatePolicy"), message, hint)


def _check_reserved(subject: AdmissionSubject) -> Iterator[Finding]:
    listed = at(subject.manifest, ("spec", "reserveOrdinals"))
    for index in range(len(listed) if isinstance(listed, list) else 0):
        path = ("spec", "reserveOrdinals", str(index))
        value = subject.get(*path)
        ends = value.split("-") if isinstance(value, str) and _RANGE.fullmatch(value) else None
        wrong = value < 0 if type(value) is int else value is not None and (ends is None or int(ends[0]) > int(ends[1]))
        if wrong:
            yield subject.finding(path, f"{shortened(str(value))!r} is no range of ordinals", "try 1 or '3-5'")


def _check_daemon_set(subject: AdmissionSubject) -> Iterator[Finding]:
    if subject.states("spec", "lifecycle", "inPlaceUpdate"):
        message = "a DaemonSet has no hook of updates in place"
        yield subject.finding(("spec", "lifecycle", "inPlaceUpdate"), message, "leave it out")
    yield from _word(subject, (*_UPDATE, "type"), "RollingUpdate", "OnDelete")
    if subject.text(*_UPDATE, "type") == "OnDelete":
        return
    kinds = ("Standard", "InPlaceIfPossible", *(("Surging",) if subject.version == "v1alpha1" else ()))
    yield from _word(subject, (*_ROLLING, "rollingUpdateType"), *kinds)
    partition = subject.get(*_ROLLING, "partition")
    if partition is not None and not is_number_or_percent(partition):
        message = f"{shortened(str(partition))!r} is neither a number nor 0% to 100%"
        yield subject.finding((*_ROLLING, "partition"), message, "try 0")
    amounts = {name: _amount_of_daemons(subject.get(*_ROLLING, name)) for name in ("maxUnavailable", "maxSurge")}
    stated = [name for name in amounts if subject.states(*_ROLLING, name)]
    for name in stated:
        value = subject.get(*_ROLLING, name)
        if amounts[name] and not is_number_or_percent(value):
            message = f"{shortened(str(value))!r} is neither a number nor 0% to 100%"
            yield subject.finding((*_ROLLING, name), message, "try 1 or 25%")
    yield from _check_room_of_daemons(subject, amounts, stated)


def _check_room_of_daemons(
    subject: AdmissionSubject, amounts: Mapping[str, int | None], stated: Sequence[str]
) -> Iterator[Finding]:
    how = subject.text(*_ROLLING, "rollingUpdateType")
    if all(amounts.values()):
        message = "maxSurge and maxUnavailable exclude each other"
        yield subject.finding((*_ROLLING, "maxSurge"), message, "set one of them to 0")
    elif stated and how != "Surging" and all(amounts[name] == 0 for name in stated):
        message = "maxSurge and maxUnavailable cannot both be 0"
        yield subject.finding((*_ROLLING, stated[0]), message, "set one of them to 1")
    elif amounts["maxSurge"] and how == "InPlaceIfPossible":
        message = "pods that are updated in place have no surge"
        yield subject.finding((*_ROLLING, "maxSurge"), message, "set it to 0, and maxUnavailable to 1")


def _amount_of_daemons(value: Json) -> int | None:
    """Return a number or the number of a percentage, 0 for any other text; None where it is unknown."""
    if isinstance(value, str):
        digits = value.removesuffix("%")
        return int(digits) if is_digits(digits) else 0
    return value if type(value) is int else None


def _check_united(subject: AdmissionSubject) -> Iterator[Finding]:
    templates = [name for name in _UNITED_TEMPLATES if subject.states("spec", "template", name)]
    if len(templates) > 1:
        message = f"{' and '.join(templates)} exclude each other"
        yield subject.finding(("spec", "template", templates[-1]), message, "leave all but one of them out")
    elif not templates and subject.states("spec", "template"):
        message = f"one of {', '.join(_UNITED_TEMPLATES)} is required"
        yield subject.finding(("spec", "template"), message, "try deploymentTemplate")
    for name in templates:
        own = ("spec", "template", name, "spec")
        if name != "cloneSetTemplate" and subject.states(*own, "replicas"):
            message = "the replicas of a UnitedDeployment stand in spec.replicas"
            yield subject.finding((*own, "replicas"), message, "leave them out here")
        partition = (*own, "updateStrategy", "rollingUpdate", "partition")
        if name.lower().endswith("statefulsettemplate") and subject.states(*partition):
            message = "partitions of a UnitedDeployment stand in its own updateStrategy"
            yield subject.finding(partition, message, "leave it out here")
    adaptive = ("spec", "topology", "scheduleStrategy")
    reserves = subject.get(*adaptive, "adaptive", "reserveUnschedulablePods") is True
    if reserves and any(name.lower().endswith("statefulsettemplate") for name in templates):
        message = "pods without a node are reserved for a Deployment or a CloneSet alone"
        yield subject.finding((*adaptive, "adaptive", "reserveUnschedulablePods"), message, "leave it out")
    yield from _check_subset_names(subject)
    yield from _check_subset_numbers(subject)


def _check_subset_names(subject: AdmissionSubject) -> Iterator[Finding]:
    names, is_open = set[str](), False
    for subset in subject.items(*_SUBSETS):
        name = subject.text(*subset, "name")
        is_open |= subject.is_open(*subset, "name")
        if name is not None and not DNS_LABEL.takes(name):
            message = f"{shortened(name)!r} cannot be the name of a subset"
            yield subject.finding((*subset, "name"), message, DNS_LABEL.hint)
        elif name in names:
            yield subject.finding((*subset, "name"), f"{name!r} is there twice", "give it another name")
        elif name is None and not subject.is_open(*subset, "name"):
            yield subject.finding(subset, "a subset needs a name")
        names.add(name or "")
    for name in subject.mapping(*_UPDATE, "manualUpdate", "partitions"):
        if not is_open and name not in names:
            path = (*_UPDATE, "manualUpdate", "partitions", name)
            yield subject.finding(path, f"there is no subset {shortened(name)!r}", nearest(name, names))


def _check_subset_numbers(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check the replicas of subsets against those of the whole; percentages are rounded to the nearest number."""
    subsets = [*subject.items(*_SUBSETS)]
    whole = subject.number("spec", "replicas")
    numbers: dict[str, list[int | None]] = {"replicas": [], "minReplicas": [], "maxReplicas": []}
    for subset in subsets:
        for name, read in numbers.items():
            if not subject.states(*subset, name):
                continue
            value = subject.get(*subset, name)
            if value is not None and not is_number_or_percent(value):
                message = f"{shortened(str(value))!r} is neither a number nor 0% to 100%"
                yield subject.finding((*subset, name), message, "try 1 or 25%")
                value = None
            read.append(_rounded(value, whole))
        least, most = (_rounded(subject.get(*subset, name), whole) for name in ("minReplicas", "maxReplicas"))
        if least is not None and most is not None and least > most:
            message = f"is {least}, and maxReplicas is {most}"
            yield subject.finding((*subset, "minReplicas"), message, f"try {most}")
        adaptive = subject.text("spec", "topology", "scheduleStrategy", "type") == "Adaptive"
        if adaptive and subject.states(*subset, "replicas"):
            message = "an adaptive UnitedDeployment has no fixed replicas in its subsets"
            yield subject.finding((*subset, "replicas"), message, "try minReplicas and maxReplicas")
    yield from _check_sums(subject, subsets, numbers)


def _check_sums(
    subject: AdmissionSubject, subsets: Sequence[Path], numbers: Mapping[str, Sequence[int | None]]
) -> Iterator[Finding]:
    """Check the numbers of all subsets, by their fields, with those of the whole."""
    whole = subject.number("spec", "replicas")
    stated = numbers["replicas"]
    if stated and (numbers["minReplicas"] or numbers["maxReplicas"]):
        message = "replicas of subsets exclude minReplicas and maxReplicas"
        yield subject.finding(_SUBSETS, message, "leave replicas, or both of the others, out")
    elif subsets and len(numbers["maxReplicas"]) == len(subsets):
        message = "of one subset at least the maxReplicas have to be open"
        yield subject.finding((*subsets[-1], "maxReplicas"), message, "leave them out")
    elif not subject.states("spec", "replicas") and (numbers["minReplicas"] or numbers["maxReplicas"]):
        yield subject.finding(("spec",), "replicas are required where subsets have minReplicas or maxReplicas")
    elif whole is not None and stated and None not in stated:
        total = sum(number for number in stated if number is not None)
        if total > whole or (len(stated) == len(subsets) and total != whole):
            message = f"its subsets have {count(total, 'replica')} of {whole}"
            yield subject.finding(_SUBSETS, message, "leave the replicas of one subset out, or write percentages")


def _rounded(value: Json, whole: int | None) -> int | None:
    """Return a number, or a percentage of the whole rounded half up; None where it is unknown."""
    if type(value) is int or not is_number_or_percent(value):
        return value if type(value) is int else None
    return None if whole is None else (whole * int(str(value)[:-1]) * 2 + 100) // 200


def _check_job_name(subject: AdmissionSubject) -> Iterator[Finding]:
    name = subject.text("metadata", "name")
    if name and (len(name) > LONGEST_LABEL or not _JOB_NAME.fullmatch(name)):
        message = f"{shortened(name)!r} cannot be the name of a {subject.manifest.get('kind')}"
        yield subject.finding(("metadata", "name"), message, "letters, digits and dashes, at most 63")


def _check_broadcast(subject: AdmissionSubject) -> Iterator[Finding]:
    yield from _like_kubernetes(subject, (ends_by_itself,), "spec")
    policy = ("spec", "completionPolicy")
    for name in ("activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        if subject.text(*policy, "type") == "Never" and subject.states(*policy, name):
            yield subject.finding((*policy, name), "a job that never completes has none", "leave it out")
    for label in ("broadcastjob-name", "broadcastjob-controller-uid"):
        if subject.get("spec", "template", "metadata", "labels", label):
            path = ("spec", "template", "metadata", "labels", label)
            yield subject.finding(path, "Kruise sets this label of the pods itself", "leave it out")


def _check_cron(subject: AdmissionSubject) -> Iterator[Finding]:
    templates = [name for name in _CRON_TEMPLATES if subject.states("spec", "template", name)]
    if len(templates) > 1:
        message = f"{' and '.join(templates)} exclude each other"
        yield subject.finding(("spec", "template", templates[-1]), message, "leave all but one of them out")
    elif not templates and subject.states("spec"):
        message = f"one of {', '.join(_CRON_TEMPLATES)} is required"
        yield subject.finding(("spec", "template") if subject.states("spec", "template") else ("spec",), message)
    schedule = subject.text("spec", "schedule")
    if schedule == "":
        yield subject.finding(("spec", "schedule"), "it must not be empty", "try '0 3 * * *'")
    if schedule and "TZ" in schedule and subject.states("spec", "timeZone"):
        message = "timeZone and a time zone in the schedule exclude each other"
        yield subject.finding(("spec", "schedule"), message, "leave one of them out")


RULES = (
    AdmissionRule(
        kinds=frozenset({CLONE_SET, STATEFUL_SET, DAEMON_SET}),
        refuses="a selector that is missing or not of its pods, and pods that end by themselves",
        source="pkg/webhook/cloneset/validating/validation.go",
        check=_check_scaled,
    ),
    AdmissionRule(
        kinds=frozenset({CLONE_SET}),
        refuses="an update strategy of unknown words or amounts, without any room, or in place with surge",
        source="pkg/webhook/cloneset/validating/validation.go",
        check=_check_clone_set,
    ),
    AdmissionRule(
        kinds=frozenset({STATEFUL_SET}),
        refuses="`maxUnavailable` other than 1 without `Parallel`, updates in place without their readiness gate",
        source="pkg/webhook/statefulset/validating/statefulset_validation.go",
        check=_check_stateful_set,
    ),
    AdmissionRule(
        kinds=frozenset({DAEMON_SET}),
        refuses="`maxSurge` and `maxUnavailable` that are both 0 or both above it, and hooks of updates in place",
        source="pkg/webhook/daemonset/validating/daemonset_validation.go",
        check=_check_daemon_set,
    ),
    AdmissionRule(
        kinds=frozenset({UNITED}),
        refuses="no template or two, replicas in it, subsets without own names or with other replicas than the whole",
        source="pkg/webhook/uniteddeployment/validating/uniteddeployment_validation.go",
        check=_check_united,
    ),
    AdmissionRule(
        kinds=frozenset({BROADCAST, CRON}),
        refuses="a name longer than 63 characters",
        source="pkg/webhook/broadcastjob/validating/broadcastjob_create_update_handler.go",
        check=_check_job_name,
    ),
    AdmissionRule(
        kinds=frozenset({BROADCAST}),
        refuses="pods that always restart, deadlines of what never completes, and Kruise's own labels",
        source="pkg/webhook/broadcastjob/validating/broadcastjob_create_update_handler.go",
        check=_check_broadcast,
    ),
    AdmissionRule(
        kinds=frozenset({CRON}),
        refuses="no template or two, and two time zones",
        source="pkg/webhook/advancedcronjob/validating/advancedcronjob_create_update_handler.go",
        check=_check_cron,
    ),
)
