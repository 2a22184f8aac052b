"""An elastic Job that has begun on another cluster grows there with its object at home, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.workloads.elastic_jobs import is_elastic
from reconciler.model.action import Action
from reconciler.model.placement import Placement
from reconciler.model.plan import Reason
from reconciler.model.policy import Desired
from reconciler.model.workload import Json
from tests.builders.group_bursts import grouped
from tests.builders.inputs import NOW, VLLM, desired, free, ledger, ordering, placement, plan, short
from tests.builders.requests import manifests
from tests.builders.workload_kinds import template, workload

ELASTIC = {"kueue.x-k8s.io/elastic-job": "true"}
SPEC = {
    "parallelism": "{{ replicas }}",
    "completions": "{{ replicas }}",
    "completionMode": "Indexed",
    "template": template(1),
}


def job(kind: str = "Job", api: str = "batch/v1", **annotations: str) -> Json:
    return workload(api, kind, SPEC, annotations=annotations)


def fleet(manifest: Json) -> Desired:
    made = desired(ordering("worker-2", "worker-3"))
    return replace(made, templates={VLLM: replace(grouped(manifest), runs_once=True)})


def there(replicas: int = 2, **fields: object) -> Placement:
    made = {"created": NOW - timedelta(minutes=20), "lasting": timedelta(hours=2), "runs_once": True, **fields}
    return placement("worker-3", replicas, **made)


@pytest.mark.parametrize(
    ("manifest", "elastic"),
    [
        (job(**ELASTIC), True),
        (job(), False),
        (job(**{**ELASTIC, "kueue.x-k8s.io/elastic-job": "false"}), False),
        (job("Job", "batch.volcano.sh/v1alpha1", **ELASTIC), False),
        (workload("apps/v1", "Deployment", SPEC, annotations=ELASTIC), False),
    ],
)
def test_a_job_is_elastic_by_its_annotation(manifest: Json, elastic: bool) -> None:
    assert is_elastic(manifests(manifest)) is elastic


def test_it_grows_where_it_is_though_another_cluster_comes_first() -> None:
    burst = there(2)
    seen = free("worker-3", 8, bound={burst.name: 2})
    home = short(5, running=0, held=True)
    (grown,) = plan(home, free("worker-2", 9), seen, wanted=fleet(job(**ELASTIC)), there=ledger(burst)).changes
    assert (grown.action, grown.after.path, grown.after.replicas) == (Action.RESIZE, burst.path, 5)
    assert grown.after.runs_once


def test_it_goes_whole_and_waits_where_its_cluster_has_no_room_for_all_that_is_missing() -> None:
    burst = there(2)
    seen = free("worker-3", 2, bound={burst.name: 2})
    home = short(5, running=0, held=True)
    made = plan(home, free("worker-2", 9), seen, wanted=fleet(job(**ELASTIC)), there=ledger(burst))
    assert made.changes == ()
    (held,) = made.suppressed
    refused = {refusal.cluster: (refusal.reason, refusal.message) for refusal in held.refusals}
    assert refused["worker-2"] == (Reason.RUNS_ONCE, "it runs once, and began elsewhere")
    assert refused["worker-3"][0] is Reason.NO_CAPACITY


@pytest.mark.parametrize("annotations", [{}, ELASTIC])
def test_no_job_grows_that_is_not_elastic_or_that_began_by_another_template(annotations: dict[str, str]) -> None:
    burst = there(2, template_version="other" if annotations else "")
    seen = free("worker-3", 8, bound={burst.name: 2})
    home = short(5, running=0, held=True)
    made = plan(home, seen, wanted=fleet(job(**annotations)), there=ledger(burst))
    assert (made.changes, made.suppressed[0].reason) == ((), Reason.RUNS_ONCE)


def test_it_does_not_grow_once_a_pod_of_it_runs_at_home() -> None:
    burst = there(2)
    seen = free("worker-3", 8, bound={burst.name: 2})
    made = plan(short(4, running=1), seen, wanted=fleet(job(**ELASTIC)), there=ledger(burst))
    assert [change.action for change in made.changes] == [Action.REVERT]
