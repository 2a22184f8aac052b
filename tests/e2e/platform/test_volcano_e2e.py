"""What Volcano's controllers write of Jobs until these end, and its scheduler of pods that wait; what we read in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.custom_workloads import HELD_BACK
from reconciler.core.observe.kubernetes.words.pod_condition import unscheduled_wait
from reconciler.core.observe.kubernetes.words.refusals import refusal_wait
from reconciler.model.ids import ClusterName
from reconciler.model.wait_reason import WaitReason
from reconciler.model.workload import WorkloadRef
from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.platform.pods import condition
from tests.e2e.platform.runs import UNENDED, Run, quota_used_up, sample
from tests.e2e.platform.two_clusters import NODE
from tests.e2e.platform.volcano import VOLCANO

PODS = 5
"""A master and four workers of two GPUs each, three of which start together."""
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/demo/podgroups"
Begin = Callable[..., Run]


@pytest.fixture(scope="module")
def begin(start_cluster: Callable[[str], Cluster], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begin]:
    """Create a Job on a cluster with Volcano and sixteen GPUs."""
    if reason := VOLCANO.missing():
        pytest.skip(reason)
    cluster = start_cluster("volcano")
    for index in range(2):
        cluster.add_node(f"node-{index}", allocatable=NODE)
    home: Path = tmp_path_factory.mktemp("volcano") / "home"
    controller = VOLCANO.start(cluster, home)
    small = {"metadata": {"name": "small"}, "spec": {"weight": 1, "capability": {"nvidia.com/gpu": "3"}}}
    cluster.create(QUEUES, {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", **small})

    def create(workers: int = PODS - 1, requests: Json = None, **spec: Json) -> Run:
        # As its webhook would complete it, pkg/webhooks/admission/jobs/mutate.
        added = {"schedulerName": "volcano", "queue": "default", "maxRetry": 3}
        made = sample("Job of Volcano", added | spec)
        made["spec"]["tasks"] = made["spec"]["tasks"][:2]
        made["spec"]["tasks"][1]["replicas"] = workers
        for task in made["spec"]["tasks"]:
            if requests and task["name"] == "worker":
                task["template"]["spec"]["containers"][0]["resources"]["requests"] = requests
            task["template"]["spec"]["containers"][0]["image"] = UNENDED
        return Run(cluster, controller, made)

    yield create
    controller.stop()


def test_a_job_is_complete_once_its_pods_are(begin: Begin) -> None:
    with begin() as run:
        run.goes_on(run.running(PODS))
        run.end_pods()
        end = run.over()
        assert end.complete


def test_a_job_with_too_few_pods_that_succeed_has_failed(begin: Begin) -> None:
    with begin() as run:
        run.goes_on(run.running(PODS))
        run.end_pods(1)
        end = run.over()
        assert not end.complete


@pytest.mark.parametrize(
    ("action", "complete"), [("AbortJob", False), ("TerminateJob", False), ("CompleteJob", True), ("RestartJob", False)]
)
def test_a_policy_ends_a_job_with_its_first_pod_that_fails(begin: Begin, action: str, complete: bool) -> None:
    with begin(policies=[{"event": "PodFailed", "action": action}], maxRetry=1) as run:
        run.goes_on(run.running(PODS))
        run.end_pods(1, named="worker-0")
        end = run.over()
        assert end.complete is complete


def test_pods_of_a_gang_without_room_lack_room(begin: Begin) -> None:
    with begin(12, minAvailable=13) as run:
        run.goes_on(lambda: len(unscheduled(run)) == 13)
        waits = [unscheduled_wait(each, None) for each in unscheduled(run)]
        assert {(wait.reason, wait.cause) for wait in waits} == {(WaitReason.GANG, "waits for the rest of its group")}
        assert {each["reason"] for each in unscheduled(run)} == {"Schedulable", "Unschedulable"}


@pytest.mark.parametrize(("queue", "workers", "minimum"), [("default", 12, 13), ("small", 4, 3)])
def test_a_job_that_is_not_let_in_misses_all_of_its_pods(begin: Begin, queue: str, workers: int, minimum: int) -> None:
    """Beyond what the cluster has, and beyond what its queue may have. A minimum of limits alone is let in."""
    asked = {"cpu": "1", "nvidia.com/gpu": "2"}
    with begin(workers, asked, queue=queue, minAvailable=minimum) as run:
        run.goes_on(lambda: run.status().get("state", {}).get("phase") == "Pending")
        time.sleep(3)  # three rounds of its scheduler
        assert not run.pods()
        [group] = run.cluster.items(GROUPS)
        assert group["status"] == {"phase": "Pending"}
        raw = run.live()
        ref = WorkloadRef(namespace="demo", name=raw["metadata"]["name"], kind="Job", group="batch.volcano.sh")
        state = ClusterState(frozenset({ref}))
        [custom] = state.customs
        state.apply(custom, raw)
        [seen] = state.observation(ClusterName("worker-1"), datetime.now(UTC)).workloads
        assert [(one.replicas, one.cause) for one in seen.waiting] == [(1 + workers, HELD_BACK)]


def unscheduled(run: Run) -> list[Json]:
    """Return the conditions of the pods that say that they are not scheduled."""
    found = [condition(pod, "PodScheduled") for pod in run.pods()]
    return [each for each in found if each.get("status") == "False"]


def test_pods_that_a_quota_refuses_lack_room(begin: Begin) -> None:
    run = begin()
    with quota_used_up(run.cluster), run:
        run.goes_on(lambda: run.refusal("Job"))
        wait = refusal_wait(run.refusal("Job"))
        assert (wait.reason, wait.cause) == (WaitReason.QUOTA, "pods refused: quota exceeded")
