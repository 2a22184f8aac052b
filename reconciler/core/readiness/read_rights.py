"""The rights to read what the daemon watches, as the files of bootstrap/ grant them."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.core.observe.kubernetes.resources import Watched
from reconciler.core.readiness.check import AskedServer, CheckResult, missing, ok, unknown
from reconciler.core.readiness.needed_rights import VERBS, NeededRights
from reconciler.core.readiness.question import (
    GROUPS,
    AnswerKind,
    Answers,
    ApiQuestion,
    ServiceAccountName,
    access_question,
    served_versions,
)
from reconciler.core.readiness.server import account_of
from reconciler.core.workloads.paths import at
from reconciler.text.wording import count, join_names

_LISTED = 5
"""Resources that a line names; of more the number is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRights:
    """The right to list and watch the resources of one file of bootstrap/ (a `Check`)."""

    server: AskedServer
    needed: NeededRights
    account: ServiceAccountName | None = None
    """The account whose rights are looked at; None for the login."""

    @property
    def questions(self) -> tuple[ApiQuestion, ...]:
        """Each verb of each resource, and the API groups: a right to what is not served is not needed."""
        return (GROUPS, *(question for resource in self.needed.resources for question in self._reviews(resource)))

    def result(self, answers: Answers) -> CheckResult:
        """Name the resources that may not be read."""
        where = f" in namespace {self.needed.namespace}" if self.needed.namespace else ""
        subject = f"rights of {self.needed.file}" if self.needed.file else "rights to kinds of the fleet"
        if self.needed.names:
            subject = "rights to companions"
            where = f" {join_names(self.needed.names)}{where}"
        denied = [resource for resource in self.needed.resources if self._denied(resource, answers)]
        if denied:
            who = self.account or account_of(answers) or "this login"
            seen = f"{who} may not list and watch {join_names(map(_name, denied))}{where}"
            return missing(subject, seen, self.server.grant())
        unclear = [answers[question] for question in self.questions[1:] if answers[question].kind != AnswerKind.GIVEN]
        if unclear:
            return unknown(subject, unclear[0].why, self._can_i(self.needed.resources[0]))
        few = len(self.needed.resources) <= _LISTED
        what = join_names(map(_name, self.needed.resources)) if few else count(len(self.needed.resources), "resource")
        return ok(subject, f"{f'{self.account} ' if self.account else ''}may list and watch {what}{where}")

    def _denied(self, resource: Watched, answers: Answers) -> bool:
        """Return whether a right is lacking; one to a resource that a cluster may lack counts only if it is served."""
        replies = [answers[question] for question in self._reviews(resource)]
        if all(reply.kind != AnswerKind.GIVEN or at(reply.body, ("status", "allowed")) is True for reply in replies):
            return False
        groups = answers[GROUPS]
        if not resource.optional or not resource.group or groups.kind != AnswerKind.GIVEN:
            return True
        served = served_versions(groups, resource.group)
        return bool(served.intersection(resource.versions) if resource.versions else served)

    def _reviews(self, resource: Watched) -> tuple[ApiQuestion, ...]:
        return tuple(
            access_question(
                verb, resource.group, resource.plural, self.needed.namespace, name=name, account=self.account
            )
            for name in self.needed.names or ("",)
            for verb in VERBS
        )

    def _can_i(self, resource: Watched) -> str:
        scope = f"--namespace={self.needed.namespace}" if self.needed.namespace else "--all-namespaces"
        impersonated = [f"--as={self.account.user}"] if self.account else []
        named = "".join(f"/{name}" for name in self.needed.names[:1])
        return self.server.kubectl("auth", "can-i", VERBS[0], f"{_name(resource)}{named}", scope, *impersonated)


def _name(resource: Watched) -> str:
    return resource.full_name
