"""NodePools of Karpenter are read for their limits, what is used of them, and whether nodes are launched for them."""

from __future__ import annotations

import pytest

from reconciler.core.observe.kubernetes.capacity.node_pools import read_node_pool
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource, needed_resources
from reconciler.core.observe.observation_file import read
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.errors import InvalidInput
from reconciler.model.capacity import ClusterObservation
from reconciler.model.cluster import CAPACITY_TYPE_LABEL
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.workload import WorkloadRef
from tests.builders.fleet_files import text
from tests.builders.inputs import GPU, NOW
from tests.builders.node_pools import amounts, node_pool, pool

REF = WorkloadRef(namespace="demo", name="vllm", kind="Deployment")


def observed(state: ClusterState, *unknown: Resource) -> ClusterObservation:
    return state.observation(ClusterName("worker-2"), NOW, frozenset(unknown))


def test_limits_and_what_is_used_of_them_are_read() -> None:
    raw = node_pool(limits={GPU: "16", "cpu": "1k"}, resources={GPU: "8", "cpu": "15500m", "nodes": "1"})
    assert read_node_pool(raw) == pool(amounts(gpu="16", cpu="1000"), amounts(gpu="8", cpu="15.5", nodes="1"))


def test_a_pool_of_no_limits_and_no_nodes_is_read() -> None:
    assert read_node_pool(node_pool()) == pool()


def test_amounts_that_are_none_are_left_out() -> None:
    raw = node_pool(limits={GPU: "many", "cpu": "-1", "memory": "1Ti"})
    assert read_node_pool(raw).limits == amounts(memory="1Ti")


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (
            {"status": "False", "reason": "NodeClassNotReady", "message": "NodeClass default\nis not ready."},
            "is not Ready: NodeClassNotReady: NodeClass default is not ready",
        ),
        (
            {"status": "Unknown", "reason": "AwaitingReconciliation", "message": ""},
            "is not Ready: AwaitingReconciliation",
        ),
        ({"status": "False", "reason": "NodeClassReady", "message": "NodeClassReady"}, "is not Ready: NodeClassReady"),
        ({"status": "False"}, "is not Ready"),
    ],
)
def test_the_reason_is_read_for_which_it_is_not_ready(condition: dict[str, str], words: str) -> None:
    conditions = ({"type": "ValidationSucceeded", "status": "True"}, {"type": "Ready", **condition})
    assert read_node_pool(node_pool(conditions=conditions)).obstacle == words


def test_a_pool_that_nobody_has_looked_at_yet_is_not_ready() -> None:
    assert read_node_pool({"metadata": {"name": "gpu"}, "spec": {}}).obstacle == "is not Ready"


def test_a_pool_that_is_being_deleted_gets_no_nodes() -> None:
    assert read_node_pool(node_pool(deletionTimestamp="2026-11-20T10:00:00Z")).obstacle == "is being deleted"


def test_a_pool_with_a_fixed_number_of_nodes_gets_no_more_for_pods() -> None:
    ready = node_pool(conditions=({"type": "Ready", "status": "True"},))
    assert read_node_pool(ready).obstacle == ""
    fixed = {**ready, "spec": {**ready["spec"], "replicas": 2}}
    assert read_node_pool(fixed).obstacle == "has a fixed number of nodes (spec.replicas)"


TAINT = Taint(key=GPU, value="present", effect="NoSchedule")
TEMPLATE = {
    "metadata": {"labels": {"team": "llm"}},
    "spec": {
        "taints": [{"key": GPU, "value": "present", "effect": "NoSchedule"}],
        "startupTaints": [{"key": "starting", "effect": "NoSchedule"}],
        "requirements": [
            {"key": CAPACITY_TYPE_LABEL, "operator": "In", "values": ["spot"]},
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64", "amd64"]},
            {"key": "kubernetes.io/arch", "operator": "NotIn", "values": ["arm64"]},
            {"key": "zone", "operator": "In", "values": ["b", "a"]},
            {"key": "instance-gpu-count", "operator": "Gt", "values": ["3"]},
        ],
    },
}


