"""`bootstrap`: what an admin applies once so that an engine follows the output branch."""

from __future__ import annotations

from typing import Literal

import click

from reconciler import app
from reconciler.cli import options
from reconciler.core.bootstrap import argocd
from reconciler.daemon.steer import survey
from reconciler.errors import InvalidInput, Severity
from reconciler.settings import Settings


@options.examples(
    "overspill bootstrap argocd --repo https://git.example.com/ml/fleet.git",
    "overspill bootstrap argocd | kubectl apply -n argocd -f -",
)
@click.command()
@click.argument("engine", type=click.Choice(["argocd"]))
@options.connected()
def bootstrap(settings: Settings, engine: Literal["argocd"]) -> None:  # noqa: ARG001 - one engine so far needs anything
    """Print what an admin applies once for an engine.

    With it the engine follows the output branch. For argocd that is an AppProject, which bounds what a placement may
    do, and an ApplicationSet, which makes an Application of each placement. Both are written for the clusters,
    namespaces and chart repositories of the fleet as it stands; nothing is applied. A broken file is refused: what it
    names would be missing from the project.
    """
    with app.connected(settings) as (world, memory):
        view = survey(world, memory)
    desired = view.desired
    errors = tuple(problem for problem in desired.problems if problem.severity is Severity.ERROR)
    if errors:
        raise InvalidInput(problems=errors)
    if view.tips.source is None:
        raise InvalidInput(f"reading the fleet repository: it has no branch {settings.source_branch!r}")
    click.echo(argocd(desired.fleet, desired, output_branch=settings.output_branch), nl=False)
