"""What pods demand of the pods beside them is read from pods, files and manifests alike, and survives in git."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.pod_requirements import pods_of_request
from reconciler.core.ledger.replica_record import read_shape, write_shape
from reconciler.core.observe import observation_file
from reconciler.core.pods.pod_requests import pod_requests
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.errors import InvalidInput
from reconciler.model.capacity import ReplicaShape
from reconciler.model.kubernetes.requirements import Requirement
from reconciler.model.kubernetes.scheduling import HostPort, PodOnNode, PodRule, PodRules, TopologySpreadConstraint
from reconciler.model.units import format_quantity
from reconciler.model.workload import Json
from tests.builders.inputs import shape
from tests.builders.pod_rules import HOST, LABELS, ZONE, apart, evenly, node, other, pod, seen, term, together
from tests.builders.requests import manifests, request
from tests.fakes.kube_scheduler import REQUIRED, Raw

words = st.text(max_size=4)
selectors = st.lists(
    st.builds(Requirement, key=words, operator=words, values=st.lists(words, max_size=2).map(tuple)), max_size=2
).map(tuple)
about: dict[str, st.SearchStrategy[Any]] = {
    "key": words,
    "selector": selectors,
    "namespaces": st.lists(words, max_size=2).map(tuple),
    "wide": st.booleans(),
    "namespace_selector": st.none() | selectors,
    "itself": st.sampled_from([True, True, False, None]),
}
rules = st.builds(
    PodRules,
    labels=st.dictionaries(words, words, max_size=2).map(lambda labels: tuple(sorted(labels.items()))),
    namespace=words,
    apart=st.lists(st.builds(PodRule, **about), max_size=2).map(tuple),
    together=st.lists(st.builds(PodRule, **about), max_size=2).map(tuple),
    evenly=st.lists(
        st.builds(
            TopologySpreadConstraint,
            **about,
            max_skew=st.integers(1, 9),
            min_domains=st.integers(1, 9),
            heeds_affinity=st.booleans(),
            heeds_taints=st.booleans(),
        ),
        max_size=2,
    ).map(tuple),
    ports=st.lists(st.builds(HostPort, st.integers(1, 65535), words, words), max_size=2).map(tuple),
)


@given(rules)
def test_rules_survive_being_written_to_git(rules: PodRules) -> None:
    asked = shape(1, rules=rules)
    assert read_shape(write_shape(asked)) == asked


def test_pods_without_rules_have_none() -> None:
    plain = replica_shape({"containers": [{"ports": [{"containerPort": 80}]}]}, {"labels": LABELS, "namespace": "llm"})
    assert (plain.rules, plain.obstacle) == (None, "")
    assert "rules" not in write_shape(plain)


FILE = """\
apiVersion: overspill.dev/v1alpha1
kind: Observation
cluster: worker-1
observedAt: 2026-11-20T10:00:00Z
pools:
  - name: gpu
    allocatable: {nvidia.com/gpu: 8, pods: 110}
    nodes:
      - name: gpu-1
        labels: {kubernetes.io/hostname: gpu-1}
        pods:
          - {namespace: llm, labels: {app: vllm}, count: 2}
          - {namespace: kube-system, hostPorts: [{hostPort: 9100}]}
      - {name: gpu-2, pods: []}
      - {name: gpu-3}
      - {name: gpu-4, cordoned: true, pods: [{namespace: llm}]}
workloads:
  - namespace: llm
    name: vllm
    wanted: 3
    running: 1
    replica:
      requests: {nvidia.com/gpu: 1}
      labels: {app: vllm}
      podAntiAffinity:
        - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: vllm}}}
      topologySpreadConstraints:
        - topologyKey: topology.kubernetes.io/zone
          maxSkew: 1
          whenUnsatisfiable: DoNotSchedule
          labelSelector: {matchLabels: {app: vllm}}
      hostPorts: [{hostPort: 8080}]
