"""Namespaces that placements go to."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.core.readiness.check import AskedServer, CheckResult, missing, ok, unknown
from reconciler.core.readiness.question import AnswerKind, Answers, ApiQuestion, object_question


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetNamespace:
    """A namespace that placements go to and that `overspill bootstrap` does not print (a `Check`)."""

    server: AskedServer
    name: str
    made: bool
    """Whether each placement that goes there makes it."""

    @property
    def questions(self) -> tuple[ApiQuestion, ...]:
        """The namespace."""
        return (object_question("v1", "Namespace", self.name),)

    def result(self, answers: Answers) -> CheckResult:
        """Say whether it is there, or will be."""
        subject = f"namespace {self.name}"
        answer = answers[self.questions[0]]
        if answer.kind is AnswerKind.GIVEN:
            return ok(subject, "there")
        if self.made:
            return ok(subject, "made by the placements that go there")
        if answer.open:
            return unknown(subject, answer.why, self.server.kubectl("get", "namespace", self.name))
        return missing(subject, "not there", self.server.kubectl("create", "namespace", self.name))
