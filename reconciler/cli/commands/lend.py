"""`lend`: the files with which a live workload may burst."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import options

if TYPE_CHECKING:
    from reconciler.settings import Settings


@options.examples(
    "overspill lend deployment/vllm --namespace serving",
    "overspill lend leaderworkerset/llama --namespace serving --fleet fleet/ --dry-run",
    "kubectl get deployment,configmap,service -n serving -o yaml | overspill lend deployment/vllm -n serving -f -",
)
@click.command()
@click.argument("workload", metavar="[KIND/NAME]", required=False)
@options.observed
@click.option("-n", "--namespace", help="The namespace of the workload. By default that of the file, or `default`.")
@click.option("--primary", metavar="CLUSTER", help="The cluster that runs it. By default that of the workspaces.")
@click.option("--workspace", metavar="NAME", help="Its workspace. By default the one that may use the namespace.")
@click.option("--name", metavar="NAME", help="The name of the template. By default that of the workload.")
@options.fleet_directory
@click.option(
    "-f",
    "--filename",
    "manifests",
    type=options.ExistingPath(dir_okay=False, allow_dash=True),
    help="Read the objects from this file, as `kubectl get -o yaml` prints them, and not from the cluster.",
)
@click.option(
    "--missing",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="The replicas whose burst is shown in the end.",
)
@click.option("--reference", is_flag=True, help="Refer to the live object, and write no copy of it.")
@click.option("--dry-run", is_flag=True, help="Print the files, and write none.")
def lend(
    settings: Settings,
    workload: str | None,
    *,
    namespace: str | None,
    primary: str | None,
    workspace: str | None,
    name: str | None,
    fleet: Path,
    manifests: Path | None,
    missing: int,
    reference: bool,
    dry_run: bool,
) -> None:
    """Write the files with which a live workload may burst.

    Reads the object KIND/NAME from its primary cluster, with the ConfigMaps, claims and service accounts that its pods
    cannot start without and the Services that select them. They become a WorkloadTemplate; a Workspace and a
    BurstPolicy stand beside it where the fleet repository has none for it. Secrets are never read: their names are
    told. Nothing that is there is changed, and nothing is committed.

    With --filename, KIND/NAME may be left out where the file holds one workload.

    With --reference the template says where the object is, and holds no copy: a burst then runs what the primary runs.

    In the end it shows what would be placed if replicas were missing now.
    """
    from reconciler.cli.actions.setup import lend as action

    wanted = action.Wanted(
        workload=workload,
        namespace=namespace,
        primary=primary,
        workspace=workspace,
        name=name,
        missing=missing,
        reference=reference,
    )
    action.lend(settings, fleet, wanted, manifests, dry_run=dry_run)
