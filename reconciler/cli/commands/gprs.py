"""`gprs`, `wait-time` and `inventory`: GPUs in use, estimates for more, and the nodes that have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import click

from reconciler.cli import completion, options
from reconciler.cli.connection import asking
from reconciler.model.gpr import DEFAULT_PRIORITY, PRIORITIES

if TYPE_CHECKING:
    from reconciler.cli.actions.remote import WaitTimeOptions
    from reconciler.client import Client
    from reconciler.settings import Settings

_FIRST, _LAST = PRIORITIES[0], PRIORITIES[-1]


def _list_remotely(client: Client, **flags: Any) -> None:
    from reconciler.cli.actions import remote

    remote.gprs(client, **flags)


@options.examples(
    "overspill gprs --observations observations/",
    "overspill gprs --workspace llm --state queued",
    "overspill gprs -o json | jq '.[] | select(.evictable)'",
)
@click.command()
@asking(_list_remotely)
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "SLURM")
@click.option("--workspace", help="Show GPRs of one workspace.", shell_complete=completion.workspaces)
@click.option("--state", help="Show GPRs in one state, as Queued or Successful; EGS's other names for it will do.")
@options.forms(names="{[*].id}{[*].gprId}")
def gprs(settings: Settings, workspace: str | None, state: str | None, form: options.Output) -> None:
    """List GPRs: GPUs in use elsewhere, and workloads that wait."""
    from reconciler.cli.actions import gprs as action

    action.gprs(settings, workspace, state, form)


def _estimate_remotely(client: Client, **flags: Any) -> None:
    from reconciler.cli.actions import remote

    remote.wait_time(client, **flags)


@options.examples(
    "overspill wait-time --workspace llm --gpus 8 --nodes 2",
    "overspill wait-time --workspace llm --gpus 1 --shape NVIDIA-H100-80GB-HBM3 --priority 250",
    "overspill wait-time --workspace llm --gpus 1 --memory 40 -o json",
)
@click.command("wait-time")
@asking(_estimate_remotely)
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "SLURM")
@click.option(
    "--workspace",
    required=True,
    help="The workspace whose clusters are considered.",
    shell_complete=completion.workspaces,
)
@click.option("--gpus", type=click.IntRange(min=1), required=True, help="GPUs on each node.")
@click.option("--nodes", type=click.IntRange(min=1), default=1, show_default=True, help="Number of different nodes.")
@click.option("--shape", default="", help="The GPU model, as NVIDIA-H100-80GB-HBM3; any if left out.")
@click.option("--memory", type=click.IntRange(min=0), default=0, help="Minimum memory of one GPU, in GB.")
@click.option("--instance-type", default="", help="The machine type of the nodes; any if left out.")
@click.option("--dedicated", is_flag=True, help="Whole nodes, even for fewer GPUs than they have.")
@click.option(
    "--cluster",
    "clusters",
    multiple=True,
    help="Consider this cluster only; may be given several times.",
    shell_complete=completion.clusters,
)
@click.option(
    "--priority",
    type=click.IntRange(_FIRST, _LAST),
    help=f"Priority in the queue; a higher number goes first. By default {DEFAULT_PRIORITY}, or the nearest that the"
    " workspace allows.",
)
@options.forms(names="{[*].cluster}{[*].clusterName}")
def wait_time(settings: Settings, *, form: options.Output, **demand: Unpack[WaitTimeOptions]) -> None:
    """Estimate when GPUs can be had on each cluster.

    The estimate names its reasons: placements that end, nodes that an autoscaler may add, and demand that is ahead.
    """
    from reconciler.cli.actions import gprs as action

    action.wait_time(settings, form=form, **demand)


def _take_stock_remotely(client: Client, **flags: Any) -> None:
    from reconciler.cli.actions import remote

    remote.inventory(client, **flags)


@options.examples(
    "overspill inventory --observations observations/",
    "overspill inventory --workspace llm",
    "overspill inventory -o json | jq '[.managed[].free] | add'",
)
@click.command()
@asking(_take_stock_remotely)
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "SLURM")
@click.option("--workspace", help="Show the clusters of one workspace.", shell_complete=completion.workspaces)
@options.forms(names="{.managed[*].node}{.managedNodes[*].gpuNodeName}")
def inventory(settings: Settings, workspace: str | None, form: options.Output) -> None:
    """List the GPU nodes with their GPUs, and the free ones."""
    from reconciler.cli.actions import gprs as action

    action.inventory(settings, workspace, form)
