"""`bootstrap`: what an admin applies once so that an engine follows the output branch."""

from __future__ import annotations

from typing import Literal

import click

from reconciler import app
from reconciler.cli import options
from reconciler.core.engines.argocd_bootstrap import argocd
from reconciler.core.engines.flux_bootstrap import flux
from reconciler.daemon.source import missing
from reconciler.daemon.steer import survey
from reconciler.errors import InvalidInput, Severity
from reconciler.model.ids import ClusterName
from reconciler.settings import Settings


@options.examples(
    "overspill bootstrap argocd --repo https://git.example.com/ml/fleet.git",
    "overspill bootstrap argocd | kubectl apply -n argocd -f -",
    "overspill bootstrap flux --cluster worker-2 | kubectl --context worker-2 apply -f -",
)
@click.command()
@click.argument("engine", type=click.Choice(["argocd", "flux"]))
@click.option("--cluster", metavar="NAME", help="The cluster that Flux runs in; for flux only.")
@options.connected()
def bootstrap(settings: Settings, engine: Literal["argocd", "flux"], cluster: str | None) -> None:
    """Print what an admin applies once for an engine.

    With it the engine follows the output branch. For argocd that is an AppProject, which bounds what a placement may
    do, and an ApplicationSet, which makes an Application of each placement. For flux, which runs in each cluster, that
    is what one cluster needs: accounts with the least rights, a source, and a Kustomization. All is written for the
    clusters, namespaces, kinds and chart repositories of the fleet as it stands; nothing is applied. A broken file is
    refused: what it names would be missing.
    """
    if (engine == "flux") != (cluster is not None):
        hint = "it is written for one cluster" if engine == "flux" else "one text is for all clusters"
        raise click.UsageError(f"bootstrap {engine} {'needs' if engine == 'flux' else 'takes no'} --cluster: {hint}.")
    with app.connected(settings) as (world, memory):
        view = survey(world, memory)
        if view.tips.source is None:
            raise missing(world.repository, settings.source_branch)
    desired = view.desired
    errors = tuple(problem for problem in desired.problems if problem.severity is Severity.ERROR)
    if errors:
        raise InvalidInput(problems=errors)
    if cluster is None:
        text = argocd(desired.fleet, desired, output_branch=settings.output_branch)
    else:
        text = flux(desired, ClusterName(cluster), output_branch=settings.output_branch)
    click.echo(text, nl=False)
