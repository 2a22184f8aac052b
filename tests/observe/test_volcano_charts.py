"""Volcano's Jobs are watched as objects, though their kind is named like one of Kubernetes' own: from pods to plans."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.core.capacity.chart_gangs import is_declared_gang
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Desired
from reconciler.model.workload import WorkloadRef
from tests.builders.fleet_files import FLEET, load
from tests.builders.gangs import JOB
from tests.builders.group_bursts import roomy
from tests.builders.inputs import NOW, VLLM, plan
from tests.builders.kube_objects import NO_GPU, pod
from tests.builders.kube_objects import workload as made_by_server
from tests.capacity.test_chart_gangs import TEMPLATE, charted, held, placed

VOLCANO = "batch.volcano.sh"
VERSION = f"{VOLCANO}/v1alpha1"
ANY_JOB = WorkloadRef(namespace="demo", name="vllm", kind="Job")
OF_VOLCANO = replace(ANY_JOB, group=VOLCANO)
OF_KUBERNETES = replace(ANY_JOB, group="batch")
JOB_OBJECT = {**JOB, "metadata": {"name": "vllm", "namespace": "demo"}}
"""The gang of five pods with eight GPUs each, of which three are enough, as the chart's release makes it."""
SINCE = (NOW - timedelta(minutes=5)).isoformat()


def task(index: int, *, on: str = "gpu-1") -> dict[str, Any]:
    labels = {"volcano.sh/job-name": "vllm", "volcano.sh/task-spec": "task-0"}
    owner = ("Job", "vllm")
    waits = "" if on else NO_GPU
    return pod(f"vllm-{index}", on, owner=owner, version=VERSION, labels=labels, gpus=8, waits=waits, since=SINCE)


def primary(
    running: int, waiting: int, *, ref: WorkloadRef = ANY_JOB, watched: bool = True, beside: ClusterState | None = None
) -> ClusterObservation:
    """Tell a cluster's state of the job's pods, and of the job where it is watched, and return what it reports."""
    made = beside or ClusterState({ref})
    for index in range(running + waiting):
        made.apply(Resource.PODS, task(index, on="gpu-1" if index < running else ""))
    (custom,) = made.customs
    if watched:
        made.apply(custom, JOB_OBJECT)
    return made.observation(ClusterName("worker-1"), NOW)


def of_chart(ref: WorkloadRef = ANY_JOB) -> Desired:
    """Make a fleet whose template is a chart that makes one copy of the object."""
    made = charted("Job", shared=False)
    return replace(made, templates={VLLM: replace(made.templates[VLLM], ref=ref)})


REFS = [ANY_JOB, OF_VOLCANO, replace(ANY_JOB, kind="")]


@pytest.mark.parametrize("ref", REFS, ids=["kind", "kind and group", "name alone"])
@pytest.mark.parametrize(("running", "waiting"), [(3, 2), (4, 1), (3, 0)])
def test_no_copy_is_lent_of_a_volcano_job_that_runs_with_its_minimum_at_home(
    ref: WorkloadRef, running: int, waiting: int
) -> None:
    made = plan(primary(running, waiting, ref=ref), roomy("worker-2", *[8] * 5), wanted=of_chart(ref))
    assert (made.changes, made.suppressed) == ((), ())


@pytest.mark.parametrize("ref", REFS, ids=["kind", "kind and group", "name alone"])
@pytest.mark.parametrize(("running", "waiting"), [(0, 5), (2, 3), (2, 1)])
def test_a_volcano_job_that_lacks_its_minimum_at_home_is_lent_whole(
    ref: WorkloadRef, running: int, waiting: int
) -> None:
    seen = roomy("worker-2", *[8] * 2), roomy("worker-3", *[8] * 5)
    made = plan(primary(running, waiting, ref=ref), *seen, wanted=of_chart(ref))
    assert placed(made) == ("worker-3", 1, 5)


