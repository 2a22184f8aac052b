"""A gang with a minimum goes where all of it has room, else where its minimum has, and waits where that has none."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.commits.messages import line, message
from reconciler.core.commits.templates import render_templates
from reconciler.core.decide.decide import decide
from reconciler.core.explain.request import explain_request
from reconciler.core.explain.workload import explain
from reconciler.model.action import Action
from reconciler.model.capacity import Node, Pool
from reconciler.model.gpr import GprTerms, GpuAsk, WorkspaceLimits
from reconciler.model.ids import TemplateName, WorkloadId
from reconciler.model.plan import Plan, Reason
from reconciler.model.workload import WorkloadRef
from tests.builders.gangs import JOB, burst, placed, volcano
from tests.builders.group_bursts import fleet, lacks
from tests.builders.inputs import (
    NOW,
    SOURCE,
    VLLM,
    desired,
    free,
    gpus,
    inputs,
    ordering,
    plan,
    shape,
)
from tests.builders.requests import deployment, holds, manifests, record, request, wants
from tests.builders.requests import placed as asked_for

MINUTE = timedelta(minutes=1)
OTHER = WorkloadId(VLLM.workspace, TemplateName("other"))


def test_a_cluster_that_has_room_for_all_of_it_goes_before_one_that_has_for_the_minimum() -> None:
    change = placed(burst(free("worker-2", *[8] * 4), free("worker-3", *[8] * 5)))
    assert (change.placement.cluster, change.choice.because) == ("worker-3", "")
    assert [one.message for one in change.refused] == ["needs 8 GPUs for each of 5 pods, has room for 4"]


def test_where_none_has_room_for_all_of_it_the_first_that_has_for_its_minimum_gets_it_whole() -> None:
    made = burst(free("worker-2", *[8] * 2), free("worker-3", *[8] * 4))
    change = placed(made)
    assert (change.placement.cluster, change.placement.replicas) == ("worker-3", 1)
    (rendered,) = render_templates(made, fleet(JOB, reads_replicas=False)).values()
    assert rendered.spec is not None
    assert rendered.spec.manifests[0].manifest["spec"] == JOB["spec"]


def test_the_commit_says_how_many_fit_which_minimum_starts_and_that_the_others_wait() -> None:
    change = placed(burst(free("worker-2", *[8] * 2), free("worker-3", *[8] * 4)))
    said = message(change, source=SOURCE)
    assert said.startswith("burst(llm/vllm): 1 replica on worker-3 for 10m\n")
    assert (
        "worker-3 chosen: 32 GPUs free, 4 of its 5 pods fit now: its minimum of 3 starts, and the others wait there."
        in " ".join(said.split())
    )
    assert (
        "worker-2 refused: needs 8 GPUs for each of 5 pods, has room for 2, and none for its minimum of 3 of 5 pods."
        in " ".join(said.split())
    )
    assert line(change).endswith("; 4 of its 5 pods fit now: its minimum of 3 starts, and the others wait there)")


def test_a_gang_that_has_no_room_for_its_minimum_waits_and_names_it() -> None:
    made = burst(free("worker-2", 8, 8), free("worker-3", 8))
    assert made.changes == ()
    (held,) = made.suppressed
    assert (held.reason, held.replicas) == (Reason.NOTHING_FITS, 1)
    assert held.message == (
        "it fits on no cluster as a whole, with 1 replica, nor with its minimum of 3 of 5 pods; worker-2: needs 8 GPUs"
        " for each of 5 pods, has room for 2, and none for its minimum of 3 of 5 pods (free or add nodes there)"
    )


def test_a_gang_without_a_minimum_needs_room_for_all_of_its_pods() -> None:
    made = burst(free("worker-2", *[8] * 4), made=volcano((5, 8, None)))
    assert made.changes == ()
    assert "minimum" not in made.suppressed[0].message


def test_each_role_needs_room_for_its_own_minimum() -> None:
    job = volcano((2, 8, 2), (6, 1, 3))
    assert burst(free("worker-2", 8, 6), made=job, missing=8).changes == ()
    assert placed(burst(free("worker-2", 8, 8, 3), made=job, missing=8)).choice.because.startswith("5 of its 8 pods")


def test_what_is_deployed_beside_a_gang_has_all_of_its_pods_there() -> None:
    beside = deployment(2, 4)
    wanted = fleet(JOB, beside, reads_replicas=False)
    made = plan(lacks(5, running=0), free("worker-2", 8, 8, 8), wanted=wanted)
    assert made.changes == ()
    change = placed(plan(lacks(5, running=0), free("worker-2", 8, 8, 8, 8), wanted=wanted))
    assert change.choice.because.startswith("5 of its 7 pods fit now: its minimum of 5 starts")


@pytest.mark.parametrize(("running", "burst_before"), [(2, 1), (3, 0), (4, 0)])
def test_a_gang_that_runs_at_home_with_its_minimum_is_not_lent_a_second_time(running: int, burst_before: int) -> None:
    seen_there = JOB | {"metadata": {"name": VLLM.name, "namespace": "demo"}}
    wanted = fleet(seen_there, reads_replicas=False)
    made = plan(lacks(5 - running, running=running), free("worker-2", *[8] * 5), wanted=wanted)
    assert (len(made.changes), made.suppressed) == (burst_before, ())


def two(*nodes: int) -> list[tuple[str, str]]:
    """Let two gangs look for room in one pass, and say who goes, and what of it fits."""
    one = fleet(JOB, reads_replicas=False).templates[VLLM]
    theirs = manifests(JOB | {"metadata": {**JOB["metadata"], "name": "other"}})
    spec = replace(one.spec, manifests=theirs.manifests)
    other = replace(one, name=OTHER.name, spec=spec, ref=WorkloadRef(namespace="demo", name="other"))
    wanted = replace(desired(ordering("worker-2"), workloads=(VLLM, OTHER)), templates={VLLM: one, OTHER: other})
    home = lacks(5, running=0)
    home = replace(home, workloads=home.workloads + lacks(5, running=0, workload=OTHER).workloads)
    made = plan(home, free("worker-2", *nodes), wanted=wanted)
    places = [change for change in made.changes if change.action is Action.PLACE]
    return [(change.placement.workload.name, change.choice.because.partition(" fit")[0]) for change in places]


def test_two_gangs_of_one_pass_never_start_in_the_same_room() -> None:
    assert two(*[8] * 4) == [("other", "4 of its 5 pods")]
    assert two(*[8] * 7) == [("other", "")]
    assert two(*[8] * 8) == [("other", ""), ("vllm", "3 of its 5 pods")]


def asking(*clusters: str, placements: int | None = 1, **seen: tuple[int, ...]) -> Plan:
    """Ask for the job by name on clusters whose nodes have so many free GPUs each."""
    asked = request(*clusters, spec=manifests(JOB), placements=placements)
    observed = [free(name.replace("_", "-"), *nodes) for name, nodes in seen.items()]
    return plan(*observed, wanted=wants(asked), there=holds(record(asked)))


def test_what_is_asked_for_by_name_starts_with_its_minimum_as_well() -> None:
    change = placed(asking("worker-2", "worker-3", worker_2=(8, 8, 8), worker_3=(8, 8, 8, 8)))
    assert (change.placement.cluster, change.placement.replicas) == ("worker-2", 5)
    assert line(change).endswith("(3 of its 5 pods fit now: its minimum of 3 starts, and the others wait there)")
    assert placed(asking("worker-2", "worker-3", worker_2=(8, 8, 8), worker_3=(8,) * 5)).placement.cluster == "worker-3"


def test_of_several_placements_those_that_have_all_of_their_room_are_made_first() -> None:
    made = asking("worker-2", "worker-3", placements=2, worker_2=(8, 8, 8), worker_3=(8,) * 5)
    places = [change for change in made.changes if change.action is Action.PLACE]
    assert [(one.placement.cluster, bool(one.choice.because)) for one in places] == [
        ("worker-3", False),
        ("worker-2", True),
    ]


def test_a_request_that_waits_names_its_minimum() -> None:
    made = asking("worker-2", worker_2=(8, 8))
    assert made.changes == ()
    assert made.suppressed[0].message.startswith(
        "it fits on no cluster, nor does its minimum of 3 of 5 pods; worker-2: "
    )


def test_what_is_declared_of_its_gpus_is_needed_whole() -> None:
    asked = request("worker-2", spec=manifests(JOB), ask=GpuAsk(gpus=8, nodes=5))
    assert plan(free("worker-2", *[8] * 4), wanted=wants(asked), there=holds(record(asked))).changes == ()


@pytest.mark.parametrize(("nodes", "leaves"), [((0, 8, 8), True), ((0, 8), False)])
def test_a_more_urgent_gang_evicts_for_its_minimum_where_nobody_could_go_for_all_of_it(
    nodes: tuple[int, ...], *, leaves: bool
) -> None:
    low = request("worker-2", name="low", spec=manifests(deployment(1, 8)), terms=GprTerms(priority=1, evictable=True))
    weak = replace(asked_for(replicas=1, shape=shape(8)), workload=low.workload)
    limits = {VLLM.workspace: WorkspaceLimits(workspace=VLLM.workspace, evicts=True)}
    wanted = fleet(JOB, policy=ordering("worker-2", priority=200), reads_replicas=False)
    wanted = replace(wanted, requests={low.workload: low}, limits=limits)
    full = tuple(Node(name=f"n{i}", free=gpus(n), allocatable=gpus(8)) for i, n in enumerate(nodes))
    seen = replace(free("worker-2", bound={weak.name: 1}), pools=(Pool(name="gpu", nodes=full),))
    made = plan(
        lacks(5, running=0), seen, wanted=wanted, there=holds(record(low, began_at=NOW - MINUTE), placed=[weak])
    )
    assert [change.action is Action.PLACE for change in made.changes].count(True) == leaves
    assert any(change.action is Action.REVERT for change in made.changes) == leaves


def test_explain_says_what_would_start_where() -> None:
    wanted = fleet(JOB, reads_replicas=False)
    seen = inputs(lacks(5, running=0), free("worker-2", *[8] * 3), free("worker-3", 8), wanted=wanted)
    told = explain(VLLM, seen, decide(seen))
    assert [(one.cluster, one.fits) for one in told.assessments] == [("worker-2", 1), ("worker-3", 0)]
    assert "On worker-2 3 of its 5 pods fit now: its minimum of 3 starts, and the others wait there." in told.conclusion


def test_explain_says_so_of_a_request() -> None:
    asked = request("worker-2", spec=manifests(JOB))
    open_ = record(asked)
    seen = inputs(free("worker-2", *[8] * 3), wanted=wants(asked), there=holds(open_)).with_requests(
        {asked.workload: open_}
    )
    told = explain_request(open_, seen, decide(seen))
    assert "On worker-2 3 of its 5 pods fit now: its minimum of 3 starts, and the others wait there." in told.conclusion
    assert "Job model is 1 job of 5 pods, 40 GPUs in all; a job runs once 3 of its pods are there." in told.conclusion


def test_explain_names_the_request_that_takes_the_room_of_another() -> None:
    sets = {name: deployment() | {"metadata": {"name": name, "namespace": "demo"}} for name in ("first", "last")}
    first, last = (record(request("worker-2", name=name, spec=manifests(made))) for name, made in sets.items())
    open_ = {one.workload: one for one in (first, last)}
    wanted = wants(first.request, last.request)
    seen = inputs(free("worker-2", 2), wanted=wanted, there=holds(first, last)).with_requests(open_)
    (one,) = explain_request(last, seen, decide(seen)).assessments
    assert one.refusal is not None
    assert one.refusal.message.endswith(f", after what {first.workload} takes in this pass")
