"""Devices that pods claim (DRA) are counted as the scheduler counts them: from slices, less what claims hold."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.commits.messages import message
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.model.capacity import DeviceOption, DeviceRequest, Node, ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import WorkloadRef
from tests.builders.inputs import SOURCE, plan
from tests.builders.kube_objects import (
    DRIVER,
    NO_GPU,
    Raw,
    claim,
    claim_template,
    device,
    device_class,
    exactly,
    node,
    pod,
    resource_slice,
    workload,
)
from tests.builders.watched_clusters import TWO_NAME, Fleet, seen, until
from tests.observe.test_cluster_state import ANY, AT, NAME

GPU = "nvidia.com/gpu"
IMEX = "compute-domain.nvidia.com"
IMEX_TYPE = f"device.attributes['{IMEX}'].type"
OURS = {"overspill.dev/placement": "burst-1"}


def cluster(*slices: Raw, claims: list[Raw] | None = None, nodes: list[Raw] | None = None) -> ClusterState:
    made = ClusterState()
    listed = [(Resource.NODES, one) for one in nodes or [node("gpu-1", 0), node("gpu-2", 0, labels={"rack": "b"})]]
    listed += [(Resource.SLICES, one) for one in slices]
    listed += [(Resource.CLAIMS, one) for one in claims or ()]
    listed.append((Resource.CLASSES, device_class()))
    random.Random(len(listed)).shuffle(listed)  # any order will do
    for resource, raw in listed:
        made.apply(resource, raw)
    return made


def claiming(count: int = 1, *selectors: str, of: str = DRIVER) -> ReplicaShape:
    option = DeviceOption(device_class=of, selectors=selectors, count=count)
    return ReplicaShape(requests=Resources(), devices=(DeviceRequest(options=(option,)),))


def seen_nodes(made: ClusterState) -> list[Node]:
    return [node for pool in made.observation(NAME, AT).pools for node in pool.nodes]


def fits(made: ClusterState, shape: ReplicaShape | None = None) -> int:
    return ClusterCapacity(made.observation(NAME, AT)).count(shape or claiming(), 99)


# what there is


def test_devices_of_a_node_are_those_of_its_slices_less_those_that_claims_hold() -> None:
    gpus = [device(f"gpu-{index}") for index in range(8)]
    assert fits(cluster(resource_slice("s1", gpus))) == 8
    held = [claim("a", "gpu-0", "gpu-3"), claim("b"), claim("c", "gpu-5", pool="gpu-2")]
    assert fits(cluster(resource_slice("s1", gpus), claims=held)) == 6


def test_devices_of_a_kind_are_kept_as_one_stock() -> None:
    gpus = [device(f"gpu-{index}") for index in range(8)]
    made = cluster(resource_slice("s1", gpus), resource_slice("s2", gpus, "gpu-2"))
    first, second = (one.devices for pool in made.observation(NAME, AT).pools for one in pool.nodes)
    assert [(one.free, one.total) for one in first] == [(8, 8)]
    assert first[0].kind is second[0].kind


def test_device_that_is_claimed_for_administration_only_is_free() -> None:
    assert fits(cluster(resource_slice("s1", [device("gpu-0")]), claims=[claim("a", "gpu-0", adminAccess=True)])) == 1


def test_claim_that_ends_gives_its_devices_back() -> None:
    made = cluster(resource_slice("s1", [device("gpu-0")]), claims=[claim("a", "gpu-0")])
    assert fits(made) == 0
    assert made.apply(Resource.CLAIMS, claim("a")) is ChangeEffect.CAPACITY
    assert fits(made) == 1
    made.apply(Resource.CLAIMS, claim("a", "gpu-0"))
    assert made.remove(Resource.CLAIMS, "demo/a") is ChangeEffect.CAPACITY
    assert fits(made) == 1


def test_claim_without_devices_changes_nothing() -> None:
    made = cluster(resource_slice("s1", [device("gpu-0")]))
    assert made.apply(Resource.CLAIMS, claim("a")) is ChangeEffect.NOTHING


def test_only_the_newest_generation_of_a_pool_counts_and_only_when_it_is_whole() -> None:
    old = resource_slice("s1", [device("gpu-0"), device("gpu-1")])
    new = resource_slice("s2", [device("gpu-0")], generation=2, of=2)
    rest = resource_slice("s3", [device("gpu-2")], generation=2, of=2)
    assert fits(cluster(old, new)) == 0
    assert fits(cluster(old, new, rest)) == 2


def test_pool_with_two_devices_of_one_name_is_not_trusted() -> None:
    twice = [resource_slice(f"s{index}", [device("gpu-0")], of=2) for index in range(2)]
    assert fits(cluster(*twice)) == 0


def test_tainted_device_is_not_free() -> None:
    broken = device("gpu-1", taints=[{"key": "xid", "effect": "NoSchedule"}])
    noted = device("gpu-2", taints=[{"key": "xid", "effect": "None"}])
    assert fits(cluster(resource_slice("s1", [device("gpu-0"), broken, noted]))) == 2


def test_devices_of_a_node_that_takes_no_pods_are_not_counted() -> None:
    slices = [resource_slice("s1", [device("gpu-0")]), resource_slice("s2", [device("gpu-0")], "gpu-2")]
    assert fits(cluster(*slices, nodes=[node("gpu-1", 0), node("gpu-2", 0, unschedulable=True)])) == 1
    assert fits(cluster(*slices, nodes=[node("gpu-1", 0, ready=False)])) == 0


def test_devices_that_several_nodes_can_reach_are_there_once() -> None:
    fabric = resource_slice("s1", [device("gpu-0"), device("gpu-1")], pool="fabric", allNodes=True)
    assert fits(cluster(fabric)) == 2
    rack = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["b", "c"]}]}]}
    racked = resource_slice("s1", [device("gpu-0")], pool="rack", nodeSelector=rack)
    assert fits(cluster(racked)) == 1
    assert fits(cluster(racked, nodes=[node("gpu-1", 0)])) == 0


def test_each_device_may_say_itself_who_can_reach_it() -> None:
    devices = [device("gpu-0", nodeName="gpu-1"), device("gpu-1", nodeName="gone"), device("gpu-2", allNodes=True)]
    made = cluster(resource_slice("s1", devices, pool="mixed", perDeviceNodeSelection=True))
    assert fits(made) == 2
    assert fits(made, claiming(2)) == 1


def test_reach_of_a_kind_that_is_not_known_reaches_nobody() -> None:
    told = resource_slice("s1", [device("gpu-0")])
    del told["spec"]["nodeName"]
    assert fits(cluster(told)) == 0


def partitions(*held: str) -> ClusterState:
    """Make a GPU of 8 slices of memory that may be had whole or in parts of 2."""
    counters = {"sharedCounters": [{"name": "gpu-0", "counters": {"memory": {"value": "8"}}}]}

    def cut(name: str, product: str, memory: int) -> Raw:
        taken = [{"counterSet": "gpu-0", "counters": {"memory": {"value": str(memory)}}}]
        return device(name, product, consumesCounters=taken)

    devices = [cut("whole", "full", 8), *(cut(f"part-{index}", "quarter", 2) for index in range(7))]
    slices = [resource_slice("s1", devices, of=2), resource_slice("s2", [], of=2, **counters)]
    return cluster(*slices, claims=[claim("held", *held)] if held else [])


def product(name: str) -> ReplicaShape:
    return claiming(1, f'device.attributes["{DRIVER}"].productName == "{name}"')


@pytest.mark.parametrize(
    ("held", "whole", "parts"),
    [((), 1, 4), (("part-0",), 0, 3), (("whole",), 0, 0), (("part-0", "part-1", "part-2"), 0, 1), (("stray",), 0, 0)],
)
def test_partitions_of_a_device_share_what_it_has(held, whole, parts) -> None:
    assert fits(partitions(*held), product("full")) == whole
    assert fits(partitions(*held), product("quarter")) == parts


def test_gpus_are_cut_one_by_one() -> None:
    """Of two GPUs one may be had in parts while the other is whole; a third way of cutting is not counted on."""

    def cut(gpu: int, name: str, product: str, memory: int) -> Raw:
        taken = [{"counterSet": f"set-{gpu}", "counters": {"memory": {"value": str(memory)}}}]
        return device(f"gpu-{gpu}-{name}", product, consumesCounters=taken)

    ways = (("whole", "full", 8), *((f"part-{index}", "quarter", 2) for index in range(4)))
    sets = [{"name": f"set-{gpu}", "counters": {"memory": {"value": "8"}}} for gpu in (0, 1)]
    devices = [cut(gpu, *way) for gpu in (0, 1) for way in ways]
    made = cluster(resource_slice("s1", devices, of=2), resource_slice("s2", [], of=2, sharedCounters=sets))
    assert [fits(made, product(name)) for name in ("full", "quarter")] == [2, 8]
    room = ClusterCapacity(made.observation(NAME, AT))
    room.take(product("full"), 1)
    assert [room.count(product(name), 99) for name in ("full", "quarter")] == [1, 4]
    both = replace(product("full"), devices=(*product("full").devices, *product("quarter").devices))
    assert fits(made, both) == 1


def test_slices_of_older_versions_of_the_api_are_read() -> None:
    flat = device("gpu-0")
    deep = {"name": flat.pop("name"), "basic": flat}
    assert fits(cluster(resource_slice("s1", [deep])), product("H100")) == 1


def test_classes_select_by_what_devices_are() -> None:
    made = cluster(resource_slice("s1", [device("gpu-0"), device("mig-0", type_="mig")]))
    made.apply(
        Resource.CLASSES, device_class("large", f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("1Ti"))')
    )
    assert fits(made) == 1
    assert fits(made, claiming(of="large")) == 0


def channels(node: str) -> Raw:
    """Make the slice in which NVIDIA's ComputeDomain driver has the one channel, and the daemon, of a node."""
    made = resource_slice(f"{node}-imex", [], node)
    made["spec"] |= {
        "driver": IMEX,
        "devices": [
            {"name": f"{kind}-0", "attributes": {"type": {"string": kind}, "id": {"int": 0}}}
            for kind in ("channel", "daemon")
        ],
    }
    return made


