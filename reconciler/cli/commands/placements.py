"""`placements`: requests by name, and the bursts that demand brought.

`list` and `get` ask a daemon or read the repository; `create`, `update` and `delete` have a daemon commit in the name
of the caller.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli import completion, options
from reconciler.cli.connection import asking, served
from reconciler.model.workload import DeletionPolicy

if TYPE_CHECKING:
    from reconciler.client import Client
    from reconciler.settings import Settings

STATUSES = ("Pending", "Queued", "Successful", "Completed", "Failed")
"""The states of a request's GPUs, of `model.request.Provisioning`; a test keeps both alike."""
PHASES = ("Pending", "Running", "Succeeded", "Failed", "Completed")
"""The phases of a workload, of `model.placement.Phase`, which takes long to import; a test keeps both alike."""
ORIGINS = ("burst", "request")
"""The origins of `model.placement.Origin`; a test keeps both alike."""

_PULL_REQUEST = "Without a daemon, a pull request does it: "
_OTHERWISE_CREATE = f"{_PULL_REQUEST}add the file to the fleet repository, anywhere."
_OTHERWISE_UPDATE = f"{_PULL_REQUEST}change its file in the fleet repository, or `overspill extend`."
_OTHERWISE_DELETE = f"{_PULL_REQUEST}remove its file from the fleet repository, or `overspill revert`."

_WORKSPACE = click.option(
    "--workspace",
    metavar="NAME",
    default="",
    help="The placement's workspace, where several have the name.",
    shell_complete=completion.workspaces,
)
_FILES = click.option(
    "-f", "--filename", "files", metavar="FILE", multiple=True, help="A file with placements; - is standard input."
)


@options.examples(
    "export OVERSPILL_SERVER=https://overspill.example.com OVERSPILL_TOKEN_FILE=~/.overspill-token",
    "overspill placements create -f bookinfo.yaml",
    "overspill placements list --status Queued",
)
@click.group()
def placements() -> None:
    """Ask for placements by name, and follow them.

    They are EGS's workload placements. A running daemon is asked (--server), which commits in the name of the owner of
    the token in OVERSPILL_TOKEN or OVERSPILL_TOKEN_FILE.
    """


@options.examples(
    "overspill placements create -f bookinfo.yaml --server https://overspill.example.com",
    "kubectl get workloadplacements -o yaml | overspill placements create -f - --workspace llm",
)
@placements.command()
@_FILES
@click.option(
    "--workspace",
    metavar="NAME",
    default="",
    help="The workspace of placements that name none.",
    shell_complete=completion.workspaces,
)
@served(otherwise=_OTHERWISE_CREATE)
@options.forms(names="{[*].name}")
def create(client: Client, *, files: tuple[str, ...], workspace: str, form: options.Output) -> None:
    """Ask for placements.

    A file may hold several, as EGS's WorkloadPlacement of any group or as bodies of its REST interface, in YAML or
    JSON. They are created one by one; a refused placement does not stop the others. The command returns when the
    commits are pushed.
    """
    from reconciler.cli.actions import placements as action

    action.create(client, files=files, workspace=workspace, form=form)


def _list_remotely(client: Client, **flags: Any) -> None:
    from reconciler.cli.actions import placements as action

    action.list_remotely(client, **flags)


