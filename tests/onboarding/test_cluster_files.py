"""A Cluster file says what the API server tells, and where each line comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.core.onboarding.cluster_files import cluster_file
from reconciler.core.onboarding.context_reading import ContextReading, EngineSighting, KubeContext
from reconciler.core.onboarding.discovered_cluster import DiscoveredCluster, discovered_clusters
from reconciler.core.onboarding.engine_choice import ClusterEngine
from reconciler.errors import Bug
from reconciler.model.policy import EngineName
from tests.builders.kube_objects import node

H100 = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "topology.kubernetes.io/region": "eu-west-1",
    "topology.kubernetes.io/zone": "eu-west-1a",
    "node.kubernetes.io/instance-type": "p5.48xlarge",
    "karpenter.sh/capacity-type": "spot",
}
FLUX = ClusterEngine(name=EngineName.FLUX, because="Flux runs in worker-2, in namespace flux-system")


def context(name: str, server: str = "", *, current: bool = False) -> KubeContext:
    return KubeContext(name=name, server=server or f"https://{name}", current=current)


def reading(name: str, *nodes: dict[str, Any], server: str = "", current: bool = False, **more: Any) -> ContextReading:
    values = {"version": "v1.37.0", **more}
    return ContextReading(context=context(name, server, current=current), nodes=nodes, **values)


def clusters(*readings: ContextReading) -> tuple[DiscoveredCluster, ...]:
    bugs: list[Bug] = []
    found = discovered_clusters(readings, bugs.append)
    assert not bugs
    return found


def amd(name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    raw = node(name, labels=labels)
    raw["status"]["allocatable"] = {"cpu": "64", "amd.com/gpu": "8"}
    return raw


def test_each_line_says_where_its_value_comes_from() -> None:
    (cluster,) = clusters(
        reading(
            "arn:aws:eks:eu-west-1:012345678901:cluster/worker-2",
            node("a", labels=H100),
            node("b", labels=H100),
            node("c", 0, labels={**H100, "topology.kubernetes.io/zone": "eu-west-1b"}),
        )
    )
    assert cluster_file(cluster, FLUX, primary=False) == (
        """\
# yaml-language-server: $schema=../schemas/Cluster.json
# Kubernetes v1.37.0; 3 nodes, 2 with GPUs: 16 NVIDIA-H100-80GB-HBM3.
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata:
  name: worker-2 # made of the name of its context; its placements are in clusters/worker-2 of the output branch
  labels: # what policies select clusters by
    region: eu-west-1 # topology.kubernetes.io/region of 3 nodes
    # zone: not one but eu-west-1a (2) and eu-west-1b (1), by topology.kubernetes.io/zone.
    gpu: NVIDIA-H100-80GB-HBM3 # nvidia.com/gpu.product of 2 nodes
    instance-type: p5.48xlarge # node.kubernetes.io/instance-type of 2 nodes
    capacity: spot # karpenter.sh/capacity-type of 2 nodes
spec:
  connection: # how the daemon reaches its API server
    context: "arn:aws:eks:eu-west-1:012345678901:cluster/worker-2" # in the daemon's kubeconfig; its login worked
  engine: flux # Flux runs in worker-2, in namespace flux-system
  availability: Active # takes bursts; Cordoned takes no new ones, Draining gives back
  # pricePerGPUHour: 2.50, in dollars, is for policies that go by price; no API server tells it.
"""
    )


def test_a_cluster_that_does_not_answer_is_cordoned_with_the_reason() -> None:
    (cluster,) = clusters(reading("worker-4", trouble="cannot be reached: Connect call failed", version=""))
    assert cluster_file(cluster, None, primary=False) == (
        """\
# yaml-language-server: $schema=../schemas/Cluster.json
# It did not answer: cannot be reached: Connect call failed.
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata:
  name: worker-4 # as its context is called; its placements are in clusters/worker-4 of the output branch
spec:
  connection: # how the daemon reaches its API server
    context: worker-4 # in the daemon's kubeconfig; its login did not work when this was written
  availability: Cordoned # takes no bursts, for it did not answer; Active once `overspill status` sees it
  # pricePerGPUHour: 2.50, in dollars, is for policies that go by price; no API server tells it.