def test_channel_of_a_compute_domain_is_chosen_by_its_number() -> None:
    """The class is as in deployments/helm of https://github.com/NVIDIA/k8s-dra-driver-gpu at 2240711."""
    chosen = f"device.driver == '{IMEX}' && {IMEX_TYPE} == 'channel'"
    numbered = f"{chosen} && device.attributes['{IMEX}'].id == "
    made = cluster(channels("gpu-1"), channels("gpu-2"))
    made.apply(Resource.CLASSES, device_class("default-channel", f"{numbered}0"))
    assert fits(made, claiming(of="default-channel")) == 2
    made.apply(Resource.CLASSES, device_class("default-channel", f"{numbered}1"))
    assert fits(made, claiming(of="default-channel")) == 0


def test_devices_are_told_apart_by_what_a_class_names_and_by_nothing_else() -> None:
    made = cluster(resource_slice("s1", [device(f"gpu-{index}") for index in range(3)]))
    assert [len(node.devices) for node in seen_nodes(made)] == [1, 0]
    by_uuid = f"device.attributes['{DRIVER}'].uuid == 'GPU-gpu-1'"
    made.apply(Resource.CLASSES, device_class("favourite", by_uuid))
    assert [len(node.devices) for node in seen_nodes(made)] == [3, 0]
    assert fits(made, claiming(of="favourite")) == 1


