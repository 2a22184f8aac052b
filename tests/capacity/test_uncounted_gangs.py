"""An object that makes one group of pods of which no file says how many goes whole, by what its primary shows of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.capacity.pod_requirements import pods_of_request
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.units import gang_of
from reconciler.core.workloads import pod_counts
from reconciler.model.action import Action
from reconciler.model.plan import Reason
from reconciler.model.policy import Desired
from reconciler.model.workload import Json
from tests.builders.group_bursts import burst, fleet, lacks
from tests.builders.inputs import VLLM, free, inputs, ledger, plan, shape, short
from tests.builders.requests import manifests, request
from tests.builders.workload_kinds import pod, workload

EIGHT = [8] * 8


def served(replicas: Json = 1, **predictor: Json) -> Json:
    """Make a KServe service of several nodes: a head, and workers of which its runtime in the cluster says more."""
    spec = {"minReplicas": replicas, "model": pod(8)["containers"][0], "workerSpec": {"pipelineParallelSize": 3}}
    return workload("serving.kserve.io/v1beta1", "InferenceService", {"predictor": spec | predictor})


def wanted(made: Json | None = None) -> Desired:
    return fleet(made or served(), reads_replicas=False)


@pytest.mark.parametrize(("missing", "running"), [(3, 0), (1, 2)])
def test_it_goes_to_the_first_cluster_that_has_room_for_all_pods_of_it_however_many_are_missing(
    missing: int, running: int
) -> None:
    seen = lacks(missing, running=running), free("worker-2", 8, 8), free("worker-3", *EIGHT)
    (change,) = plan(*seen, wanted=wanted()).changes
    assert change.action is Action.PLACE
    assert (change.placement.cluster, change.placement.replicas) == ("worker-3", 1)
    assert change.placement.shape.group_size == 3
    (refused,) = change.refused
    assert refused.message == "needs 8 GPUs for each of 3 pods, has room for 2"


def test_there_is_never_a_second_copy_of_it() -> None:
    seen = lacks(6, running=0), free("worker-2"), free("worker-3", *EIGHT)
    assert plan(*seen, wanted=wanted(), there=ledger(burst(groups=1, size=3))).changes == ()


def test_before_any_pod_of_it_was_seen_nothing_of_it_is_lent_and_it_is_told_why() -> None:
    seen = replace(short(1, running=0, replica=shape(8)), workloads=())
    made = inputs(seen, free("worker-2", *EIGHT), wanted=wanted())
    assert decide(made).changes == ()
    goes_whole = gang_of(made, VLLM)
    assert goes_whole is not None
    assert goes_whole.unknown == "no pod of it is seen on its primary"


def test_a_service_of_one_node_goes_pod_by_pod_as_before() -> None:
    made = served()
    del made["spec"]["predictor"]["workerSpec"]
    seen = lacks(3, running=0), free("worker-2", 8, 8), free("worker-3", *EIGHT)
    changes = plan(*seen, wanted=fleet(made)).changes
    assert [(change.placement.cluster, change.placement.replicas) for change in changes] == [
        ("worker-2", 2),
        ("worker-3", 1),
    ]


def test_a_share_where_it_makes_one_copy_anyhow_is_an_error_at_its_field() -> None:
    (found,) = pod_counts.check_counts(served("{{ replicas }}"))
    assert found.loc == ("spec", "predictor", "minReplicas")
    assert found.message == "makes no more copies of what has a workerSpec: it goes whole, as one"
    assert [*pod_counts.check_counts(served(2))] == []


def test_a_request_still_says_that_nobody_knows_what_it_needs() -> None:
    assert pods_of_request(request(spec=manifests(served()))).strange == ("part-0",)


def test_what_is_held_back_for_want_of_room_says_that_it_goes_whole() -> None:
    made = plan(lacks(3, running=0), free("worker-2", 8, 8), free("worker-3", 8), wanted=wanted())
    (held,) = made.suppressed
    assert held.reason is Reason.NOTHING_FITS
    assert held.message.startswith("it fits on no cluster as a whole, with 1 replica")
