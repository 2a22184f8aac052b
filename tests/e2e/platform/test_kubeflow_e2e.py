"""What the Training Operator and the MPI Operator write of their jobs until these end, and what we read in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.core.observe.kubernetes.words.refusals import refusal_wait
from reconciler.core.workloads.builtin_kinds import NO_KINDS, kind_of
from reconciler.core.workloads.paths import at
from reconciler.model.wait_reason import WaitReason
from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.platform.controllers import MPI_OPERATOR, TRAINING_OPERATOR, Controller
from tests.e2e.platform.runs import UNENDED, Run, quota_used_up, sample
from tests.e2e.platform.two_clusters import NODE

KINDS = {
    # by sample: its controller, the role whose end is the job's, and the number of its pods
    "PyTorchJob": (TRAINING_OPERATOR, "master", 4),
    "TFJob": (TRAINING_OPERATOR, "chief", 7),
    "XGBoostJob": (TRAINING_OPERATOR, "master", 3),
    "PaddleJob": (TRAINING_OPERATOR, "master", 4),
    "JAXJob": (TRAINING_OPERATOR, "", 2),
    "MPIJob": (TRAINING_OPERATOR, "launcher", 3),
    "MPIJob v2beta1": (MPI_OPERATOR, "launcher", 3),
}
Begin = Callable[..., Run]


@pytest.fixture(scope="module")
def begin(start_cluster: Callable[[str], Cluster], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begin]:
    """Create an object on a cluster of its controller's: both publish an MPIJob."""
    started = {}

    def create(name: str, **spec: Json) -> Run:
        controller: Controller = KINDS[name][0]
        if reason := controller.missing():
            pytest.skip(reason)
        if controller.name not in started:
            cluster = start_cluster(controller.name)
            for index in range(2):
                cluster.add_node(f"node-{index}", allocatable=NODE | {"nvidia.com/gpu": "64"})
            home: Path = tmp_path_factory.mktemp(controller.name) / "home"
            started[controller.name] = (cluster, controller.start(cluster, home))
        made = sample(name, spec)
        if controller is MPI_OPERATOR:  # its launcher is a Job
            launcher = made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
            launcher["containers"][0]["image"] = UNENDED
        return Run(*started[controller.name], made)

    yield create
    for _, running in started.values():
        running.stop()


def roles(name: str) -> tuple[str, Json]:
    """Return the field of a kind that has its roles, and these."""
    [(field, found)] = [each for each in sample(name)["spec"].items() if each[0].endswith("ReplicaSpecs")]
    return field, found


def told(run: Run, condition: str) -> str:
    """Return the message of a condition of a job."""
    [message] = [str(each["message"]) for each in run.status()["conditions"] if each["type"] == condition]
    return message


@pytest.mark.parametrize("name", KINDS)
def test_a_job_is_complete_once_its_first_role_is(begin: Begin, name: str) -> None:
    _, first, number = KINDS[name]
    with begin(name) as run:
        run.goes_on(run.running(number))
        run.end_pods(named=first)
        end = run.over()
        assert (end.complete, end.message) == (True, told(run, "Succeeded"))


@pytest.mark.parametrize("name", KINDS)
def test_a_job_whose_pods_may_not_start_again_fails_with_one(begin: Begin, name: str) -> None:
    _, first, number = KINDS[name]
    field, found = roles(name)
    spec = {field: {role: spec | {"restartPolicy": "Never"} for role, spec in found.items()}}
    if KINDS[name][0] is MPI_OPERATOR:  # a Job makes another pod in its place
        spec["runPolicy"] = {"backoffLimit": 0}
    with begin(name, **spec) as run:
        run.goes_on(run.running(number))
        run.end_pods(1, named=first)
        end = run.over()
        assert (end.complete, end.message) == (False, told(run, "Failed"))


@pytest.mark.parametrize("name", KINDS)
def test_a_job_fails_at_its_deadline(begin: Begin, name: str) -> None:
    _, _, number = KINDS[name]
    with begin(name, runPolicy={"activeDeadlineSeconds": 3}) as run:
        run.goes_on(run.running(number))
        time.sleep(4)
        run.touch()  # the Training Operator sees by itself neither that the time is up, nor that it was
        end = run.over()
        assert (end.complete, end.message) == (False, told(run, "Failed"))


@pytest.mark.parametrize("name", KINDS)
def test_a_job_that_is_suspended_is_not_over(begin: Begin, name: str) -> None:
    _, _, number = KINDS[name]
    with begin(name) as run:
        run.goes_on(run.running(number))
        kind = kind_of(run.made, NO_KINDS)
        assert kind is not None
        assert at({"spec": {"runPolicy": {"suspend": True}}}, kind.suspended[0]) is True
        run.change({"runPolicy": {"suspend": True}})
        run.goes_on(lambda: not run.pods() and "Suspended" in str(run.status()))
        run.change({"runPolicy": {"suspend": False}})
        run.goes_on(run.running(number))


@pytest.mark.parametrize("name", KINDS)
def test_pods_that_a_quota_refuses_lack_room(begin: Begin, name: str) -> None:
    run = begin(name)
    with quota_used_up(run.cluster), run:
        run.goes_on(lambda: run.refusal(run.made["kind"]))
        wait = refusal_wait(run.refusal(run.made["kind"]))
        assert (wait.reason, wait.cause) == (WaitReason.QUOTA, "pods refused: quota exceeded")
