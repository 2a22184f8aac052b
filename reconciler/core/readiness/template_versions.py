"""The API versions that templates write their objects in."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.core.observe.kubernetes.api_versions import read_api_versions
from reconciler.core.readiness.check import AskedServer, CheckResult, missing, ok, unknown
from reconciler.core.readiness.question import GROUPS, AnswerKind, Answers, ApiQuestion
from reconciler.core.workloads.api_kinds import KUBERNETES_GROUPS
from reconciler.core.workloads.cluster_provides import unserved_version
from reconciler.model.cluster import Prerequisite
from reconciler.text.wording import count


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateVersions:
    """The API versions of the objects that may be placed in a cluster (a `Check`)."""

    server: AskedServer
    needed: tuple[Prerequisite, ...]
    """Each version once, with an object that is written in it."""
    questions: tuple[ApiQuestion, ...] = (GROUPS,)

    def result(self, answers: Answers) -> CheckResult:
        """Name a version that is not served; a group that is not served at all is another check's."""
        subject, look = "API versions of templates", self.server.kubectl("api-versions")
        groups = answers[GROUPS]
        if groups.kind is not AnswerKind.GIVEN:
            return unknown(subject, groups.why, look)
        served = read_api_versions(groups.body)
        for prerequisite in self.needed:
            unserved = unserved_version(prerequisite, served)
            if prerequisite.name not in served and (unserved.served or unserved.group in KUBERNETES_GROUPS):
                return missing(subject, f"{unserved.message}: {unserved.remedy}", look)
        return ok(subject, f"all of {count(len(self.needed), 'version')} served")
