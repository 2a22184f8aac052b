"""`revert`, `release`, `extend`, `approve`, `reject`, `rebalance` and `sweep`: commits on order.

Each drafts commits and pushes them, or with ``--dry-run`` prints them as `plan` does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import click

from reconciler.adapters.git import checkout
from reconciler.app.commands import connected
from reconciler.cli import options, printing
from reconciler.cli.actions.once import print_outcome, print_push
from reconciler.cli.actions.plans.plan import print_plan, print_plan_document
from reconciler.cli.actions.visibility import warn_without_observations
from reconciler.core.decide.orders.approve import find_proposal, plan_approval, plan_rejection
from reconciler.core.decide.orders.rebalance import rebalance as rebalance_shares
from reconciler.core.decide.orders.steer import (
    UnknownPlacement,
    find_placement,
    find_workload,
    moved_end,
    plan_extension,
    plan_release,
    plan_revert,
)
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.steps.mass_deletion import end_deleted
from reconciler.daemon.answers.history import HistorySelection, describe_end, read_history
from reconciler.daemon.reconcile import Memory, PassDecision, World
from reconciler.daemon.steer import (
    CommitDraft,
    carry_out,
    draft_from_clusters,
    draft_from_git,
    draft_sweep,
    retry_conflicts,
)
from reconciler.errors import InvalidInput, Problem
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Plan
from reconciler.model.tree import Identity
from reconciler.settings import Settings

if TYPE_CHECKING:  # it takes long to import, and commands without a daemon do not need it
    from reconciler.client import Client

_EXAMPLE = "try --author 'Ada Lovelace <ada@example.com>'"


def revert(
    settings: Settings,
    placements: tuple[str, ...],
    *,
    reason: str,
    everywhere: bool,
    **flags: Unpack[options.CommitFlags],
) -> None:
    """End placements, and hold their workloads back."""

    def decide(inputs: PassInput, person: Identity) -> Plan:
        named = (find_placement(inputs.ledger, text) for text in placements)
        by_path = {placement.path: placement for placement in named}
        return plan_revert(inputs, tuple(by_path.values()), by=person.name, reason=reason, everywhere=everywhere)

    _commit_order(settings, decide, empty="Nothing to revert.", draft=_draft_for_placements, **flags)


def release(
    settings: Settings, workload: str, *, cluster: str | None, reason: str, **flags: Unpack[options.CommitFlags]
) -> None:
    """End what holds a workload back."""

    def decide(inputs: PassInput, person: Identity) -> Plan:
        name = None if cluster is None else ClusterName(cluster)
        return plan_release(inputs, find_workload(inputs, workload), name, by=person, reason=reason)

    _commit_order(settings, decide, empty="Nothing to release.", **flags)


def extend(
    settings: Settings,
    placement: str,
    *,
    by: timedelta | None,
    until: datetime | None,
    reason: str,
    **flags: Unpack[options.CommitFlags],
) -> None:
    """Give a placement a new end."""
    if (by is None) == (until is None):
        raise click.UsageError("say either --by or --until")

    def decide(inputs: PassInput, person: Identity) -> Plan:
        subject = find_placement(inputs.ledger, placement)
        end = until if until is not None else moved_end(subject, by or timedelta())
        return plan_extension(inputs, subject, end, by=person.name, reason=reason)

    _commit_order(settings, decide, empty="Nothing to extend.", draft=_draft_for_placements, **flags)


def revert_remotely(
    client: Client,
    placements: tuple[str, ...],
    *,
    reason: str,
    everywhere: bool,
    author: str | None,
    dry_run: bool,
    form: options.Output,
) -> None:
    """Have a daemon end placements in the name of the token's owner."""
    _refuse_author(author)
    answer = client.revert(placements, reason=reason, everywhere=everywhere, dry_run=dry_run)
    _print_answer(answer, form, dry_run=dry_run, empty="Nothing to revert.")


def extend_remotely(
    client: Client,
    placement: str,
    *,
    by: timedelta | None,
    until: datetime | None,
    reason: str,
    author: str | None,
    dry_run: bool,
    form: options.Output,
) -> None:
    """Have a daemon give a placement a new end in the name of the token's owner."""
    if (by is None) == (until is None):
        raise click.UsageError("say either --by or --until")
    _refuse_author(author)
    answer = client.extend(placement, by=by, until=until, reason=reason, dry_run=dry_run)
    _print_answer(answer, form, dry_run=dry_run, empty="Nothing to extend.")


def _refuse_author(author: str | None) -> None:
    if author is not None:
        raise click.UsageError("--author goes without --server: a daemon names the owner of the token")


def _print_answer(answer: Mapping[str, Any], form: options.Output, *, dry_run: bool, empty: str) -> None:
    plan = {name: value for name, value in answer.items() if name not in ("lines", "outputBranch")}
    if dry_run:
        print_plan_document(plan, form, empty=empty)
    elif form == "json":
        printing.json_out(plan)
    else:
        print_push(answer["lines"], answer["pushed"], answer["outputBranch"], tuple(answer["branches"]))


def approve(settings: Settings, workload: str, *, reason: str, **flags: Unpack[options.CommitFlags]) -> None:
    """Approve a burst that is proposed."""

    def decide(inputs: PassInput, person: Identity) -> Plan:
        return plan_approval(inputs, find_proposal(inputs.ledger.proposals, workload), by=person, reason=reason)

    _commit_order(settings, decide, empty="Nothing to approve.", **flags)
    if flags["form"] == "table" and not flags["dry_run"]:
        printing.sentence("The next pass places it: a daemon's, or `overspill once`.")


