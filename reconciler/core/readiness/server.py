"""An API server itself: whether it can be logged in to, its version, and its clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from reconciler.core.readiness.check import AskedServer, CheckResult, missing, ok, unknown
from reconciler.core.readiness.question import ACCOUNT, VERSION, AnswerKind, Answers, ApiQuestion
from reconciler.core.workloads.paths import at
from reconciler.errors import Bug
from reconciler.model.units import format_duration

MOST_SKEW = timedelta(seconds=10)
"""Beyond this the scale-up window of a policy, often half a minute, is measured wrongly: it begins at a time of the
server's clock and is over by ours. The Date of an answer is told to the second."""

_ACCOUNT = "system:serviceaccount:"


class LoginFault(StrEnum):
    """Why a server was not asked anything."""

    NO_KUBECONFIG = "no kubeconfig"
    NO_CONTEXT = "no context"
    """The kubeconfig, Argo CD or the Fleet does not say how it is reached."""
    NO_CONNECTION = "no connection"
    """The Fleet leaves open how the control plane of an engine is reached."""
    REFUSED = "refused"
    """The server does not take the login."""
    UNREACHED = "unreached"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginTrouble:
    """Why a server was not asked anything."""

    fault: LoginFault
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAnswers:
    """What a server answered."""

    answers: Answers = field(default_factory=dict)
    """One for each question; empty with a `trouble`."""
    trouble: LoginTrouble | None = None
    bug: Bug | None = None
    """The exception behind the `trouble`, where nothing foresaw it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionCheck:
    """The version of a server, and as whom it knows us (a `Check`)."""

    questions: tuple[ApiQuestion, ...] = (VERSION, ACCOUNT)

    def result(self, answers: Answers) -> CheckResult:
        """Tell both, as far as the server tells them; the server has answered, so all is well."""
        version = at(answers[VERSION].body, ("gitVersion",)) or "of an unknown version"
        account = account_of(answers)
        return ok("API server", f"{version}, logged in{f' as {account}' if account else ''}")


def is_service_account(answers: Answers) -> bool:
    """Return whether the login is one of a service account, as the daemon's is, and not of an administrator."""
    name = at(answers[ACCOUNT].body, ("status", "userInfo", "username")) if ACCOUNT in answers else None
    return isinstance(name, str) and name.startswith(_ACCOUNT)


def account_of(answers: Answers) -> str:
    """Return the name of the login at the server; empty where the server does not tell it."""
    name = str(at(answers[ACCOUNT].body, ("status", "userInfo", "username")) or "") if ACCOUNT in answers else ""
    return name.removeprefix(_ACCOUNT).replace(":", "/") if name.startswith(_ACCOUNT) else name


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockCheck:
    """The clock of a server beside ours (a `Check`)."""

    server: AskedServer
    questions: tuple[ApiQuestion, ...] = (VERSION,)

    def result(self, answers: Answers) -> CheckResult:
        """Compare both: times of pods are the server's, and windows are measured by ours."""
        answer = answers[VERSION]
        look = self.server.kubectl("get", "--raw", "/version", "-v=8")
        return clock_result(answer.skew if answer.kind is AnswerKind.GIVEN else None, look)


def clock_result(skew: timedelta | None, look: str) -> CheckResult:
    """Report how far another clock is ahead of ours; None where the answer bears no time."""
    if skew is None:
        return unknown("clock", "the answer bears no Date", look)
    if abs(skew) <= MOST_SKEW:
        return ok("clock", f"within {format_duration(MOST_SKEW)} of ours")
    side = "ahead of" if skew > timedelta() else "behind"
    seen = f"{format_duration(abs(skew))} {side} ours: windows are measured wrongly by as much"
    return missing("clock", seen, "timedatectl set-ntp true  # where the clock is wrong: there or here")


def trouble_result(server: AskedServer, trouble: LoginTrouble, kubeconfig: Sequence[str] = ()) -> CheckResult:
    """Make the one line about a server that could not be asked anything; `kubeconfig` are the files of the logins."""
    match trouble.fault:
        case LoginFault.NO_KUBECONFIG:
            return unknown("API server", trouble.why, "overspill doctor --kubeconfig PATH")
        case LoginFault.NO_CONTEXT:
            return missing("API server", trouble.why, "kubectl config get-contexts --output=name")
        case LoginFault.NO_CONNECTION:
            # Bursts run without: what the engine says of them is not seen.
            field = f"spec.{server.engine}.connection.context of fleet.yaml"
            look = f"kubectl config get-contexts --output=name  # the one of {server.title}'s cluster goes to {field}"
            return unknown("API server", trouble.why, look)
        case LoginFault.REFUSED:
            file = kubeconfig[0] if kubeconfig else "KUBECONFIG"
            return missing("API server", trouble.why, server.grant("--kubeconfig-out", file))
        case LoginFault.UNREACHED:
            return missing("API server", trouble.why, server.kubectl("get", "--raw", "/version"))


def observation_result(server: AskedServer, age: timedelta, most: timedelta) -> CheckResult:
    """Report a cluster of which files tell, and no API server that was asked."""
    if age <= most:
        return ok("observation", f"{format_duration(age)} old, from a file")
    seen = f"{format_duration(age)} old, and the Fleet's observationMaxAge is {format_duration(most)}"
    return missing("observation", seen, server.kubectl("get", "nodes,pods", "--all-namespaces"))
