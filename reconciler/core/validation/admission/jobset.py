"""What JobSet's webhooks and its definition refuse, of main 08dfbdf (2026-08-18, after 0.12.0).

Of a claim that exists in the cluster nothing is known here. Restarts in place are behind a feature gate, and are left
to the cluster. Changes of immutable fields are in `immutable_rules`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from reconciler.core.pods.label_syntax import is_label_value
from reconciler.core.validation.admission.rule import LONGEST_LABEL, AdmissionRule, AdmissionSubject, is_dns_1035
from reconciler.core.validation.rules import is_subdomain
from reconciler.model.kubernetes.workload_kind import Path
from reconciler.text.findings import Finding, shortened
from reconciler.text.spelling import nearest

JOBSET = "jobset.x-k8s.io/JobSet"
_JOBS = ("spec", "replicatedJobs")
_MOST_PODS = 2**31 - 1
_LONGEST_RULE_NAME = 128
_RULE_NAME = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_SUFFIX = "-abcde"
"""What the name of a pod ends with, as five characters that the API server makes up."""
_REASONS = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)
_ACTIONS = (
    "FailJobSet",
    "RestartJob",
    "RestartJobAndIgnoreMaxRestarts",
    "RestartJobSet",
    "RestartJobSetAndIgnoreMaxRestarts",
)
_WORDS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("spec", "successPolicy", "operator"): ("All", "Any"),
    ("spec", "startupPolicy", "startupPolicyOrder"): ("AnyOrder", "InOrder"),
    ("spec", "failurePolicy", "restartStrategy"): ("BlockingRecreate", "InPlaceRestart", "Recreate"),
}


def _names(subject: AdmissionSubject) -> list[str]:
    """List the names of the replicated jobs, as far as they are known."""
    return [name for job in subject.items(*_JOBS) if (name := subject.text(*job, "name")) is not None]


def _is_named_openly(subject: AdmissionSubject) -> bool:
    """Return whether the name of a replicated job is unknown."""
    return any(subject.text(*job, "name") is None for job in subject.items(*_JOBS))


def _unknown(subject: AdmissionSubject, path: Path, name: str, names: list[str]) -> Finding:
    return subject.finding(path, f"there is no replicatedJob {shortened(name)!r}", nearest(name, names))


def _check_order(subject: AdmissionSubject) -> Iterator[Finding]:
    earlier: list[str] = []
    for position, job in enumerate(subject.items(*_JOBS)):
        if subject.states(*job, "dependsOn") and not position:
            message = "the first replicatedJob cannot depend on another"
            yield subject.finding((*job, "dependsOn"), message, "leave it out, or put the other one first")
        elif subject.states(*job, "dependsOn"):
            if subject.text("spec", "startupPolicy", "startupPolicyOrder") == "InOrder":
                message = "dependsOn and startupPolicyOrder InOrder exclude each other"
                yield subject.finding((*job, "dependsOn"), message, "leave one of them out")
            for needed in subject.items(*job, "dependsOn"):
                name = subject.text(*needed, "name")
                if name is not None and name not in (*earlier, subject.text(*job, "name")):
                    message = f"no replicatedJob before it is called {shortened(name)!r}"
                    if not _is_named_openly(subject):
                        yield subject.finding((*needed, "name"), message, nearest(name, earlier))
                status = subject.text(*needed, "status")
                if status and status not in ("Complete", "Ready"):
                    message = f"{shortened(status)!r} is not one of Complete, Ready"
                    yield subject.finding((*needed, "status"), message)
        earlier += [own] if (own := subject.text(*job, "name")) is not None else []


def _check_words(subject: AdmissionSubject) -> Iterator[Finding]:
    for path, words in _WORDS.items():
        value = subject.text(*path)
        if value and value not in words:
            yield subject.finding(path, f"{shortened(value)!r} is not one of {', '.join(words)}", nearest(value, words))


def _check_network(subject: AdmissionSubject) -> Iterator[Finding]:
    path = ("spec", "network", "subdomain")
    name = subject.text(*path)
    if name and not is_dns_1035(name):
        message = f"{shortened(name)!r} cannot be the name of a Service"
        yield subject.finding(path, message, "a-z, 0-9 and dashes, at most 63 characters, beginning with a letter")


def _check_manager(subject: AdmissionSubject) -> Iterator[Finding]:
    path = ("spec", "managedBy")
    manager = subject.text(*path)
    if manager is None:
        return
    domain, slash, rest = manager.partition("/")
    if not slash or not rest or not is_subdomain(domain) or len(manager) > LONGEST_LABEL:
        message = f"{shortened(manager)!r} names no controller"
        yield subject.finding(path, message, "try jobset.sigs.k8s.io/jobset-controller, or leave it out")


def _check_names(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check the names of the Jobs and pods with the longest names, and the number of pods."""
    owner = subject.text("metadata", "name")
    for job in subject.items(*_JOBS):
        group = subject.text(*job, "groupName")
        if group is not None and not is_dns_1035(group):
            message = f"{shortened(group)!r} cannot be the name of a group"
            yield subject.finding((*job, "groupName"), message, "a-z, 0-9 and dashes, at most 63 characters")
        replicas = subject.number(*job, "replicas", default=1)
        parallelism = subject.number(*job, "template", "spec", "parallelism", default=1)
        name = subject.text(*job, "name")
        if replicas is None:
            continue
        if parallelism is not None and replicas * parallelism > _MOST_PODS:
            message = f"{replicas} jobs of {parallelism} pods are more than JobSet can count"
            yield subject.finding((*job, "replicas"), message, "make them fewer")
        if owner is None or name is None:
            continue
        longest = f"{owner}-{name}-{replicas - 1}"
        what = f"the Job {shortened(longest)}"
        completions = subject.number(*job, "template", "spec", "completions")
        mode = subject.get(*job, "template", "spec", "completionMode")
        if completions is not None and mode in (None, "Indexed") and is_dns_1035(longest):
            longest = f"{longest}-{completions - 1}{_SUFFIX}"
            what = f"the pod {shortened(longest)}"
        if not is_dns_1035(longest):
            message = f"{what} could not be named so: at most {LONGEST_LABEL} of a-z, 0-9 and dashes, a letter first"
            verb = "shorten" if len(longest) > LONGEST_LABEL else "change"
            yield subject.finding((*job, "name"), message, f"{verb} it, or the name of the JobSet")


