"""`status`, `explain` and `history`: demand and placements now, the reasons, and the past."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli import completion, options
from reconciler.cli.connection import asking

if TYPE_CHECKING:
    from reconciler.client import Client
    from reconciler.settings import Settings


@options.examples(
    "overspill status --observations observations/",
    "overspill status -o json | jq '.placements[].placement.cluster'",
)
@click.command()
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS")
@options.at
@options.output
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
@asking(_explain_remotely)
@click.argument("workload", shell_complete=completion.workloads_and_requests)
@click.option("--request", "by_name", is_flag=True, help="Explain the request of this name, not the template.")
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS")
@options.at
@options.output
def explain(settings: Settings, workload: str, at: datetime | None, *, by_name: bool, form: options.Output) -> None:
    """Explain one workload: filter, fit and score of each cluster.

    The answer ends with the changes that would free capacity. WORKLOAD is <workspace>/<template> or
    <workspace>/<request>; the name alone will do where only one workspace has it.
    """
    from reconciler.cli.actions import explain as action

    action.explain(settings, workload, at, by_name=by_name, form=form)


@options.examples(
    "overspill history",
    "overspill history llm/vllm --since 7d",
    "overspill history --limit 100 -o json",
)
@click.command()
@click.argument("workload", required=False, shell_complete=completion.workloads_and_placements)
@options.connected()
@click.option("--since", type=options.PAST, help="Leave out what ended before: 2026-11-20T10:15:00Z, or 7d ago.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Placements to show at most.")
@options.output
def history(settings: Settings, workload: str | None, since: datetime | None, limit: int, form: options.Output) -> None:
    """List past and present placements with their reasons.

    The newest placement comes first. All are read back from the commits of the output branch. WORKLOAD is
    <workspace>/<template>, the template's name alone where only one workspace has it, or one placement.
    """
    from reconciler.cli.actions import history as action

    action.history(settings, workload, since, limit, form)
