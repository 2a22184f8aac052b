"""What a first burst needs, looked at once: git, every API server, webhook and receiver, for `overspill doctor`.

Nothing is written anywhere. Whatever does not answer costs its own lines alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from reconciler.bulkhead import Seam, attempt
from reconciler.core.readiness import git
from reconciler.core.readiness.branch_rules import rules_result
from reconciler.core.readiness.check import AskedServer, Check, CheckGroup, CheckResult, unknown, with_kubeconfig
from reconciler.core.readiness.fleet_checks import server_checks
from reconciler.core.readiness.needed_rights import fleet_servers
from reconciler.core.readiness.notifications import notification_result
from reconciler.core.readiness.programs import daemon_results, kubeconfig_result, program_results
from reconciler.core.readiness.proposal_rights import approving_policies, proposal_result
from reconciler.core.readiness.question import ServiceAccountName
from reconciler.core.readiness.server import (
    LoginFault,
    ServerAnswers,
    is_service_account,
    observation_result,
    trouble_result,
)
from reconciler.core.readiness.webhooks import webhook_result
from reconciler.daemon.reconcile import Memory, World
from reconciler.daemon.source import missing_branch
from reconciler.daemon.steer import survey
from reconciler.errors import Bug, OverspillError, Problem
from reconciler.model.events.event import Endpoint
from reconciler.model.events.notification import DeliveryMarks, Notification
from reconciler.model.policy import Desired
from reconciler.model.tree import Tips
from reconciler.ports import ApiServers, BranchRuleSource, Deliveries, PushRehearsal, RunningDaemon

_COMMITS = 100
"""Commits of the output branch whose committers are looked at."""
_THREADS = 8
"""Webhooks that are called at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverTrial:
    """What is looked at of the receivers of Notifications."""

    trouble: Callable[[Notification, Desired], str]
    """Says why nothing could be sent to a receiver; empty where something could be."""
    deliveries: Deliveries
    has_secrets: bool
    """Whether there is a directory of secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is looked at beside the branches of the repository."""

    url: str
    """The address of the repository, with whatever login it was given."""
    signs: bool
    """Whether commits are signed."""
    rehearsal: PushRehearsal
    host: BranchRuleSource
    servers: ApiServers
    endpoints: tuple[Endpoint, ...]
    receivers: ReceiverTrial
    """The receivers of Notifications."""
    reach: Callable[[Endpoint], int | str]
    """Sends an endpoint a request without an event; returns the status of its answer, or why there is none."""
    account: ServiceAccountName | None = None
    """The account whose rights in clusters are looked at; None for that of each login."""
    kubeconfig: tuple[str, ...] = ()
    """The files of the logins, for the commands of kubectl; empty where kubectl takes them by itself."""
    hidden: tuple[tuple[str, str, str], ...] = ()
    """The contexts that lead elsewhere than their files say: the file, the context, and what is taken instead."""
    versions: Callable[[], Mapping[str, str]] = dict
    """Asks the programs that a pass starts for their versions, by name."""
    daemon: RunningDaemon | None = None
    """A daemon that runs; None where none is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The results of git, of each cluster and control plane, and of the webhooks."""

    groups: tuple[CheckGroup, ...]
    problems: tuple[Problem, ...] = ()
    """Bugs of ours, each of which has cost one result."""


def inspect(world: World, memory: Memory, around: Surroundings) -> Inspection:
    """Look at everything."""
    problems: list[Problem] = []
    with ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="webhook") as pool:
        reached = [pool.submit(around.reach, endpoint) for endpoint in around.endpoints]
        running = pool.submit(around.daemon.ask) if around.daemon is not None else None
        results, decided = _git(world, memory, around)
        programs = program_results(decided[0] if decided is not None else None, around.versions())
        if decided is not None:
            used = {server.context for server in fleet_servers(decided[0])}
            programs += tuple(kubeconfig_result(path, seen) for path, context, seen in around.hidden if context in used)
        groups = [CheckGroup(place="this machine", results=programs), CheckGroup(place="git", results=tuple(results))]
        if decided is not None:
            groups += _servers(world, around, *decided, problems)
        told = () if decided is None else tuple(_receivers(around.receivers, decided[0]))
        webhooks = tuple(
            webhook_result(endpoint, answer.result())
            for endpoint, answer in zip(around.endpoints, reached, strict=True)
        )
        if around.daemon is not None and running is not None:
            answered = daemon_results(around.daemon.url, running.result())
            groups.append(CheckGroup(place=f"daemon {around.daemon.url}", results=answered))
    groups += [CheckGroup(place="webhooks", results=webhooks)] if webhooks else []
    groups += [CheckGroup(place="notifications", results=told)] if told else []
    return Inspection(groups=tuple(groups), problems=tuple(problems))


def _receivers(trial: ReceiverTrial, desired: Desired) -> Iterator[CheckResult]:
    """Look at the receivers of Notifications, and tell them nothing."""
    for name, notification in sorted(desired.notifications.items()):
        marks: DeliveryMarks | OverspillError
        try:
            marks = trial.deliveries.read(name)
        except OverspillError as error:
            marks = error
        trouble = trial.trouble(notification, desired)
        yield notification_result(notification, trouble, marks, has_secrets=trial.has_secrets)


