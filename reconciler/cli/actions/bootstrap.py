"""`bootstrap`: what an admin applies once so that an engine follows the output branch."""

from __future__ import annotations

from typing import Literal

import click

from reconciler import app
from reconciler.core.engines.argocd_bootstrap import argocd
from reconciler.core.engines.flux_bootstrap import flux
from reconciler.daemon.source import missing
from reconciler.daemon.steer import survey
from reconciler.errors import InvalidInput, Severity
from reconciler.model.ids import ClusterName
from reconciler.settings import Settings


def bootstrap(settings: Settings, engine: Literal["argocd", "flux"], cluster: str | None) -> None:
    """Print the objects of an engine for the fleet as it stands."""
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
