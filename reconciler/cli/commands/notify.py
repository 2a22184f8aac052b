"""`notify`: the receivers of Notifications, how far each is told, and a test event for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli import completion, options

if TYPE_CHECKING:
    from reconciler.settings import Settings


@options.examples("overspill notify list", "overspill notify test llm-chat --notification-secrets secrets/")
@click.group()
def notify() -> None:
    """List receivers of Notifications, and try one.

    The daemon tells them; how far each is told stands in the fleet repository, in refs/overspill/notified/.
    """


@options.examples("overspill notify list", "overspill notify list -o json | jq '.[] | select(.waiting > 0)'")
@notify.command(name="list")
@options.connected()
@options.forms(names="{[*].name}")
def list_receivers(settings: Settings, form: options.Output) -> None:
    """List receivers with what waits for each.

    An event is uncertain where a daemon was killed while it told of it.
    """
    from reconciler.cli.actions import notify as action

    action.list_receivers(settings, form)


@options.examples("overspill notify test llm-chat", "overspill notify test pager --notification-secrets secrets/")
@notify.command()
@click.argument("name", metavar="NAME", shell_complete=completion.notifications)
@options.connected("OBSERVATIONS", "KUBECONFIG", "NOTIFICATION_SECRETS")
def test(settings: Settings, name: str) -> None:
    """Send a test event to one receiver, whatever its filters, and say what came of it.

    How far the receiver is told does not change. It exits with 1 where the receiver has not taken it.
    """
    from reconciler.cli.actions import notify as action

    action.test(settings, name)
