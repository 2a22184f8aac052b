"""`approve` and `reject`: the answers to a burst that is proposed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import click

from reconciler.cli import completion, options
from reconciler.cli.connection import asking

if TYPE_CHECKING:
    from reconciler.client import Client
    from reconciler.settings import Settings


def _approve_remotely(client: Client, workload: str, **flags: Any) -> None:
    from reconciler.cli.actions import steer as action

    action.approve_remotely(client, workload, **flags)


def _reject_remotely(client: Client, workload: str, **flags: Any) -> None:
    from reconciler.cli.actions import steer as action

    action.reject_remotely(client, workload, **flags)


@options.examples(
    "overspill approve llm/vllm",
    "overspill approve llm/vllm --reason 'the launch is worth it' --dry-run",
)
@click.command()
@asking(_approve_remotely)
@click.argument("workload", metavar="WORKSPACE/WORKLOAD", shell_complete=completion.workloads)
@options.connected()
@options.reason
@options.author
@options.dry_run
@options.forms(names=options.CHANGED)
def approve(settings: Settings, workload: str, *, reason: str, **flags: Unpack[options.CommitFlags]) -> None:
    """Approve a burst that is proposed.

    The commit says on the output branch what the proposal says; the next pass places exactly that, or says why not.
    Merging the pull request of the proposal does the same. `overspill status` shows what is proposed.
    """
    from reconciler.cli.actions import steer as action

    action.approve(settings, workload, reason=reason, **flags)


@options.examples(
    "overspill reject llm/vllm --reason 'too dear this week'",
    "overspill reject vllm --dry-run",
)
@click.command()
@asking(_reject_remotely)
@click.argument("workload", metavar="WORKSPACE/WORKLOAD", shell_complete=completion.workloads)
@options.connected()
@options.reason
@options.author
@options.dry_run
@options.forms(names=options.CHANGED)
def reject(settings: Settings, workload: str, *, reason: str, **flags: Unpack[options.CommitFlags]) -> None:
    """Refuse a burst that is proposed, and hold its workload.

    The workload is held back until its demand has gone once or the policy's hold runs out; `overspill release` ends
    that. Closing the pull request of the proposal does the same.
    """
    from reconciler.cli.actions import steer as action

    action.reject(settings, workload, reason=reason, **flags)