@options.examples(
    "overspill placements list --server https://overspill.example.com",
    "overspill placements list --workspace llm --status Queued",
    "overspill placements list -o json | jq '.[] | select(.origin == \"burst\").name'",
)
@placements.command("list")
@options.watched
@asking(_list_remotely)
@click.option(
    "--workspace",
    metavar="NAME",
    default="",
    help="Only placements of this workspace.",
    shell_complete=completion.workspaces,
)
@click.option(
    "--cluster",
    metavar="NAME",
    default="",
    help="Only placements that are on this cluster or name it.",
    shell_complete=completion.clusters,
)
@click.option(
    "--status",
    type=click.Choice(STATUSES, case_sensitive=False),
    default=None,
    help="Only placements whose GPUs are in this state.",
)
@click.option(
    "--phase",
    type=click.Choice(PHASES, case_sensitive=False),
    default=None,
    help="Only placements whose workload is in this phase.",
)
@click.option(
    "--origin",
    type=click.Choice(ORIGINS, case_sensitive=False),
    default=None,
    help="Only requests, or only bursts that demand brought.",
)
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "SLURM")
@options.forms(names="{[*].name}")
def list_(
    settings: Settings,
    *,
    workspace: str,
    cluster: str,
    status: str | None,
    phase: str | None,
    origin: str | None,
    form: options.Output,
) -> None:
    """List requests and bursts, of a daemon or of the repository."""
    from reconciler.cli.actions import placements as action

    action.list_here(
        settings, workspace=workspace, cluster=cluster, status=status, phase=phase, origin=origin, form=form
    )


def _get_remotely(client: Client, **flags: Any) -> None:
    from reconciler.cli.actions import placements as action

    action.get_remotely(client, **flags)


@options.examples(
    "overspill placements get bookinfo --server https://overspill.example.com",
    "overspill placements get bookinfo -o yaml > bookinfo.yaml",
)
@placements.command()
@asking(_get_remotely)
@click.argument("name", shell_complete=completion.requests_and_bursts)
@_WORKSPACE
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "SLURM")
@options.forms(names="{.name}", about="`create -f` takes the yaml and json forms")
def get(settings: Settings, *, name: str, workspace: str, form: options.Output) -> None:
    """Show one placement: its request and its state."""
    from reconciler.cli.actions import placements as action

    action.get_here(settings, name=name, workspace=workspace, form=form)


@options.examples(
    "overspill placements update bookinfo --burst-duration 30m --deletion-policy Retain",
    "overspill placements update bookinfo -f bookinfo.yaml --server https://overspill.example.com",
)
@placements.command()
@click.argument("name", shell_complete=completion.requests)
@click.option("-f", "--filename", "file", metavar="FILE", help="A file with the fields to change; - is standard input.")
@click.option("--burst-duration", type=options.DURATION, metavar="DURATION", help="The new duration: 30m.")
@click.option(
    "--deletion-policy",
    type=click.Choice([str(policy) for policy in DeletionPolicy], case_sensitive=False),
    help="Whether its objects are deleted or retained when it ends.",
)
@_WORKSPACE
@served(otherwise=_OTHERWISE_UPDATE)
@options.forms(names="{[*].name}")
def update(
    client: Client,
    *,
    name: str,
    file: str | None,
    burst_duration: timedelta | None,
    deletion_policy: str | None,
    workspace: str,
    form: options.Output,
) -> None:
    """Change a placement.

    While it waits for GPUs every field may change but its name and workspace; once it has them, only the two that have
    an option of their own; nothing once it has ended. A duration counts from the start of the placement.
    """
    from reconciler.cli.actions import placements as action

    action.update(
        client,
        name=name,
        file=file,
        burst_duration=burst_duration,
        deletion_policy=deletion_policy,
        workspace=workspace,
        form=form,
    )


@options.examples(
    "overspill placements delete bookinfo --server https://overspill.example.com",
    "overspill placements delete bookinfo ratings --workspace llm --yes",
)
@placements.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=completion.requests_and_bursts)
@click.option("--yes", is_flag=True, help="Do not ask on a terminal.")
@_WORKSPACE
@served(otherwise=_OTHERWISE_DELETE)
@options.forms(names="{[*].name}")
def delete(client: Client, *, names: tuple[str, ...], yes: bool, workspace: str, form: options.Output) -> None:
    """End placements: requests are forgotten, and their commits or those of bursts are reverted."""
    from reconciler.cli.actions import placements as action

    action.delete(client, names=names, yes=yes, workspace=workspace, form=form)