"""


def test_a_file_says_of_nodes_which_pods_are_there_or_nothing() -> None:
    [read] = observation_file.read(FILE.encode(), "observation.yaml")
    pods = {one.name: one.pods for one in (*read.pools[0].nodes, *read.closed)}
    vllm = PodOnNode(namespace="llm", labels=(("app", "vllm"),))
    exporter = PodOnNode(namespace="kube-system", ports=(HostPort(port=9100),))
    assert pods == {
        "gpu-1": (vllm, vllm, exporter),
        "gpu-2": (),
        "gpu-3": None,
        "gpu-4": (PodOnNode(namespace="llm"),),
    }


def test_a_replica_in_a_file_is_read_as_its_pod_would_be() -> None:
    [read] = observation_file.read(FILE.encode(), "observation.yaml")
    same = pod(
        "llm", **apart(HOST), topologySpreadConstraints=[evenly(ZONE)], ports=[{"containerPort": 1, "hostPort": 8080}]
    )
    found = read.workloads[0].shape
    assert found is not None
    assert found.rules == replica_shape(same["spec"], {"labels": LABELS, "namespace": "llm"}).rules


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (("maxSkew: 1", "maxSkew: 0"), "topologySpreadConstraints[0].maxSkew"),
        (("DoNotSchedule", "Never"), "topologySpreadConstraints[0].whenUnsatisfiable"),
        (("hostPort: 8080", "hostPort: 80800"), "hostPorts[0].hostPort"),
        (("count: 2", "count: 0"), "pods[0].count"),
    ],
)
def test_a_file_that_says_it_wrong_is_told_where(change: tuple[str, str], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        observation_file.read(FILE.replace(*change).encode(), "observation.yaml")
    assert field in str(caught.value.problems[0])


def test_labels_that_a_pod_has_for_itself_are_no_part_of_its_shape() -> None:
    own = {"pod-template-hash": "6f7", "overspill.dev/placement": "vllm-7f3a90c1", **LABELS}
    hashed = term(HOST, matchLabelKeys=["pod-template-hash"])
    hashed["labelSelector"] = {
        **hashed["labelSelector"],
        "matchExpressions": [{"key": "pod-template-hash", "operator": "In", "values": ["6f7"]}],
    }
    written = replica_shape(
        {"affinity": {"podAntiAffinity": {REQUIRED: [hashed]}}}, {"labels": own, "namespace": "llm"}
    )
    template = term(HOST, matchLabelKeys=["pod-template-hash"])
    asked = replica_shape(
        {"affinity": {"podAntiAffinity": {REQUIRED: [template]}}}, {"labels": LABELS, "namespace": "llm"}
    )
    assert written.rules == asked.rules
    assert written.rules is not None
    assert written.rules.apart[0].wide


def test_a_pod_that_leaves_holds_its_place_and_counts_in_no_spread() -> None:
    leaving = {**other(LABELS), "leaving": True}
    nodes = [node("a", 8, zone="a", pods=[leaving]), node("b", 8, zone="b")]
    room = ClusterCapacity(seen(nodes))
    alone = replica_shape(pod(**apart(HOST))["spec"], {"labels": LABELS, "namespace": "llm"})
    spread = replica_shape(
        pod(topologySpreadConstraints=[evenly(ZONE)])["spec"], {"labels": LABELS, "namespace": "llm"}
    )
    joined = replica_shape(pod(**together(ZONE))["spec"], {"labels": LABELS, "namespace": "llm"})
    assert (room.count(alone, 9), room.count(spread, 9), room.count(joined, 9)) == (1, 9, 0)


def test_a_pod_that_a_node_is_nominated_for_counts_as_there_and_as_not_there() -> None:
    expected = PodOnNode(namespace="llm", labels=tuple(LABELS.items()), leaving=True, expected=True)
    there = seen([node("a", 8, zone="a"), node("b", 8, zone="b")])
    (pool,) = there.pools
    first, *others = pool.nodes
    there = replace(there, pools=(replace(pool, nodes=(replace(first, pods=(expected,)), *others)),))
    fits = {
        name: ClusterCapacity(there).count(replica_shape(each["spec"], {"labels": LABELS, "namespace": "llm"}), 99)
        for name, each in {
            "apart": pod(**apart(HOST)),
            "spread": pod(topologySpreadConstraints=[evenly(ZONE)]),
            "together": pod(**together(ZONE)),
        }.items()
    }
    assert fits == {"apart": 1, "spread": 0, "together": 0}


def test_rules_of_pods_whose_labels_are_not_known_are_no_guess() -> None:
    assert "by labels that are not known" in replica_shape(pod(**apart(HOST))["spec"]).obstacle


def server(name: str, labels: Raw, **spec: Any) -> Json:
    containers = [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers, **spec}}
    metadata = {"name": name, "namespace": "llm"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    }


def parts(*objects: Json) -> list[ReplicaShape]:
    return [part.shape for part in pods_of_request(request(spec=manifests(*objects))).parts]


def test_the_rules_of_a_requests_manifests_count() -> None:
    [found] = parts(server("vllm", LABELS, **apart(HOST)))
    assert ClusterCapacity(seen([node("a", 8), node("b", 8)])).count(found, 9) == 2


def test_rules_that_two_manifests_share_are_counted_by_nobody() -> None:
    both = parts(server("vllm", LABELS, **apart(HOST)), server("head", {**LABELS, "role": "head"}))
    assert [one.obstacle for one in both] == [
        f"wants one pod in each {HOST} among pods of several kinds, which cannot be counted together",
        "",
    ]
    apart_from = parts(server("vllm", LABELS, **apart(HOST)), server("web", {"app": "web"}))
    assert [one.obstacle for one in apart_from] == ["", ""]


def test_rules_about_labels_that_are_filled_in_later_are_no_guess() -> None:
    labels = {"app": "{{ placement.name }}"}
    wanted = {
        "affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, "labelSelector": {"matchLabels": labels}}]}}
    }
    [found] = parts(server("vllm", labels, **wanted))
    assert found.obstacle == (
        f"requires pod anti-affinity by {HOST} by a label that an expression gives: only the scheduler can count that"
    )


@pytest.mark.parametrize(
    ("kind", "labels", "itself"),
    [
        ("apps/v1/Deployment", {"app": "db"}, False),
        ("apps/v1/Deployment", LABELS, True),
        ("apps/v1/Deployment", {"role": "x"}, False),
        ("apps/v1/Deployment", {"pod-template-hash": "x"}, None),
        ("apps/v1/Deployment", {"app": "db", "pod-template-hash": "x"}, False),
        ("batch/v1/Job", {"job-name": "x"}, None),
        ("apps.kruise.io/v1alpha1/CloneSet", {"role": "x"}, None),
        ("apps.kruise.io/v1alpha1/CloneSet", {"app": "db"}, False),
    ],
)
def test_labels_that_a_controller_may_add_leave_open_whether_a_rule_means_the_pod_itself(
    kind: str, labels: Raw, itself: bool | None
) -> None:
    version, _, name = kind.rpartition("/")
    rule = {"topologyKey": HOST, "labelSelector": {"matchLabels": labels}}
    made = server("vllm", LABELS, affinity={"podAntiAffinity": {REQUIRED: [rule]}}, restartPolicy="Never")
    [found] = parts({**made, "apiVersion": version, "kind": name})
    assert found.rules is not None
    assert [each.itself for each in found.rules.apart] == [itself]


@pytest.mark.parametrize(
    ("whole", "cpu"),
    [
        ({"requests": {"cpu": "5"}}, "5"),
        ({"limits": {"cpu": "8"}}, "2"),
        ({"limits": {"memory": "8Gi"}}, "2"),
    ],
)
def test_requests_of_the_pod_as_a_whole_go_before_those_of_its_containers(whole: Raw, cpu: str) -> None:
    found = pod_requests({"containers": [{"resources": {"requests": {"cpu": "2"}}}], "resources": whole})
    assert format_quantity(found.amounts["cpu"]) == cpu


def test_limits_of_the_pod_as_a_whole_count_where_nothing_is_requested() -> None:
    found = pod_requests({"containers": [{}], "resources": {"limits": {"memory": "8Gi", "hugepages-2Mi": "1Gi"}}})
    assert {name: format_quantity(amount) for name, amount in found.amounts.items()} == {
        "hugepages-2Mi": "1Gi",
        "memory": "8Gi",
    }
