"""Single questions to API servers, for `overspill doctor`: by the daemon's logins, to all servers at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from reconciler.adapters.kube.answers import Expired, Forbidden, NotServed, Unauthorized
from reconciler.adapters.kube.control_plane import FollowedControlPlane
from reconciler.adapters.kube.login import ArgoSecretLogin, KubeconfigLogin, Login
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.targets import APPLICATIONS, Contexts, Targets, watch_targets
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.adapters.kube.view import NamingLoop
from reconciler.bulkhead import Seam, bug_of
from reconciler.core.readiness.check import AskedServer
from reconciler.core.readiness.question import VERSION, AnswerKind, ApiAnswer, ApiQuestion
from reconciler.core.readiness.server import LoginFault, LoginTrouble, ServerAnswers
from reconciler.errors import Transient
from reconciler.model.policy import Connection, Desired, EngineName
from reconciler.ports import Clock

_AT_ONCE = 8
"""Questions that a server is asked at the same time."""
_LAST = 0.01
"""Seconds for sockets to close, which takes a few iterations of the event loop."""


class KubeInquiry:
    """Asks the API servers of a fleet (a `ports.ApiServers`); `patience` bounds the time for each server."""

    def __init__(
        self,
        kubeconfig: Path | None,
        *,
        clock: Clock,
        patience: timedelta,
        pace: WatchTiming | None = None,
        plugins: frozenset[str] = frozenset(),
    ) -> None:
        self._kubeconfig = kubeconfig
        self._clock = clock
        self._patience = patience.total_seconds()
        self._pace = pace or WatchTiming()
        self._plugins = plugins

    def ask(
        self, desired: Desired, questions: Mapping[AskedServer, Collection[ApiQuestion]]
    ) -> Mapping[AskedServer, ServerAnswers]:
        """Ask all servers at the same time, each until it has answered or the time is over."""
        contexts = Contexts(self._kubeconfig)
        names = contexts.read()
        targets = watch_targets(desired, names, has_kubeconfig=self._kubeconfig is not None)
        broken = "; ".join(str(each) for each in contexts.unreadable)
        troubles = {server: self._trouble(server, targets, broken) for server in questions}
        with asyncio.Runner(loop_factory=NamingLoop) as runner:
            answers = runner.run(
                self._ask_all({server: questions[server] for server in questions if not troubles[server]}, targets)
            )
        return {server: answers.get(server) or ServerAnswers(trouble=troubles[server]) for server in questions}

    def _trouble(self, server: AskedServer, targets: Targets, broken: str) -> LoginTrouble | None:
        """Say why a server cannot be asked, where the settings and the fleet tell it already."""
        if server.engine is not None and server.connection is None:
            field = f"spec.{server.engine}.connection"
            why = (
                f"the Fleet does not say how the cluster of {server.title} is reached, so that what it says of"
                f" placements is not seen (set its {field})"
            )
            return LoginTrouble(fault=LoginFault.NO_CONNECTION, why=why)
        known = _connection(server, targets) is not None
        if known and not broken and not (lost := targets.lost.get(_path(server, targets), "")):
            return None
        if self._kubeconfig is None:
            return LoginTrouble(fault=LoginFault.NO_KUBECONFIG, why="no kubeconfig is named, so nobody can be asked")
        free = targets.nameless.get(server.cluster, "") if server.cluster is not None else ""
        nameless = f"the kubeconfig has no context {server.context} ({free})" if free else ""
        why = broken or (lost if known else nameless) or f"nothing says how the cluster of {server.title} is reached"
        return LoginTrouble(fault=LoginFault.NO_CONTEXT, why=why)

    async def _ask_all(
        self, questions: Mapping[AskedServer, Collection[ApiQuestion]], targets: Targets
    ) -> Mapping[AskedServer, ServerAnswers]:
        planes = {
            name: FollowedControlPlane(
                replace(target, reports=None),
                KubeconfigLogin(target.connection, self._kubeconfig),
                clock=self._clock,
                pace=self._pace,
                changed=lambda _: None,
                renewed=lambda: None,
                moved=lambda: None,
            )
            for name, target in targets.control.items()
            if target.logins is not None
        }
        try:
            outcomes = await asyncio.gather(
                *(self._ask(self._login(server, targets, planes), questions[server]) for server in questions),
                return_exceptions=True,
            )
            return {server: _answers(server, outcome) for server, outcome in zip(questions, outcomes, strict=True)}
        finally:
            await asyncio.gather(*(plane.close() for plane in planes.values()))
            await asyncio.sleep(_LAST)

    def _login(self, server: AskedServer, targets: Targets, planes: Mapping[EngineName, FollowedControlPlane]) -> Login:
        """Return the login that the daemon has to a server."""
        connection = _connection(server, targets) or Connection()
        target = targets.clusters.get(server.cluster) if server.cluster is not None else None
        if target is None or target.control is None:
            return KubeconfigLogin(connection, self._kubeconfig)
        plane = planes[target.control.engine]
        return ArgoSecretLogin(connection.argocd, plane, local=plane.own_login, plugins=self._plugins)

    async def _ask(self, login: Login, questions: Collection[ApiQuestion]) -> ServerAnswers:
        """Ask one server: its version first, then everything else."""
        server = ApiServer(login, self._pace, lambda: None)
        answers: dict[ApiQuestion, ApiAnswer] = {}
        late = f"does not answer within {self._patience:g} s"
        try:
            async with asyncio.timeout(self._patience):
                answers[VERSION] = await self._answer(server, VERSION)
                free = asyncio.Semaphore(_AT_ONCE)

                async def put(question: ApiQuestion) -> None:
                    async with free:
                        try:
                            answers[question] = await self._answer(server, question)
                        except Transient as error:
                            answers[question] = ApiAnswer(kind=AnswerKind.UNANSWERED, why=str(error))

                await asyncio.gather(*(put(question) for question in dict.fromkeys(questions) if question != VERSION))
        except TimeoutError:
            if VERSION not in answers:
                return ServerAnswers(trouble=LoginTrouble(fault=LoginFault.UNREACHED, why=late))
        except Unauthorized as error:
            return ServerAnswers(trouble=LoginTrouble(fault=LoginFault.REFUSED, why=str(error)))
        except Transient as error:
            why = server.trouble() or str(error)
            return ServerAnswers(trouble=LoginTrouble(fault=LoginFault.UNREACHED, why=why))
        finally:
            await server.close()
        unanswered = ApiAnswer(kind=AnswerKind.UNANSWERED, why=late)
        return ServerAnswers(answers={question: answers.get(question, unanswered) for question in questions})

    async def _answer(self, server: ApiServer, question: ApiQuestion) -> ApiAnswer:
        """Ask one question. Raises Transient where the server cannot be reached or does not take the login."""
        began = self._clock.now()
        try:
            body, moment = await server.ask(question, within=self._patience)
        except Forbidden as error:
            return ApiAnswer(kind=AnswerKind.FORBIDDEN, why=str(error))
        except (NotServed, Expired) as error:
            return ApiAnswer(kind=AnswerKind.ABSENT, why=str(error))
        return ApiAnswer(kind=AnswerKind.GIVEN, body=body, skew=_skew(moment, began, self._clock.now()))


def _skew(moment: datetime | None, began: datetime, ended: datetime) -> timedelta | None:
    """Tell how far a server's moment lies beyond the time in which it was asked, by our clock."""
    if moment is None:
        return None
    return max(moment - ended, timedelta()) + min(moment - began, timedelta())


