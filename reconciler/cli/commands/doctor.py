"""`doctor`: what a first burst needs, looked at from here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from reconciler.cli import options
from reconciler.environment import PREFIX

if TYPE_CHECKING:
    from reconciler.settings import Settings


_ACCOUNT = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?/[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def _read_account(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    """Refuse what is no service account with its namespace."""
    if value and not _ACCOUNT.fullmatch(value):
        raise click.BadParameter(f"{value!r} is no service account (try overspill-system/overspill)")
    return value


@options.examples(
    "overspill doctor --kubeconfig clusters.kubeconfig",
    "overspill doctor --kubeconfig ~/.kube/config --as overspill-system/overspill",
    "overspill doctor -o json | jq '.[].results[] | select(.readiness != \"ok\")'",
)
@click.command()
@options.connected("OBSERVATIONS", "KUBECONFIG", "NOTIFY", "NOTIFICATION_SECRETS")
@click.option(
    "--as",
    "account",
    metavar="NAMESPACE/NAME",
    default="",
    callback=_read_account,
    help="Look at the rights of this service account, with a login that may review those of others.",
)
@click.option(
    "--server",
    metavar="URL",
    envvar=f"{PREFIX}SERVER",
    default="",
    help=f"Look at this running daemon as well: whether it works, and its clock.  [env: {PREFIX}SERVER]",
)
@options.output
def doctor(settings: Settings, account: str, server: str, form: options.Output) -> None:
    """Check what a first burst needs, and how to mend what lacks.

    Git, each cluster, each control plane and each webhook is looked at from here, with the logins of the daemon:
    programs, branches and the right to push, versions and clocks, the rights of bootstrap/, namespaces, what
    `bootstrap` prints, the objects that templates refer to, and whether receivers of Notifications could be told. What
    is missing or could not be looked at comes with the command that mends it or shows more. Nothing is written
    anywhere. It exits with 1 where anything is missing.

    The daemon may not see namespaces, Secrets and what `bootstrap` prints. An administrator's kubeconfig shows all of
    that, and with --as the rights of the daemon beside it.
    """
    from reconciler.cli.actions.setup import doctor as action

    action.doctor(settings, account, server, form)
