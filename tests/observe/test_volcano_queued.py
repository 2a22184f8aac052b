"""A Job of Volcano's that waits to be let in has no pods at all, and asks for all of them: from its object to plans."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import CustomResource, Resource, needed_resources
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.model.capacity import MissingReplicas
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Plan
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.fleet_files import FLEET, load
from tests.builders.gangs import volcano
from tests.builders.group_bursts import fleet, roomy
from tests.builders.inputs import NOW, VLLM, plan
from tests.builders.workload_kinds import SAMPLES
from tests.capacity.test_chart_gangs import TEMPLATE, held, placed
from tests.observe.test_volcano_charts import ANY_JOB, JOB_OBJECT, OF_VOLCANO, SINCE, VERSION, VOLCANO, of_chart, task

CAUSE = "Volcano holds back its pods"
WORKER = ClusterName("worker-1")


def job(phase: str = "Pending", *, made: Json = JOB_OBJECT, leaving: bool = False, timed: bool = True) -> Json:
    """Make the object in a phase which it has been in for five minutes."""
    metadata = {**JOB_OBJECT["metadata"], "creationTimestamp": (NOW - timedelta(hours=1)).isoformat()}
    metadata |= {"deletionTimestamp": SINCE} if leaving else {}
    state = {"phase": phase} | ({"lastTransitionTime": SINCE} if timed else {})
    return {**made, "metadata": metadata, "status": {"state": state}}


def watching(*refs: WorkloadRef) -> tuple[ClusterState, CustomResource]:
    """Make a state that no pod has been told to, and return how it watches Volcano's Jobs all the same."""
    state = ClusterState(frozenset(refs))
    (custom,) = state.customs
    assert custom in needed_resources(refs)
    assert f"{custom.group}/{custom.versions[0]}" == VERSION
    return state, custom


def queued(raw: Json) -> ClusterState:
    state, custom = watching(OF_VOLCANO)
    state.apply(custom, raw)
    return state


def decided(state: ClusterState, *, ref: WorkloadRef = OF_VOLCANO) -> Plan:
    return plan(
        state.observation(WORKER, NOW), roomy("worker-2", *[8] * 4), roomy("worker-3", *[8] * 5), wanted=of_chart(ref)
    )


def test_a_volcano_job_that_has_no_pods_yet_misses_them_all_since_it_is_pending() -> None:
    (seen,) = queued(job()).observation(WORKER, NOW).workloads
    since = NOW - timedelta(minutes=5)
    assert (seen.ref, seen.wanted, seen.running) == (OF_VOLCANO, 5, 0)
    assert seen.waiting == (MissingReplicas(replicas=5, since=since, cause=CAUSE),)
    assert seen.shape is not None
    assert gpus_of_pod(seen.shape) == 8


def test_one_that_does_not_say_since_when_has_waited_since_it_was_made() -> None:
    (seen,) = queued(job(timed=False)).observation(WORKER, NOW).workloads
    assert [one.since for one in seen.waiting] == [NOW - timedelta(hours=1)]


def test_a_volcano_job_that_has_no_pods_yet_is_lent_whole() -> None:
    assert placed(decided(queued(job()))) == ("worker-3", 1, 5)


def test_one_that_fits_nowhere_whole_waits_whole() -> None:
    seen = queued(job()).observation(WORKER, NOW)
    made = plan(seen, roomy("worker-2", *[8] * 4), wanted=of_chart(OF_VOLCANO))
    assert held(made).startswith("it fits on no cluster as a whole, with 1 replica; ")


@pytest.mark.parametrize(("running", "waiting"), [(5, 0), (3, 2), (3, 0)])
@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_no_copy_is_lent_once_its_pods_have_come_at_home_with_the_minimum(
    phase: str, running: int, waiting: int
) -> None:
    state = queued(job())
    for index in range(running + waiting):
        state.apply(Resource.PODS, task(index, on="gpu-1" if index < running else ""))
    (custom,) = state.customs
    state.apply(custom, job(phase))
    made = decided(state)
    assert (made.changes, made.suppressed) == ((), ())


