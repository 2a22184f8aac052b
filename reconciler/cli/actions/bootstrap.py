"""`bootstrap`: the objects that an admin applies once, so that an engine follows the output branch."""

from __future__ import annotations

import click

from reconciler import app
from reconciler.core.engines import ENGINES
from reconciler.daemon.source import missing_branch
from reconciler.daemon.steer import survey
from reconciler.errors import InvalidInput, Severity
from reconciler.model.ids import ClusterName
from reconciler.model.policy import EngineName
from reconciler.settings import Settings


def bootstrap(settings: Settings, engine: str, cluster: str | None) -> None:
    """Print the objects of an engine for the fleet as it stands."""
    chosen = ENGINES[EngineName(engine)].bootstrap
    if chosen is None:
        raise click.UsageError(f"the engine {engine} needs no objects of an admin.")
    if chosen.per_cluster != (cluster is not None):
        hint = "it is written for one cluster" if chosen.per_cluster else "one text is for all clusters"
        raise click.UsageError(f"bootstrap {engine} {'needs' if chosen.per_cluster else 'takes no'} --cluster: {hint}.")
    with app.connected(settings) as (world, memory):
        view = survey(world, memory)
        if view.tips.source is None:
            raise missing_branch(world.repository, settings.source_branch)
    desired = view.desired
    errors = tuple(problem for problem in desired.problems if problem.severity is Severity.ERROR)
    if errors:
        raise InvalidInput(problems=errors)
    name = ClusterName(cluster) if cluster is not None else None
    click.echo(chosen.text(desired, name, output_branch=settings.output_branch), nl=False)
