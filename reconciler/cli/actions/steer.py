"""`revert`, `extend` and `sweep`: ends that a person or a schedule asks for; `rebalance`: other shares.

All of them draft commits and push them, or with ``--dry-run`` show them as `plan` does.
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
from reconciler.cli.actions.once import committed
from reconciler.cli.actions.plan import problems_of, show
from reconciler.cli.actions.visibility import warn_without_observations
from reconciler.core.decide.decide import sweep as lapsed
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.steps.rebalance import rebalance as shared_anew
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
        found = {find(inputs.ledger, text).path: find(inputs.ledger, text) for text in placements}
        return withdraw(inputs, tuple(found.values()), by=person.name, reason=reason, everywhere=everywhere)

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
        found = find(inputs.ledger, placement)
        end = until if until is not None else found.expires_at + (by or timedelta())
        return prolong(inputs, found, end, by=person.name, reason=reason)

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
        named = find_workload(inputs, workload)
        return shared_anew(inputs, named, by=person.name, reason=reason)

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
    _carry_out(settings, partial(draft_from_git, decide=lapsed), form, dry_run=dry_run, empty="Nothing has lapsed.")


def _carry_out(
    settings: Settings,
    make: Callable[[World, Memory], CommitDraft],
    form: options.Output,
    *,
    dry_run: bool,
    empty: str,
    problems: Callable[[View], Iterable[Problem]] = lambda view: view.ledger.problems,
) -> None:
    """Run a pass of one's own, again whenever the branch moves under it, and tell what it did, or what it would do."""
    with app.connected(settings) as (world, memory):
        if dry_run:
            made = make(world, memory)
            show(made.view, made.rendered, form, empty=empty)
            view = made.view
        else:
            outcome = retry_conflicts(lambda: carry_out(world, memory, make(world, memory)), random=random.random)
            committed(settings, outcome, form, empty=empty)
            view = outcome.view
    printing.problems(problems(view))


def _person(author: str | None) -> Identity:
    """Find out in whose name a commit is made."""
    if author is not None:
        named = checkout.parse_identity(author)
        if named is None:
            raise click.UsageError(f"--author: {author!r} is not a name and an address ({_EXAMPLE})")
        return named
    person = checkout.identity()
    if person is None:
        raise InvalidInput(f"naming the author: git knows no user.name and user.email here ({_EXAMPLE})")
    return person
