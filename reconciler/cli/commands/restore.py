"""`restore`: a lost branch is pushed back, or given up, by a person's word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from reconciler.cli import options

if TYPE_CHECKING:
    from reconciler.settings import Settings


@options.examples(
    "overspill restore --dry-run",
    "overspill restore --repo git@git.example.com:ml/fleet.git",
    "overspill restore --commit 5c0e1f7d3a52c1f7b9d0e86a4b3f2c1d0e9f8a7b",
    "overspill restore --accept --author 'Ada Lovelace <ada@example.com>'",
)
@click.command()
@options.connected()
@click.option(
    "--accept",
    is_flag=True,
    help="Give up what the remote lacks, and go on from what it has: an empty branch where it is gone.",
)
@click.option(
    "--commit",
    metavar="COMMIT",
    help="The full id of a commit that the output branch had, where this machine does not know of it.",
)
@options.author
@options.dry_run
@options.forms()
def restore(settings: Settings, *, accept: bool, commit: str | None, **flags: Unpack[options.CommitFlags]) -> None:
    """Push back what the output branch has lost, or give it up.

    While the remote lacks commits that the output branch or the branch of a cluster had, nothing is written: the branch
    was deleted or rewound, or another repository is behind its address. This command compares the remote with the
    mirror on this machine, and pushes the last known commits back; run it where the daemon runs. Nothing is forced:
    where the branch has other commits, one more joins both histories, and has the known files below clusters/ and
    ledger/. With --accept the placements, holds, requests and spent budgets of the lost commits are given up, and a
    commit says so. A running daemon goes on by itself at its next look.
    """
    from reconciler.cli.actions import restore as action

    action.restore(settings, accept=accept, commit=commit, **flags)