def _answers(server: AskedServer, outcome: ServerAnswers | BaseException) -> ServerAnswers:
    """Keep what nothing foresaw to the one server that it happened with."""
    if isinstance(outcome, ServerAnswers):
        return outcome
    if not isinstance(outcome, Exception):
        raise outcome
    bug = bug_of(Seam.CHECK, server.title, outcome)
    return ServerAnswers(trouble=LoginTrouble(fault=LoginFault.UNREACHED, why=bug.summary), bug=bug)


def _connection(server: AskedServer, targets: Targets) -> Connection | None:
    """Return how a server is reached; None where nothing says so."""
    if server.cluster is not None:
        cluster = targets.clusters.get(server.cluster)
        return cluster.connection if cluster is not None else None
    plane = targets.control.get(server.engine) if server.engine is not None else None
    if plane is not None:
        return plane.connection
    # It deploys nothing of ours, and names sources alone.
    named = targets.applications.connection if targets.applications is not None else None
    return named if server.engine is not None and named == server.connection else None


def _path(server: AskedServer, targets: Targets) -> str:
    """Return the path of a server among the targets that are lost."""
    if server.cluster is not None:
        return f"cluster {server.cluster}"
    return APPLICATIONS if server.engine is not None and server.engine not in targets.control else server.title
