"""`grant`: the daemon's account in clusters, its rights, and its logins."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from reconciler.cli import options

_SHORTEST = timedelta(minutes=10)
"""The shortest lifetime that an API server takes."""


def _read_lifetime(_ctx: click.Context, _parameter: click.Parameter, value: timedelta) -> timedelta:
    """Refuse what no API server takes."""
    if value < _SHORTEST:
        raise click.BadParameter("a token lasts for at least 10m (try 30d)")
    return value


@options.examples(
    "overspill grant --context worker-1 --dry-run",
    "overspill grant --context worker-1 --context worker-2 --kubeconfig-out daemon.kubeconfig",
    "overspill grant --context gke-a --cluster worker-1 --kubeconfig-out daemon.kubeconfig --token-lifetime 24h --yes",
)
@click.command()
@click.option(
    "--context",
    "contexts",
    metavar="NAME",
    multiple=True,
    required=True,
    help="A context of an administrator, named as the Cluster or as its spec.connection; may be given several times.",
)
@click.option("--cluster", metavar="NAME", help="The Cluster that the context leads to, where it has another name.")
@options.fleet_directory
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The kubeconfig of somebody who may grant rights  [default: kubectl's]",
)
@click.option(
    "--kubeconfig-out",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Make a token for each cluster, and add its login to this kubeconfig, which is the daemon's.",
)
@click.option(
    "--token-lifetime",
    "lasts",
    type=options.DURATION,
    default="30d",
    show_default=True,
    callback=_read_lifetime,
    help="How long a token is to last; a cluster may allow less.",
)
@click.option("--no-expiry", is_flag=True, help="Keep a token without an end in a Secret, in place of one that ends.")
@click.option("--events", is_flag=True, help="Also let the daemon write Kubernetes Events, for Notifications.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--yes", is_flag=True, help="Apply without asking.")
@click.option("--force-conflicts", is_flag=True, help="With --yes, take over fields that another tool has set.")
def grant(
    contexts: tuple[str, ...],
    *,
    cluster: str | None,
    fleet: Path,
    kubeconfig: Path | None,
    target: Path | None,
    lasts: timedelta,
    no_expiry: bool,
    events: bool,
    dry_run: bool,
    yes: bool,
    force_conflicts: bool,
) -> None:
    """Give the daemon its account, rights and logins in clusters.

    In each cluster it applies the service account overspill-system/overspill, with the right to list and watch what
    this fleet is watched for, and no other: nodes, pods and the like, workloads where a Workspace has its primary, and
    what Argo CD or Flux says of placements. With --events it may create Kubernetes Events as well. It shows first what
    would change, and asks. With --kubeconfig-out it makes a token in each cluster and adds a context to the daemon's
    kubeconfig, by the name under which the daemon looks for it. No token is printed.

    Run it again when the fleet bursts another kind of workload, and before a token ends.
    """
    from reconciler.cli.actions.setup import grant as action

    if cluster is not None and len(contexts) > 1:
        raise click.UsageError("--cluster goes with one --context")
    if no_expiry and target is None:
        raise click.UsageError("--no-expiry goes with --kubeconfig-out")
    login = None if target is None else action.LoginOut(path=target, lasts=None if no_expiry else lasts)
    wanted = action.Grant(
        fleet=fleet, contexts=tuple(dict.fromkeys(contexts)), cluster=cluster, login=login, events=events
    )
    action.grant(wanted, kubeconfig, dry_run=dry_run, yes=yes, force_conflicts=force_conflicts)