def reject(settings: Settings, workload: str, *, reason: str, **flags: Unpack[options.CommitFlags]) -> None:
    """Refuse a burst that is proposed, and hold its workload."""

    def decide(inputs: PassInput, person: Identity) -> Plan:
        return plan_rejection(inputs, find_proposal(inputs.ledger.proposals, workload), by=person, reason=reason)

    _commit_order(settings, decide, empty="Nothing to reject.", **flags)


def approve_remotely(
    client: Client, workload: str, *, reason: str, author: str | None, dry_run: bool, form: options.Output
) -> None:
    """Have a daemon approve a burst in the name of the token's owner."""
    _refuse_author(author)
    _print_answer(client.approve(workload, reason=reason, dry_run=dry_run), form, dry_run=dry_run, empty="Nothing.")
    if form == "table" and not dry_run:
        printing.sentence("The daemon's next pass places it.")


def reject_remotely(
    client: Client, workload: str, *, reason: str, author: str | None, dry_run: bool, form: options.Output
) -> None:
    """Have a daemon refuse a burst in the name of the token's owner."""
    _refuse_author(author)
    _print_answer(client.reject(workload, reason=reason, dry_run=dry_run), form, dry_run=dry_run, empty="Nothing.")


def rebalance(settings: Settings, workload: str, *, reason: str, **flags: Unpack[options.CommitFlags]) -> None:
    """Distribute a workload's bursts over the clusters again."""

    def decide(inputs: PassInput, person: Identity) -> Plan:
        return rebalance_shares(inputs, find_workload(inputs, workload), by=person.name, reason=reason)

    _commit_order(
        settings,
        decide,
        empty="Nothing to rebalance: each cluster has its share.",
        draft=draft_from_clusters,
        problems=lambda decision: decision.problems,
        **flags,
    )
    warn_without_observations(settings)


def confirm(settings: Settings, **flags: Unpack[options.CommitFlags]) -> None:
    """End what a mass deletion of the fleet repository would have ended."""

    def decide(inputs: PassInput, person: Identity) -> Plan:
        return end_deleted(inputs, by=person)

    empty = "Nothing to confirm: the fleet repository has lost no half of its workloads."
    _commit_order(settings, decide, empty=empty, **flags)


def sweep(settings: Settings, *, dry_run: bool, form: options.Output) -> None:
    """Revert expired placements."""
    _carry_out(settings, draft_sweep, form, dry_run=dry_run, empty="Nothing has lapsed.")


def _ledger_problems(decision: PassDecision) -> Iterable[Problem]:
    """Return the problems of a pass that has looked at no cluster."""
    return *decision.refusal_problems, *decision.inputs.ledger.problems, *decision.bug_problems


def _commit_order(
    settings: Settings,
    decide: Callable[[PassInput, Identity], Plan],
    *,
    empty: str,
    author: str | None,
    dry_run: bool,
    form: options.Output,
    draft: Callable[..., CommitDraft] = draft_from_git,
    problems: Callable[[PassDecision], Iterable[Problem]] = _ledger_problems,
) -> None:
    """Carry out the plan that a person orders, in the person's name."""
    person = named_person(author)
    make_draft = partial(draft, decide=lambda inputs: decide(inputs, person), person=person)
    _carry_out(settings, make_draft, form, dry_run=dry_run, empty=empty, problems=problems)


def _carry_out(
    settings: Settings,
    make_draft: Callable[[World, Memory], CommitDraft],
    form: options.Output,
    *,
    dry_run: bool,
    empty: str,
    problems: Callable[[PassDecision], Iterable[Problem]] = _ledger_problems,
) -> None:
    """Push the commits of a draft, made again whenever the branch moves under it; with `dry_run` only print them."""
    with connected(settings) as (world, memory):
        if dry_run:
            draft = make_draft(world, memory)
            print_plan(draft.decision, draft.rendered, form, empty=empty)
            decision, rendered = draft.decision, draft.rendered
        else:
            outcome = retry_conflicts(lambda: carry_out(world, memory, make_draft(world, memory)), random=random.random)
            print_outcome(settings, outcome, form, empty=empty)
            decision, rendered = outcome.decision, outcome.rendered
    printing.problems((*problems(decision), *rendered.problems))
    if decision.tips.refused:
        raise click.exceptions.Exit(1)


def _draft_for_placements(
    world: World, memory: Memory, decide: Callable[[PassInput], Plan], *, person: Identity
) -> CommitDraft:
    """Draft the plan of `decide`. Raises InvalidInput with the end of a placement that has ended."""
    try:
        return draft_from_git(world, memory, decide, person=person)
    except UnknownPlacement as error:
        ledger = memory.branch.ledger(world.repository.fetch().output)
        read = partial(read_history, world.repository, world.author, ledger)
        end = describe_end(read, HistorySelection(limit=1, name=error.name))
        if end:
            raise InvalidInput(end) from error
        raise


def named_person(author: str | None) -> Identity:
    """Return the author of a commit: the option's value, or git's user."""
    if author is not None:
        identity = checkout.parse_identity(author)
        if identity is None:
            raise click.UsageError(f"--author: {author!r} is not a name and an address ({_EXAMPLE})")
        return identity
    person = checkout.identity()
    if person is None:
        raise InvalidInput(f"naming the author: git knows no user.name and user.email here ({_EXAMPLE})")
    return person