def test_a_volcano_job_that_fits_nowhere_whole_waits_whole() -> None:
    seen = roomy("worker-2", *[8] * 4), roomy("worker-3", *[8] * 3)
    made = plan(primary(0, 5), *seen, wanted=of_chart())
    assert held(made).startswith("it fits on no cluster as a whole, with 1 replica; ")


def test_where_the_job_itself_cannot_be_watched_its_pods_alone_are_known() -> None:
    made = plan(primary(3, 2, watched=False), roomy("worker-2", *[8] * 5), wanted=of_chart())
    assert placed(made) == ("worker-2", 1, 5)


def both(*refs: WorkloadRef) -> ClusterState:
    """Make a state of a Job of Kubernetes' own, of which one of two pods waits, beside which Volcano's is to come."""
    made = ClusterState(refs)
    job = made_by_server("vllm")
    job["spec"]["parallelism"] = 2
    made.apply(Resource.JOBS, job)
    for index, on in enumerate(("gpu-1", "")):
        name, waits = f"own-{index}", "" if on else NO_GPU
        owner = ("Job", "vllm")
        made.apply(Resource.PODS, pod(name, on, owner=owner, version="batch/v1", waits=waits, since=SINCE))
    return made


@pytest.mark.parametrize(
    ("ref", "wanted", "running"), [(OF_VOLCANO, 5, 3), (OF_KUBERNETES, 2, 1)], ids=["Volcano's", "Kubernetes' own"]
)
def test_of_two_jobs_of_one_name_the_one_whose_group_is_said_is_looked_at(
    ref: WorkloadRef, wanted: int, running: int
) -> None:
    state = both(ref)
    if ref is OF_KUBERNETES:
        for index in range(5):
            state.apply(Resource.PODS, task(index))
        assert state.customs == frozenset()
        (found,) = state.observation(ClusterName("worker-1"), NOW).workloads
    else:
        (found,) = primary(3, 2, beside=state).workloads
    assert (found.ref, found.wanted, found.running) == (ref, wanted, running)


def test_of_two_jobs_of_one_name_kubernetes_own_is_meant_where_nobody_says_which() -> None:
    seen = primary(3, 2, beside=both(ANY_JOB))
    assert [(one.ref.group, one.wanted, one.running) for one in seen.workloads] == [("", 2, 1), (VOLCANO, 5, 3)]
    made = plan(seen, roomy("worker-2", 1), wanted=of_chart())
    assert placed(made) == ("worker-2", 1, 1)


def test_two_templates_may_count_two_jobs_of_one_name() -> None:
    seen = primary(3, 2, beside=both(OF_KUBERNETES, OF_VOLCANO))
    assert [(one.ref, one.wanted) for one in seen.workloads] == [(OF_KUBERNETES, 2), (OF_VOLCANO, 5)]
    for ref in (OF_VOLCANO, OF_KUBERNETES):
        made = plan(seen, roomy("worker-2", *[8] * 5), wanted=of_chart(ref))
        assert bool(made.changes) is (ref is OF_KUBERNETES)


def test_a_chart_whose_kind_is_named_with_its_group_is_known_to_go_whole_before_it_is_seen() -> None:
    said = load({**FLEET, "templates/vllm.yaml": TEMPLATE.format(workload=f"Job.{VOLCANO}/llm-demo/vllm", size="5")})
    assert said.templates[VLLM].ref == WorkloadRef(namespace="llm-demo", name="vllm", kind="Job", group=VOLCANO)
    alone = TEMPLATE.replace('    overspill.dev/group-size: "{size}"\n', "")
    told = {}
    for kind in ("Job", f"Job.{VOLCANO}"):
        files = {**FLEET, "templates/vllm.yaml": alone.format(workload=f"{kind}/llm-demo/vllm")}
        template = load(files).templates[VLLM]
        told[kind] = is_declared_gang(template.spec, template.ref, template.group_size)
    assert told == {"Job": False, f"Job.{VOLCANO}": True}
