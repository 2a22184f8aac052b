"""`support-bundle`: what a maintainer needs to look into a problem."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import options
from reconciler.environment import PREFIX

if TYPE_CHECKING:
    from reconciler.settings import Settings


@options.examples(
    "overspill support-bundle --kubeconfig clusters.kubeconfig",
    "overspill support-bundle --server https://overspill.example.com --out bundle.tar.gz",
    "overspill support-bundle --record /var/lib/overspill/passes",
)
@click.command()
@options.perhaps_connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "SLURM", "RECORD")
@click.option(
    "--server",
    metavar="URL",
    envvar=f"{PREFIX}SERVER",
    default="",
    help=f"Ask this running daemon for its state, metrics and log.  [env: {PREFIX}SERVER]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The archive to write; without it, one in this directory that is named by the time.",
)
def support_bundle(settings: Settings, server: str, out: Path | None) -> None:
    """Collect what a maintainer needs, without secrets.

    The archive holds versions, the settings without secrets, what `doctor` finds, the status with the problems of the
    fleet's files, and the recent history; from a daemon (--server) its metrics and the last lines of its log as well;
    and the newest file of a recording (--record). Credentials are redacted in all of it. Fleet files, manifests and
    logins are no part of it; a recording keeps kind, name and digest of objects.

    What cannot be had is left out, and CONTENTS.txt says why. Read the archive before you send it: names of clusters,
    workloads and people are in it.
    """
    if not (settings.repo or server):
        raise click.UsageError(
            "nothing to look at: pass --server URL, --repo with a URL or a path, or stand in a git checkout that has a"
            " remote 'origin'"
        )
    from reconciler.cli.actions.setup import support_bundle as action

    action.support_bundle(settings, server, out)