# extended resources that a DeviceClass stands behind (KEP-5004)


def gpu_class(name: str = DRIVER, created: str = "", *expressions: str) -> Raw:
    made = device_class(name, *expressions)
    made["metadata"]["creationTimestamp"] = created
    made["spec"]["extendedResourceName"] = GPU
    return made


def requesting(count: int) -> ReplicaShape:
    return ReplicaShape(requests=Resources(amounts={GPU: Quantity(count * ONE)}))


def test_gpus_that_pods_request_by_number_are_devices_of_the_class_behind_them() -> None:
    made = cluster(resource_slice("s1", [device(f"gpu-{index}") for index in range(5)]), claims=[claim("c", "gpu-3")])
    assert fits(made, requesting(1)) == 0
    made.apply(Resource.CLASSES, gpu_class())
    assert fits(made, requesting(1)) == 4
    assert fits(made, requesting(2)) == 2


def test_a_node_with_a_device_plugin_gives_its_own_gpus_and_the_others_claimed_ones() -> None:
    """A plugin that has given out all it has leaves nothing to claims (filterExtendedResources)."""
    nodes = [node("gpu-1", 0), node("gpu-2", 3), node("gpu-3", 2)]
    slices = [resource_slice(f"s{index}", [device("gpu-0"), device("gpu-1")], f"gpu-{index}") for index in (1, 2, 3)]
    made = cluster(*slices, nodes=nodes)
    made.apply(Resource.CLASSES, gpu_class())
    made.apply(Resource.PODS, pod("a", "gpu-3", gpus=2))
    assert fits(made, requesting(1)) == 2 + 3
    room = ClusterCapacity(made.observation(NAME, AT))
    room.take(requesting(1), 4)
    assert room.count(requesting(1), 99) == 1
    assert room.count(claiming(), 99) == 2 + 2  # those of gpu-1 were taken, and of gpu-2 its plugin's