def _git(world: World, memory: Memory, around: Surroundings) -> tuple[list[CheckResult], tuple[Desired, Tips] | None]:
    """Look at the repository, and read the fleet; None where there is none to read."""
    try:
        decision = survey(world, memory)
    except OverspillError as error:
        return [git.unreadable(around.url, error)], None
    desired, tips = decision.inputs.desired, decision.tips
    if tips.source is None:
        try:
            absent: OverspillError = missing_branch(world.repository, world.source_branch)
        except OverspillError as error:
            absent = error
        return [git.source_result(world.source_branch, None, absent)], None
    results = [git.source_result(world.source_branch, tips.source, None), git.files_result(desired)]
    unset = git.repo_url_result(desired, around.url)
    results += [unset] if unset is not None else []
    results += git.partition_results(desired)
    results += git.template_source_results(desired)
    try:
        results += _output(world, tips)
    except OverspillError as error:
        results.append(git.unreadable(around.url, error))
    if around.signs:
        results.append(git.signing_result(_refusal(around.rehearsal.rehearse_signature)))
    rules = rules_result(world.output_branch, around.host.rules(world.output_branch.removeprefix("refs/heads/")))
    if not tips.losses:  # after which nothing is pushed, whatever the login may do
        refusal = _refusal(around.rehearsal.rehearse_push)
        results.append(git.push_result(world.output_branch, around.url, refusal, rules_shown=rules is not None))
    results += [rules] if rules is not None else []
    policies = approving_policies(desired)
    if policies:
        results.append(proposal_result(policies, around.host.project, around.host.proposal_rights()))
    return results, (desired, tips)


def _output(world: World, tips: Tips) -> Iterator[CheckResult]:
    """Look at the output branch and at those of clusters; a lost branch is not what the mirror knows of it."""
    if all(loss.branch != world.output_branch.removeprefix("refs/heads/") for loss in tips.losses):
        others = () if tips.output else world.repository.branch_names()
        yield git.output_result(world.output_branch, tips.output, others)
        recent = world.repository.log(tips.output, limit=_COMMITS) if tips.output else ()
        committers = git.committers_result(world.output_branch, recent, world.author)
        if committers is not None:
            yield committers
    yield from map(git.loss_result, tips.losses)


def _refusal(rehearse: Callable[[], None]) -> OverspillError | None:
    """Rehearse, and return why that is refused, if it is."""
    try:
        rehearse()
    except OverspillError as error:
        return error
    return None


def _servers(
    world: World, around: Surroundings, desired: Desired, tips: Tips, problems: list[Problem]
) -> Iterator[CheckGroup]:
    """Ask all API servers, and make a group of each."""
    begun = tips.output is not None
    checks = server_checks(desired, output_branch=world.output_branch, begun=begun, account=around.account)
    questions = {
        server: dict.fromkeys(question for check in listed for question in check.questions)
        for server, listed in checks.items()
    }
    world.clusters.follow(desired)
    answers, observed = around.servers.ask(desired, questions), world.clusters.observe()
    now = world.clock.now()
    for server, listed in checks.items():
        results = _results(server, listed, answers[server], problems, around.kubeconfig)
        seen = observed.clusters.get(server.cluster) if server.cluster is not None else None
        trouble = answers[server].trouble
        if trouble is not None and seen is not None:
            told = observation_result(server, now - seen.observed_at, desired.fleet.observation_max_age)
            # Files may tell of a cluster that no login is meant for; one that does not work is told as well.
            meant = trouble.fault in (LoginFault.REFUSED, LoginFault.UNREACHED)
            results = [*results, told] if meant else [told]
        yield CheckGroup(place=server.title, results=tuple(results))


def _results(
    server: AskedServer,
    checks: tuple[Check, ...],
    replies: ServerAnswers,
    problems: list[Problem],
    kubeconfig: tuple[str, ...],
) -> list[CheckResult]:
    """Make the results of one server: a line for each check, or a single one for a server that was not asked."""
    if replies.bug is not None:
        problems.append(replies.bug.problem(server.title))
    if replies.trouble is not None:
        told = trouble_result(server, replies.trouble, kubeconfig)
        return [replace(told, remedy=with_kubeconfig(told.remedy, kubeconfig))]
    # A service account may do little of what mends or shows more: that takes the login of an administrator.
    files = () if is_service_account(replies.answers) else kubeconfig
    results: list[CheckResult] = []
    for check in checks:
        result = attempt(Seam.CHECK, server.title, partial(check.result, replies.answers))
        if isinstance(result, Bug):
            problems.append(result.problem(server.title))
            result = unknown(type(check).__name__, result.summary, server.kubectl("get", "--raw", "/version"))
        results.append(replace(result, remedy=with_kubeconfig(result.remedy, files)))
    return results