def test_taints_labels_and_values_of_the_template_are_read() -> None:
    read_pool = read_node_pool(node_pool(template=TEMPLATE))
    assert read_pool.taints == (TAINT,)
    assert read_pool.labels == {"team": "llm"}
    assert read_pool.requirements == {
        CAPACITY_TYPE_LABEL: ("spot",), "kubernetes.io/arch": ("amd64",), "zone": ("a", "b"),
    }  # fmt: skip # values by label
    assert read_pool.node_labels == {CAPACITY_TYPE_LABEL: "spot", "kubernetes.io/arch": "amd64", "team": "llm"}


def test_pools_are_watched_only_where_they_bound_nodes() -> None:
    assert needed_resources({REF}, node_pools=True) - needed_resources({REF}) == {Resource.NODE_POOLS}


def test_pools_are_observed_and_the_same_object_until_one_changes() -> None:
    state = ClusterState()
    assert state.apply(Resource.NODE_POOLS, node_pool(limits={GPU: "16"})) is ChangeEffect.CAPACITY
    assert state.apply(Resource.NODE_POOLS, node_pool(limits={GPU: "16"})) is ChangeEffect.NOTHING
    first = observed(state).node_pools
    assert first == {"gpu": pool(amounts(gpu="16"))}
    assert observed(state).node_pools is first
    state.apply(Resource.NODE_POOLS, node_pool(limits={GPU: "16"}, resources={GPU: "8"}))
    assert observed(state).node_pools == {"gpu": pool(amounts(gpu="16"), amounts(gpu="8"))}
    state.remove(Resource.NODE_POOLS, "gpu")
    assert observed(state).node_pools == {}
    assert observed(state, Resource.NODE_POOLS).node_pools is None


def test_pools_stay_when_other_workloads_are_followed() -> None:
    state = ClusterState({REF})
    state.apply(Resource.NODE_POOLS, node_pool())
    anew = state.follow({WorkloadRef(namespace="other", name="vllm", kind="Deployment")})
    assert Resource.NODE_POOLS not in anew
    assert observed(state).node_pools == {"gpu": pool()}


FILE = text("""
    apiVersion: overspill.dev/v1alpha1
    kind: Observation
    cluster: worker-2
    observedAt: "2026-11-20T10:05:00Z"
""")


def test_pools_of_a_file_are_read() -> None:
    pools = text("""
        nodePools:
        - name: gpu
          limits: {nvidia.com/gpu: 16}
          resources: {nvidia.com/gpu: 8, nodes: 1}
        - name: spot
          notReady: NodeClass spot was not found.
          taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]
          labels: {team: llm}
          requirements: {karpenter.sh/capacity-type: [spot], zone: [b, a]}
    """)
    (seen,) = read(f"{FILE}{pools}".encode(), "worker-2.yaml")
    assert seen.node_pools == {
        "gpu": pool(amounts(gpu="16"), amounts(gpu="8", nodes="1")),
        "spot": pool(
            obstacle="is not Ready: NodeClass spot was not found",
            taints=(TAINT,),
            labels={"team": "llm"},
            requirements={CAPACITY_TYPE_LABEL: ("spot",), "zone": ("a", "b")},
        ),
    }


@pytest.mark.parametrize(("pools", "known"), [("", None), ("nodePools: []\n", {})], ids=["left out", "none"])
def test_a_file_without_pools_leaves_them_unknown(pools: str, known: object) -> None:
    (seen,) = read(f"{FILE}{pools}".encode(), "worker-2.yaml")
    assert seen.node_pools == known


def test_a_pool_that_a_file_names_twice_is_refused() -> None:
    pools = "nodePools:\n- {name: gpu}\n- {name: gpu}\n"
    with pytest.raises(InvalidInput, match="gpu is there twice"):
        read(f"{FILE}{pools}".encode(), "worker-2.yaml")
