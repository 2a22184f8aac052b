"""The senders to the receivers of Notifications."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import structlog

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.notification.sender import NotTaken, Secrets, Sender
from reconciler.app.world import PATIENCE, checked_kubeconfig, credentials
from reconciler.errors import InvalidInput
from reconciler.model.events.notification import (
    AppriseReceiver,
    CommitStatusReceiver,
    KubernetesReceiver,
    Notification,
    WebhookReceiver,
)
from reconciler.model.policy import Desired
from reconciler.settings import Settings

log = structlog.get_logger("overspill")


def _log_remark(remark: str) -> None:
    """Log that a part of a receiver is not told, and will not be."""
    log.warning("not notified", line=remark)


def sender(
    settings: Settings, notification: Notification, desired: Desired, remark: Callable[[str], None] = _log_remark
) -> Sender:
    """Make the way to the receiver of a Notification; `remark` gets what it leaves out for good.

    Raises InvalidInput for a kubeconfig that is no file.
    """
    from reconciler.adapters.notification.apprise_message import AppriseSender  # noqa: PLC0415 - for few fleets
    from reconciler.adapters.notification.commit_status import CommitStatusSender  # noqa: PLC0415 - for few fleets
    from reconciler.adapters.notification.kubernetes import KubernetesSender  # noqa: PLC0415 - for few fleets
    from reconciler.adapters.notification.webhook import WebhookSender  # noqa: PLC0415 - for few fleets

    secret = partial(Secrets(settings.notification_secrets).read, notification.secret)
    clock, timeout = SystemClock(), PATIENCE.total_seconds()
    match notification.receiver:
        case AppriseReceiver():
            return AppriseSender(secret, fleet=desired.fleet.name)
        case WebhookReceiver(url=url):
            confined = notification.owner is not None
            return WebhookSender(url, secret, fleet=desired.fleet.name, clock=clock, timeout=timeout, confined=confined)
        case CommitStatusReceiver():
            token = secret if notification.secret else None
            return CommitStatusSender(settings.repo, credentials(settings), token, remark=remark, timeout=timeout)
        case KubernetesReceiver():
            kubeconfig = checked_kubeconfig(settings)
            return KubernetesSender(desired, kubeconfig, remark=remark, clock=clock, timeout=timeout)


def trouble(settings: Settings, notification: Notification, desired: Desired) -> str:
    """Say why nothing could be sent to a receiver; empty where something could be."""
    try:
        sender(settings, notification, desired).ready()
    except (NotTaken, InvalidInput) as error:
        return str(error)
    return ""
