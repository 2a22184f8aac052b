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
from reconciler.cli.commands.plan import problems_of, show
from reconciler.cli.commands.run import committed
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

_AUTHOR = click.option(
    "--author", metavar="'NAME <ADDRESS>'", help="Who asks for it; git's user.name and user.email if not given."
)
_EXAMPLE = "try --author 'Ada Lovelace <ada@example.com>'"
_DRY_RUN = click.option(
    "--dry-run", is_flag=True, help="Show what would be committed, as `plan` does, and commit nothing."
)
_REASON = click.option("--reason", metavar="TEXT", default="", help="Why, for the commit message.")


@options.examples(
    "overspill revert vllm-7f3a90c1 --reason 'worker-2 is needed for the audit'",
    "overspill revert llm/vllm-7f3a90c1 llm/vllm-20b1c55e --everywhere",
    "overspill revert vllm-7f3a90c1 --dry-run",
)
@click.command()
@click.argument("placements", metavar="PLACEMENT...", nargs=-1, required=True)
@options.connected()
@_REASON
@click.option(
    "--everywhere", is_flag=True, help="Hold the workload back on every cluster, not only on the one it leaves."
)
@_AUTHOR
@_DRY_RUN
@options.output
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
    """End placements now.

    The workload is held back on that cluster until its demand has gone once or the policy's hold runs out, just as if
    the placement had been deleted from the branch by hand. PLACEMENT is a name, an id or a directory of the branch.
    """
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


@options.examples(
    "overspill extend vllm-7f3a90c1 --by 30m",
    "overspill extend vllm-7f3a90c1 --until 2026-11-20T12:00:00Z --reason 'the evaluation runs until noon'",
)
@click.command()
@click.argument("placement", metavar="PLACEMENT")
@options.connected()
@click.option("--by", "by", type=options.DURATION, metavar="DURATION", help="How much longer than agreed so far: 30m.")
@click.option("--until", type=options.MOMENT, help="The new end: 2026-11-20T12:00:00Z, or +2h from now.")
@_REASON
@_AUTHOR
@_DRY_RUN
@options.output
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
    """Let a placement run longer, or end it earlier.

    The new end may not be beyond the policy's maximum duration, counted from when it was placed.
    """
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


@options.examples(
    "overspill rebalance llm/vllm --observations observations/ --dry-run",
    "overspill rebalance llm/vllm --observations observations/",
    "overspill rebalance llm/vllm --kubeconfig clusters.kubeconfig --reason 'worker-4 is new'",
)
@click.command()
@click.argument("workload", metavar="WORKSPACE/WORKLOAD")
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS")
@_REASON
@_AUTHOR
@_DRY_RUN
@options.output
def rebalance(
    settings: Settings, workload: str, *, reason: str, author: str | None, dry_run: bool, form: options.Output
) -> None:
    """Share out anew what a workload has elsewhere.

    Passes leave what runs where it is. This gives each cluster what it would get by the policy if nothing stood yet.
    The total stays. What goes elsewhere ends where it was while it starts there. Nothing is held back because of it.
    """
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
    printing.blind(settings)


@options.examples(
    "overspill sweep --repo https://git.example.com/ml/fleet.git",
    "*/10 * * * *  overspill sweep --repo /srv/git/fleet.git",
)
@click.command()
@options.connected()
@_DRY_RUN
@options.output
def sweep(settings: Settings, *, dry_run: bool, form: options.Output) -> None:
    """Revert the placements whose time is over, and nothing else.

    It needs the output branch only: no observations, no clusters, not even readable files on the source branch. Run it
    in any CI on a schedule, so that bursts end even when the daemon is gone.
    """
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
