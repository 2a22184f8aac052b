"""An engine in a cluster: its kinds, and the objects that `overspill bootstrap` prints for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.core.engines.conditions import condition
from reconciler.core.engines.grants import beyond, grants
from reconciler.core.readiness.check import AskedServer, CheckResult, missing, ok, unknown
from reconciler.core.readiness.question import AnswerKind, Answers, ApiAnswer, ApiQuestion, object_question
from reconciler.core.workloads.paths import at
from reconciler.model.workload import Json
from reconciler.text.wording import count, engine_message, join_names

_LISTED = 3
"""Objects or grants that a line names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedKinds:
    """The kinds of an engine at an API server (a `Check`)."""

    title: str
    """The name of the engine."""
    kinds: Mapping[str, frozenset[str]] = field(hash=False)
    """By group and version, ``argoproj.io/v1alpha1``: the plurals of the kinds."""
    install: str
    """The command line that installs the engine."""

    @property
    def questions(self) -> tuple[ApiQuestion, ...]:
        """The resources of each group and version."""
        return tuple(ApiQuestion(path=f"/apis/{version}") for version in sorted(self.kinds))

    def result(self, answers: Answers) -> CheckResult:
        """Name the kinds that are not served."""
        subject = f"{self.title}'s kinds"
        lacking: list[str] = []
        for version, question in zip(sorted(self.kinds), self.questions, strict=True):
            answer = answers[question]
            if answer.open:
                return unknown(subject, answer.why, self.install)
            served = {resource.get("name") for resource in (answer.body or {}).get("resources") or ()}
            lacking += [f"{plural} of {version}" for plural in sorted(self.kinds[version] - served)]
        if lacking:
            return missing(subject, f"{join_names(lacking)} not served", self.install)
        return ok(subject, f"served in {join_names(sorted(self.kinds))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedObjects:
    """Objects that `overspill bootstrap` prints (a `Check`)."""

    server: AskedServer
    subject: str
    objects: tuple[Json, ...] = field(hash=False)
    apply: str
    """The command line that prints and applies them."""
    conditions: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)
    """By kind: the condition of an object that works, and its status (`Bootstrap.conditions`)."""
    secrets: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """The keys of Secrets that the objects refer to (`Bootstrap.secrets`)."""
    begun: bool = True
    """Whether the output branch is there; without it no source of an engine gets ready."""

    @property
    def questions(self) -> tuple[ApiQuestion, ...]:
        """Each object, and the metadata of each Secret that it refers to."""
        return (*map(_question, self.objects), *self._secret_questions())

    def result(self, answers: Answers) -> CheckResult:
        """Say what is absent, grants less than the fleet needs, or does not work."""
        replies = [answers[_question(wanted)] for wanted in self.objects]
        # 1. Objects that are not there.
        absent = [_title(wanted) for wanted, reply in self._pairs(replies) if reply.kind is AnswerKind.ABSENT]
        if absent:
            return missing(self.subject, self._not_there(absent), self.apply)
        # 2. Objects that this login may not see.
        for wanted, reply in self._pairs(replies):
            if reply.open:
                return unknown(self.subject, reply.why, self._get(wanted))
        # 3. Those of an earlier state of the fleet.
        more = beyond(grants(reply.body for reply in replies), grants(self.objects))
        if more:
            rest = f" and {len(more) - _LISTED} more" if len(more) > _LISTED else ""
            return missing(self.subject, f"of an earlier fleet, without {'; '.join(more[:_LISTED])}{rest}", self.apply)
        # 4. Those that report that they do not work.
        for wanted, reply in self._pairs(replies):
            if fault := self._fault(reply.body):
                return self._faulty(wanted, fault, answers)
        single = len(self.objects) == 1
        reports = single and self.objects[0].get("kind") in self.conditions
        return ok(self.subject, ("there and ready" if reports else "there") if single else f"all {len(replies)} there")

    def _pairs(self, replies: Sequence[ApiAnswer]) -> list[tuple[Json, ApiAnswer]]:
        return list(zip(self.objects, replies, strict=True))

    def _not_there(self, absent: Sequence[str]) -> str:
        if len(self.objects) == 1:
            return "not there"
        named = ", ".join(absent[:_LISTED]) + (", …" if len(absent) > _LISTED else "")
        return f"{len(absent)} of {count(len(self.objects), 'object')} not there: {named}"

    def _fault(self, body: Json) -> str:
        """Return why an object does not work, in its own words; empty for one that works or reports nothing."""
        if body.get("kind") not in self.conditions:
            return ""
        name, well = self.conditions[body["kind"]]
        status = condition(body, name)
        if not status:
            return f"has no condition {name}: its controller does not run, or has not come to it yet"
        return "" if status.get("status") == well else f"not ready: {engine_message(status.get('message'))}"

    def _faulty(self, wanted: Json, fault: str, answers: Answers) -> CheckResult:
        """Find the likely cause: a Secret that is not made yet, or a branch that has not begun."""
        for question, name in zip(self._secret_questions(), self._secret_names(), strict=True):
            if answers[question].kind is AnswerKind.ABSENT:
                values = (f"--from-literal={key}={key.upper()}" for key in self.secrets[name])
                space = f"--namespace={self._namespace()}"
                make = self.server.kubectl("create", "secret", "generic", name, space, *values)
                return missing(self.subject, f"{fault}; Secret {name} is not there", make)
        if not self.begun:
            return unknown(self.subject, f"{fault}; the output branch has not begun", "overspill once")
        return missing(self.subject, fault, self._describe(wanted))

    def _secret_names(self) -> tuple[str, ...]:
        named = (at(wanted, ("spec", "secretRef", "name")) for wanted in self.objects)
        return tuple(dict.fromkeys(str(name) for name in named if name in self.secrets))

    def _secret_questions(self) -> tuple[ApiQuestion, ...]:
        space = self._namespace()
        return tuple(object_question("v1", "Secret", name, space, metadata_only=True) for name in self._secret_names())

    def _namespace(self) -> str:
        return str(at(self.objects[0], ("metadata", "namespace")) or "")

    def _get(self, wanted: Json) -> str:
        return self.server.kubectl("get", *_words(wanted))

    def _describe(self, wanted: Json) -> str:
        return self.server.kubectl("describe", *_words(wanted))


def _question(wanted: Json) -> ApiQuestion:
    metadata = wanted["metadata"]
    return object_question(wanted["apiVersion"], wanted["kind"], metadata["name"], metadata.get("namespace", ""))


def _title(wanted: Json) -> str:
    return f"{wanted['kind']} {wanted['metadata']['name']}"


def _words(wanted: Json) -> tuple[str, ...]:
    """Write which object is meant, as kubectl takes it."""
    group = str(wanted["apiVersion"]).rpartition("/")[0].partition("/")[0]
    kind, space = str(wanted["kind"]).lower(), wanted["metadata"].get("namespace")
    name = f"{kind}.{group}" if group else kind
    return (*([f"--namespace={space}"] if space else []), f"{name}/{wanted['metadata']['name']}")
