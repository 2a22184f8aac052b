"""The receivers of Notifications, as far as they can be looked at without telling them anything."""

from __future__ import annotations

import shlex

from reconciler.core.readiness.check import CheckResult, missing, ok, unknown
from reconciler.errors import OverspillError
from reconciler.model.events.notification import DeliveryMarks, Notification

_SHORT = 12
"""Characters of a commit that are printed."""


def notification_result(
    notification: Notification, trouble: str, marks: DeliveryMarks | OverspillError, *, has_secrets: bool
) -> CheckResult:
    """Report a receiver: why nothing could be sent to it (`trouble`), else how far it is told.

    Without a directory of secrets (`has_secrets`) it is not known whether the daemon has them.
    """
    subject = f"notification {notification.name}"
    trial = shlex.join(["overspill", "notify", "test", notification.name])
    if trouble and notification.secret and not has_secrets:
        return unknown(subject, "its secret is not here", f"{trial} --notification-secrets DIR")
    if trouble:
        return missing(subject, trouble, trial)
    if isinstance(marks, OverspillError):
        return unknown(subject, str(marks), "overspill notify list")
    if marks.told is None:
        return ok(subject, "ready; told of what happens once the daemon has seen it")
    if marks.uncertain and not notification.repeatable:
        return ok(subject, f"ready; told up to {marks.told[:_SHORT]}, and more is on its way")
    return ok(subject, f"ready; told up to {marks.told[:_SHORT]}")
