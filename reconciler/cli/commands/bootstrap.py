"""`bootstrap`: the objects that an admin applies once, so that an engine follows the output branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli import completion, options

if TYPE_CHECKING:
    from reconciler.settings import Settings

BOOTSTRAPPED = ("argocd", "flux")
"""The engines of `core.engines.BOOTSTRAPPED`, to which a test holds them: the register takes long to import."""


@options.examples(
    "overspill bootstrap argocd --repo https://git.example.com/ml/fleet.git",
    "overspill bootstrap argocd | kubectl apply -n argocd -f -",
    "kubectl get appproject overspill -n argocd -o yaml | overspill bootstrap argocd --since -",
    "overspill bootstrap flux --cluster worker-2 | kubectl --context worker-2 apply -f -",
)
@click.command()
@click.argument("engine", type=click.Choice(BOOTSTRAPPED))
@click.option(
    "--cluster",
    metavar="NAME",
    help="The cluster that Flux runs in; for flux only.",
    shell_complete=completion.clusters,
)
@click.option(
    "--since",
    metavar="FILE|COMMIT",
    help="What was applied before: its file, - for standard input, or a commit of the source branch. What is granted "
    "beyond it is told at the top.",
)
@options.connected()
def bootstrap(settings: Settings, engine: str, cluster: str | None, since: str | None) -> None:
    """Print the objects that an admin applies once for an engine.

    With them the engine follows the output branch. For argocd they are an AppProject, which bounds what a placement
    may do, and an ApplicationSet, which makes an Application of each placement. For flux, which runs in each cluster,
    they are the objects of one cluster: accounts with the least rights, a source, and a Kustomization. All are written
    for the clusters, namespaces, kinds and chart repositories of the fleet as it stands; nothing is applied. A fleet
    with a broken file is refused: the objects that the file names would be missing.
    """
    from reconciler.cli.actions import bootstrap as action

    action.bootstrap(settings, engine, cluster, since)
