"""`plan`: what a pass would commit."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from reconciler.cli import options

if TYPE_CHECKING:
    from reconciler.settings import Settings


@options.examples(
    "overspill plan --observations observations/",
    "overspill plan --diff | less",
    "overspill plan --at +30m",
    "overspill plan -o json | jq '.commits[].subject'",
)
@click.command()
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS")
@options.at
@click.option(
    "--diff", "as_diff", is_flag=True, help="Print the commits as a patch: messages and files, byte for byte."
)
@options.output
def plan(settings: Settings, at: datetime | None, *, as_diff: bool, form: options.Output) -> None:
    """Show what `run` would commit, and commit nothing.

    Each change is shown with its reason; held-back replicas follow. With --at the answer is for another moment, as if
    everything stayed as it is seen now: bursts that will have expired, windows that will be over.

    A single pass has not watched the demand fall. A burst that a daemon reverts after the scale-down window is shown
    only where the observations have `deficitSince`.
    """
    from reconciler.cli.actions import plan as action

    action.plan(settings, at, as_diff=as_diff, form=form)