def test_a_node_whose_plugin_gives_all_that_is_requested_takes_no_pod_that_claims_devices_as_well() -> None:
    """The scheduler of Kubernetes 1.36 fails to bind such a pod, as tests/e2e/test_nvidia_devices_e2e.py shows."""
    slices = [channels("gpu-1"), channels("gpu-2"), resource_slice("s1", [device("gpu-0")], "gpu-1")]
    made = cluster(*slices, nodes=[node("gpu-1", 0), node("gpu-2", 4)])
    made.apply(Resource.CLASSES, gpu_class())
    made.apply(Resource.CLASSES, device_class("channel", f"{IMEX_TYPE} == 'channel'"))
    channel = DeviceRequest(options=(DeviceOption(device_class="channel"),))
    assert fits(made, replace(requesting(1), devices=(channel,))) == 0  # of GPUs there is no `type` of a channel
    made.apply(Resource.CLASSES, device_class("channel", f"device.driver == '{IMEX}' && {IMEX_TYPE} == 'channel'"))
    assert fits(made, replace(requesting(1), devices=(channel,))) == 1
    assert fits(made, requesting(1)) == 1 + 4


def test_newest_class_stands_behind_a_resource() -> None:
    made = cluster(resource_slice("s1", [device("gpu-0")]), nodes=[node("gpu-1", 0)])
    made.apply(Resource.CLASSES, gpu_class("a", "2026-11-20T10:00:00Z", "device.driver == 'none.example.com'"))
    made.apply(Resource.CLASSES, gpu_class("b", "2026-11-21T10:00:00Z"))
    assert fits(made, requesting(1)) == 1
    made.apply(Resource.CLASSES, gpu_class("c", "2026-11-21T10:00:00Z", "device.driver == 'none.example.com'"))
    assert fits(made, requesting(1)) == 1


def test_lack_of_devices_behind_a_resource_is_told_in_gpus() -> None:
    made = cluster(resource_slice("s1", [device("gpu-0"), device("gpu-1")]))
    made.apply(Resource.CLASSES, gpu_class())
    room = ClusterCapacity(made.observation(NAME, AT))
    assert room.shortfall(requesting(4)) == "needs 4 GPUs on one node, largest has 2 GPUs free (2 GPUs over 2 nodes)"
    assert room.free(requesting(1)).amounts == {GPU: 2 * ONE}


# what a workload asks for


def asked(*templates: Raw, claims: list[Raw] | None = None, held: bool = True, **spec: object) -> ReplicaShape:
    made = ClusterState(frozenset({ANY}))
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}] if claims is None else claims
    for one in templates:
        made.apply(Resource.TEMPLATES, one)
    controller = workload("vllm", 1)
    if held:
        owner = ("Deployment", "vllm")
        made.apply(Resource.PODS, pod("a", waits=NO_GPU, gpus=0, owner=owner, resourceClaims=claims, **spec))
    else:
        controller["spec"]["template"]["spec"] |= {"resourceClaims": claims, **spec}
    made.apply(Resource.DEPLOYMENTS, controller)
    (found,) = made.observation(NAME, AT).workloads
    assert found.shape is not None
    return found.shape


