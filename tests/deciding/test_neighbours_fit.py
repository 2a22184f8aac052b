"""What pods demand of the pods beside them is counted so that the scheduler finds a node for each, whatever it chooses."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.core.fit import Room
from reconciler.core.kubernetes.resources import Resource
from reconciler.core.kubernetes.shapes import replica_shape
from reconciler.core.kubernetes.state import ClusterState
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName
from tests.deciding.scheduler import GPU, REQUIRED, Raw, worst
from tests.situations import NOW

HOST, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
LABELS = {"app": "vllm"}
SELECTOR = {"matchLabels": LABELS}


def seen(nodes: list[Raw]) -> ClusterObservation:
    """Observe the nodes the way a cluster is watched."""
    state = ClusterState()
    for node in nodes:
        raw = {
            "metadata": {"name": node["name"], "labels": node["labels"]},
            "spec": {"taints": node["taints"], "unschedulable": node["cordoned"]},
            "status": {
                "allocatable": {GPU: str(node["gpus"]), "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        state.apply(Resource.NODES, raw)
        for number, pod in enumerate(node["pods"]):
            metadata = {"name": f"{node['name']}-{number}", "namespace": pod["namespace"], "labels": pod["labels"]}
            spec = {**pod["spec"], "nodeName": node["name"]}
            state.apply(Resource.PODS, {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})
    return state.observation(ClusterName("worker-2"), NOW)


def counted(nodes: list[Raw], pod: Raw, limit: int = 50) -> int:
    metadata = {"labels": pod["labels"], "namespace": pod["namespace"]}
    return Room(seen(nodes)).count(replica_shape(pod["spec"], metadata), limit)


def why_not(nodes: list[Raw], pod: Raw) -> str:
    metadata = {"labels": pod["labels"], "namespace": pod["namespace"]}
    return Room(seen(nodes)).shortfall(replica_shape(pod["spec"], metadata))


def node(name: str, gpus: int = 2, *, pods: list[Raw] | None = None, **labels: str) -> Raw:
    known = {"zone": ZONE, "rack": RACK}
    named = {known[key]: value for key, value in labels.items()} | {HOST: name}
    return {"name": name, "labels": named, "gpus": gpus, "taints": [], "cordoned": False, "pods": pods or []}


def pod(namespace: str = "llm", labels: Raw | None = None, **spec: Any) -> Raw:
    containers = [{"resources": {"requests": {GPU: "1"}}, "ports": spec.pop("ports", [])}]
    return {"namespace": namespace, "labels": labels or LABELS, "spec": {"containers": containers, **spec}}


def other(labels: Raw | None = None, namespace: str = "llm", ports: list[Raw] | None = None) -> Raw:
    return {"namespace": namespace, "labels": labels or {}, "spec": {"containers": [{"ports": ports or []}]}}


def term(key: str, **fields: Any) -> Raw:
    return {"topologyKey": key, "labelSelector": SELECTOR, **fields}


def apart(*keys: str) -> Raw:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term(key) for key in keys]}}}


def together(*keys: str) -> Raw:
    return {"affinity": {"podAffinity": {REQUIRED: [term(key) for key in keys]}}}


def evenly(key: str, skew: int = 1, **fields: Any) -> Raw:
    return term(key, maxSkew=skew, whenUnsatisfiable="DoNotSchedule", **fields)


ports = st.sampled_from(
    [[], [], [{"containerPort": 8080, "hostPort": 8080}], [{"containerPort": 8080, "hostPort": 9090}]]
)
strangers = st.builds(
    other,
    labels=st.sampled_from([LABELS, LABELS, {"app": "web"}, {**LABELS, "role": "head"}]),
    namespace=st.sampled_from(["llm", "llm", "web"]),
    ports=ports,
)


@st.composite
def clusters(draw: st.DrawFn) -> list[Raw]:
    """A few nodes in zones and racks that cross them, some without labels, tainted, cordoned, or taken."""
    made = []
    for index in range(draw(st.integers(1, 5))):
        name, labels = f"n{index}", {}
        for key, values in (
            (HOST, [name] * 5 + [None]),
            (ZONE, ["a", "a", "b", "c", None]),
            (RACK, ["1", "2", "3", None]),
        ):
            if (value := draw(st.sampled_from(values))) is not None:
                labels[key] = value
        labels |= draw(st.sampled_from([{}, {}, {"model": "h100"}]))
        taints = draw(st.sampled_from([[], [], [], [{"key": "spot", "effect": "NoSchedule"}]]))
        there = draw(st.lists(strangers, max_size=draw(st.sampled_from([0, 0, 0, 2]))))
        one = {"name": name, "labels": labels, "gpus": draw(st.integers(0, 3)), "taints": taints, "pods": there}
        made.append({**one, "cordoned": draw(st.sampled_from([False] * 5 + [True]))})
    return made


keys = st.sampled_from([HOST, ZONE, ZONE, RACK])
fields = st.fixed_dictionaries(
    {}, optional={"namespaces": st.sampled_from([["web"], ["llm", "web"]]), "matchLabelKeys": st.just(["role"])}
)
terms = st.lists(st.builds(lambda key, more: term(key, **more), keys, fields), max_size=2)
spreads = st.builds(
    lambda key, skew, more: evenly(key, skew, **more),
    keys,
    st.integers(1, 3),
    st.fixed_dictionaries(
        {},
        optional={
            "minDomains": st.integers(1, 4),
            "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
            "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
        },
    ),
)
pods = st.builds(
    lambda anti, affine, spread, fixed: pod(
        topologySpreadConstraints=spread,
        affinity={"podAntiAffinity": {REQUIRED: anti}, "podAffinity": {REQUIRED: affine}},
        **fixed,
    ),
    st.one_of(st.just([]), terms),
    st.one_of(st.just([]), terms),
    st.lists(spreads, max_size=2),
    st.fixed_dictionaries(
        {"ports": ports},
        optional={
            "nodeSelector": st.just({"model": "h100"}),
            "tolerations": st.sampled_from([[{"key": "spot", "operator": "Exists"}], [{"operator": "Exists"}]]),
            "hostNetwork": st.just(True),
        },
    ),
)


@settings(max_examples=400, deadline=None)
@given(clusters(), pods)
def test_no_more_pods_are_promised_than_the_worst_choice_of_nodes_leaves_room_for(
    nodes: list[Raw], wanted: Raw
) -> None:
    assert counted(nodes, wanted) <= worst(nodes, wanted)
