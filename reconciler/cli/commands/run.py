"""`once` and `run`: passes that write."""

from __future__ import annotations

import random
from datetime import timedelta

import click

from reconciler import app
from reconciler.adapters.notify import Notifier
from reconciler.cli import options, printing
from reconciler.cli.commands.plan import answer, held_back
from reconciler.core.commits.cluster_branches import branches_of
from reconciler.daemon.reconcile import Outcome, reconcile_once
from reconciler.daemon.steer import retry_conflicts
from reconciler.settings import Settings
from reconciler.text.wording import count

LAST_WORDS = timedelta(seconds=5)
"""How long `once` waits for engines to hear of its push. They poll as well."""


@options.examples(
    "overspill once --observations observations/",
    "overspill once --repo git@git.example.com:ml/fleet.git -o json",
)
@click.command()
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "NOTIFY")
@options.output
def once(settings: Settings, form: options.Output) -> None:
    """Run one pass: look, decide, commit and push.

    If the branch moves meanwhile, the pass runs again on the new tip. A single pass has not watched the demand before:
    it gives nothing back before a burst expires, unless the observations say `deficitSince`. `run` watches.

    With --notify engines are told of the push. One that does not answer within five seconds is a warning.

    Exits with 1 when a file or an observation is broken; everything else has been done all the same.
    """
    notifier = Notifier(settings.notify)
    with app.connected(settings, notifier) as (world, memory):
        outcome = retry_conflicts(lambda: reconcile_once(world, memory), random=random.random)
    committed(settings, outcome, form, empty="Nothing to change.")
    if form == "table":
        held_back(outcome.rendered.suppressed)
    printing.blind(settings)
    printing.stale(settings, outcome.rendered.suppressed)
    printing.problems(notifier.close(LAST_WORDS))
    if printing.problems(outcome.problems):
        raise click.exceptions.Exit(1)


@options.examples(
    "overspill run --kubeconfig clusters.kubeconfig",
    "overspill run --observations observations/",
    "overspill run --kubeconfig clusters.kubeconfig --prometheus http://prometheus.monitoring:9090",
    "overspill run --repo https://git.example.com/ml/fleet.git --listen :8080 --log-format json",
    "OVERSPILL_PUSH_TOKEN_FILE=/run/secrets/push overspill run --listen :8080 --poll-interval 1m",
)
@click.command()
@options.connected(
    "OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "POLL_INTERVAL", "LISTEN", "STRICT_EGS_API", "NOTIFY", "LOG_FORMAT"
)
def run(settings: Settings) -> None:
    """Run the daemon: watch, and commit what is called for.

    It watches the repository, the clusters and the observations. One line a change. SIGTERM and Ctrl-C finish the push
    under way and leave; SIGHUP looks at once. With --listen it takes observations (POST /api/v1/observations), push
    hints of GitHub, GitLab and Gitea, and answers /healthz and /readyz. With --prometheus it asks what the policies'
    signals ask, and with --notify it tells engines of each push, so that they need not poll. Tokens and secrets come
    from the environment or from files only.
    """
    app.serve(settings)


def committed(settings: Settings, outcome: Outcome, form: options.Output, *, empty: str) -> None:
    """Print one line for each change and where they went, or all of it as JSON."""
    if form == "json":
        branches = {advance.cluster: advance.new for advance in outcome.branches}
        printing.json_out({**answer(outcome.view, outcome.rendered), "pushed": outcome.commits, "branches": branches})
        return
    if not outcome.commits and not outcome.branches:
        printing.say(empty)
    for event in outcome.events:
        printing.say(event.line)
    if not outcome.commits:
        return
    pushed = f"{count(len(outcome.commits), 'commit')} to {settings.output_branch}"
    if outcome.branches:
        pushed += f" and the {branches_of(outcome.branches)}"
    printing.say(f"Pushed {pushed}, now at {outcome.commits[-1][:12]}.")