@pytest.mark.parametrize("held", [True, False])
def test_claims_are_read_from_their_template(held) -> None:
    shape = asked(claim_template(exactly(2, "device.x"), exactly(allocationMode="All", count=0)), held=held)
    assert shape.devices == (
        DeviceRequest(options=(DeviceOption(device_class=DRIVER, selectors=("device.x",), count=2),)),
        DeviceRequest(options=(DeviceOption(device_class=DRIVER, every=True),)),
    )
    assert shape.obstacle == ""


def test_alternatives_are_kept_in_their_order() -> None:
    either = {"firstAvailable": [exactly(of="large")["exactly"], exactly(2, of="small")["exactly"]]}
    (request,) = asked(claim_template(either)).devices
    assert [(one.device_class, one.count) for one in request.options] == [("large", 1), ("small", 2)]


def test_templates_of_older_versions_of_the_api_are_read() -> None:
    (request,) = asked(claim_template(exactly(3)["exactly"])).devices
    assert request.options[0].count == 3


def test_class_that_is_requested_as_a_resource_is_a_claim() -> None:
    limits = {"limits": {f"deviceclass.resource.kubernetes.io/{DRIVER}": "2", "cpu": "1"}}
    shape = asked(claims=[], containers=[{"resources": limits}])
    assert shape.requests.amounts == {"cpu": ONE}
    assert shape.devices == (DeviceRequest(options=(DeviceOption(device_class=DRIVER, count=2),)),)


@pytest.mark.parametrize(
    ("templates", "claims", "obstacle"),
    [
        ([], None, "claims devices by the ResourceClaimTemplate gpus, which is not known"),
        ([claim_template(exactly(), namespace="other")], None, "claims devices by the ResourceClaimTemplate gpus"),
        ([], [{"name": "gpu", "resourceClaimName": "one"}], "shares the ResourceClaim one between its pods"),
        ([claim_template(exactly(adminAccess=True))], None, "claims admin access"),
        ([claim_template(exactly(capacity={"requests": {"memory": "8Gi"}}))], None, "claims a part of a device"),
        ([claim_template(exactly(allocationMode="Some"))], None, "claims devices in a way that is not known here"),
        (
            [claim_template(exactly(2), constraints=[{"matchAttribute": "resource.kubernetes.io/pcieRoot"}])],
            None,
            "claims devices that must have an attribute in common",
        ),
    ],
)
def test_claims_that_cannot_be_counted_fit_nowhere_and_say_why(templates, claims, obstacle) -> None:
    shape = asked(*templates, claims=claims)
    assert shape.obstacle.startswith(obstacle)
    made = cluster(resource_slice("s1", [device("gpu-0")]))
    assert fits(made, shape) == 0
    assert ClusterCapacity(made.observation(NAME, AT)).shortfall(shape) == shape.obstacle


def test_template_that_comes_later_makes_the_claim_countable() -> None:
    made = ClusterState(frozenset({ANY}))
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]}
    made.apply(Resource.PODS, pod("a", waits=NO_GPU, owner=("Deployment", "vllm"), **spec))
    assert made.apply(Resource.TEMPLATES, claim_template(exactly())) is ChangeEffect.DEMAND
    (found,) = made.observation(NAME, AT).workloads
    assert found.shape is not None
    assert found.shape.obstacle == ""
    assert made.follow({WorkloadRef(namespace="other", name="x")})
    assert made.apply(Resource.TEMPLATES, claim_template(exactly(2))) is ChangeEffect.NOTHING


def shortage() -> ClusterState:
    """Make a primary in which a pod waits for two GPUs that it claims."""
    made = ClusterState(frozenset({ANY}))
    made.apply(Resource.TEMPLATES, claim_template(exactly(2)))
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]}
    waits = "0/1 nodes are available: 1 cannot allocate all claims."
    made.apply(Resource.PODS, pod("a", waits=waits, gpus=0, owner=("Deployment", "vllm"), **spec))
    return made


