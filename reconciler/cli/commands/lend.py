"""`lend`: the files with which a live workload may burst."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli import options

if TYPE_CHECKING:
    from reconciler.settings import Settings


@options.examples(
    "overspill lend deployment/vllm --namespace serving",
    "overspill lend leaderworkerset/llama --namespace serving --fleet fleet/ --dry-run",
    "overspill lend release/vllm --namespace serving --chart-repo https://vllm-project.github.io/production-stack",
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
    help="Read the objects from this file, as `kubectl get -o yaml` or `helm get manifest` print them, and not live.",
)
@click.option(
    "--missing",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="The replicas whose burst is shown in the end.",
)
@click.option("--chart-repo", metavar="URL", help="Where engines fetch the chart of a release: `https://` or `oci://`.")
@click.option("--chart", metavar="NAME", help="The chart of a release in a file, where no label tells it.")
@click.option("--chart-version", metavar="VERSION", help="Its version.")
@click.option(
    "--values",
    type=options.ExistingPath(dir_okay=False),
    help="The values of a release, as `helm get values -o yaml` prints them, in place of those that Helm keeps.",
)
@click.option("--replicas-value", metavar="PATH", help="The value of the chart that sets the replicas, or `fixed`.")
@click.option("--counted", metavar="KIND/NAME", help="The workload of a release whose replicas burst.")
@click.option("--reference", is_flag=True, help="Refer to the live object, and write no copy of it.")
@click.option("--companions", is_flag=True, help="With --reference: refer to its ConfigMaps and Services as well.")
@click.option("--dry-run", is_flag=True, help="Print the files, and write none.")
def lend(
    settings: Settings,
    /,
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
    companions: bool,
    dry_run: bool,
    **release: Any,
) -> None:
    """Write the files with which a live workload may burst.

    Reads the object KIND/NAME from its primary cluster, with the ConfigMaps, claims and service accounts that its pods
    cannot start without and the Services that select them. They become a WorkloadTemplate; a Workspace and a
    BurstPolicy stand beside it where the fleet repository has none for it. Secrets are never read: their names are
    told. Nothing that is there is changed, and nothing is committed.

    With --filename, KIND/NAME may be left out where the file holds one workload.

    Of a Helm release, release/NAME, the chart is lent with the values of its user. Helm keeps them in a Secret, which
    is read by your login, and no other one; where the chart comes from it does not keep: say it with --chart-repo.
    Without the right to read it, --filename takes what `helm get manifest` prints, beside --values.

    With --reference the template says where the object is, and holds no copy: a burst then runs what the primary runs.
    With --companions that goes for its ConfigMaps and Services too, to which `overspill grant` gives the daemon rights.

    In the end it shows what would be placed if replicas were missing now.
    """
    from reconciler.cli.actions.setup import lend as action
    from reconciler.cli.actions.setup.release_chart import ChartAnswers

    wanted = action.Wanted(
        workload=workload,
        namespace=namespace,
        primary=primary,
        workspace=workspace,
        name=name,
        missing=missing,
        reference=reference,
        companions=companions,
        chart=ChartAnswers(**release),
    )
    action.lend(settings, fleet, wanted, manifests, dry_run=dry_run)
