"""Pods that are there keep others out of where they are by their own required anti-affinity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.pod_requirements import largest_shape
from reconciler.core.observe.observation_file import read
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.plan import Plan
from reconciler.model.policy import Availability
from reconciler.model.workload import Json
from tests.builders.inputs import NOW, cluster, desired, free, ledger, placement, plan, seconds, shape, short
from tests.builders.plans import begun
from tests.builders.pod_rules import HOST, LABELS, ZONE, apart, counted, node, other, pod, seen, term, why_not
from tests.builders.requests import deployment, holds, manifests, record, request, wants
from tests.builders.subsets import RENTED, fleet, out, with_pods
from tests.builders.workload_kinds import SAMPLES, lws
from tests.capacity.test_exclusive_topology import EIGHT, jobs, marked, racks
from tests.fakes.kube_scheduler import REQUIRED, Raw
from tests.spread.test_subset_pods import pods as pod_template

GROUP_KEY = "leaderworkerset.sigs.k8s.io/group-key"


def keeping(key: str = HOST, **fields: Any) -> Raw:
    """A pod of somebody else that keeps such pods as ours off."""
    return other({"app": "web"}, keeps=[term(key, **fields)])


def test_a_node_with_a_pod_that_keeps_ours_off_has_no_room() -> None:
    assert counted([node("a", 2, pods=[keeping()]), node("b", 3)], pod()) == 3


def test_so_has_its_whole_domain_of_the_label_and_a_cordoned_node_is_part_of_it() -> None:
    cordoned = {**node("a", 0, zone="x", pods=[keeping(ZONE)]), "cordoned": True}
    assert counted([cordoned, node("b", 2, zone="x"), node("c", 3, zone="y"), node("d", 4)], pod()) == 7


def test_a_pod_that_is_being_deleted_keeps_others_off_until_it_is_gone() -> None:
    assert counted([node("a", 2, pods=[{**keeping(), "leaving": True}])], pod()) == 0


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({}, True),
        ({"labelSelector": {"matchLabels": {"app": "other"}}}, False),
        ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}}, True),
        ({"labelSelector": {}}, True),
        ({"labelSelector": None}, False),
        ({"namespaces": ["other"]}, False),
        ({"namespaces": ["other"], "namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, True),  # nobody knows which namespaces those are
    ],
)
def test_whom_it_keeps_off_its_selector_and_its_namespaces_say(fields: Json, kept: bool) -> None:
    assert counted([node("a", 2, pods=[keeping(**fields)])], pod()) == (0 if kept else 2)


def test_pods_that_are_alike_but_for_their_labels_are_told_apart_while_capacity_is_taken() -> None:
    room = ClusterCapacity(seen([node("a", 2, pods=[keeping()]), node("b", 3)]))
    ours, others = (
        replica_shape(raw["spec"], {"labels": raw["labels"], "namespace": "llm"})
        for raw in (pod(), pod(labels={"app": "batch"}))
    )
    room.take(others, 1)
    assert [room.count(wanted, 50) for wanted in (others, ours, others)] == [4, 3, 4]
    room.take(ours, 1)
    assert [room.count(wanted, 50) for wanted in (ours, others, ours)] == [2, 3, 2]


def test_it_is_told_why() -> None:
    nodes = [node("a", 2, pods=[keeping()])]
    assert why_not(nodes, pod()) == "pods that are there keep it away by their anti-affinity"
    assert why_not([*nodes, node("b", 0)], pod()).startswith("needs 1 GPU on one node")


def test_beside_rules_of_its_own_the_nodes_still_count_as_domains() -> None:
    spread = {"topologySpreadConstraints": [{**term(ZONE), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}
    there = [node("a", 9, zone="x"), node("b", 9, zone="y", pods=[keeping()])]
    assert counted(there, pod(**spread)) == 1  # a second in zone x would be two more than zone y has


def test_of_pods_on_their_way_nobody_knows_where_they_will_keep_it_off() -> None:
    room = ClusterCapacity(seen([node("a", 8), node("b", 8)]))
    alike = replace(shape(), who=counted_shape(LABELS).who)
    room.take(counted_shape(LABELS, **apart(HOST)), 1)
    assert room.count(alike, 9) == 0
    assert room.shortfall(alike) == (
        "pods that are on their way keep it away by their anti-affinity, from unknown nodes"
    )
    assert room.count(counted_shape({"app": "web"}), 99) == 15


def counted_shape(labels: Raw, **spec: Any) -> Any:
    """Read the shape of a pod with these labels."""
    made = pod(labels=labels, **spec)
    return replica_shape(made["spec"], {"labels": labels, "namespace": "llm"})


def observed(*there: Raw) -> ClusterObservation:
    """Observe two nodes; these pods are on the first."""
    return seen([node("a", 8, pods=list(there)), node("b", 2)])


def test_a_burst_goes_where_nobody_keeps_its_pods_off_and_forgets_the_labels() -> None:
    replica = counted_shape(LABELS)
    (change,) = plan(short(5, replica=replica), observed(keeping())).changes
    assert change.action is Action.PLACE
    assert change.placement.replicas == 2
    assert change.placement.shape == replica.recorded


def test_a_drained_burst_is_not_moved_to_where_its_pods_are_kept_off() -> None:
    replica = counted_shape(LABELS)
    clusters = (cluster("worker-1"), cluster("worker-2"), cluster("worker-3", availability=Availability.DRAINING))
    there = placement("worker-3", 5, shape=replica.recorded)
    for guard, moved in ((other({"app": "web"}), 1), (keeping(), 0)):
        wanted, far = desired(clusters=clusters), free("worker-3", bound={there.name: 5})
        made = plan(short(5, replica=replica), observed(guard), far, wanted=wanted, there=ledger(there))
        assert sum(change.action is Action.MOVE for change in made.changes) == moved


def labelled(name: str, **labels: str) -> Json:
    """A Deployment whose pods have these labels."""
    made = deployment(1, 2)
    template = {**made["spec"]["template"], "metadata": {"labels": labels}}
    metadata = {**made["metadata"], "name": name, "namespace": "llm"}
    return {**made, "metadata": metadata, "spec": {**made["spec"], "template": template}}


def test_requests_that_are_alike_but_for_their_labels_are_not_told_the_same() -> None:
    one, two = (request("worker-2", name=app, spec=manifests(labelled("server", app=app))) for app in ("vllm", "web"))
    there = holds(record(one), record(two))
    full = seen([node("a", 8, pods=[keeping()]), node("b", 1)])
    made = plan(full, wanted=wants(one, two), there=there)
    assert [str(placement.workload.name) for placement in begun(made)] == ["web"]


def test_nor_are_they_where_pods_that_are_on_their_way_keep_one_of_them_off() -> None:
    guard = labelled("first", app="vllm")
    guard["spec"]["template"]["spec"] |= apart(HOST)
    made = {"guard": guard, "vllm": labelled("server", app="vllm"), "web": labelled("server", app="web")}
    asked = [request("worker-2", name=name, spec=manifests(one)) for name, one in made.items()]
    there = holds(*(record(one, at=NOW + seconds(place)) for place, one in enumerate(asked)))
    decided = plan(seen([node("a", 8), node("b", 8)]), wanted=wants(*asked), there=there)
    assert [placement.workload.name for placement in begun(decided)] == [
        "guard",
        "web",
    ]


def test_the_labels_that_a_subset_patches_are_those_that_count() -> None:
    template = pod_template(app="vllm")
    patched = replace(RENTED, patch={"metadata": {"labels": {"app": "spare"}}})
    for subset, placed in ((RENTED, 2), (patched, 5)):
        there = replace(observed(keeping()), cluster="worker-4")
        made = plan(short(5, replica=counted_shape(LABELS)), there, wanted=with_pods(fleet(subset), template))
        assert out(made) == {"worker-4/rented": placed}


# Groups that have domains of their own


def exclusive_pod(key: str, **fields: Any) -> Raw:
    """A pod of a group that has a rack for itself, as the webhooks of LeaderWorkerSet and JobSet make it."""
    others = [{"key": key, "operator": "Exists"}, {"key": key, "operator": "NotIn", "values": ["a1b2"]}]
    kept = {"topologyKey": "rack", "labelSelector": {"matchExpressions": others}, **fields}
    return other({key: "a1b2"}, keeps=[kept], namespace="demo")


def places(seen_: ClusterObservation, made: Json) -> Plan:
    asked = request("worker-2", spec=manifests(made))
    return plan(seen_, wanted=wants(asked), there=holds(record(asked, began_at=NOW)))


def in_racks(there: Raw) -> ClusterObservation:
    """Two racks with room for four pods of eight GPUs each; this pod is in the first."""
    first = [node(f"a{number}", 8, rack="1", pods=[there] if number == 0 else []) for number in range(4)]
    return seen([*first, *(node(f"b{number}", 8, rack="2") for number in range(4))])


def test_a_set_without_a_domain_of_its_own_is_kept_out_of_those_of_others() -> None:
    there = in_racks(exclusive_pod(GROUP_KEY))
    assert len(places(there, lws(1, 4)).changes) == 1
    assert places(there, lws(2, 4)).changes == ()
    assert len(places(in_racks(other({GROUP_KEY: "a1b2"}, namespace="demo")), lws(2, 4)).changes) == 1
    assert len(places(there, deployment(8, 8)).changes) == 1


def test_jobs_are_kept_out_of_the_domains_of_jobs_of_other_namespaces_too() -> None:
    of_others = {**exclusive_pod("jobset.sigs.k8s.io/job-key", namespaceSelector={}), "namespace": "other"}
    first = [node("a0", 8, rack="1", pods=[of_others]), *(node(f"a{number}", 8, rack="1") for number in (1, 2, 3))]
    assert places(seen([*first, node("b", 8, rack="2")]), jobs()).changes == ()
    assert len(places(seen([*first[1:], node("b", 8, rack="2"), node("c", 8, rack="2")]), jobs()).changes) == 1


def test_a_set_that_wants_domains_minds_pods_that_keep_it_off_by_other_labels() -> None:
    made = marked(lws(1, 4), group="rack")
    made["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"] = {"labels": LABELS}
    guard = {**keeping("rack"), "namespace": "demo"}
    assert places(in_racks(guard), made).changes != ()
    assert (
        places(seen([node(f"a{n}", 8, rack="1", pods=[guard] if n == 0 else []) for n in range(4)]), made).changes == ()
    )
    assert len(places(racks(EIGHT), made).changes) == 1


# In files


def test_an_observation_file_may_say_whom_pods_keep_off() -> None:
    text = """