def test_once_it_has_pods_they_alone_tell_what_waits() -> None:
    state = queued(job())
    for index in range(5):
        state.apply(Resource.PODS, task(index, on=""))
    (seen,) = state.observation(WORKER, NOW).workloads
    assert sum(one.replicas for one in seen.waiting) == 5
    assert CAUSE not in {one.cause for one in seen.waiting}
    assert placed(decided(state)) == ("worker-3", 1, 5)


@pytest.mark.parametrize(
    "phase", ["Aborting", "Aborted", "Restarting", "Completing", "Completed", "Terminated", "Failed"]
)
def test_a_volcano_job_in_another_phase_asks_for_nothing(phase: str) -> None:
    state = queued(job())
    (custom,) = state.customs
    assert state.apply(custom, job(phase)) is ChangeEffect.DEMAND
    assert state.observation(WORKER, NOW).workloads == ()


@pytest.mark.parametrize(
    "raw",
    [job(leaving=True), JOB_OBJECT, job(made=volcano((0, 8, None)))],
    ids=["leaving", "no status yet", "no pods wanted"],
)
def test_one_that_is_to_have_no_pods_now_asks_for_nothing(raw: Json) -> None:
    made = decided(queued(raw))
    assert (made.changes, made.suppressed) == ((), ())


def test_one_that_is_deleted_asks_for_nothing_any_more() -> None:
    state = queued(job())
    (custom,) = state.customs
    state.remove(custom, "demo/vllm")
    assert state.observation(WORKER, NOW).workloads == ()


def test_a_volcano_job_that_nobody_counts_is_not_reported() -> None:
    state, custom = watching(OF_VOLCANO, replace(OF_VOLCANO, name="other"))
    state.apply(custom, {**job(), "metadata": {"name": "third", "namespace": "demo"}})
    assert state.observation(WORKER, NOW).workloads == ()


def test_a_job_of_another_group_with_such_a_status_is_none_of_volcanos() -> None:
    ref = WorkloadRef(namespace="demo", name="vllm", kind="JobSet")
    state = ClusterState({ref})
    (custom,) = state.customs
    raw = {**SAMPLES["JobSet"][0], "metadata": JOB_OBJECT["metadata"], "status": job()["status"]}
    state.apply(custom, raw)
    assert state.observation(WORKER, NOW).workloads == ()


def test_a_template_that_deploys_the_job_itself_lends_it_whole() -> None:
    made = fleet(volcano((5, 8, None), least=3), reads_replicas=False)
    template = replace(made.templates[VLLM], ref=OF_VOLCANO)
    seen = queued(job()).observation(WORKER, NOW)
    there = roomy("worker-2", *[8] * 5)
    assert placed(plan(seen, there, wanted=replace(made, templates={VLLM: template}))) == ("worker-2", 1, 5)


def test_a_chart_that_names_the_kind_with_its_group_has_it_watched_before_there_is_a_pod() -> None:
    said = load({**FLEET, "templates/vllm.yaml": TEMPLATE.format(workload=f"Job.{VOLCANO}/demo/vllm", size="5")})
    ref = said.templates[VLLM].ref
    assert ref == OF_VOLCANO
    state, custom = watching(ref)
    state.apply(custom, job())
    assert [one.wanted for one in state.observation(WORKER, NOW).workloads] == [5]


def test_where_no_group_is_named_it_is_watched_from_its_first_pod_on() -> None:
    state = ClusterState({ANY_JOB})
    assert state.customs == frozenset()
    state.apply(Resource.PODS, task(0))
    (custom,) = state.customs
    state.remove(Resource.PODS, "demo/vllm-0")
    state.apply(custom, job())
    assert placed(decided(state, ref=ANY_JOB)) == ("worker-3", 1, 5)
