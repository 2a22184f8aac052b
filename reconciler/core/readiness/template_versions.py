"""The API versions that templates write their objects in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.core.readiness.check import AskedServer, CheckResult, missing, ok, unknown
from reconciler.core.readiness.question import GROUPS, AnswerKind, Answers, ApiQuestion, served_versions
from reconciler.core.workloads.api_kinds import KUBERNETES_GROUPS
from reconciler.text.wording import count


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateVersions:
    """The API versions of the objects that may be placed in a cluster (a `Check`)."""

    server: AskedServer
    versions: Mapping[str, str] = field(hash=False)
    """By group and version, ``batch/v1``: a template that has an object of it."""
    questions: tuple[ApiQuestion, ...] = (GROUPS,)

    def result(self, answers: Answers) -> CheckResult:
        """Name a version that is not served; a group that is not served at all is another check's."""
        subject, look = "API versions of templates", self.server.kubectl("api-versions")
        groups = answers[GROUPS]
        if groups.kind is not AnswerKind.GIVEN:
            return unknown(subject, groups.why, look)
        for name, template in sorted(self.versions.items()):
            group, _, version = name.rpartition("/")
            served = served_versions(groups, group)
            if version not in served and (served or group in KUBERNETES_GROUPS):
                instead = f", but {', '.join(sorted(served))}" if served else ""
                return missing(subject, f"{name} of template {template} is not served{instead}", look)
        return ok(subject, f"all of {count(len(self.versions), 'version')} served")
