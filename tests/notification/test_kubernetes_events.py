"""Kubernetes Events on the workload's object, in the primary and where it is placed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.notification.kubernetes import KubernetesSender
from reconciler.adapters.notification.sender import NotTaken
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.model.events.event import Event
from reconciler.model.events.event_kind import EventKind
from reconciler.model.events.notice import Notice
from reconciler.model.events.notification import Importance
from reconciler.model.ids import ClusterName, CommitId
from tests.builders.notifications import VLLM
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
        sender = KubernetesSender(FLEET, self.kubeconfig, remark=self.remarks.append, clock=SystemClock(), timeout=10)
        sender.send((notice,))


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


def test_event_that_no_server_would_keep_is_not_written(two: Two) -> None:
    two.send(notice(SystemClock().now() - timedelta(hours=2)))
    assert "events" not in two.primary.objects
