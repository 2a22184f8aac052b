"""`revert`, `extend`, `rebalance` and `sweep`: commits that a person or a schedule asks for.

Each drafts commits and pushes them, or with ``--dry-run`` prints them as `plan` does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial

import click

from reconciler import app
from reconciler.adapters.git import checkout
from reconciler.cli import options, printing
from reconciler.cli.actions.once import print_outcome
from reconciler.cli.actions.plan import print_plan, problems_of
from reconciler.cli.actions.visibility import warn_without_observations
from reconciler.core.decide.decide import sweep as revert_expired
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.steps.rebalance import rebalance as rebalance_shares
from reconciler.core.decide.steps.steer import find, find_workload, prolong, withdraw
from reconciler.daemon.reconcile import Memory, View, World
from reconciler.daemon.steer import CommitDraft, carry_out, draft_from_clusters, draft_from_git, retry_conflicts
from reconciler.errors import InvalidInput, Problem
from reconciler.model.plan import Plan
from reconciler.model.tree import Identity
from reconciler.settings import Settings

_EXAMPLE = "try --author 'Ada Lovelace <ada@example.com>'"


def revert(
    settings: Settings,
    placements: tuple[str, ...],
    *,
    reason: str,
    everywhere: bool,
    author: str | None,
    dry_run: bool,
    form: options.Output,
) -> None:
    """End placements, and hold their workloads back."""
    person = _person(author)

    def decide(inputs: PassInput) -> Plan:
        named = (find(inputs.ledger, text) for text in placements)
        by_path = {placement.path: placement for placement in named}
        return withdraw(inputs, tuple(by_path.values()), by=person.name, reason=reason, everywhere=everywhere)

    _carry_out(
        settings,
        partial(draft_from_git, decide=decide, person=person),
        form,
        dry_run=dry_run,
        empty="Nothing to revert.",
    )


def extend(
    settings: Settings,
    placement: str,
    *,
    by: timedelta | None,
    until: datetime | None,
    reason: str,
    author: str | None,
    dry_run: bool,
    form: options.Output,
) -> None:
    """Give a placement a new end."""
    if (by is None) == (until is None):
        raise click.UsageError("say either --by or --until")
    person = _person(author)

    def decide(inputs: PassInput) -> Plan:
        subject = find(inputs.ledger, placement)
        end = until if until is not None else subject.expires_at + (by or timedelta())
        return prolong(inputs, subject, end, by=person.name, reason=reason)

    _carry_out(
        settings,
        partial(draft_from_git, decide=decide, person=person),
        form,
        dry_run=dry_run,
        empty="Nothing to extend.",
    )


def rebalance(
    settings: Settings, workload: str, *, reason: str, author: str | None, dry_run: bool, form: options.Output
) -> None:
    """Distribute a workload's bursts over the clusters anew."""
    person = _person(author)

    def decide(inputs: PassInput) -> Plan:
        return rebalance_shares(inputs, find_workload(inputs, workload), by=person.name, reason=reason)

    _carry_out(
        settings,
        partial(draft_from_clusters, decide=decide, person=person),
        form,
        dry_run=dry_run,
        empty="Nothing to rebalance: each cluster has its share.",
        problems=problems_of,
    )
    warn_without_observations(settings)


def sweep(settings: Settings, *, dry_run: bool, form: options.Output) -> None:
    """Revert expired placements."""
    _carry_out(
        settings, partial(draft_from_git, decide=revert_expired), form, dry_run=dry_run, empty="Nothing has lapsed."
    )


def _carry_out(
    settings: Settings,
    make_draft: Callable[[World, Memory], CommitDraft],
    form: options.Output,
    *,
    dry_run: bool,
    empty: str,
    problems: Callable[[View], Iterable[Problem]] = lambda view: view.ledger.problems,
) -> None:
    """Push the commits of a draft, made anew whenever the branch moves under it; with `dry_run` only print them."""
    with app.connected(settings) as (world, memory):
        if dry_run:
            draft = make_draft(world, memory)
            print_plan(draft.view, draft.rendered, form, empty=empty)
            view = draft.view
        else:
            outcome = retry_conflicts(lambda: carry_out(world, memory, make_draft(world, memory)), random=random.random)
            print_outcome(settings, outcome, form, empty=empty)
            view = outcome.view
    printing.problems(problems(view))


def _person(author: str | None) -> Identity:
    """Return the author of a commit: the one given, or git's user."""
    if author is not None:
        identity = checkout.parse_identity(author)
        if identity is None:
            raise click.UsageError(f"--author: {author!r} is not a name and an address ({_EXAMPLE})")
        return identity
    person = checkout.identity()
    if person is None:
        raise InvalidInput(f"naming the author: git knows no user.name and user.email here ({_EXAMPLE})")
    return person
