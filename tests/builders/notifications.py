"""An output branch on which things happen, and couriers that tell of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.git import GitRepository
from reconciler.adapters.notification.apprise_message import AppriseSender
from reconciler.adapters.notification.courier import CourierTiming
from reconciler.adapters.notification.couriers import Couriers
from reconciler.adapters.notification.outages import CourierReport
from reconciler.adapters.notification.sender import Secrets, Sender
from reconciler.adapters.notification.webhook import WebhookSender
from reconciler.model.events.notification import AppriseReceiver, DeliveryMarks, Notification, WebhookReceiver
from reconciler.model.ids import CommitId, WorkloadId
from reconciler.model.policy import Desired
from reconciler.model.tree import Commit, Identity, LoggedCommit
from tests.builders.remote import Remote

OURS = Identity(name="Overspill", email="overspill@overspill.dev")
QUICK = CourierTiming(answer=5, first_backoff=0.01, longest_backoff=0.05, between_messages=0, doubt=0.02)
VLLM = WorkloadId("llm", "vllm")


def message(number: int, *, workload: str = "llm/vllm", action: str = "Place", **trailers: str) -> str:
    """Write the message of a commit as passes do."""
    more = "".join(f"Overspill-{key}: {value}\n" for key, value in trailers.items())
    head = f"burst({workload}): {number} replicas on worker-2 for 10m"
    return (
        f"{head}\n\n{number} pods unschedulable on worker-1 for 45s.\n\nOverspill-Placement: {workload}-{number}\n"
        f"Overspill-Action: {action}\nOverspill-Cluster: worker-2\nOverspill-Source: {'5' * 40}\n{more}"
    )


def write(repository: GitRepository, *messages: str) -> list[CommitId]:
    """Commit and push to the output branch as a pass does, in one push."""
    tip = repository.fetch().output
    commits = [Commit(message=text, author=OURS, at=datetime.now(UTC)) for text in messages]
    written = repository.write(tip, commits)
    repository.begin_push(written[-1], old=tip)()
    return written


class Branch:
    """A branch of the commits of a daemon, one a second, in memory."""

    def __init__(self, *messages: str) -> None:
        self._commits = [_commit(number, text) for number, text in enumerate(messages)]

    @property
    def tip(self) -> CommitId:
        return self._commits[-1].id

    @property
    def ids(self) -> list[CommitId]:
        return [commit.id for commit in self._commits]

    def commits_after(self, base: CommitId | None, _tip: CommitId) -> tuple[LoggedCommit, ...]:
        position = self.ids.index(base) + 1 if base in self.ids else 0
        return tuple(self._commits[position:])


def _commit(number: int, text: str) -> LoggedCommit:
    subject, _, body = text.partition("\n\n")
    lines = (line.partition(": ") for line in body.splitlines() if line.startswith("Overspill-"))
    return LoggedCommit(
        id=CommitId(f"{number + 1:04x}" * 10),
        at=SystemClock().now(),
        author=OURS,
        committer=OURS,
        subject=subject,
        body=body,
        trailers={key: value for key, _, value in lines},
    )


class Marks:
    """The marks of one receiver on the remote."""

    def __init__(self, marks: DeliveryMarks) -> None:
        self.marks = marks

    def read(self, _: str) -> DeliveryMarks:
        return self.marks

    def move(self, _: str, old: DeliveryMarks, new: DeliveryMarks) -> None:
        assert old == self.marks
        self.marks = new


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


@dataclass
class Counts:
    sent: int = 0
    failed: int = 0

    def __call__(self, receiver: str, *, sent: int = 0, failed: int = 0) -> None:
        self.sent += sent
        self.failed += failed


@dataclass
class Fleet:
    """A remote whose output branch has one commit, with its reader, and a directory for secrets."""

    path: Path
    remote: Remote
    repository: GitRepository
    reports: list[CourierReport] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)

    def secret(self, name: str, text: str) -> None:
        (self.path / "secrets").mkdir(exist_ok=True)
        (self.path / "secrets" / name).write_text(text + "\n")

    def happen(self, *messages: str) -> list[CommitId]:
        return write(self.repository, *messages)

    def desired(self, *notifications: Notification) -> Desired:
        return Desired(commit=CommitId(""), notifications={one.name: one for one in notifications})

    @contextmanager
    def telling(self, *notifications: Notification, timing: CourierTiming = QUICK) -> Iterator[Couriers]:
        """Run couriers over the repository, as a daemon does after its passes."""
        couriers = Couriers(
            self.repository,
            self.repository.deliveries,
            OURS,
            lambda notification, _: sender_of(notification, self.path / "secrets"),
            report=self.reports.append,
            count=self.counts,
            timing=timing,
        )
        desired = self.desired(*notifications)
        couriers.follow(desired, self.repository.fetch().output)
        try:
            yield couriers
        finally:
            couriers.close(timedelta(seconds=20))

    def follow(self, couriers: Couriers, *notifications: Notification) -> None:
        couriers.follow(self.desired(*notifications), self.repository.fetch().output)


def sender_of(notification: Notification, secrets: Path) -> Sender:
    """Make the way to a receiver on this machine."""

    def secret() -> str:
        return Secrets(secrets).read(notification.secret)

    match notification.receiver:
        case WebhookReceiver(url=url):
            return WebhookSender(url, secret, fleet="demo", clock=SystemClock(), timeout=5)
        case AppriseReceiver():
            return AppriseSender(secret, fleet="demo")
    raise AssertionError(notification)


def webhook(url: str, name: str = "pager", **more: object) -> Notification:
    return Notification(name=name, receiver=WebhookReceiver(url=url, secret_from="pager"), **more)


def chat(name: str = "chat", **more: object) -> Notification:
    return Notification(name=name, receiver=AppriseReceiver(url_from="chat"), **more)


@contextmanager
def fleet(path: Path) -> Iterator[Fleet]:
    """Make a remote whose output branch has begun."""
    remote = Remote(path / "remote.git")
    if remote.tip("main") is None:
        remote.commit("main", {"README.md": "A fleet"})
        remote.commit("placements", {"README.md": "Placements"})
    with GitRepository(remote.url, cache=path / "cache") as repository:
        yield Fleet(path, remote, repository)
