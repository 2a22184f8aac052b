"""`status`, `explain`, `history` and `cost`: demand and placements now, the reasons, the past, and the money."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import click

from reconciler.cli import completion, options
from reconciler.cli.connection import asking

if TYPE_CHECKING:
    from reconciler.client import Client
    from reconciler.settings import Settings

CostForm = Literal["table", "json", "markdown"]


def _status_remotely(client: Client, **flags: Any) -> None:
    from reconciler.cli.actions import status as action

    action.status_remotely(client, **flags)


@options.examples(
    "overspill status --observations observations/",
    "overspill status --server https://overspill.example.com",
    "overspill status --watch",
    "overspill status -o json | jq '.placements[].placement.cluster'",
)
@click.command()
@options.watched
@asking(_status_remotely)
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "SLURM")
@options.at
@options.forms(names="{.placements[*].placement.name}")
def status(settings: Settings, at: datetime | None, form: options.Output) -> None:
    """Show every workload's demand and every placement."""
    from reconciler.cli.actions import status as action

    action.status(settings, at, form)


def _explain_remotely(client: Client, workload: str, **flags: Any) -> None:
    from reconciler.cli.actions import remote

    remote.explain(client, workload, **flags)


@options.examples(
    "overspill explain llm/vllm --observations observations/",
    "overspill explain vllm --at +1h",
    "overspill explain llm/vllm -o json | jq '.assessments[] | select(.refusal)'",
)
@click.command()
@options.watched
@asking(_explain_remotely)
@click.argument("workload", shell_complete=completion.workloads_and_requests)
@click.option("--request", "by_name", is_flag=True, help="Explain the request of this name, not the template.")
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "SLURM")
@options.at
@options.forms(names="{.assessments[*].cluster}")
def explain(settings: Settings, workload: str, at: datetime | None, *, by_name: bool, form: options.Output) -> None:
    """Explain one workload: filter, fit and rank of each cluster.

    The answer ends with the changes that would free capacity. WORKLOAD is <workspace>/<template> or
    <workspace>/<request>; the name alone will do where only one workspace has it.
    """
    from reconciler.cli.actions import explain as action

    action.explain(settings, workload, at, by_name=by_name, form=form)


def _history_remotely(client: Client, **flags: Any) -> None:
    from reconciler.cli.actions import history as action

    action.history_remotely(client, **flags)


@options.examples(
    "overspill history",
    "overspill history llm/vllm --since 7d",
    "overspill history --limit 100 -o json",
)
@click.command()
@options.watched
@asking(_history_remotely)
@click.argument("workload", required=False, shell_complete=completion.workloads_and_placements)
@options.connected()
@click.option("--since", type=options.PAST, help="Leave out what ended before: 2026-11-20T10:15:00Z, or 7d ago.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Placements to show at most.")
@options.forms(names="{.placements[*].id}")
def history(settings: Settings, workload: str | None, since: datetime | None, limit: int, form: options.Output) -> None:
    """List past and present placements with their reasons.

    The newest placement comes first. All are read back from the commits of the output branch. WORKLOAD is
    <workspace>/<template>, the template's name alone where only one workspace has it, or one placement.
    """
    from reconciler.cli.actions import history as action

    action.history(settings, workload, since, limit, form)


@options.examples(
    "overspill cost",
    "overspill cost --since 2026-10-01T00:00:00Z --until 2026-11-01T00:00:00Z --by workspace --by cluster",
    "overspill cost --since 7d --by day -o markdown",
)
@click.command()
@options.connected()
@click.option("--since", type=options.PAST, default="30d", help="From when on: 2026-11-01T00:00:00Z, or 30d ago.")
@click.option("--until", type=options.PAST, help="Until when, in the same form; until now by default.")
@click.option(
    "--by",
    type=click.Choice(["workspace", "workload", "cluster", "day", "month"]),
    multiple=True,
    default=("workspace",),
    show_default=True,
    help="What is told apart; several are combined.",
)
@options.forms("markdown")
def cost(settings: Settings, since: datetime, until: datetime | None, by: tuple[str, ...], form: CostForm) -> None:
    """Add up the GPU-hours and the money of placements.

    All is read from the two branches: how many GPUs each placement had when, and the prices of the Cluster files that
    held then. What runs counts up to now. Days and months are those of UTC.
    """
    from reconciler.cli.actions import cost as action

    action.cost(settings, since, until, by, form)
