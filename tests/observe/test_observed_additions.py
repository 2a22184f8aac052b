"""An observation file says what a cluster adds to pods, and what the pods of a replica leave to it."""

from __future__ import annotations

import pytest

from reconciler.core.observe.observation_file import read
from reconciler.errors import InvalidInput
from reconciler.model.capacity import ClusterObservation
from reconciler.model.kubernetes.scheduling import RuntimeClass, Toleration, UnstatedRequests
from reconciler.model.units import Resources, parse_quantity
from tests.builders.fleet_files import text

HEAD = text("""
    apiVersion: overspill.dev/v1alpha1
    kind: Observation
    cluster: worker-1
    observedAt: "2026-11-20T10:00:00Z"
    """)
CLUSTER = text("""
    runtimeClasses:
    - {name: runc}
    - {name: kata, overhead: {cpu: 250m}, nodeSelector: {kata: "yes"}, tolerations: [{key: kata, operator: Exists}]}
    limitRanges:
    - {namespace: llm, defaultRequest: {cpu: 500m, memory: 1Gi}}
    - {namespace: llm, defaultRequest: {cpu: 250m}}
    """)
WORKLOAD = text("""
    workloads:
    - namespace: llm
      name: vllm
      wanted: 2
      running: 1
      replica: {requests: {cpu: 1}, runtimeClassName: kata, overhead: {cpu: 100m}, unrequested: {memory: 2}}
    """)


def observed(*parts: str) -> ClusterObservation:
    (seen,) = read("".join((HEAD, *parts)).encode(), "o.yaml")
    return seen


def test_of_api_versions_that_are_left_out_nobody_knows() -> None:
    assert observed().api_versions is None
    assert observed("apiVersions: [v1, apps/v1]\n").api_versions == {"v1", "apps/v1"}


def test_what_the_cluster_adds_to_pods_is_read() -> None:
    seen = observed(CLUSTER)
    assert seen.runtime_classes == {
        "runc": RuntimeClass(),
        "kata": RuntimeClass(
            overhead=Resources(amounts={"cpu": parse_quantity("250m")}),
            node_selector={"kata": "yes"},
            tolerations=(Toleration(key="kata", operator="Exists"),),
        ),
    }
    given = {"cpu": parse_quantity("500m"), "memory": parse_quantity("1Gi")}
    assert seen.limit_ranges == {"llm": Resources(amounts=given)}


def test_quotas_and_bounds_of_namespaces_are_read() -> None:
    seen = observed("""
limitRanges:
- {namespace: llm, name: pods, type: Pod, max: {cpu: 8}}
resourceQuotas:
- {namespace: llm, name: gpus, hard: {pods: 4}, used: {pods: 2}, scopes: [NotTerminating]}
- {namespace: llm, name: high, hard: {pods: 4},
   scopeSelector: [{scopeName: PriorityClass, operator: In, values: [high]}]}
defaultPriorityClass: normal
""")
    (item,), quotas = seen.limit_range_items["llm"], (seen.quotas or {})["llm"]
    assert (item.limit_range, item.of_pod, item.most) == ("pods", True, (("cpu", parse_quantity("8")),))
    assert [(quota.name, [str(scope) for scope in quota.scopes]) for quota in quotas] == [
        ("gpus", ["NotTerminating"]),
        ("high", ["PriorityClass=high"]),
    ]
    assert quotas[0].used.amounts == {"pods": parse_quantity("2")}
    assert (quotas[1].used.amounts, seen.priority_class, seen.limit_ranges) == ({"pods": 0}, "normal", {})


def test_two_quotas_of_one_name_in_a_namespace_are_refused() -> None:
    with pytest.raises(InvalidInput, match="has quota quota of llm twice"):
        observed("resourceQuotas:\n- {namespace: llm, hard: {pods: 4}}\n- {namespace: llm, hard: {pods: 2}}\n")


def test_of_runtime_classes_that_are_left_out_nobody_knows_and_of_limit_ranges_there_are_none() -> None:
    assert (observed().runtime_classes, observed().limit_ranges) == (None, {})
    assert observed("runtimeClasses: []\n").runtime_classes == {}


def test_what_the_pods_of_a_replica_leave_to_the_cluster_is_read() -> None:
    (workload,) = observed(WORKLOAD).workloads
    assert workload.shape is not None
    assert workload.shape.unstated == UnstatedRequests(
        runtime_class="kata", overhead=(("cpu", parse_quantity("100m")),), silent=(("memory", 2),)
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("namespace: llm, defaultR", "defaultR"), "o.yaml:9: limitRanges[0].namespace: is required"),
        (("name: runc", "nam: runc"), "o.yaml:6: runtimeClasses[0].nam: unknown field (try 'name')"),
        (("memory: 1Gi", "memory: 1 Gi"), "o.yaml:9: limitRanges[0].defaultRequest.memory: '1 Gi' is not a quantity"),
    ],
)
def test_what_is_wrong_is_told_at_its_line(change: tuple[str, str], message: str) -> None:
    assert change[0] in CLUSTER
    with pytest.raises(InvalidInput) as caught:
        observed(CLUSTER.replace(*change, 1))
    assert any(str(one).startswith(message) for one in caught.value.problems), caught.value.problems
