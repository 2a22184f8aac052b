"""Kubernetes Events on the workload's object, in the primary and where it is placed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.notification.courier import Courier
from reconciler.adapters.notification.kubernetes import KubernetesSender
from reconciler.adapters.notification.sender import ONLY, NotTaken
from reconciler.adapters.notification.workers import Workers
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.model.events.event import Event, Notice
from reconciler.model.events.event_kind import EventKind
from reconciler.model.events.notification import DeliveryMarks, Importance, KubernetesReceiver, Notification
from reconciler.model.ids import ClusterName, CommitId
from reconciler.ports import Clock
from tests.builders.notifications import OURS, QUICK, VLLM, Branch, Marks, message, until
from tests.builders.passes import SOURCE_FILES
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving

TEMPLATE = SOURCE_FILES["template.yaml"].replace(
    "namespace: kubeslice-demo}",
    "namespace: kubeslice-demo, annotations: {overspill.dev/workload: Deployment/demo/vllm}}",
)
FLEET = assemble(
    CommitId(""),
    {path: parse_file(text.encode()) for path, text in {**SOURCE_FILES, "template.yaml": TEMPLATE}.items()},
)


class HandClock:
    def __init__(self, time: datetime) -> None:
        self.time = time

    def now(self) -> datetime:
        return self.time


class Two:
    """The primary, and a cluster to burst to."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.primary, self.other = Cluster(), Cluster()
        urls = [stack.enter_context(serving(cluster)) for cluster in (self.primary, self.other)]
        self.kubeconfig = kubeconfig(path / "config", *zip(("worker-1", "worker-2"), urls, strict=True))
        self.remarks: list[str] = []
        self.primary.put(
            "deployments", {"metadata": {"name": "vllm", "namespace": "demo", "uid": "0f0f"}, "kind": "Deployment"}
        )

    def send(self, notice: Notice) -> None:
        sender = self.sender()
        for target in sender.targets(notice):
            sender.send(target, (notice,))

    def sender(self, clock: Clock | None = None) -> KubernetesSender:
        return KubernetesSender(
            FLEET, self.kubeconfig, remark=self.remarks.append, clock=clock or SystemClock(), timeout=10
        )


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    with ExitStack() as stack:
        yield Two(tmp_path, stack)


def notice(at: datetime | None = None) -> Notice:
    event = Event(
        kind=EventKind.PLACED,
        at=at or SystemClock().now(),
        line="burst(llm/vllm): 3 replicas on worker-2 for 10m",
        workload=VLLM,
        clusters=(ClusterName("worker-2"),),
        commit=CommitId("a" * 40),
    )
    return Notice(id="a" * 40, event=event, importance=Importance.INFO)


def test_event_is_written_on_the_object_in_the_primary_and_where_it_is_placed(two: Two) -> None:
    two.send(notice())
    (event,) = two.primary.objects["events"].values()
    assert event["involvedObject"] == {
        "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "demo", "name": "vllm", "uid": "0f0f",
    }  # fmt: skip # one object
    assert (event["reason"], event["type"]) == ("OverspillPlaced", "Normal")
    assert event["message"] == "burst(llm/vllm): 3 replicas on worker-2 for 10m"
    (elsewhere,) = two.other.objects["events"].values()
    assert "uid" not in elsewhere["involvedObject"]
    assert two.remarks == []


def test_event_that_is_written_again_is_one(two: Two) -> None:
    told = notice()
    two.send(told)
    two.send(told)
    assert len(two.primary.objects["events"]) == len(two.other.objects["events"]) == 1


def test_cluster_without_the_right_is_left_out_and_told_with_the_way_out(two: Two) -> None:
    two.other.refuses["/events"] = 403
    two.send(notice())
    assert len(two.primary.objects["events"]) == 1
    assert len(two.remarks) == 1
    assert "cluster worker-2 takes no Event: forbids it" in two.remarks[0]
    assert "overspill grant --events" in two.remarks[0]


def test_cluster_that_does_not_answer_is_tried_again(two: Two) -> None:
    two.other.refuses["/events"] = 503
    with pytest.raises(NotTaken, match="cluster worker-2 answers 503"):
        two.send(notice())


def test_cluster_that_does_not_answer_holds_up_no_other_and_is_told_in_order_once_it_is_back(two: Two) -> None:
    two.other.refuses["/events"] = 503
    remote, reports = Marks(DeliveryMarks(told=CommitId("0" * 40), sending=CommitId("0" * 40))), []
    courier = Courier(
        Notification(name="events", receiver=KubernetesReceiver()), two.sender(), remote,
        report=reports.append, count=lambda *_, **__: None, timing=QUICK, workers=Workers(),
    )  # fmt: skip # one call
    branch = Branch(*(message(number) for number in range(1, 4)))
    try:
        until(lambda: courier.follow(branch.tip, branch, OURS) or len(two.primary.objects.get("events", ())) == 3)
        until(lambda: reports)
        assert remote.marks.told == "0" * 40
        assert courier.backlog().waiting == 3
        del two.other.refuses["/events"]
        until(lambda: remote.marks.told == branch.tip)
    finally:
        courier.stop()
    words = [event["message"].split(":")[1].split()[0] for event in two.other.objects["events"].values()]
    assert words == ["1", "2", "3"]
    assert [(report.receiver, bool(report.why)) for report in reports] == [
        ("events (worker-2)", True), ("events (worker-2)", False)
    ]  # fmt: skip # a table


def test_event_that_a_cluster_has_lacked_for_too_long_is_left_out(two: Two) -> None:
    clock = HandClock(SystemClock().now())
    sender, told = two.sender(clock), notice(clock.now())
    assert sender.targets(told) == ["worker-1", "worker-2"]
    clock.time += timedelta(hours=1)
    assert sender.targets(told) == (ONLY,)


def test_event_that_no_server_would_keep_is_not_written(two: Two) -> None:
    two.send(notice(SystemClock().now() - timedelta(hours=2)))
    assert "events" not in two.primary.objects
