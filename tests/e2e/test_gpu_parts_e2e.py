"""GPUs that are cut up (MIG) or shared (time slices, MPS): what we count of them, kube-scheduler places."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.gpu_models import gpus_of_node
from reconciler.core.capacity.gpu_requests import gpu_shapes
from reconciler.core.capacity.gpu_slices import gpu_slices
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.model.capacity import ReplicaShape
from reconciler.model.gpr import GpuAsk
from reconciler.model.kubernetes.requirements import Requirement
from reconciler.model.units import ONE
from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.gpu_parts import GpuMix, containers
from tests.e2e.scheduling import bound, decided, observed, ready

NAMESPACE, MIXES, LIMIT = "parts", 60, 12


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[[str], Cluster]) -> Cluster:
    made = start_cluster("parts")
    made.ensure_namespace(NAMESPACE)
    return made


@pytest.fixture(scope="module")
def mixes(cluster: Cluster) -> list[GpuMix]:
    chance = random.Random(20261128)
    made = [GpuMix(number, chance) for number in range(MIXES)]
    nodes = [node for mix in made for node in mix.nodes]
    for node in nodes:
        node.make(cluster)
    cluster.until(
        lambda: sum(ready(node) for node in cluster.items("/api/v1/nodes")) == len(nodes), "nodes are not ready"
    )
    return made


def test_what_is_told_of_the_gpus_of_a_node_is_what_the_device_plugin_gives_out(
    cluster: Cluster, mixes: list[GpuMix]
) -> None:
    for mix in mixes:
        seen = observed(cluster, nodes=f"mix={mix.name}")
        told = {
            (node.name, gpus.resource): (gpus.model, gpus.memory, gpus.count, gpus.free, gpus.part, gpus.share)
            for pool in seen.pools
            for node in pool.nodes
            for gpus in gpus_of_node(node, pool)
        }
        assert told == {
            (node.name, row.resource): (
                row.model,
                row.gigabytes,
                row.count,
                node.free(row.resource),
                row.part,
                row.share,
            )
            for node in mix.nodes
            for row in node.rows
        }


def test_parts_that_are_free_by_our_count_the_scheduler_gives_out(cluster: Cluster, mixes: list[GpuMix]) -> None:
    wanted = {mix.name: (mix, mix.spec()) for mix in mixes}
    promised = {}
    for mix, spec in wanted.values():
        shape = replica_shape({**spec, "nodeSelector": {"mix": mix.name}}, {"namespace": NAMESPACE})
        promised[mix.name] = ClusterCapacity(observed(cluster, nodes=f"mix={mix.name}")).count(shape, LIMIT)
    pods = placed(cluster, "counted", {name: (*wanted[name], count + 1) for name, count in promised.items()})
    agree(promised, {name: len(nodes) for name, nodes in pods.items()})
    assert len(set(promised.values())) > 5, "the mixes are too much alike to prove anything"
    had = Counter(slices_had(cluster, *wanted[name], nodes) for name, nodes in pods.items() if nodes)
    assert min(had["whole"], had["slices"]) > MIXES // 12, "the mixes are too much alike to prove anything"


def slices_had(cluster: Cluster, mix: GpuMix, spec: Json, nodes: list[str]) -> str:
    """Hold the slices that pods were said to get against what the nodes give that the scheduler chose for them."""
    shape = replica_shape({**spec, "nodeSelector": {**spec.get("nodeSelector", {}), "mix": mix.name}})
    told = gpu_slices(observed(cluster, nodes=f"mix={mix.name}"), shape)
    rows = [
        row for node in mix.nodes for row in node.rows if node.name in nodes and row.resource in shape.requests.amounts
    ]
    assert rows, mix.name
    if told is None:
        assert not any(row.part for row in rows), mix.name
        return "whole"
    assert max(row.share for row in rows) <= told.paid_share, mix.name
    assert told.mixed or all(row.part for row in rows), mix.name
    return "both" if told.mixed else "slices"


def test_a_request_gets_gpus_of_the_model_that_it_names_and_no_parts_of_them(
    cluster: Cluster, mixes: list[GpuMix]
) -> None:
    """Ask for a model by its whole name: of whole GPUs, or of one of the kinds of parts."""
    wanted, promised, possible = {}, {}, {}
    for mix in mixes:
        seen = observed(cluster, nodes=f"mix={mix.name}")
        shapes = gpu_shapes(GpuAsk(gpus=mix.asked, shape=mix.row.model), seen)
        shape = max(shapes, key=lambda one: ClusterCapacity(seen).count(one, LIMIT))
        promised[mix.name] = ClusterCapacity(seen).count(shape, LIMIT)
        wanted[mix.name] = (mix, written(shape), promised[mix.name] + 1)
        resources = {*shape.requests.amounts}
        possible[mix.name] = {node.name for node, row in mix.whole_or_part(mix.row.model) if row.resource in resources}
        fitting = sum(
            node.free(row.resource) // mix.asked
            for node, row in mix.whole_or_part(mix.row.model)
            if row.resource in resources
        )
        assert promised[mix.name] == min(LIMIT, fitting), f"{mix.name}: {mix.asked} of {mix.row.model}"
    pods = placed(cluster, "asked", wanted)
    agree(promised, {name: len(nodes) for name, nodes in pods.items()})
    assert {name for name, nodes in pods.items() if not {*nodes} <= possible[name]} == set(), "on nodes of another kind"
    parts = sum(mix.row.part for mix in mixes)
    assert parts > MIXES // 6 < MIXES - parts, "the mixes are too much alike to prove anything"


def agree(promised: dict[str, int], had: dict[str, int]) -> None:
    """Hold a count against what the scheduler has placed, one replica more than was counted having been tried."""
    told = {name: f"{count} counted, {had[name]} placed" for name, count in promised.items() if had[name] != count}
    assert {name: said for name, said in told.items() if promised[name] != LIMIT or had[name] < LIMIT} == {}
    print(f"{len(promised)} mixes agree on {sum(promised.values())} replicas")  # noqa: T201 - to be quoted (pytest -rP)


def written(shape: ReplicaShape) -> Json:
    """Write pods of a shape: what they request, the nodes that they are kept to, and what they tolerate."""
    terms = [
        {
            "matchExpressions": [_requirement(one) for one in term.labels],
            "matchFields": [_requirement(one) for one in term.fields],
        }
        for term in shape.node_terms
    ]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    tolerations = [{"key": one.key, "operator": one.operator} for one in shape.tolerations]
    spec = containers({name: amount // ONE for name, amount in shape.requests.amounts.items()})
    return spec | {"tolerations": tolerations} | ({"affinity": affinity} if terms else {})


def _requirement(requirement: Requirement) -> Json:
    return {"key": requirement.key, "operator": requirement.operator, "values": list(requirement.values)}


def placed(cluster: Cluster, what: str, wanted: dict[str, tuple[GpuMix, Json, int]]) -> dict[str, list[str]]:
    """Create the pods of each mix, return the nodes of those that are bound, and take all of them away again."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
    for mix, spec, replicas in wanted.values():
        cluster.create(path, mix.deployment(what, spec, replicas))
    total = sum(replicas for _, _, replicas in wanted.values())
    nodes: dict[str, list[str]] = {name: [] for name in wanted}
    for pod in filter(bound, decided(cluster, NAMESPACE, total)):
        nodes[pod["metadata"]["labels"]["mix"]].append(pod["spec"]["nodeName"])
    for mix, _, _ in wanted.values():
        cluster.call("DELETE", f"{path}/{mix.name}-{what}?propagationPolicy=Foreground")
    cluster.until(lambda: not cluster.items(f"/api/v1/namespaces/{NAMESPACE}/pods"), "pods do not go")
    return nodes
