"""`placements`: what people ask for by name, and what demand brings."""

from __future__ import annotations

import click

from reconciler.cli import options, placementreads, placementwrites


@options.examples(
    "export OVERSPILL_SERVER=https://overspill.example.com OVERSPILL_TOKEN_FILE=~/.overspill-token",
    "overspill placements create -f bookinfo.yaml",
    "overspill placements list --status Queued",
)
@click.group()
def placements() -> None:
    """Ask for placements by name, and see what became of them.

    They are EGS's workload placements. A running daemon is asked (--server), which commits in the name of whoever the
    token in OVERSPILL_TOKEN or OVERSPILL_TOKEN_FILE belongs to.
    """


for _command in (
    placementwrites.create, placementreads.list_, placementreads.get, placementwrites.update, placementwrites.delete,
):  # fmt: skip # a list of words, filled line by line
    placements.add_command(_command)
