"""Clusters as the control plane of an engine knows them."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.core.engines.logins import LoginSource, Unusable
from reconciler.core.readiness.check import CheckResult, missing, ok, unknown
from reconciler.core.readiness.question import Answers, ApiQuestion
from reconciler.model.ids import ClusterName


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCluster:
    """A cluster that the engine deploys to, by its name in the fleet repository (a `Check`)."""

    title: str
    """The name of the engine."""
    cluster: ClusterName
    source: LoginSource
    register: str
    """The command line that makes it known."""
    look: str
    """The command line that shows whether it is known."""

    @property
    def questions(self) -> tuple[ApiQuestion, ...]:
        """The objects that hold the engine's logins; they are secret, and no result quotes them."""
        path = self.source.resource.paths(self.source.namespace)[0]
        return (ApiQuestion(path=path, query=(("labelSelector", self.source.selector),)),)

    def result(self, answers: Answers) -> CheckResult:
        """Say whether the engine has a login to it that can be used."""
        subject = f"cluster {self.cluster}"
        answer = answers[self.questions[0]]
        logins = self.source.logins()
        for item in (answer.body or {}).get("items") or ():
            logins.apply(item)
        login = logins.login(self.cluster)
        if not isinstance(login, Unusable):
            return ok(subject, f"{self.title} knows it by this name")
        if answer.open:
            return unknown(subject, answer.why, self.look)
        return missing(subject, login.why, self.register)