"""
    )


def test_nodes_that_may_not_be_listed_leave_the_cluster_active() -> None:
    (cluster,) = clusters(reading("a", unlisted="forbids it: nodes is forbidden"))
    text = cluster_file(cluster, FLUX, primary=False)
    assert "\n# Kubernetes v1.37.0; its nodes are not known: forbids it: nodes is forbidden.\n" in text
    assert "  availability: Active #" in text


def test_models_of_amd_are_known_by_its_labels() -> None:
    (cluster,) = clusters(reading("a", amd("n", {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"})))
    assert cluster.label("gpu") == "AMD_Instinct_MI300X_OAM"
    assert cluster.gpu_summary == "8 AMD_Instinct_MI300X_OAM"


def test_gpus_without_a_model_are_counted_by_their_resource() -> None:
    (cluster,) = clusters(reading("a", node("n")))
    assert (cluster.gpu_summary, cluster.label("gpu")) == ("8 nvidia.com/gpu", "")


def test_several_models_are_no_label() -> None:
    (cluster,) = clusters(
        reading("a", node("n", labels=H100), node("m", 4, labels={"nvidia.com/gpu.product": "NVIDIA-L40S"}))
    )
    assert cluster.gpu_summary == "8 NVIDIA-H100-80GB-HBM3 and 4 NVIDIA-L40S"
    text = cluster_file(cluster, None, primary=False)
    assert "    # gpu: not one but NVIDIA-H100-80GB-HBM3 (1) and NVIDIA-L40S (1), by nvidia.com/gpu.product.\n" in text


def test_nodes_without_the_label_of_spot_nodes_are_on_demand_where_others_have_it() -> None:
    spot = node("s", labels={"cloud.google.com/gke-spot": "true"})
    (cluster,) = clusters(reading("a", spot, node("n")))
    assert cluster.label("capacity") == ""
    (cluster,) = clusters(reading("a", spot))
    assert cluster.label("capacity") == "spot"
    (cluster,) = clusters(reading("a", node("n")))
    assert not cluster.labels


def test_contexts_with_one_address_are_one_cluster_by_the_one_that_answers() -> None:
    (cluster,) = clusters(
        reading("old", server="https://a", trouble="does not take our credentials"), reading("new", server="https://a")
    )
    assert (cluster.name, cluster.others, cluster.trouble) == ("new", ("old",), "")
    assert "its login worked; old leads to the same API server" in cluster_file(cluster, None, primary=False)


def test_of_contexts_for_one_cluster_that_of_kubectl_is_taken() -> None:
    (cluster,) = clusters(reading("a", server="https://a"), reading("b", server="https://a", current=True))
    assert (cluster.name, cluster.others) == ("b", ("a",))


def test_two_addresses_of_one_cluster_are_known_by_its_uid() -> None:
    assert [cluster.name for cluster in clusters(reading("in", uid="1"), reading("out", uid="1"))] == ["in"]
    assert len(clusters(reading("a", uid="1"), reading("b", uid="2"))) == 2


def test_two_clusters_behind_one_address_are_told_apart_by_their_uid() -> None:
    assert len(clusters(reading("a", server="https://p", uid="1"), reading("b", server="https://p", uid="2"))) == 2


@pytest.mark.parametrize(
    ("contexts", "names"),
    [
        (["worker-1"], ["worker-1"]),
        (["arn:aws:eks:eu-west-1:012345678901:cluster/gpu"], ["gpu"]),
        (["gke_acme-prod_europe-west4_gpu"], ["gpu"]),
        (["ann@gpu.eu-west-1.eksctl.io"], ["gpu"]),
        (["kubernetes-admin@gpu"], ["gpu"]),
        (["gke_a_eu_gpu", "gke_a_us_gpu"], ["gke-a-eu-gpu", "gke-a-us-gpu"]),
        (["GPU Cluster!", "gpu.cluster"], ["gpu-cluster", "gpu-cluster-2"]),
        (["x" * 70, "x" * 71], ["x" * 63, f"{'x' * 61}-2"]),
        (["???"], ["cluster"]),
    ],
)
def test_clusters_are_named_after_contexts_as_short_as_they_differ(contexts: list[str], names: list[str]) -> None:
    assert [cluster.name for cluster in clusters(*map(reading, contexts))] == names


def test_a_node_that_cannot_be_read_costs_the_labels_of_its_cluster_alone() -> None:
    bugs: list[Bug] = []
    odd, sound = discovered_clusters(
        [reading("odd", {"status": {}}), reading("sound", node("n", labels=H100))], bugs.append
    )
    assert [bug.item for bug in bugs] == ["cluster odd"]
    assert (odd.nodes, odd.unlisted != "", sound.label("region")) == (0, True, "eu-west-1")


def test_the_primary_needs_no_engine() -> None:
    (cluster,) = clusters(reading("a", engines={EngineName.FLUX: EngineSighting()}))
    assert "# engine: none was seen here" in cluster_file(cluster, None, primary=True)
    assert "# engine:" not in cluster_file(cluster, FLUX, primary=True)
