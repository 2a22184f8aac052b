"""The objects of GPU platforms are deployed as they are written, and what their pods need is needed of the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.core.safety.rules import check_safety
from reconciler.core.workloads.api_kinds import PLATFORM_SCOPED
from reconciler.model.capacity import ClusterObservation, Node, Pool
from reconciler.model.ids import ClusterName
from reconciler.model.policy import EngineName
from reconciler.model.units import Resources, parse_quantity
from reconciler.model.workload import Json
from reconciler.text.wording import is_gpu
from tests.builders.deploy_specs import WORKSPACE, files, spec
from tests.builders.inputs import NOW
from tests.builders.platform_objects import deployment, needed, obj

POD: Json = {"containers": [{"name": "trainer", "image": "registry.example.com/trainer:1"}]}
GROUP = {"minMember": 4, "queue": "research", "networkTopology": {"mode": "soft"}}
TASKS = [{"name": "worker", "replicas": 4, "template": {"spec": {**POD, "schedulerName": "volcano"}}}]
DEVICES = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}
NETWORKS = "rdma-a, fabric/rdma-b@net1"

SAMPLES: dict[str, tuple[list[Json], dict[str, list[str]]]] = {
    "Volcano's pods": (
        [
            deployment(
                {"schedulerName": "volcano"},
                metadata={
                    "annotations": {
                        "scheduling.k8s.io/group-name": "model",
                        "scheduling.volcano.sh/queue-name": "research",
                    }
                },
            )
        ],
        {"schedulers": ["volcano"], "queues": ["research"], "podGroups": ["ml/model"]},
    ),
    "Volcano's PodGroup": (
        [
            obj("scheduling.volcano.sh/v1beta1", "PodGroup", spec=GROUP),
            deployment(
                {"schedulerName": "volcano"}, metadata={"annotations": {"scheduling.k8s.io/group-name": "model"}}
            ),
        ],
        {"kinds": ["scheduling.volcano.sh/PodGroup"], "schedulers": ["volcano"], "queues": ["research"]},
    ),
    "Volcano's Job": (
        [obj("batch.volcano.sh/v1alpha1", "Job", spec={"minAvailable": 4, "queue": "research", "tasks": TASKS})],
        {"kinds": ["batch.volcano.sh/Job"], "schedulers": ["volcano"], "queues": ["research"]},
    ),
    "Volcano's Queue": (
        [
            {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "research"}},
            obj("batch.volcano.sh/v1alpha1", "Job", spec={"queue": "research", "tasks": TASKS}),
        ],
        {"kinds": ["batch.volcano.sh/Job", "scheduling.volcano.sh/Queue"], "schedulers": ["volcano"]},
    ),
    "KAI's pods": (
        [
            deployment(
                {"schedulerName": "kai-scheduler"},
                metadata={
                    "labels": {"kai.scheduler/queue": "research"},
                    "annotations": {"kai.scheduler/topology": "racks"},
                },
            )
        ],
        {"schedulers": ["kai-scheduler"], "queues": ["research"], "topologies": ["racks"]},
    ),
    "KAI's PodGroup": (
        [obj("scheduling.run.ai/v2alpha2", "PodGroup", spec={"minMember": 4, "queue": "research"})],
        {"kinds": ["scheduling.run.ai/PodGroup"], "queues": ["research"]},
    ),
    "Kueue's labels": (
        [
            obj(
                "batch/v1",
                "Job",
                spec={"suspend": True, "template": {"spec": POD}},
                labels={"kueue.x-k8s.io/queue-name": "research", "kueue.x-k8s.io/priority-class": "high"},
            )
        ],
        {"queues": ["ml/research"], "priorityClasses": ["high"]},
    ),
    "Kueue's LocalQueue": (
        [
            obj("kueue.x-k8s.io/v1beta1", "LocalQueue", "research", {"clusterQueue": "gpus"}),
            obj("batch/v1", "Job", spec={"template": {"spec": POD}}, labels={"kueue.x-k8s.io/queue-name": "research"}),
        ],
        {"kinds": ["kueue.x-k8s.io/LocalQueue"]},
    ),
    "secondary networks": (
        [deployment(metadata={"annotations": {"k8s.v1.cni.cncf.io/networks": NETWORKS}})],
        {"networks": ["fabric/rdma-b", "ml/rdma-a"]},
    ),
    "secondary networks in JSON": (
        [
            deployment(
                metadata={
                    "annotations": {
                        "k8s.v1.cni.cncf.io/networks": '[{"name": "a"}, {"name": "b", "namespace": "fabric"}]'
                    }
                }
            )
        ],
        {"networks": ["fabric/b", "ml/a"]},
    ),
    "a claim template": (
        [
            obj("resource.k8s.io/v1", "ResourceClaimTemplate", spec={"spec": DEVICES}),
            deployment({"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "model"}]}),
        ],
        {"deviceClasses": ["gpu.nvidia.com"]},
    ),
    "an NVLink domain": (
        [
            obj(
                "resource.nvidia.com/v1beta1",
                "ComputeDomain",
                spec={"numNodes": 4, "channel": {"resourceClaimTemplate": {"name": "imex"}}},
            ),
            deployment({"resourceClaims": [{"name": "imex", "resourceClaimTemplateName": "imex"}]}),
        ],
        {"kinds": ["resource.nvidia.com/ComputeDomain"]},
    ),
    "a Multus network": (
        [
            obj("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", "rdma-a", {"config": "{}"}),
            deployment(metadata={"annotations": {"k8s.v1.cni.cncf.io/networks": "rdma-a"}}),
        ],
        {"kinds": ["k8s.cni.cncf.io/NetworkAttachmentDefinition"]},
    ),
    "topology constraints": (
        [
            obj(
                "batch/v1",
                "Job",
                spec={
                    "template": {
                        "metadata": {"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}},
                        "spec": {
                            **POD,
                            "affinity": {
                                "podAffinity": {
                                    "requiredDuringSchedulingIgnoredDuringExecution": [
                                        {"topologyKey": "nvidia.com/gpu.clique", "labelSelector": {}}
                                    ]
                                }
                            },
                        },
                    }
                },
            )
        ],
        {},
    ),
}


@pytest.mark.parametrize("engine", [*EngineName])
@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_written_is_what_is_deployed(name: str, engine: EngineName) -> None:
    objects, _ = SAMPLES[name]
    made = files(spec(*((f"part-{number}", one) for number, one in enumerate(objects))), engine)
    documents = [one for data in made.values() for one in yaml.safe_load_all(data)]
    for one in objects:
        (found,) = (
            it
            for it in documents
            if "metadata" in it
            and (it["kind"], it["metadata"]["name"]) == (one["kind"], one["metadata"]["name"])
            and it["apiVersion"] == one["apiVersion"]
        )
        assert holds(found, one), found


def holds(found: Any, written: Any) -> bool:
    """Tell whether all that is written is there; labels and annotations of ours may have joined it."""
    if isinstance(written, dict):
        return isinstance(found, dict) and all(key in found and holds(found[key], it) for key, it in written.items())
    if isinstance(written, list):
        return isinstance(found, list) and len(found) == len(written) and all(map(holds, found, written))
    return bool(found == written)


@pytest.mark.parametrize("name", SAMPLES)
def test_what_it_needs_of_a_cluster_is_known(name: str) -> None:
    objects, expected = SAMPLES[name]
    assert needed(*objects) == expected


@pytest.mark.parametrize("kind", sorted(PLATFORM_SCOPED))
def test_what_bounds_all_tenants_comes_with_a_template_only_where_its_workspace_allows_it(kind: str) -> None:
    group, _, name = kind.partition("/")
    made = spec(("queue", {"apiVersion": f"{group}/v1", "kind": name, "metadata": {"name": "research"}}))
    (wrong,) = check_safety(made, WORKSPACE)
    assert wrong.message == f"{name} belongs to the whole cluster, which templates may not"
    allowed = replace(WORKSPACE, allowed_kinds=(kind,))
    assert check_safety(made, allowed) == ()
    (written,) = (
        yaml.safe_load(data)
        for path, data in files(made, EngineName.MANIFESTS, workspace=allowed).items()
        if "research" in path
    )
    assert "namespace" not in written["metadata"]


COUNTED = (
    "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb", "amd.com/gpu",
    "amd.com/cpx_nps4", "gpu.intel.com/i915", "gpu.intel.com/xe",
)  # fmt: skip # a list of words, filled line by line
OTHERS = (
    "rdma/hca_shared_devices_a", "rdma/rdma_shared_device_a", "nvidia.com/hostdev", "nvidia.com/rdma_rail_0",
    "openshift.io/mellanoxnics", "habana.ai/gaudi", "google.com/tpu", "aws.amazon.com/neuron", "vpc.amazonaws.com/efa",
)  # fmt: skip # a list of words, filled line by line


@pytest.mark.parametrize("resource", [*COUNTED, *OTHERS])
def test_whatever_a_device_plugin_offers_is_counted_node_by_node(resource: str) -> None:
    shape = replica_shape({"containers": [{"name": "a", "resources": {"limits": {resource: "2"}}}]})
    nodes = tuple(
        Node(name=f"node-{number}", free=Resources(amounts={resource: parse_quantity(str(free))}))
        for number, free in enumerate((3, 1, 4))
    )
    room = ClusterCapacity(
        ClusterObservation(cluster=ClusterName("worker-2"), observed_at=NOW, pools=(Pool(name="gpu", nodes=nodes),))
    )
    assert room.count(shape, 10) == 3
    assert is_gpu(resource) is (resource in COUNTED)


def test_a_slice_of_one_size_is_no_slice_of_another_and_no_whole_gpu() -> None:
    shape = replica_shape({"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/mig-1g.10gb": "1"}}}]})
    amounts = {"nvidia.com/mig-3g.40gb": parse_quantity("4"), "nvidia.com/gpu": parse_quantity("8")}
    pool = Pool(name="gpu", nodes=(Node(name="node-0", free=Resources(amounts=amounts)),))
    room = ClusterCapacity(ClusterObservation(cluster=ClusterName("worker-2"), observed_at=NOW, pools=(pool,)))
    assert room.count(shape, 1) == 0
    assert room.shortfall(shape) == "needs 1 nvidia.com/mig-1g.10gb on one node; its only eligible node has none free"
