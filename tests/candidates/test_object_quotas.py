"""A cluster whose quotas have too little left for the objects of a placement takes none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.core.decide.state.object_usage import object_usage
from reconciler.core.workloads.resource_quotas import read_resource_quota
from reconciler.model.capacity import ClusterObservation
from reconciler.model.units import ONE
from reconciler.model.workload import Json
from tests.builders.counted_work import within
from tests.builders.inputs import desired, free, ledger, ordering, placement, plan, short, tenants


def quota(hard: Json, used: Json = None, **spec: Any) -> Any:
    status = {"hard": hard, "used": dict.fromkeys(hard, "0") | (used or {})}
    return read_resource_quota({"metadata": {"name": "objects"}, "spec": {"hard": hard, **spec}, "status": status})


def obj(kind: str, version: str = "v1", **spec: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "spec": spec}


CLAIM = {"storageClassName": "fast", "resources": {"requests": {"storage": "2"}}}
FAST = "fast.storageclass.storage.k8s.io/requests.storage"
USES: tuple[tuple[Json, dict[str, int]], ...] = (
    (obj("Deployment", "apps/v1"), {"count/deployments.apps": 1, "count/replicasets.apps": 1}),
    (obj("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1"), {"count/leaderworkersets.leaderworkerset.x-k8s.io": 1}),
    (obj("ConfigMap"), {"configmaps": 1, "count/configmaps": 1}),
    (obj("Secret"), {"secrets": 1, "count/secrets": 1}),
    (obj("Service"), {"services": 1, "count/services": 1}),
    (obj("Service", type="NodePort", ports=[{}, {}]), {"services": 1, "count/services": 1, "services.nodeports": 2}),
    (
        obj("Service", type="LoadBalancer", ports=[{}]),
        {"services": 1, "count/services": 1, "services.nodeports": 1, "services.loadbalancers": 1},
    ),
    (obj("PersistentVolumeClaim", **CLAIM), {"persistentvolumeclaims": 1, "requests.storage": 2, FAST: 2}),
)


@pytest.mark.parametrize(("manifest", "uses"), USES)
def test_an_object_uses_what_the_quota_evaluators_say(manifest: Json, uses: dict[str, int]) -> None:
    names = {name for _, each in USES for name in each} | {"pods", "requests.cpu"}
    assert object_usage(manifest, quota(dict.fromkeys(names, "9"))) == {name: n * ONE for name, n in uses.items()}
    assert object_usage(manifest, quota({"pods": "9"}, scopes=["Terminating"])) == {}


def bounded(hard: Json, used: Json = None) -> ClusterObservation:
    return free("worker-2", 8, quotas={"demo": (quota(hard, used),)})


DEPLOYMENTS = "count/deployments.apps"


def test_a_new_placement_is_refused_and_one_that_stands_grows() -> None:
    full, wanted = bounded({DEPLOYMENTS: "1"}, {DEPLOYMENTS: "1"}), desired(ordering("worker-2"))
    (suppressed,) = plan(short(2), full, wanted=wanted).suppressed
    assert suppressed.refusals[0].message == f"quota objects of demo: 1 of 1 {DEPLOYMENTS} used, and its objects take 1"
    stands = replace(full, bound={placement("worker-2", 2).name: 2})
    (change,) = plan(short(4), stands, wanted=wanted, there=ledger(placement("worker-2", 2))).changes
    assert change.placement.replicas == 4


def test_placements_of_one_pass_share_a_quota_on_objects() -> None:
    workloads = [workload for workload in tenants(2) if workload.workspace == "llm"]
    missing = tuple(short(2, workload=workload).workloads[0] for workload in workloads)
    primary, wanted = replace(short(0), workloads=missing), desired(ordering("worker-2"), workloads=workloads)
    for hard, placed in (("2", 2), ("1", 1)):
        made = plan(primary, bounded({DEPLOYMENTS: hard}), wanted=wanted)
        assert len({change.workload for change in made.changes}) == placed


def test_the_mark_of_a_placement_is_a_config_map() -> None:
    wanted = desired(ordering("worker-2"))
    assert plan(short(2), bounded({"configmaps": "1"}), wanted=wanted).changes
    assert not plan(short(2), bounded({"configmaps": "1"}, {"configmaps": "1"}), wanted=wanted).changes


def test_a_claim_that_nobody_can_read_is_one_of_any_class() -> None:
    claim = obj("PersistentVolumeClaim", "{{ version }}", resources={"requests": ["2"]})
    names = ("persistentvolumeclaims", "fast.storageclass.storage.k8s.io/persistentvolumeclaims")
    assert object_usage(claim, quota(dict.fromkeys(names, "9"))) == dict.fromkeys(names, ONE)


def test_ports_that_are_no_list_count_as_one() -> None:
    service = obj("Service", type="NodePort", ports="{{ ports }}")
    assert object_usage(service, quota({"services.nodeports": "9"})) == {"services.nodeports": ONE}


@pytest.mark.parametrize("hard", ["10000", "60"])
def test_quotas_on_objects_take_work_in_proportion_to_workloads(hard: str) -> None:
    workloads = [workload for workload in tenants(100) if workload.workspace == "llm"]
    missing = tuple(short(1, workload=workload).workloads[0] for workload in workloads)
    primary, names = replace(short(0), workloads=missing), [f"worker-{number}" for number in (2, 3)]
    seen = [free(name, 100, quotas={"demo": (quota({DEPLOYMENTS: hard}),)}) for name in names]
    wanted = desired(ordering(*names), workloads=workloads)
    made = within(600_000, lambda: plan(primary, *seen, wanted=wanted))
    assert len(made.changes) == len(workloads)
