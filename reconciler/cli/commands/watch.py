"""`watch`: the fleet on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli import options

if TYPE_CHECKING:
    from reconciler.settings import Settings


@options.examples(
    "overspill watch",
    "overspill watch --observations observations/",
)
@click.command()
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "SLURM")
def watch(settings: Settings) -> None:
    """Watch clusters, workloads and commits on one screen.

    Each cluster is drawn as a row of cells, one for each GPU: those of bursts, of workloads at home, of others, and the
    free ones. Below are the workloads and the last commits with their reasons. It is drawn anew when git or an
    observation changes, until Ctrl-C, and writes nothing.
    """
    from reconciler.cli.actions import watch as action

    action.watch(settings)
