"""The projects whose webhooks are asked, and how their rules are applied to an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.core.validation.admission import disaggregatedset, jobset, kruise, kueue, leaderworkerset
from reconciler.core.validation.admission.rule import AdmissionRule, AdmissionSubject
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.errors import Severity
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, Loc


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionProject:
    """A project with webhooks."""

    name: str
    read: str
    """The commit, with its date, that its rules were read from."""
    repository: str
    """Its address, which the files of the rules are below."""
    rules: tuple[AdmissionRule, ...]


LEADER_WORKER_SET = AdmissionProject(
    name="LeaderWorkerSet",
    read="060ab4d (2026-08-21)",
    repository="https://github.com/kubernetes-sigs/lws",
    rules=(*leaderworkerset.RULES, *disaggregatedset.RULES),
)
JOB_SET = AdmissionProject(
    name="JobSet",
    read="08dfbdf (2026-08-18)",
    repository="https://github.com/kubernetes-sigs/jobset",
    rules=jobset.RULES,
)
KRUISE = AdmissionProject(
    name="OpenKruise",
    read="07169cf (2026-07-02)",
    repository="https://github.com/openkruise/kruise",
    rules=kruise.RULES,
)
KUEUE = AdmissionProject(
    name="Kueue",
    read="ff69552 (2026-08-22)",
    repository="https://github.com/kubernetes-sigs/kueue",
    rules=kueue.RULES,
)
PROJECTS = (LEADER_WORKER_SET, JOB_SET, KRUISE, KUEUE)


def check_admission(manifest: Mapping[str, Json], loc: Loc, kinds: Kinds, *, rendered: bool) -> Iterator[Finding]:
    """Yield what the webhooks of the projects would refuse of a new object, which stands at `loc`.

    A refusal is an error where any cluster that can run the object refuses it. Of Kueue, an object can do without
    unless it names a queue, and older releases have fewer rules: those refusals are warnings.
    """
    subject = AdmissionSubject(manifest=manifest, kinds=kinds, rendered=rendered)
    queued: bool | None = None
    for project in PROJECTS:
        for rule in project.rules:
            for refusal in rule.findings(subject):
                finding = replace(refusal, loc=(*loc, *refusal.loc))
                if project is KUEUE:
                    queued = kueue.is_queued(subject) if queued is None else queued
                    finding = _of_kueue(finding, rule, sure=queued)
                yield finding


def _of_kueue(finding: Finding, rule: AdmissionRule, *, sure: bool) -> Finding:
    """Name Kueue in a refusal, and make it a warning unless the object will surely be asked about."""
    who = f"Kueue {rule.since} and later" if rule.since else "Kueue"
    severity = Severity.ERROR if sure and not rule.since else Severity.WARNING
    return replace(finding, message=f"{finding.message}, so that {who} refuses it", severity=severity)
