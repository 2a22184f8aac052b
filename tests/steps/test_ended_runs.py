"""What has ended has ended, for every kind that runs once: from the object in its cluster to the plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import CustomResource, Resource, placed_resources
from reconciler.core.observe.rollouts import Rollouts, RolloutSigns, follow, stale_clusters
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.core.workloads.single_run import pods_to_succeed
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.end_reason import EndReason
from reconciler.model.kubernetes.workload_kind import Count, PodTemplate, WorkloadKind, path
from reconciler.model.placement import Origin, Placement
from reconciler.model.plan import Plan
from reconciler.model.policy import Desired, Fleet
from reconciler.model.request import Provisioning
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.gprs import TRAIN, record, request
from tests.builders.group_bursts import grouped
from tests.builders.inputs import NOW, VLLM, desired, free, inputs, ledger, ordering, placement, short
from tests.builders.kube_objects import pod
from tests.builders.requests import manifests
from tests.builders.run_statuses import ENDED, GOING_ON
from tests.builders.workload_kinds import SAMPLES, game_servers, template, workload

MANIFESTS = {group_kind(made): made for made, _ in reversed(SAMPLES.values())} | {
    "apps.kruise.io/BroadcastJob": SAMPLES["BroadcastJob"][0],
    "ray.io/RayJob": SAMPLES["RayJob"][0],
    # What it wraps has to run once as well.
    "workload.codeflare.dev/AppWrapper": workload(
        "workload.codeflare.dev/v1beta2", "AppWrapper", {"components": [{"template": SAMPLES["PyTorchJob"][0]}]}
    ),
}
BEGAN = NOW - timedelta(hours=1)
PLACE = placement("worker-2", 2, workload=TRAIN, created=BEGAN, lasting=timedelta(days=7), origin=Origin.REQUEST)


def watched(name: str) -> tuple[ClusterState, CustomResource | Resource]:
    """Return a target where objects of placements of this kind are watched."""
    group, _, kind = name.partition("/")
    ref = WorkloadRef(namespace="", name="", kind=kind, group=group)
    resource = next(iter(placed_resources({ref})), Resource.PODS)
    return ClusterState(placed={ref}), resource


def stored(name: str, status: Json, place: Placement = PLACE, uid: str = "1") -> Json:
    """Return the object of a placement as its API server has it."""
    made = MANIFESTS[name]
    named = {**made["metadata"], "labels": {"overspill.dev/placement": place.name}, "uid": uid}
    return {**made, "metadata": named, "status": status}


def seen(state: ClusterState, place: Placement = PLACE) -> ClusterObservation:
    told = state.observation(place.cluster, NOW)
    return free(place.cluster, 8, succeeded=told.succeeded, failed=told.failed, unfinished=told.unfinished)


def planned(observed: ClusterObservation, made: Json, *, place: Placement = PLACE, now: datetime = NOW) -> Plan:
    there = ledger(place, requests={TRAIN: record(request(spec=manifests(made)), began_at=BEGAN)})
    followed = Rollouts()
    for moment in (NOW, now):
        observed = replace(observed, observed_at=moment)
        signs = RolloutSigns.of(there, Observed(clusters={observed.cluster: observed}), Fleet(), moment)
        followed = follow(followed, signs, stale_clusters(followed, signs), {}, moment)
    return decide(replace(inputs(observed, there=there, now=now), rollouts=followed))


def ends(plan: Plan) -> list[EndReason | None]:
    return [change.why for change in plan.changes if change.action is Action.REVERT]


@pytest.mark.parametrize("name", ENDED)
@pytest.mark.parametrize("gone", [False, True], ids=["stays", "is deleted at once"])
def test_a_complete_run_ends_as_succeeded(name: str, gone: bool) -> None:
    for status, _ in ENDED[name][0]:
        state, resource = watched(name)
        state.apply(resource, stored(name, status))
        if gone:
            state.remove(resource, "demo/model")
        plan = planned(seen(state), MANIFESTS[name])
        assert ends(plan) == [EndReason.SUCCEEDED]
        (closed,) = (change.record for change in plan.changes if change.action is Action.CLOSE)
        assert closed.ended is not None
        assert (closed.ended.status, closed.ended.succeeded) == (Provisioning.COMPLETED, True)


@pytest.mark.parametrize("name", ENDED)
@pytest.mark.parametrize("again", [False, True], ids=["stays", "is made again by its engine"])
def test_a_failed_run_ends_as_failed_once_it_has_not_got_well_for_the_rollout_timeout(name: str, again: bool) -> None:
    for status, message in ENDED[name][1]:
        state, resource = watched(name)
        state.apply(resource, stored(name, status))
        if again:
            state.apply(resource, stored(name, {}, uid="2"))
        assert ends(planned(seen(state), MANIFESTS[name])) == []
        plan = planned(seen(state), MANIFESTS[name], now=NOW + timedelta(minutes=15))
        assert ends(plan) == [EndReason.FAILED]
        (detail,) = (change.detail for change in plan.changes if change.action is Action.REVERT)
        assert message in detail


@pytest.mark.parametrize("name", GOING_ON)
def test_a_run_that_goes_on_stays(name: str) -> None:
    for status in GOING_ON[name]:
        state, resource = watched(name)
        state.apply(resource, stored(name, status))
        assert ends(planned(seen(state), MANIFESTS[name])) == []
        state.remove(resource, "demo/model")
        assert ends(planned(seen(state), MANIFESTS[name])) == []


@pytest.mark.parametrize("name", ENDED)
def test_the_end_of_an_earlier_placement_of_the_same_name_is_none(name: str) -> None:
    began = NOW - timedelta(seconds=30)
    later = replace(PLACE, created_at=began, changed_at=began)
    for status, _ in (*ENDED[name][0], *ENDED[name][1]):
        state, resource = watched(name)
        state.apply(resource, stored(name, status))
        state.remove(resource, "demo/model")
        for now in (NOW, NOW + timedelta(minutes=20)):
            assert ends(planned(seen(state), MANIFESTS[name], place=later, now=now)) == []


BY_PODS = ("Job of Volcano", "TFJob", "PyTorchJob", "PaddleJob", "XGBoostJob", "JAXJob", "AppWrapper of a PyTorchJob")
NOT_BY_PODS = ("MPIJob", "TrainJob", "RayJob", "BroadcastJob", "Deployment", "RayCluster", "LeaderWorkerSet")
_SAMPLES = {
    **{name: made for name, (made, _) in SAMPLES.items()},
    "AppWrapper of a PyTorchJob": MANIFESTS["workload.codeflare.dev/AppWrapper"],
}


def succeeding(made: Json, number: int, *, running: int = 0) -> ClusterObservation:
    """Observe so many pods of a placement that have succeeded, and others that run; its object is not watched."""
    state, labels = ClusterState(), {"overspill.dev/placement": PLACE.name}
    for index in range(number + running):
        raw = pod(f"{made['kind'].lower()}-{index}", "gpu-1", labels=labels)
        if index < number:
            raw["status"] = {"phase": "Succeeded", "containerStatuses": [finished(NOW - timedelta(minutes=5))]}
        state.apply(Resource.PODS, raw)
    told = state.observation(PLACE.cluster, NOW)
    return free(PLACE.cluster, 8, succeeded=told.succeeded, failed=told.failed, bound=told.bound, ready=told.ready)


def finished(at: object) -> Json:
    return {"name": "main", "state": {"terminated": {"exitCode": 0, "finishedAt": f"{at:%Y-%m-%dT%H:%M:%SZ}"}}}


@pytest.mark.parametrize("name", BY_PODS)
def test_a_run_is_complete_once_all_of_its_pods_have_succeeded(name: str) -> None:
    made, number = _SAMPLES[name], sum(SAMPLES[name.rpartition(" ")[2] if " a " in name else name][1].values())
    assert ends(planned(succeeding(made, number), made)) == [EndReason.SUCCEEDED]
    assert ends(planned(succeeding(made, number - 1), made)) == []
    assert ends(planned(succeeding(made, number, running=1), made)) == []


@pytest.mark.parametrize("name", NOT_BY_PODS)
def test_succeeded_pods_alone_do_not_tell_of_what_has_others_or_serves(name: str) -> None:
    assert ends(planned(succeeding(_SAMPLES[name], 50), _SAMPLES[name])) == []


def declared(once: bool) -> Desired:
    """Return a fleet with a kind of its own that bursts, whose template may say that it runs once."""
    kind = WorkloadKind(
        group="game.example.com",
        kind="GameServerSet",
        replicas=(path("spec.size"),),
        templates=(PodTemplate(spec=path("spec.template.spec"), counts=(Count(path=path("spec.size")),)),),
    )
    made = replace(grouped(game_servers(3, template=template(1))), runs_once=once)
    return replace(desired(ordering("worker-2", "worker-3")), templates={VLLM: made}, kinds={kind.name: kind})


@pytest.mark.parametrize(("once", "succeeded", "ended"), [(True, 3, True), (True, 2, False), (False, 3, False)])
def test_a_kind_of_the_fleet_that_runs_once_ends_with_its_pods(once: bool, succeeded: int, ended: bool) -> None:
    burst = placement("worker-2", 3, created=BEGAN, lasting=timedelta(days=7), runs_once=once)
    state = ClusterState()
    for index in range(succeeded):
        raw = pod(f"game-{index}", "gpu-1", labels={"overspill.dev/placement": burst.name})
        raw["status"] = {"phase": "Succeeded", "containerStatuses": [finished(NOW - timedelta(minutes=5))]}
        state.apply(Resource.PODS, raw)
    told = state.observation(burst.cluster, NOW)
    observed = free("worker-2", 8, succeeded=told.succeeded)
    wanted = declared(once)
    plan = decide(inputs(short(3, running=0), observed, wanted=wanted, there=ledger(burst)))
    assert (EndReason.SUCCEEDED in ends(plan)) is ended
    if ended:
        (held,) = (change.restraint for change in plan.changes if change.action is Action.REVERT)
        assert held is not None
        assert held.cluster is None
        again = inputs(
            short(3, running=0), free("worker-3", 8), wanted=wanted, there=ledger(restraints={VLLM: (held,)})
        )
        assert [change for change in decide(again).changes if change.action is Action.PLACE] == []


def test_an_expression_in_the_number_of_pods_counts_as_the_replicas_of_the_placement() -> None:
    made = replace(declared(once=True).templates[VLLM], spec=manifests(game_servers(1, template=template(1))))
    kinds = declared(once=True).kinds
    assert pods_to_succeed(made, placement("worker-2", 5), kinds) == 5
    assert pods_to_succeed(made, placement("worker-2", 5), NO_KINDS) is None