def _check_policies(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check the replicated jobs that policies name, and the rules of the failure policy."""
    names = _names(subject)
    rules = [*subject.items("spec", "failurePolicy", "rules")]
    lists = [("spec", "successPolicy", "targetReplicatedJobs"), *((*rule, "targetReplicatedJobs") for rule in rules)]
    for listed in lists if not _is_named_openly(subject) else ():
        for path, name in subject.texts(*listed):
            if name not in names:
                yield _unknown(subject, path, name, names)
    called = Counter(subject.text(*rule, "name") for rule in rules)
    for rule in rules:
        own, action = subject.text(*rule, "name"), subject.text(*rule, "action")
        if own and (len(own) > _LONGEST_RULE_NAME or not _RULE_NAME.fullmatch(own)):
            message = f"{shortened(own)!r} cannot be the name of a rule"
            yield subject.finding((*rule, "name"), message, "letters, digits and '_,:', beginning with a letter")
        if own and called[own] > 1:
            called[own] = 0
            yield subject.finding((*rule, "name"), f"{shortened(own)!r} is there twice", "give it another name")
        if action and action not in _ACTIONS:
            message = f"{shortened(action)!r} is not one of {', '.join(_ACTIONS)}"
            yield subject.finding((*rule, "action"), message, nearest(action, _ACTIONS))
        for path, reason in subject.texts(*rule, "onJobFailureReasons"):
            if reason not in _REASONS:
                message = f"{shortened(reason)!r} is no reason for which a Job fails"
                yield subject.finding(path, message, nearest(reason, _REASONS) or f"one of {', '.join(_REASONS)}")


def _check_coordinator(subject: AdmissionSubject) -> Iterator[Finding]:
    path = ("spec", "coordinator")
    name = subject.text(*path, "replicatedJob")
    if not subject.states(*path) or name is None or _is_named_openly(subject):
        return
    job = next((job for job in subject.items(*_JOBS) if subject.text(*job, "name") == name), None)
    if job is None:
        yield _unknown(subject, (*path, "replicatedJob"), name, _names(subject))
        return
    replicas = subject.number(*job, "replicas", default=1)
    own = (*job, "template", "spec")
    if not subject.states(*own, "completions") or subject.get(*own, "completionMode") not in (None, "Indexed"):
        message = f"replicatedJob {shortened(name)} has to be Indexed, with completions, to have a coordinator"
        yield subject.finding((*path, "replicatedJob"), message, "set its completions, or leave coordinator out")
        return
    for index, most in (("jobIndex", replicas), ("podIndex", subject.number(*own, "completions"))):
        number = subject.number(*path, index, default=0)
        if number is not None and most is not None and not 0 <= number < most:
            message = f"{number} is out of reach: replicatedJob {shortened(name)} has 0 to {most - 1}"
            yield subject.finding((*path, index), message, "try 0")
    owner = subject.text("metadata", "name")
    domain = subject.text("spec", "network", "subdomain") or owner
    numbers = [subject.number(*path, index, default=0) for index in ("jobIndex", "podIndex")]
    if owner is not None and domain is not None and None not in numbers:
        endpoint = f"{owner}-{name}-{numbers[0]}-{numbers[1]}.{domain}"
        if not is_label_value(endpoint):
            message = f"its address {shortened(endpoint)} is longer than the value of a label"
            yield subject.finding((*path, "replicatedJob"), message, "shorten the name of the JobSet or of the job")


def _check_claims(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check the claims that a JobSet makes: their names, and that containers mount them."""
    root, seen = ("spec", "volumeClaimPolicies"), set[str]()
    owner = subject.text("metadata", "name")
    for policy in subject.items(*root):
        for claim in subject.items(*policy, "templates"):
            path = (*claim, "metadata", "name")
            name = subject.text(*path)
            if name is None:
                continue
            if name in seen:
                yield subject.finding(path, f"{shortened(name)!r} is there twice", "give it another name")
            seen.add(name)
            if not is_subdomain(name):
                yield subject.finding(path, f"{shortened(name)!r} cannot be the name of a claim")
            elif owner is not None and len(f"{name}-{owner}") > LONGEST_LABEL:
                message = f"{shortened(name)} and the name of the JobSet are longer than {LONGEST_LABEL} together"
                yield subject.finding(path, message, "shorten one of them")
            yield from _check_mounts(subject, path, name)


def _check_mounts(subject: AdmissionSubject, path: Path, name: str) -> Iterator[Finding]:
    mounted = False
    for job in subject.items(*_JOBS):
        pod = (*job, "template", "spec", "template", "spec")
        for volume in subject.items(*pod, "volumes"):
            if subject.text(*volume, "name") == name:
                message = f"{shortened(name)!r} is the name of a claim that the JobSet makes"
                yield subject.finding((*volume, "name"), message, "leave this volume out")
        for part in ("initContainers", "containers"):
            mounted |= subject.is_open(*pod, part)
            for container in subject.items(*pod, part):
                mounts = subject.items(*container, "volumeMounts")
                mounted |= subject.is_open(*container, "volumeMounts")
                mounted |= any(subject.get(*mount, "name") in (name, None) for mount in mounts)
    if not mounted:
        message = f"no container mounts the claim {shortened(name)!r}"
        yield subject.finding(path, message, "add it to the volumeMounts of one, or leave the claim out")


_WEBHOOK = "pkg/webhooks/jobset_webhook.go"
_TYPES = "api/jobset/v1alpha2/jobset_types.go"
_ONLY = frozenset({JOBSET})

RULES = (
    AdmissionRule(
        kinds=_ONLY,
        refuses="`dependsOn` of the first job, on no earlier one, or beside the startup policy `InOrder`",
        source=_TYPES,
        check=_check_order,
    ),
    AdmissionRule(kinds=_ONLY, refuses="words that it does not know", source=_TYPES, check=_check_words),
    AdmissionRule(kinds=_ONLY, refuses="a subdomain that no Service can have", source=_WEBHOOK, check=_check_network),
    AdmissionRule(kinds=_ONLY, refuses="a `managedBy` that names no controller", source=_WEBHOOK, check=_check_manager),
    AdmissionRule(
        kinds=_ONLY,
        refuses="names of groups, Jobs and pods that are too long or no DNS labels, and pods beyond counting",
        source=_WEBHOOK,
        check=_check_names,
    ),
    AdmissionRule(
        kinds=_ONLY,
        refuses="policies that name no replicated job, and rules of the failure policy with wrong names or reasons",
        source=_WEBHOOK,
        check=_check_policies,
    ),
    AdmissionRule(
        kinds=_ONLY,
        refuses="a coordinator that is no pod of an Indexed job, or whose address is too long",
        source=_WEBHOOK,
        check=_check_coordinator,
    ),
    AdmissionRule(
        kinds=_ONLY,
        refuses="claims with a name that is there twice or too long, or that nothing mounts",
        source=_WEBHOOK,
        check=_check_claims,
    ),
)
