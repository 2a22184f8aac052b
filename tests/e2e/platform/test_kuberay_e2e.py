"""What KubeRay's own controller writes of RayJobs from their creation to their end, and what we read in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.core.observe.kubernetes.words.refusals import refusal_wait
from reconciler.model.wait_reason import WaitReason
from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.platform.controllers import KUBERAY
from tests.e2e.platform.ray_dashboard import Dashboard, dashboard
from tests.e2e.platform.runs import UNENDED, Run, quota_used_up, sample
from tests.e2e.platform.two_clusters import NODE

PODS = 4
"""The head and three workers."""


@pytest.fixture(scope="module")
def ray() -> Iterator[Dashboard]:
    with dashboard() as served:
        yield served


@pytest.fixture(scope="module")
def begin(
    start_cluster: Callable[[str], Cluster], ray: Dashboard, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Json], Run]]:
    """Create an object on a cluster with KubeRay; whose jobs run until the dashboard says otherwise."""
    if reason := KUBERAY.missing():
        pytest.skip(reason)
    cluster = start_cluster("rays")
    for index in range(2):
        cluster.add_node(f"node-{index}", allocatable=NODE)
    home: Path = tmp_path_factory.mktemp("kuberay") / "operator"
    controller = KUBERAY.start(cluster, home, {"HTTP_PROXY": ray.url})

    def create(made: Json) -> Run:
        ray.say("RUNNING")
        return Run(cluster, controller, made)

    yield create
    controller.stop()


@pytest.mark.parametrize(
    ("said", "message", "complete"),
    [
        ("SUCCEEDED", "Job finished successfully.", True),
        ("FAILED", "Job entrypoint command failed with exit code 1", False),
        ("STOPPED", "Job was intentionally stopped.", False),
    ],
)
def test_a_job_ends_as_the_dashboard_says(
    begin: Callable[[Json], Run], ray: Dashboard, said: str, message: str, complete: bool
) -> None:
    with begin(sample("RayJob", {"submissionMode": "HTTPMode", "entrypoint": "python train.py"})) as run:
        run.goes_on(run.running(PODS))
        run.goes_on(lambda: run.status().get("jobStatus") == "RUNNING")
        ray.say(said, message)
        end = run.over()
        assert (end.complete, end.message) == (complete, message)


def test_a_job_whose_submitter_is_done_goes_on(begin: Callable[[Json], Run], ray: Dashboard) -> None:
    made = sample("RayJob", {"entrypoint": "python train.py"})
    made["spec"]["submitterPodTemplate"]["spec"]["restartPolicy"] = "Never"
    with begin(made) as run:
        run.goes_on(lambda: any(pod["status"].get("phase") == "Succeeded" for pod in run.pods()))
        run.goes_on(lambda: run.status().get("jobStatus") == "RUNNING")
        ray.say("SUCCEEDED")
        assert run.over().complete


def test_a_job_whose_submitter_fails_has_failed(begin: Callable[[Json], Run]) -> None:
    made = sample("RayJob", {"entrypoint": "python train.py", "submitterConfig": {"backoffLimit": 0}})
    submitter = made["spec"]["submitterPodTemplate"]["spec"]
    submitter["containers"][0]["image"] = UNENDED
    submitter["restartPolicy"] = "Never"
    with begin(made) as run:
        run.goes_on(run.running(PODS + 1))
        [job] = run.cluster.items("/apis/batch/v1/namespaces/demo/jobs")
        [pod] = [
            each for each in run.pods() if each["metadata"]["ownerReferences"][0]["name"] == job["metadata"]["name"]
        ]
        run.end_pods(1, named=pod["metadata"]["name"])
        end = run.over()
        assert not end.complete
        assert "backoff" in end.message


def test_a_job_fails_at_its_deadline(begin: Callable[[Json], Run]) -> None:
    with begin(sample("RayJob", {"submissionMode": "HTTPMode", "activeDeadlineSeconds": 6})) as run:
        end = run.over()
        assert not end.complete
        assert "activeDeadlineSeconds" in end.message


def test_a_job_that_the_controller_refuses_has_failed(begin: Callable[[Json], Run]) -> None:
    with begin(sample("RayJob", {"suspend": True})) as run:
        end = run.over()
        assert not end.complete
        assert "shutdownAfterJobFinishes" in end.message


def test_a_job_that_is_tried_again_is_not_over(begin: Callable[[Json], Run], ray: Dashboard) -> None:
    spec = {"submissionMode": "HTTPMode", "entrypoint": "python train.py", "backoffLimit": 1}
    with begin(sample("RayJob", spec)) as run:
        run.goes_on(lambda: run.status().get("jobStatus") == "RUNNING")
        before = run.status()["jobId"]
        ray.say("FAILED", "exit code 1")
        run.goes_on(lambda: run.status().get("failed") == 1)
        ray.say("RUNNING")
        run.goes_on(lambda: run.status().get("jobId") != before)
        run.goes_on(lambda: run.status().get("jobStatus") == "RUNNING")
        ray.say("FAILED", "exit code 1")
        end = run.over()
        assert (end.complete, end.message) == (False, "exit code 1")


def test_a_job_that_is_suspended_is_not_over(begin: Callable[[Json], Run], ray: Dashboard) -> None:
    spec = {"submissionMode": "HTTPMode", "entrypoint": "python train.py", "shutdownAfterJobFinishes": True}
    with begin(sample("RayJob", spec)) as run:
        run.goes_on(lambda: run.status().get("jobStatus") == "RUNNING")
        run.change({"suspend": True})
        run.goes_on(lambda: run.status().get("jobDeploymentStatus") == "Suspended")
        assert not run.pods()
        ray.say("RUNNING")
        run.change({"suspend": False})
        run.goes_on(run.running(PODS))


def test_pods_that_a_quota_refuses_lack_room(begin: Callable[[Json], Run]) -> None:
    run = begin(sample("RayJob", {"submissionMode": "HTTPMode"}))
    with quota_used_up(run.cluster), run:
        run.goes_on(lambda: run.refusal("RayCluster"))
        wait = refusal_wait(run.refusal("RayCluster"))
        assert (wait.reason, wait.cause) == (WaitReason.QUOTA, "pods refused: quota exceeded")
