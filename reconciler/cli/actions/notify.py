"""`notify`: the receivers of Notifications, and a test event for one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256

from reconciler.adapters.notification.sender import NotTaken
from reconciler.app import receivers
from reconciler.app.commands import notifying
from reconciler.cli import options, printing
from reconciler.cli.actions.visibility import tell_losses
from reconciler.core.notification.notices import notices_of, wanted
from reconciler.daemon.steer import survey
from reconciler.errors import InvalidInput
from reconciler.model.events.event import Event, Notice
from reconciler.model.events.event_kind import EventKind
from reconciler.model.events.notification import (
    AppriseReceiver,
    CommitStatusReceiver,
    Importance,
    KubernetesReceiver,
    Notification,
    Receiver,
    WebhookReceiver,
)
from reconciler.model.ids import CommitId
from reconciler.model.policy import Desired
from reconciler.model.tree import Identity
from reconciler.model.workload import Json
from reconciler.ports import BranchLog, Deliveries
from reconciler.settings import Settings
from reconciler.text.spelling import nearest
from reconciler.text.timestamps import format_time


def list_receivers(settings: Settings, form: options.Output) -> None:
    """Print each receiver, and how far it is told."""
    with notifying(settings) as (world, memory, repository):
        decision = survey(world, memory)
        tell_losses(decision.tips.losses)
        tip = decision.tips.output
        rows = [
            _row(notification, repository, repository.deliveries, tip, world.author)
            for _, notification in sorted(decision.inputs.desired.notifications.items())
        ]
    if form == "json":
        printing.json_out(rows)
        return
    printing.table(
        ("NAME", "RECEIVER", "WORKSPACES", "TOLD", "WAITING", "UNCERTAIN"),
        [
            (
                str(row["name"]),
                str(row["receiver"]),
                ", ".join(row["workspaces"]) or "all",
                str(row["told"] or "not yet")[:12],
                "" if row["waiting"] is None else str(row["waiting"]),
                str(row["uncertain"] or ""),
            )
            for row in rows
        ],
        empty="No Notification in the fleet repository (add one in notifications/).",
    )


def test(settings: Settings, name: str) -> None:
    """Send a test event to a receiver. Raises InvalidInput where it has not taken it."""
    remarks: list[str] = []
    with notifying(settings) as (world, memory, _):
        decision = survey(world, memory)
        desired = decision.inputs.desired
        notification = desired.notifications.get(name)
        if notification is None:
            names = sorted(desired.notifications)
            hint = nearest(name, names) or "add one in notifications/"
            raise InvalidInput(f"notify test: the fleet repository has no Notification {name!r} ({hint})")
        sender = receivers.sender(settings, notification, desired, remarks.append)
        notice = _notice(notification, desired, decision.tips.source, world.clock.now())
        failures: list[str] = []
        for target in sender.targets(notice):
            try:
                sender.send(target, (notice,))
            except NotTaken as error:
                failures.append(str(error))
    for remark in remarks:
        printing.warn(remark)
    if failures:
        told = f"notify test: {name} ({_shown(notification.receiver)}) was not told: {'; '.join(failures)}"
        hint = "" if "(" in failures[-1] else " (see that the receiver runs, and that this machine reaches it)"
        raise InvalidInput(f"{told}{hint}")
    if remarks:
        raise InvalidInput(f"notify test: {name} was not told everywhere")
    printing.sentence(f"{name} ({_shown(notification.receiver)}) has taken a test event.")


def _row(
    notification: Notification, branch: BranchLog, deliveries: Deliveries, tip: CommitId | None, author: Identity
) -> Mapping[str, Json]:
    """Tell how far a receiver is told, and what waits for it; None where that is not known."""
    marks = deliveries.read(notification.name)
    waiting: int | None = None
    uncertain = 0
    if marks.told is not None and tip is not None:
        waiting = _count(notification, branch, marks.told, tip, author)
        if marks.sending is not None and marks.uncertain and not notification.repeatable:
            uncertain = _count(notification, branch, marks.told, marks.sending, author) or 0
    return {
        "name": notification.name,
        "receiver": _shown(notification.receiver),
        "workspaces": notification.workspaces,
        "told": marks.told,
        "waiting": waiting,
        "uncertain": uncertain,
    }


def _count(
    notification: Notification, branch: BranchLog, base: CommitId, tip: CommitId, author: Identity
) -> int | None:
    commits = branch.commits_after(base, tip)
    if commits is None:
        return None
    return sum(1 for _ in wanted(notification, notices_of(commits, author)))


def _shown(receiver: Receiver) -> str:
    """Name a receiver without a secret."""
    match receiver:
        case AppriseReceiver(url_from=secret):
            return f"Apprise, secret {secret}"
        case WebhookReceiver(url=url):
            return f"webhook {url}"
        case CommitStatusReceiver():
            return "commit status"
        case KubernetesReceiver():
            return "Kubernetes Events"


def _notice(notification: Notification, desired: Desired, source: CommitId | None, at: datetime) -> Notice:
    """Make a test event, of the first workload that the receiver hears of."""
    workloads = [
        workload
        for workload in sorted(desired.templates)
        if not notification.workspaces or workload.workspace in notification.workspaces
    ]
    event = Event(
        kind=EventKind.TEST,
        at=at,
        line=f"A test of Notification {notification.name}",
        workload=workloads[0] if workloads else None,
        reasons=("Nothing has happened.",),
    )
    return Notice(
        id=sha256(f"{notification.name}\n{format_time(at)}".encode()).hexdigest()[:40],
        event=event,
        importance=Importance.INFO,
        source=source,
    )
