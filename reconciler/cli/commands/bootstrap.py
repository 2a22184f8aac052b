"""`bootstrap`: the objects that an admin applies once, so that an engine follows the output branch."""

from __future__ import annotations

from pathlib import Path
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
    "overspill bootstrap flux --cluster worker-2 --apply --context worker-2",
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
@click.option("--apply", "applied", is_flag=True, help="Show what would change in a cluster, ask, and apply it.")
@click.option("--context", metavar="NAME", help="The context of the cluster to apply it in; with --apply.")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The kubeconfig of somebody who may grant rights; with --apply  [default: kubectl's]",
)
@click.option("--yes", is_flag=True, help="Apply without asking.")
@click.option("--force-conflicts", is_flag=True, help="With --yes, take over fields that another tool has set.")
@options.connected()
def bootstrap(
    settings: Settings,
    engine: str,
    cluster: str | None,
    since: str | None,
    *,
    applied: bool,
    context: str | None,
    kubeconfig: Path | None,
    yes: bool,
    force_conflicts: bool,
) -> None:
    """Print the objects that an admin applies once for an engine.

    With them the engine follows the output branch. For argocd they are an AppProject, which bounds what a placement
    may do, and an ApplicationSet, which makes an Application of each placement. For flux, which runs in each cluster,
    they are the objects of one cluster: accounts with the least rights, a source, and a Kustomization. All are written
    for the clusters, namespaces, kinds and chart repositories of the fleet as it stands; nothing is applied. A fleet
    with a broken file is refused: the objects that the file names would be missing.

    With --apply and --context they are applied by server-side apply, after they have been compared with what is there,
    by an account that may grant these rights: never that of the daemon.
    """
    from reconciler.cli.actions.setup import bootstrap as action

    if not applied:
        for flag, value in (
            ("context", context),
            ("kubeconfig", kubeconfig),
            ("yes", yes),
            ("force-conflicts", force_conflicts),
        ):
            if value:
                raise click.UsageError(f"--{flag} goes with --apply")
        action.bootstrap(settings, engine, cluster, since)
        return
    if context is None:
        raise click.UsageError("--apply needs --context NAME: the cluster to apply it in is not guessed")
    if since is not None:
        raise click.UsageError("--since goes without --apply, which compares with what is there")
    action.apply(settings, engine, cluster, kubeconfig, context, yes=yes, force_conflicts=force_conflicts)