apiVersion: overspill.dev/v1alpha1
kind: Observation
cluster: worker-2
observedAt: 2026-11-20T10:05:00Z
pools:
  - name: gpu
    allocatable: {nvidia.com/gpu: 8}
    nodes:
      - name: a
        labels: {kubernetes.io/hostname: a}
        pods:
          - namespace: web
            podAntiAffinity:
              - topologyKey: kubernetes.io/hostname
                labelSelector: {matchLabels: {app: vllm}}
                namespaceSelector: {}
      - name: b
"""
    (found,) = read(text.encode(), "worker-2.yaml")
    room = ClusterCapacity(found)
    assert room.count(counted_shape(LABELS), 99) == 8
    assert room.count(counted_shape({"app": "web"}), 99) == 16


RAY, TORCH = SAMPLES["RayCluster"][0], SAMPLES["PyTorchJob"][0]


def made_by(manifest: Json) -> ReplicaShape:
    shape = largest_shape(manifests(manifest), NO_KINDS)
    assert shape is not None
    return shape


@pytest.mark.parametrize(
    ("manifest", "labels", "kept"),
    [
        (RAY, {"ray.io/node-type": "worker"}, True),  # which KubeRay adds; the table of kinds does not have it
        (RAY, {"ray.io/cluster": "model"}, True),
        (RAY, {"ray.io/cluster": "other"}, False),
        (RAY, {"app": "redis"}, False),
        (RAY, {"training.kubeflow.org/job-name": "model"}, False),
        (TORCH, {"training.kubeflow.org/replica-type": "worker"}, True),
        (TORCH, {"training.kubeflow.org/job-name": "model", "training.kubeflow.org/replica-type": "master"}, True),
        (TORCH, {"training.kubeflow.org/job-name": "model", "app": "other"}, False),
        (SAMPLES["JobSet"][0], {"jobset.sigs.k8s.io/replicatedjob-name": "workers"}, True),
        (TORCH, {"org/job-name": "model"}, False),
        (deployment(), {"job-name": "model"}, False),
    ],
)
def test_labels_that_an_operator_may_add_to_pods_count_for_those_that_keep_them_off(
    manifest: Json, labels: dict[str, str], kept: bool
) -> None:
    there = other({"app": "theirs"}, keeps=[term(HOST, labelSelector={"matchLabels": labels}, namespaceSelector={})])
    room = ClusterCapacity(seen([node("a", 8, pods=[there])]))
    assert (room.count(made_by(manifest), 1) == 0) is kept


def test_replicas_on_their_way_may_have_labels_that_their_operator_adds() -> None:
    rule = term(HOST, labelSelector={"matchLabels": {"ray.io/node-type": "worker"}}, namespaceSelector={})
    lone = pod(affinity={"podAntiAffinity": {REQUIRED: [rule]}})
    shape = replica_shape(lone["spec"], {"labels": lone["labels"], "namespace": lone["namespace"]})
    room = ClusterCapacity(seen([node("a", 8), node("b", 8)]))
    assert room.count(shape, 9) == 9
    room.take(made_by(deployment()), 1)
    assert room.count(shape, 9) == 9
    room.take(made_by(RAY), 1)
    assert room.count(shape, 9) == 0
