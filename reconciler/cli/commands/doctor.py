"""`doctor`: what a first burst needs, looked at from here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli import options

if TYPE_CHECKING:
    from reconciler.settings import Settings


@options.examples(
    "overspill doctor --kubeconfig clusters.kubeconfig",
    "overspill doctor --kubeconfig ~/.kube/config   # with an administrator's rights, to see what the daemon may not",
    "overspill doctor -o json | jq '.[].results[] | select(.readiness != \"ok\")'",
)
@click.command()
@options.connected("OBSERVATIONS", "KUBECONFIG", "NOTIFY")
@options.output
def doctor(settings: Settings, form: options.Output) -> None:
    """Check what a first burst needs, and say how to mend what lacks.

    Git, each cluster, each control plane and each webhook is looked at from here, with the logins of the daemon:
    branches and the right to push, versions and clocks, the rights of bootstrap/, namespaces, what `bootstrap` prints,
    and the objects that templates refer to. What is missing or could not be looked at comes with the command that
    mends it or shows more. Nothing is written anywhere. It exits with 1 where anything is missing.
    """
    from reconciler.cli.actions import doctor as action

    action.doctor(settings, form)