@pytest.mark.parametrize(
    ("free_there", "told"),
    [
        (3, f"worker-2 chosen: 3 {DRIVER} devices free, 64 cpu free, 1 replica fits."),
        (1, f"worker-2 refused: needs 2 {DRIVER} devices on one node, largest has 1 {DRIVER} device free"),
    ],
)
def test_claims_that_cannot_be_met_at_home_are_met_elsewhere_or_told(free_there, told) -> None:
    away = cluster(
        resource_slice("s1", [device(f"gpu-{index}") for index in range(free_there)]), nodes=[node("gpu-1", 0)]
    )
    third = cluster(resource_slice("s1", [device("gpu-0"), device("gpu-1")]))
    seen = [
        one.observation(name, AT)
        for one, name in ((shortage(), NAME), (away, TWO_NAME), (third, ClusterName("worker-3")))
    ]
    (change,) = plan(*seen).changes
    text = " ".join(message(change, source=SOURCE).split())
    assert f"1 pod unschedulable on worker-1 for 5m ({DRIVER}): cannot allocate all claims." in text
    assert told in text


# our own pods


def ours(name: str = "a", *, made: bool = True) -> Raw:
    raw = pod(name, "gpu-1", labels=OURS, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpus"}])
    if made:
        raw["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]
    return raw


def test_pod_of_ours_counts_as_seen_once_its_devices_are_seen_taken() -> None:
    """Until then they look free, and so it has to count as in flight."""
    made = cluster(resource_slice("s1", [device("gpu-0")]))
    made.apply(Resource.PODS, ours())
    assert made.observation(NAME, AT).bound == {}
    made.apply(Resource.CLAIMS, claim("a-gpu", "gpu-0"))
    assert made.observation(NAME, AT).bound == {"burst-1": 1}
    made.apply(Resource.PODS, ours("b", made=False))
    assert made.observation(NAME, AT).bound == {"burst-1": 1}
    made.remove(Resource.PODS, "demo/a")
    made.remove(Resource.PODS, "demo/b")
    assert made.observation(NAME, AT).bound == {}


def test_claim_that_a_pod_turned_out_not_to_need_is_not_waited_for() -> None:
    raw = ours()
    raw["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": None}]
    made = cluster()
    made.apply(Resource.PODS, raw)
    assert made.observation(NAME, AT).bound == {"burst-1": 1}


def test_without_sight_of_claims_no_device_is_free_and_our_pods_count_as_ever() -> None:
    made = cluster(resource_slice("s1", [device("gpu-0")]))
    made.apply(Resource.PODS, ours())
    seen_less = made.observation(NAME, AT, frozenset({Resource.CLAIMS}))
    assert ClusterCapacity(seen_less).count(claiming(), 9) == 0
    assert seen_less.bound == {"burst-1": 1}


def offer(clusters: Fleet) -> None:
    clusters.two.put("resourceslices", resource_slice("s1", [device("gpu-0"), device("gpu-1")]))
    clusters.two.put("deviceclasses", device_class())
    clusters.two.put("resourceclaims", claim("a", "gpu-0"))


def free(view) -> int:
    return ClusterCapacity(seen(view, TWO_NAME)).count(claiming(), 9)


def test_devices_are_watched_in_every_cluster(clusters: Fleet) -> None:
    offer(clusters)
    view = clusters.following()
    assert free(view) == 1
    clusters.two.delete("resourceclaims", "a", "demo")
    until(lambda: free(view) == 2)


@pytest.mark.parametrize("plural", ["resourceslices", "resourceclaims", "deviceclasses"])
@pytest.mark.parametrize("status", [403, 404, 500])
def test_devices_count_only_while_all_about_them_is_known(clusters: Fleet, plural, status) -> None:
    offer(clusters)
    clusters.two.refuses[f"/{plural}"] = status
    view = clusters.following()
    until(lambda: free(view) == 0)
    assert seen(view, TWO_NAME).pools
    clusters.two.refuses.clear()
    until(lambda: free(view) == 1)


def test_older_version_of_the_api_will_do(clusters: Fleet) -> None:
    offer(clusters)
    for plural in ("resourceslices", "resourceclaims", "deviceclasses"):
        clusters.two.refuses[f"/apis/resource.k8s.io/v1/{plural}"] = 404
    assert free(clusters.following()) == 1
