"""`revert`, `release`, `extend`, `rebalance` and `confirm`: commits that a person asks for."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Unpack

import click

from reconciler.cli import completion, options
from reconciler.cli.connection import asking

if TYPE_CHECKING:
    from reconciler.client import Client
    from reconciler.settings import Settings


def _revert_remotely(client: Client, placements: tuple[str, ...], **flags: Any) -> None:
    from reconciler.cli.actions import steer as action

    action.revert_remotely(client, placements, **flags)


def _extend_remotely(client: Client, placement: str, **flags: Any) -> None:
    from reconciler.cli.actions import steer as action

    action.extend_remotely(client, placement, **flags)


@options.examples(
    "overspill revert vllm-7f3a90c1 --reason 'worker-2 is needed for the audit'",
    "overspill revert llm/vllm-7f3a90c1 llm/vllm-20b1c55e --everywhere",
    "overspill revert vllm-7f3a90c1 --dry-run",
)
@click.command()
@asking(_revert_remotely)
@click.argument("placements", metavar="PLACEMENT...", nargs=-1, required=True, shell_complete=completion.placements)
@options.connected()
@options.reason
@click.option(
    "--everywhere", is_flag=True, help="Hold the workload back on every cluster, not only on the placement's cluster."
)
@options.author
@options.dry_run
@options.forms(names=options.CHANGED)
def revert(
    settings: Settings,
    placements: tuple[str, ...],
    *,
    reason: str,
    everywhere: bool,
    **flags: Unpack[options.CommitFlags],
) -> None:
    """End placements now.

    The workload is held back on that cluster until its demand has gone once or the policy's hold runs out, just as if
    the placement had been deleted from the branch by hand. PLACEMENT is a name, an id or a directory of the branch.
    """
    from reconciler.cli.actions import steer as action

    action.revert(settings, placements, reason=reason, everywhere=everywhere, **flags)


@options.examples(
    "overspill release llm/vllm",
    "overspill release llm/vllm --cluster worker-2 --reason 'the audit is over'",
    "overspill release vllm --dry-run",
)
@click.command()
@click.argument("workload", metavar="WORKSPACE/WORKLOAD", shell_complete=completion.workloads)
@options.connected()
@click.option("--cluster", help="End only what holds it back on this cluster.", shell_complete=completion.clusters)
@options.reason
@options.author
@options.dry_run
@options.forms(names=options.CHANGED)
def release(
    settings: Settings,
    workload: str,
    *,
    cluster: str | None,
    reason: str,
    **flags: Unpack[options.CommitFlags],
) -> None:
    """End the holds and cool-downs of a workload.

    It may burst again in the next pass, wherever it was held back. WORKLOAD is the name of its template; the workspace
    may be left out where only one has it.
    """
    from reconciler.cli.actions import steer as action

    action.release(settings, workload, cluster=cluster, reason=reason, **flags)


@options.examples(
    "overspill extend vllm-7f3a90c1 --by 30m",
    "overspill extend vllm-7f3a90c1 --until 2026-11-20T12:00:00Z --reason 'the evaluation runs until noon'",
)
@click.command()
@asking(_extend_remotely)
@click.argument("placement", metavar="PLACEMENT", shell_complete=completion.placements)
@options.connected()
@click.option("--by", "by", type=options.DURATION, metavar="DURATION", help="The extension of the present end: 30m.")
@click.option("--until", type=options.MOMENT, help="The new end: 2026-11-20T12:00:00Z, or +2h from now.")
@options.reason
@options.author
@options.dry_run
@options.forms(names=options.CHANGED)
def extend(
    settings: Settings,
    placement: str,
    *,
    by: timedelta | None,
    until: datetime | None,
    reason: str,
    **flags: Unpack[options.CommitFlags],
) -> None:
    """Let a placement run longer, or end it earlier.

    The new end may not be beyond the policy's maximum duration, counted from the start of the placement.
    """
    from reconciler.cli.actions import steer as action

    action.extend(settings, placement, by=by, until=until, reason=reason, **flags)


@options.examples(
    "overspill rebalance llm/vllm --observations observations/ --dry-run",
    "overspill rebalance llm/vllm --observations observations/",
    "overspill rebalance llm/vllm --kubeconfig clusters.kubeconfig --reason 'worker-4 is new'",
)
@click.command()
@click.argument("workload", metavar="WORKSPACE/WORKLOAD", shell_complete=completion.workloads)
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "SLURM")
@options.reason
@options.author
@options.dry_run
@options.forms(names=options.CHANGED)
def rebalance(settings: Settings, workload: str, *, reason: str, **flags: Unpack[options.CommitFlags]) -> None:
    """Distribute a workload's bursts over the clusters again.

    Passes leave running placements where they are. A rebalance gives each cluster the share that the policy would give
    it if nothing was placed yet. The total stays. A replica that moves ends on its old cluster while it starts on the
    new one. No cluster is held back because of it.
    """
    from reconciler.cli.actions import steer as action

    action.rebalance(settings, workload, reason=reason, **flags)


@options.examples(
    "overspill confirm --dry-run",
    "overspill confirm --author 'Ada Lovelace <ada@example.com>'",
)
@click.command()
@options.connected()
@options.author
@options.dry_run
@options.forms(names=options.CHANGED)
def confirm(settings: Settings, **flags: Unpack[options.CommitFlags]) -> None:
    """Confirm a mass deletion, and end its placements.

    When half of the workloads that burst, or more, lose their template or policy at once, or half of the requests their
    files, their placements stay until they expire: it may be an accident. This command ends them.
    """
    from reconciler.cli.actions import steer as action

    action.confirm(settings, **flags)
