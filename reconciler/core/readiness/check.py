"""Checks, and what comes of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from reconciler.core.readiness.question import Answers, ApiQuestion
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Connection, EngineName


class Readiness(StrEnum):
    """Whether what a first burst needs is there."""

    OK = "ok"
    MISSING = "missing"
    UNKNOWN = "unknown"
    """It could not be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of one check."""

    readiness: Readiness
    subject: str
    """The thing that was looked at, in a few words: ``namespace vllm-demo``."""
    seen: str
    """What was seen of it, or why nothing was."""
    remedy: str = ""
    """The command that mends it, or that shows more; empty where all is well, and where `seen` names all ways out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckGroup:
    """The results about one cluster, one control plane, git, or the webhooks."""

    place: str
    results: tuple[CheckResult, ...]


class Check(Protocol):
    """One thing that has to be there."""

    @property
    def questions(self) -> tuple[ApiQuestion, ...]:
        """The questions whose answers the result needs."""
        ...

    def result(self, answers: Answers) -> CheckResult:
        """Make the result from the answers of the server, one for each question."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedServer:
    """An API server that is asked: that of a cluster, or that of an engine's control plane."""

    title: str
    cluster: ClusterName | None = None
    engine: EngineName | None = None
    """The engine whose control plane it is; None for a cluster."""
    connection: Connection | None
    """None for the context of the cluster's name."""

    @property
    def context(self) -> str:
        """The context by which a person is assumed to reach it; empty for the current one."""
        connection = self.connection or Connection()
        if connection.in_cluster:
            return ""
        return connection.context or connection.argocd or (self.cluster or "")

    def kubectl(self, *words: str) -> str:
        """Write a command line of kubectl for it."""
        return shlex.join(["kubectl", *(["--context", self.context] if self.context else []), *words])

    def grant(self, *more: str) -> str:
        """Write the command line that gives the daemon its rights there; its context is that of an administrator."""
        named = ["--context", self.context] if self.context else ["--context", "CONTEXT", *self._cluster_option()]
        return shlex.join(["overspill", "grant", *named, *more])

    def _cluster_option(self) -> list[str]:
        return [] if self.cluster is None else ["--cluster", self.cluster]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledCheck:
    """A check whose result takes no question."""

    outcome: CheckResult
    questions: tuple[ApiQuestion, ...] = ()

    def result(self, answers: Answers) -> CheckResult:  # noqa: ARG002 - the interface of all checks
        """Return the result."""
        return self.outcome


def ok(subject: str, seen: str) -> CheckResult:
    """Report what is there."""
    return CheckResult(readiness=Readiness.OK, subject=subject, seen=seen)


def missing(subject: str, seen: str, remedy: str) -> CheckResult:
    """Report what lacks."""
    return CheckResult(readiness=Readiness.MISSING, subject=subject, seen=seen, remedy=remedy)


def unknown(subject: str, why: str, remedy: str) -> CheckResult:
    """Report what could not be looked at."""
    return CheckResult(readiness=Readiness.UNKNOWN, subject=subject, seen=why, remedy=remedy)


_KUBECTL = re.compile(r"(^|[|;&] )kubectl (?!--kubeconfig)")


def with_kubeconfig(remedy: str, files: Sequence[str]) -> str:
    """Name the files of a kubeconfig in each command of kubectl on a command line; without any, kubectl takes its own.

    kubectl takes one file by its flag, and several by a variable alone.
    """
    match files:
        case []:
            return remedy
        case [file]:
            return _KUBECTL.sub(lambda found: f"{found[1]}kubectl --kubeconfig {shlex.quote(file)} ", remedy)
        case _:
            named = shlex.quote(":".join(files))
            return _KUBECTL.sub(lambda found: f"{found[1]}KUBECONFIG={named} kubectl ", remedy)
