"""Observations become pools of free resources and demand, or problems with lines."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from reconciler.core.observe.observation_file import read
from reconciler.core.schema.yaml import parse
from reconciler.errors import InvalidInput
from reconciler.model.capacity import BlockedReplicas, MissingReplicas, SucceededPods
from reconciler.model.ids import PlacementName
from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.model.rollout import EngineState
from reconciler.model.signal import ReplicaRequest
from reconciler.model.units import parse_quantity
from reconciler.model.wait_reason import WaitReason
from reconciler.model.workload import WorkloadRef
from tests.builders.fleet_files import lines, text

FULL = text("""
    apiVersion: overspill.dev/v1alpha1
    kind: Observation
    cluster: worker-1
    observedAt: "2026-11-20T11:05:00.5+01:00"
    pools:
    - name: h100
      labels: {model: h100}
      taints: [{key: gpu, value: "yes", effect: NoSchedule}]
      allocatable: {cpu: 64, memory: 512Gi, nvidia.com/gpu: 8}
      nodes:
      - name: one
        used: {cpu: 1500m, nvidia.com/gpu: 3}
      - name: two
        allocatable: {nvidia.com/gpu: 4}
        used: {nvidia.com/gpu: 6, pods: 10}
        labels: {zone: a}
        taints: [{key: old, timeAdded: "2026-11-20T09:00:00Z"}]
      - {name: down, ready: false}
      - {name: away, cordoned: true}
    workloads:
    - kind: Deployment
      namespace: llm-demo
      name: vllm
      wanted: 8
      running: 5
      unschedulable:
      - {replicas: 2, since: "2026-11-20T10:00:00Z"}
      - {replicas: 1, since: "2026-11-20T10:01:00Z", cause: insufficient nvidia.com/gpu}
      signals:
      - {name: hpa llm-demo/vllm, replicas: 3, since: "2026-11-20T10:02:00Z", beyondWanted: true, cause: at its maximum}
      - {name: queue depth, replicas: 2, since: "2026-11-20T10:03:00Z"}
      deficitSince: "2026-11-20T09:59:00Z"
      replica:
        requests: {nvidia.com/gpu: 2, cpu: "0.5"}
        nodeSelector: {model: h100}
        tolerations:
        - {key: gpu, operator: Exists}
        - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
        groupSize: 4
    placements:
    - {name: vllm-7f3a90c1, bound: 2}
    """)


def refusal(data: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        read(data.encode(), "o.yaml")
    return lines(caught.value.problems)


def test_what_is_free_is_what_can_be_allocated_less_what_is_used():
    (seen,) = read(FULL.encode(), "o.yaml")
    (pool,) = seen.pools
    assert [node.name for node in pool.nodes] == ["one", "two"]
    one, two = pool.nodes
    assert one.free.amounts["nvidia.com/gpu"] == parse_quantity("5")
    assert one.free.amounts["cpu"] == parse_quantity("62500m")
    assert two.free.amounts["nvidia.com/gpu"] == 0
    assert two.free.amounts["memory"] == parse_quantity("512Gi")
    assert two.free.amounts["pods"] == 0
    assert pool.taints == (Taint(key="gpu", value="yes"),)
    assert two.taints == (Taint(key="old"),)
    assert seen.bound == {"vllm-7f3a90c1": 2}
    assert seen.observed_at == datetime(2026, 11, 20, 10, 5, 0, 500_000, tzinfo=UTC)
    assert seen.healthy


def test_demand_comes_with_the_shape_of_one_replica():
    (workload,) = read(FULL.encode(), "o.yaml")[0].workloads
    assert workload.ref == WorkloadRef(namespace="llm-demo", name="vllm", kind="Deployment")
    assert (workload.wanted, workload.running) == (8, 5)
    assert workload.waiting[0] == MissingReplicas(replicas=2, since=datetime(2026, 11, 20, 10, 0, tzinfo=UTC))
    assert workload.deficit_since == datetime(2026, 11, 20, 9, 59, tzinfo=UTC)
    assert workload.shape.requests.amounts == {"nvidia.com/gpu": 2 * 10**9, "cpu": 5 * 10**8}
    assert workload.shape.tolerations[0] == Toleration(key="gpu", operator="Exists")
    assert workload.shape.group_size == 4


def test_signals_come_with_their_names():
    (workload,) = read(FULL.encode(), "o.yaml")[0].workloads
    at = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
    assert [wait.cause for wait in workload.waiting] == ["", "insufficient nvidia.com/gpu"]
    assert workload.asks == (
        ReplicaRequest(
            signal="hpa llm-demo/vllm", replicas=3, since=at.replace(minute=2), cause="at its maximum", beyond=True
        ),
        ReplicaRequest(signal="queue depth", replicas=2, since=at.replace(minute=3), cause="", beyond=False),
    )


def test_a_signal_of_no_replicas_says_nothing():
    (workload,) = read(FULL.replace("vllm, replicas: 3,", "vllm, replicas: 0,").encode(), "o.yaml")[0].workloads
    assert [ask.signal for ask in workload.asks] == ["queue depth"]


def test_an_entry_of_no_replicas_waits_for_nothing():
    (workload,) = read(FULL.replace("{replicas: 2,", "{replicas: 0,").encode(), "o.yaml")[0].workloads
    assert [wait.replicas for wait in workload.waiting] == [1]


BLOCKED = "blocked: [{replicas: 2, since: '2026-11-20T09:50:00Z', reason: Volume, cause: no volume, wayOut: make one}]"


def test_replicas_that_no_room_would_help_are_read_apart() -> None:
    (workload,) = read(FULL.replace("deficitSince:", f"{BLOCKED}\n  deficitSince:").encode(), "o.yaml")[0].workloads
    since = datetime(2026, 11, 20, 9, 50, tzinfo=UTC)
    assert workload.blocked == (
        BlockedReplicas(replicas=2, since=since, reason=WaitReason.VOLUME, cause="no volume", way_out="make one"),
    )
    assert [wait.replicas for wait in workload.waiting] == [2, 1]


@pytest.mark.parametrize("reason", [reason for reason in WaitReason if not reason.lacks_room])
def test_a_reason_alone_says_what_blocked_replicas_wait_for(reason: WaitReason) -> None:
    words = f"blocked: [{{replicas: 2, since: '2026-11-20T09:50:00Z', reason: {reason}}}]"
    (workload,) = read(FULL.replace("deficitSince:", f"{words}\n  deficitSince:").encode(), "o.yaml")[0].workloads
    (blocked,) = workload.blocked
    assert blocked.reason is reason
    assert " " in blocked.cause
    assert bool(blocked.way_out) is (reason not in {WaitReason.PREEMPTION, WaitReason.UNDECIDED})


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("Preempted to accommodate a workload", "evicted: Preempted to accommodate a workload"),
        ("queue team evicted it (Preempted)", "queue team evicted it (Preempted)"),
    ],
)
def test_an_eviction_is_told_as_one(words: str, told: str) -> None:
    placed = {"name": "vllm-fbdc43ac", "bound": 0, "evicted": words}
    (seen,) = read(json.dumps({**HEAD, "placements": [placed]}).encode(), "o.yaml")
    assert (*seen.evicted.values(), *seen.waiting_reasons.values()) == (told, told)


def test_a_lack_of_room_is_no_reason_to_be_blocked() -> None:
    told = refusal(FULL.replace("deficitSince:", f"{BLOCKED.replace('Volume', 'Quota')}\n  deficitSince:"))
    assert told == ["o.yaml:32: workloads[0].blocked[0].reason: Quota is a lack of room (try unschedulable)"]


@pytest.mark.parametrize("moment", ["2000-01-01T00:00:00Z", "2200-12-31T23:59:59Z"])
def test_the_first_and_the_last_moment_there_are_can_be_observed(moment):
    (seen,) = read(json.dumps({**HEAD, "observedAt": moment}).encode(), "o.yaml")
    assert seen.observed_at == datetime.fromisoformat(moment)


def test_json_says_the_same():
    (document,) = parse(FULL.encode(), "")
    assert read(json.dumps(document.value).encode(), "o.json") == read(FULL.encode(), "o.yaml")


def test_several_clusters_come_as_documents_or_as_items():
    other = FULL.replace("worker-1", "worker-2")
    together = read((FULL + "---\n" + other).encode(), "o.yaml")
    items = [document.value for document in parse((FULL + "---\n" + other).encode(), "")]
    assert [seen.cluster for seen in together] == ["worker-1", "worker-2"]
    assert read(json.dumps({"items": items}).encode(), "o.json") == together
    assert read(b'{"items": []}', "o.json") == ()


def test_one_cluster_twice_is_an_error():
    assert refusal(FULL + "---\n" + FULL) == ["o.yaml:45: cluster: worker-1 is observed here twice"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("2026-11-20T11:05:00.5+01:00", "2026-11-20 11:05"),
            "4: observedAt: '2026-11-20 11:05' is not a time of RFC 3339 (try '2026-11-20T10:15:00Z')",
        ),
        (
            ("2026-11-20T11:05:00.5+01:00", "2026-02-30T11:05:00Z"),
            "4: observedAt: '2026-02-30T11:05:00Z' does not exist (try '2026-11-20T10:15:00Z')",
        ),
        (
            ("2026-11-20T11:05:00.5+01:00", "1970-01-01T00:00:00Z"),
            "4: observedAt: '1970-01-01T00:00:00Z' is not between the years 2000 and 2200 (try '2026-11-20T10:15:00Z')",
        ),
        (
            ("2026-11-20T10:01:00Z", "9999-12-31T23:59:59Z"),
            (
                "28: workloads[0].unschedulable[1].since: '9999-12-31T23:59:59Z' is not between the years 2000 and 2200"
                " (try '2026-11-20T10:15:00Z')"
            ),
        ),
        (
            ("2026-11-20T09:59:00Z", "0001-01-01T00:00:00Z"),
            (
                "32: workloads[0].deficitSince: '0001-01-01T00:00:00Z' is not between the years 2000 and 2200"
                " (try '2026-11-20T10:15:00Z')"
            ),
        ),
        (
            ("cluster: worker-1", "cluster: ../x"),
            "3: cluster: '../x' is not a name of lower-case letters, digits and '-' (63 at most) (try 'x')",
        ),
        (
            ("memory: 512Gi", "memory: 512 Gi"),
            "9: pools[0].allocatable.memory: '512 Gi' is not a quantity (try 512Gi)",
        ),
        (("cpu: 1500m", "cpu: -1"), "12: pools[0].nodes[0].used.cpu: '-1' is negative (try 1, 500m or 8Gi)"),
        (("cpu: 1500m", "cpu: true"), "12: pools[0].nodes[0].used.cpu: must be an amount (try 1, 500m or 8Gi)"),
        (("wanted: 8", "wanted: -8"), "24: workloads[0].wanted: -8 is less than 0"),
        (("  wanted: 8\n", ""), "21: workloads[0].wanted: is required"),
        (("groupSize: 4", "groupSize: 0"), "39: workloads[0].replica.groupSize: 0 is less than 1"),
        (("name: queue depth", "name: ''"), "31: workloads[0].signals[1].name: is empty"),
        (("name: queue depth, ", ""), "31: workloads[0].signals[1].name: is required"),
        (
            ("queue depth, replicas: 2", "queue depth, replicas: -2"),
            "31: workloads[0].signals[1].replicas: -2 is less than 0",
        ),
        (
            ("beyondWanted: true", "beyond: true"),
            "30: workloads[0].signals[0].beyond: unknown field (try 'beyondWanted')",
        ),
        (
            ("2026-11-20T10:03:00Z", "now"),
            "31: workloads[0].signals[1].since: 'now' is not a time of RFC 3339 (try '2026-11-20T10:15:00Z')",
        ),
        (("ready: false", "raedy: false"), "18: pools[0].nodes[2].raedy: unknown field (try 'ready')"),
        (("kind: Observation", "kind: Observations"), "2: kind: must be Observation (try 'Observation')"),
        (("placements:", "placement:"), "40: placement: unknown field (try 'placements')"),
    ],
)
def test_what_is_wrong_is_told_at_its_line(change, message):
    assert change[0] in FULL
    assert f"o.yaml:{message}" in refusal(FULL.replace(*change, 1))


@pytest.mark.parametrize("data", ["[]", "7", "text", '{"items": [7]}'])
def test_what_is_no_observation_is_refused(data):
    assert refusal(data)


def test_an_item_is_told_by_its_place():
    (document,) = parse(FULL.replace("worker-1", "W").encode(), "")
    (found,) = refusal(json.dumps({"items": [document.value]}, indent=1))
    assert found.startswith("o.yaml:6: items[0].cluster: 'W' is not a name")


def test_an_empty_file_observes_nothing():
    assert read(b"", "o.yaml") == ()


def test_a_cluster_without_pools_is_seen_and_has_nothing():
    minimal = '{apiVersion: overspill.dev/v1alpha1, kind: Observation, cluster: w, observedAt: "2026-11-20T10:00:00Z"}'
    (seen,) = read(minimal.encode(), "o.yaml")
    assert (seen.pools, seen.workloads, seen.bound) == ((), (), {})


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def placed(entry: str) -> str:
    return FULL.replace("{name: vllm-7f3a90c1, bound: 2}", f"{{name: vllm-7f3a90c1, bound: 2, {entry}}}")


def test_engines_word_comes_with_the_observation() -> None:
    entry = f"ready: 1, state: Failed, message: gave up, digest: sha256-3b1c, revision: '{COMMIT}'"
    (seen,) = read(placed(f"{entry}, since: '2026-11-20T10:01:00Z'").encode(), "a.yaml")
    (report,) = seen.reports.values()
    assert seen.reports.keys() == {"clusters/worker-1/vllm-7f3a90c1"}
    assert (report.state, report.message, report.digest) == (EngineState.FAILED, "gave up", "sha256-3b1c")
    assert (report.revision, report.since) == (COMMIT, datetime(2026, 11, 20, 10, 1, tzinfo=UTC))
    assert (seen.ready, seen.waiting_reasons) == ({"vllm-7f3a90c1": 1}, {})


def test_message_without_a_state_is_about_the_pods() -> None:
    (seen,) = read(placed("ready: 0, message: ImagePullBackOff").encode(), "a.yaml")
    assert (seen.ready, seen.waiting_reasons) == ({"vllm-7f3a90c1": 0}, {"vllm-7f3a90c1": "ImagePullBackOff"})
    assert seen.reports == {}


def test_pods_of_a_placement_wait_since_the_first_of_them_found_no_node() -> None:
    later, first = "{pods: 2, since: '2026-11-20T10:01:00Z'}", "{pods: 1, since: '2026-11-20T11:00:30+01:00'}"
    (seen,) = read(placed(f"waiting: [{later}, {first}, {{pods: 3}}]").encode(), "a.yaml")
    pending_pods = seen.pending_pods[PlacementName("vllm-7f3a90c1")]
    assert (pending_pods.replicas, pending_pods.since) == (6, datetime(2026, 11, 20, 10, 0, 30, tzinfo=UTC))
    (seen,) = read(placed("waiting: [{pods: 3}]").encode(), "a.yaml")
    assert seen.pending_pods[PlacementName("vllm-7f3a90c1")].since is None


@pytest.mark.parametrize("entry", ["waiting: []", "waiting: [{pods: 0, since: '2026-11-20T10:01:00Z'}]"])
def test_no_pod_waits_in_an_entry_of_none(entry: str) -> None:
    (seen,) = read(placed(entry).encode(), "a.yaml")
    assert seen.pending_pods == {}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("state: Failed", "placements[0]: has a state but no digest (try the annotation overspill.dev/digest of the"),
        ("state: Healthy, digest: a", "placements[0]: is Healthy at no revision (try the commit that the engine has"),
        (
            "revision: main",
            "placements[0].revision: 'main' is not a commit's full id (try what `git rev-parse` prints)",
        ),
        ("state: failed", "placements[0].state: "),
        ("ready: -1", "placements[0].ready: -1 is less than 0"),
        (
            "completionTime: '2026-11-20T10:06:01Z'",
            "o.yaml:41: placements[0].completionTime: 2026-11-20T10:06:01Z is after observedAt (try the completionTime",
        ),
        ("waiting: [{since: '2026-11-20T10:01:00Z'}]", "o.yaml:41: placements[0].waiting[0].pods: is required"),
        (
            "waiting: [{pods: 1}, {pods: 1, since: 5m}]",
            ("o.yaml:41: placements[0].waiting[1].since: '5m' is not a time of RFC 3339 (try '2026-11-20T10:15:00Z')"),
        ),
        (
            "waiting: [{pods: 1}, {pods: 1, since: '2026-11-20T10:06:01Z'}]",
            (
                "o.yaml:41: placements[0].waiting[1].since: 2026-11-20T10:06:01Z is after observedAt"
                " (try the lastTransitionTime of the pod's condition PodScheduled)"
            ),
        ),
    ],
)
def test_what_cannot_be_so_of_a_placement_is_refused(entry: str, message: str) -> None:
    assert any(message in line for line in refusal(placed(entry)))


def terms(*requirements: str, kind: str = "matchExpressions") -> str:
    """Write the full observation with a term of node affinity."""
    return FULL.replace(
        "nodeSelector:", f"nodeSelectorTerms: [{{{kind}: [{', '.join(requirements)}]}}]\n    nodeSelector:"
    )


def test_node_affinity_is_read_as_in_a_pod():
    asked = '{key: cores, operator: Gt, values: ["8"]}', "{key: old, operator: DoesNotExist}"
    (workload,) = read(terms(*asked).encode(), "o.yaml")[0].workloads
    cores = Requirement(key="cores", operator="Gt", values=("8",))
    assert workload.shape.node_terms == (Requirements(labels=(cores, Requirement(key="old", operator="DoesNotExist"))),)
    named = terms("{key: metadata.name, operator: In, values: [one]}", kind="matchFields")
    (workload,) = read(named.encode(), "o.yaml")[0].workloads
    assert workload.shape.node_terms[0].fields[0].key == "metadata.name"


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        ("{key: a, operator: In}", "In needs values (try 'values: [a, b]')"),
        ("{key: a, operator: Exists, values: [b]}", "Exists takes no values (leave out values, or try 'operator: In')"),
        ("{key: a, operator: Lt, values: [few]}", """Lt needs one whole number (try 'values: ["8"]')"""),
        ("{key: a, operator: Near}", "'Near' is not one of In, NotIn, Exists, DoesNotExist, Gt, Lt"),
    ],
)
def test_node_affinity_that_kubernetes_refuses_is_refused(requirement, message):
    (told,) = refusal(terms(requirement))
    assert told.startswith("o.yaml:35: workloads[0].replica.nodeSelectorTerms[0].matchExpressions[0]")
    assert message in told


def test_an_observation_says_when_a_run_was_complete() -> None:
    (seen,) = read(
        b"{apiVersion: overspill.dev/v1alpha1, kind: Observation, cluster: worker-2,"
        b" observedAt: '2026-11-20T10:05:00Z',"
        b" placements: [{name: a, bound: 0, completionTime: '2026-11-20T10:04:00Z'}, {name: b, bound: 1}]}",
        "seen.yaml",
    )
    assert seen.succeeded == {"a": SucceededPods(pods=None, at=datetime(2026, 11, 20, 10, 4, tzinfo=UTC))}


HEAD = {
    "apiVersion": "overspill.dev/v1alpha1",
    "kind": "Observation",
    "cluster": "worker-1",
    "observedAt": "2026-11-20T10:05:00Z",
}


def refused(**fields: object) -> list[str]:
    """Read an observation that is refused; return its problems with their fields."""
    with pytest.raises(InvalidInput) as caught:
        read(json.dumps({**HEAD, **fields}).encode(), "seen.json")
    return [f"{problem.field}: {problem.message} ({problem.hint})" for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("quota", "problem"),
    [
        ({"scopes": ["Best"]}, "scopes[0]: 'Best' is not one of Terminating, NotTerminating, BestEffort"),
        (
            {"scopeSelector": [{"scopeName": "PriorityClas", "operator": "Exists"}]},
            "scopeSelector[0].scopeName: 'PriorityClas' is not one of",
        ),
        (
            {"scopeSelector": [{"scopeName": "PriorityClass", "operator": "In"}]},
            "scopeSelector[0]: In takes values",
        ),
        (
            {"scopeSelector": [{"scopeName": "PriorityClass", "operator": "Exists", "values": ["high"]}]},
            "scopeSelector[0]: Exists takes no values",
        ),
        (
            {"scopeSelector": [{"scopeName": "BestEffort", "operator": "In", "values": ["a"]}]},
            "scopeSelector[0]: BestEffort takes no In (try Exists)",
        ),
        (
            {"scopeSelector": {"matchExpressions": []}},
            "scopeSelector: must be a list (write its matchExpressions here, as a list)",
        ),
    ],
)
def test_scopes_of_a_quota_are_those_that_an_api_server_takes(quota: dict[str, object], problem: str) -> None:
    (told,) = refused(resourceQuotas=[{"namespace": "ml", "name": "gpus", "hard": {"pods": 0}, **quota}])
    assert told.startswith(f"resourceQuotas[0].{problem}")


def test_quota_as_kubectl_prints_it_is_refused_with_the_fields_to_write() -> None:
    hint = "write its status.hard as hard, its status.used as used, and its spec.scopes as scopes"
    quota = {"namespace": "ml", "name": "gpus", "spec": {"hard": {"pods": 0}}}
    assert refused(resourceQuotas=[quota]) == [f"resourceQuotas[0]: is a ResourceQuota as kubectl prints it ({hint})"]


@pytest.mark.parametrize("version", ["apps", "apps/v1/x", "Apps/v1", "v", "v1/", "/v1", "v1 "])
def test_api_versions_are_written_as_an_api_server_lists_them(version: str) -> None:
    (told,) = refused(apiVersions=["v1", version])
    assert told.startswith(f"apiVersions[1]: {version!r} is no API version (try what `kubectl api-versions` prints")


def test_api_versions_of_custom_kinds_may_have_any_name() -> None:
    versions = ["v1", "apps/v1", "resource.k8s.io/v1beta2", "example.com/stable"]
    (seen,) = read(json.dumps({**HEAD, "apiVersions": versions}).encode(), "seen.json")
    assert seen.api_versions == frozenset(versions)


LATER = "2026-11-20T10:30:00Z"


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"unschedulable": [{"replicas": 1, "since": LATER}]}, "unschedulable[0].since"),
        ({"blocked": [{"replicas": 1, "since": LATER, "reason": "Volume"}]}, "blocked[0].since"),
        ({"signals": [{"name": "queue", "replicas": 1, "since": LATER}]}, "signals[0].since"),
        ({"deficitSince": LATER}, "deficitSince"),
    ],
)
def test_demand_does_not_begin_after_it_is_observed(fields: dict[str, object], place: str) -> None:
    workload = {"namespace": "ml", "name": "vllm", "wanted": 2, "running": 1, **fields}
    (told,) = refused(workloads=[workload])
    assert told.startswith(f"workloads[0].{place}: {LATER} is after observedAt (try ")


def test_blocked_names_only_the_reasons_that_it_takes() -> None:
    entry = {"replicas": 1, "since": HEAD["observedAt"], "reason": "Volum"}
    (told,) = refused(workloads=[{"namespace": "ml", "name": "vllm", "wanted": 2, "running": 1, "blocked": [entry]}])
    assert told.startswith("workloads[0].blocked[0].reason: 'Volum' is not one of Volume, ResourceClaim, ")
    assert told.endswith("(try 'Volume')")
    assert "Capacity" not in told


def test_queues_are_told_at_the_field_that_is_wrong() -> None:
    group = {"flavors": [{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "five"}]}]}
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "team"},
        "spec": {"resourceGroups": [group]},
    }
    place = "queues[0].spec.resourceGroups[0].flavors[0].resources[0].nominalQuota"
    assert refused(queues=[queue]) == [f"{place}: 'five' is no quantity (try a number, as 8 or 500m or 64Gi)"]
    assert refused(queues=[{**queue, "apiVersion": "v1"}]) == [
        "queues[0].apiVersion: ClusterQueue is not of v1 (try kueue.x-k8s.io/v1beta2 or v1beta1)"
    ]
    (told,) = refused(queues=[{**queue, "kind": "Workload"}])
    assert told.startswith("queues[0].kind: Workload is no queue of Kueue (one of LocalQueue of kueue.x-k8s.io, ")
    assert told.endswith("Namespace of v1)")
