"""`once`: a single pass that commits."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta

import click

from reconciler.adapters.engine_webhooks import EngineWebhooks
from reconciler.app.commands import connected
from reconciler.app.proposals import proposal_desk
from reconciler.cli import options, printing
from reconciler.cli.actions.plans.plan import plan_document, print_suppressed
from reconciler.cli.actions.visibility import (
    note_new_branch,
    warn_of_old_observations,
    warn_without_observations,
)
from reconciler.core.commits.cluster_branches import branches_of
from reconciler.core.decide.approval import uses_approval
from reconciler.daemon.orders.order_batches import join_outcomes
from reconciler.daemon.proposals.desk import numbered
from reconciler.daemon.reconcile import Memory, Outcome, World, reconcile_once
from reconciler.daemon.steer import retry_conflicts
from reconciler.model.ids import WorkloadId
from reconciler.settings import Settings
from reconciler.text.to_json import json_value
from reconciler.text.wording import count

LAST_WORDS = timedelta(seconds=5)
"""How long `once` waits for engines to hear of its push. They poll as well."""


def once(settings: Settings, form: options.Output) -> None:
    """Run one pass, again while the branch moves, templates fail or subsets wait, and print the commits."""
    webhooks = EngineWebhooks(settings.notify)
    with connected(settings, webhooks) as (world, memory):
        outcomes = _run_passes(world, memory)
        outcome = join_outcomes(outcomes)
        answered = _tend_proposals(settings, world, memory, outcome)
        note_new_branch(settings, outcomes[0].decision.tips.output, world.repository)
    print_outcome(settings, outcome, form, empty="Nothing to change.")
    if form == "table" and answered is not None:
        print_outcome(settings, answered, form, empty="")
    if form == "table":
        print_suppressed(json_value(outcome.rendered.suppressed))
    warn_without_observations(settings)
    warn_of_old_observations(settings, outcome.rendered.suppressed)
    printing.problems(webhooks.close(LAST_WORDS))
    if printing.problems(outcome.problems):
        raise click.exceptions.Exit(1)


def _run_passes(world: World, memory: Memory) -> Sequence[Outcome]:
    """Run a pass, and another as long as each meets more templates that fail and leaves others of theirs untried.

    Subsets whose pods are not rendered yet ask for another one too, as long as more of them are rendered than in any
    pass before: under commits that change them all the time this ends as well. The next process would begin with the
    first of them again. Each of the passes runs again whenever the branch moves.
    """
    outcomes: list[Outcome] = []
    failing, most = set[tuple[WorkloadId, str]](), 0
    while True:
        outcomes.append(retry_conflicts(lambda: reconcile_once(world, memory), random=random.random))
        drafted, failures = outcomes[-1].plan.drafted, memory.failures.unwritable.keys()
        if not (drafted.has_untried and len(drafted.drafts) > most) and failures <= failing:
            return outcomes
        failing |= failures
        most = max(most, len(drafted.drafts))


def _tend_proposals(settings: Settings, world: World, memory: Memory, outcome: Outcome) -> Outcome | None:
    """Give proposals their pull requests, and carry out what the host says of them; None where it says nothing."""
    proposes = any(change.proposal is not None for change in outcome.rendered.changes)
    if not proposes and not uses_approval(outcome.decision.inputs):
        return None
    with closing(proposal_desk(settings)) as desk:
        orders = numbered(desk.tend())
    if not orders:
        return None
    return retry_conflicts(lambda: reconcile_once(world, memory, orders=orders), random=random.random)


def print_outcome(settings: Settings, outcome: Outcome, form: options.Output, *, empty: str) -> None:
    """Print a line for each change and the branches they were pushed to, or all of it as JSON."""
    if form == "json":
        branches = {advance.cluster: advance.new for advance in outcome.branches}
        printing.json_out(
            {**plan_document(outcome.decision, outcome.rendered), "pushed": outcome.commits, "branches": branches}
        )
        return
    if not outcome.commits and not outcome.branches:
        printing.say(empty)
    first = len(outcome.rendered.commits) - len(outcome.rendered.changes)
    begun = outcome.rendered.commits[:first] if outcome.commits else ()
    lines = [*(commit.message.partition("\n")[0] for commit in begun), *(event.line for event in outcome.events)]
    clusters = tuple(advance.cluster for advance in outcome.branches)
    print_push(lines, outcome.commits, settings.output_branch, clusters)


def print_push(lines: Sequence[str], commits: Sequence[str], branch: str, clusters: Sequence[str]) -> None:
    """Print a line for each change, and the branches that were pushed to, those of clusters among them."""
    for line in lines:
        printing.say(line)
    if not commits:
        return
    pushed = f"{count(len(commits), 'commit')} to {branch}"
    if clusters:
        pushed += f" and the {branches_of(clusters)}"
    printing.say(f"Pushed {pushed}, now at {commits[-1][:12]}.")
