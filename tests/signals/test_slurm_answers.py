"""From Slurm's jobs to replicas: which jobs are demand, and how many GPUs each asks for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.core.signals.question import MOST
from reconciler.core.signals.slurm import PendingGpus, answer_error, pending_jobs
from reconciler.errors import InvalidInput
from tests.fakes.slurm import job, number

H100 = PendingGpus(name="gpu-h100", partition="gpu-h100", gpus_per_replica=8)


def gpus(*jobs: dict[str, Any]) -> int:
    return sum(each.gpus for each in pending_jobs({"jobs": list(jobs)}))


def test_the_gpus_of_pending_jobs_come_to_replicas_and_to_a_clause() -> None:
    jobs = pending_jobs({"jobs": [*(job(number, 4) for number in range(1, 7)), job(7, partition="cpu")]})
    assert H100.replicas_for(jobs) == 3
    assert f"{H100.label} {H100.cause(jobs)}" == (
        "slurm gpu-h100 has 6 pending jobs with 24 GPUs, and a replica takes 8"
    )
    assert H100.cause(pending_jobs({"jobs": [job(1, 1)]})) == "has 1 pending job with 1 GPU, and a replica takes 8"


def test_a_job_that_may_start_in_several_partitions_counts_in_each() -> None:
    jobs = pending_jobs({"jobs": [job(1, partition="gpu-a100,gpu-h100")]})
    assert H100.replicas_for(jobs) == 1


@pytest.mark.parametrize(
    "reason",
    ["JobHeldUser", "JobHeldAdmin", "Dependency", "BeginTime", "JobArrayTaskLimit", "QOSGrpGRES", "Licenses", "None"],
)
def test_a_job_that_does_not_wait_for_room_is_no_demand(reason: str) -> None:
    assert gpus(job(1, state_reason=reason)) == 0


@pytest.mark.parametrize(
    "states", [["RUNNING"], ["COMPLETED"], ["PENDING", "COMPLETING"], ["PENDING", "REQUEUE_HOLD"], []]
)
def test_a_job_that_does_not_pend_or_still_ends_is_no_demand(states: list[str]) -> None:
    assert gpus(job(1, job_state=states)) == 0


@pytest.mark.parametrize("states", [["PENDING"], ["PENDING", "REQUEUED"], "PENDING"])
def test_a_job_that_waits_for_its_turn_is_demand(states: object) -> None:
    assert gpus(job(1, job_state=states, state_reason="Priority")) == 8


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tres_req_str": "cpu=1,node=2,gres/gpu=16,gres/gpu:h100=16"}, 16),
        ({"tres_req_str": "cpu=1,gres/gpu:h100=3,gres/gpu:a100=2"}, 5),
        ({"tres_req_str": "cpu=1", "tres_per_node": "gres/gpu:h100:4", "node_count": number(3)}, 12),
        ({"tres_req_str": "", "tres_per_node": "gres:gpu:4", "node_count": 2}, 8),
        ({"tres_req_str": "", "tres_per_node": "gpu", "node_count": number(2)}, 2),
        ({"tres_req_str": "", "tres_per_node": "gres/gpu:2080ti:2", "node_count": number(1)}, 2),
        ({"tres_req_str": "", "tres_per_node": "gres/gpu:1g.5gb:2,gres/gpu:4090", "node_count": number(1)}, 4090),
        ({"tres_req_str": "", "tres_per_node": "gpu:h100", "node_count": number(3)}, 3),
        ({"tres_req_str": "", "tres_per_node": "", "tres_per_job": "gres/gpu=6", "node_count": number(2)}, 6),
        ({"tres_req_str": "", "tres_per_node": "", "tres_per_task": "gres/gpu:2", "tasks": number(5)}, 10),
        (
            {
                "tres_req_str": "",
                "tres_per_node": "",
                "tres_per_socket": "gres/gpu:2",
                "sockets_per_node": number(2),
                "node_count": number(2),
            },
            8,
        ),
        ({"tres_req_str": "cpu=1,mem=1G", "tres_per_node": "gres/shard:4"}, 0),
        ({"tres_req_str": None, "tres_per_node": 7}, 0),
        ({"tres_req_str": "gres/gpu=" + "9" * 5000, "tres_per_node": ""}, 0),
    ],
)
def test_gpus_are_read_where_a_job_asks_for_them(fields: dict[str, Any], expected: int) -> None:
    assert gpus(job(1, **fields)) == expected


@pytest.mark.parametrize(
    ("tasks", "limit", "expected"),
    [
        ("1-9", 0, 9),
        ("1,3,5-7", 0, 5),
        ("0-30:10", 0, 4),
        ("1-99%4", 4, 3),
        ("1-3,5,7,...", 0, 5),
        ("nonsense", 0, 1),
        ("0-999999999", 0, MOST),
    ],
)
def test_an_array_counts_by_the_tasks_that_may_start(tasks: str, limit: int, expected: int) -> None:
    array = {"array_job_id": number(5), "array_max_tasks": number(limit)}
    runs = job(6, job_state=["RUNNING"], **array)
    assert gpus(job(5, 1, array_task_string=tasks, **array), runs) == expected


def test_components_of_a_heterogeneous_job_are_one_job() -> None:
    parts = [job(10 + index, 4, het_job_id=number(10), het_job_offset=number(index)) for index in range(2)]
    elsewhere = job(12, 4, het_job_id=number(10), partition="gpu-a100")
    jobs = pending_jobs({"jobs": [*parts, elsewhere]})
    assert H100.cause(jobs) == "has 1 pending job with 8 GPUs, and a replica takes 8"


def test_jobs_that_have_waited_for_the_window_count_at_once() -> None:
    now = datetime(2026, 11, 20, tzinfo=UTC)
    old, fresh = (int((now - timedelta(seconds=age)).timestamp()) for age in (60, 10))
    jobs = pending_jobs(
        {
            "jobs": [
                job(1, eligible_time=number(old)),
                job(2, eligible_time=number(fresh)),
                job(3, eligible_time=number(None), submit_time=number(old)),
                job(4, eligible_time=None, submit_time="yesterday"),
            ]
        }
    )
    assert H100.lasting(jobs, None, now - timedelta(seconds=30)) == 2


def test_replicas_are_bounded() -> None:
    jobs = pending_jobs({"jobs": [job(1, 999_999_999)]})
    assert H100.replicas_for(jobs) == MOST


@pytest.mark.parametrize("answer", [None, [], {}, {"jobs": None}, {"jobs": [3]}, {"jobs": [{"job_id": 1}]}])
def test_an_answer_of_another_kind_is_not_an_answer_of_nothing(answer: Any) -> None:
    with pytest.raises(InvalidInput, match="not Slurm's"):
        pending_jobs(answer)


@pytest.mark.parametrize("junk", [3, None, [], {"job_state": 7}, {"job_state": ["PENDING"], "state_reason": []}])
def test_job_that_cannot_be_read_costs_itself_and_is_told(junk: Any) -> None:
    jobs = pending_jobs({"jobs": [junk, job(1)]})
    assert H100.replicas_for(jobs) == 1
    assert "beside 1 that cannot be read (jobs[0]" in H100.cause(jobs)


@pytest.mark.parametrize("value", [None, 1, -1, [], {}, "x", [None], [[]], True, 1e308, {"set": True, "number": []}])
@pytest.mark.parametrize("field", sorted(job(1)))
def test_field_of_any_type_costs_its_job_at_most(field: str, value: Any) -> None:
    assert gpus(job(1), job(2, **{field: value})) >= 8


def test_the_first_error_is_read() -> None:
    assert answer_error({"errors": [{"description": "no", "error": "x"}]}) == "no"
    assert answer_error({"errors": []}) == answer_error(None) == answer_error({"errors": [1]}) == ""
