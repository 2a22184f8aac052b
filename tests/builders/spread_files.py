"""WorkloadSpread files as people have them: OpenKruise's own samples, and a small one to change one thing about."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import indent

from reconciler.model.ids import WorkloadId
from reconciler.model.kubernetes.workload_spread import WorkloadSpread
from reconciler.model.policy import Desired
from tests.builders.fleet_files import FLEET, TEMPLATE, cluster, errors, load, text, warnings, workspace

HEAD = text("""
    apiVersion: apps.kruise.io/v1alpha1
    kind: WorkloadSpread
    metadata:
      name: vllm
      namespace: llm-demo
    spec:
      targetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm}
    """)
"""As far as the target of the fleet's template; the next line is line 8, and belongs into the spec."""
VLLM = WorkloadId("llm", "vllm")


def spread(more: str = "subsets: [{name: all}]", *, head: str = HEAD) -> str:
    """Write a spread; `more` are more lines of its spec."""
    return head + "".join(f"  {line}\n" for line in text(more).splitlines())


def subsets(*given: str) -> str:
    """Write a spread whose subsets have these fields each, in flow style, from line 9 on."""
    return spread("subsets:\n" + "".join(f"- {{name: s{index}, {one}}}\n" for index, one in enumerate(given)))


def labelled(name: str, zone: str) -> str:
    """Write a cluster in a zone."""
    return cluster(name).replace("  name:", f"  labels: {{zone: {zone}}}\n  name:")


def in_zone(zone: str) -> str:
    """Write what a subset requires to be of a zone, in flow style."""
    return f"requiredNodeSelectorTerm: {{matchExpressions: [{{key: zone, operator: In, values: [{zone}]}}]}}"


def wrong(more: str) -> list[str]:
    """Return the errors of a spread with these lines, without the path."""
    return [line.removeprefix("s.yaml:") for line in errors(load({**FLEET, "s.yaml": spread(more)}))]


def doubtful(source: str, files: Mapping[str, str] = FLEET) -> list[str]:
    """Return the warnings about a spread in a fleet that has no errors, without the path."""
    desired = load({**files, "s.yaml": source})
    assert errors(desired) == []
    return [line.removeprefix("s.yaml:") for line in warnings(desired) if line.startswith("s.yaml:")]


def governing(desired: Desired, workload: WorkloadId = VLLM) -> WorkloadSpread:
    """Return the spread that governs a template."""
    found = desired.policies[workload].spread
    assert found is not None
    return found


def fleet_for(kind: str, api_version: str, name: str, namespace: str) -> dict[str, str]:
    """Write a fleet whose template bursts replicas of this object, with a cluster for each zone of the samples."""
    template = TEMPLATE.replace("apiVersion: apps/v1", f"apiVersion: {api_version}")
    template = template.replace("kind: Deployment", f"kind: {kind}").replace("llm-demo", namespace)
    provided = f"{{provides: {{kinds: [{api_version.partition('/')[0]}/{kind}]}}}}"
    zones = {f"worker-{number}": zone for number, zone in enumerate(("zone-a", "zone-b", "ack", "eci"), start=1)}
    return {
        **FLEET,
        **{
            f"clusters/{worker}.yaml": cluster(worker, provided).replace(
                "  name:", f"  labels: {{topology.kubernetes.io/zone: {zone}}}\n  name:"
            )
            for worker, zone in zones.items()
        },
        "templates/vllm.yaml": template.replace("{name: vllm,", f"{{name: {name},"),
        "workspaces/llm.yaml": workspace()
        .replace("llm-demo", namespace)
        .replace("[worker-1, worker-2]", f"[{', '.join(zones)}]"),
    }


def _sample(named: str, target: str, rest: str) -> str:
    """Write a sample of OpenKruise's; `named` is its name, or its namespace and name, `target` what it is over."""
    namespace, _, name = named.rpartition("/")
    api_version, kind, workload = target.split()
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    lines = [f"  {field}: {value}" for field, value in metadata.items()]
    head = ["apiVersion: apps.kruise.io/v1alpha1", "kind: WorkloadSpread", "metadata:", *lines, "spec:", "  targetRef:"]
    aim = [f"    apiVersion: {api_version}", f"    kind: {kind}", f"    name: {workload}"]
    return "".join(f"{line}\n" for line in (*head, *aim)) + indent(text(rest), "  ")


def _in_zone(name: str, zone: str, rest: str = "") -> str:
    """Write a subset of a zone."""
    return text(f"""
        - name: {name}
          requiredNodeSelectorTerm:
            matchExpressions:
            - key: topology.kubernetes.io/zone
              operator: In
              values:
              - {zone}
        """) + indent(text(rest), "  ")


def _labelled(zone: str) -> str:
    return f"maxReplicas: 100\npatch:\n  metadata:\n    labels:\n      deploy/zone: {zone}\n"


_CLONES = "apps.kruise.io/v1alpha1 CloneSet workload-xxx"
DEMO = _sample(
    "workloadspread-demo",
    _CLONES,
    "subsets:\n"
    + _in_zone(
        "subset-a",
        "zone-a",
        """
        preferredNodeSelectorTerms:
          - weight: 1
            preference:
              matchExpressions:
                - key: another-node-label-key
                  operator: In
                  values:
                    - another-node-label-value
        maxReplicas: 3
        tolerations: [ ]
        patch:
          metadata:
            labels:
              xxx-specific-label: xxx
        """,
    )
    + _in_zone("subset-b", "zone-b")
    + text("""
        scheduleStrategy:
          type: Adaptive
          adaptive:
            rescheduleCriticalSeconds: 30
        """),
)
ELASTIC = _sample(
    "deploy/ws-demo", _CLONES, "subsets:\n" + _in_zone("ACK", "ack", _labelled("ack")) + _in_zone("ECI", "eci")
)
DOMAINS = _sample(
    "deploy/ws-demo",
    _CLONES,
    "subsets:\n" + "".join(_in_zone(f"subset-{one}", f"zone-{one}", _labelled(f"zone-{one}")) for one in "ab"),
)
TFJOB = _sample(
    "ws-tfjob-demo",
    "kubeflow.org/v1alpha1 TFJob tfjob-demo",
    """
    targetFilter:
      selector:
        matchLabels:
          role: worker
      replicasPathList:
        - spec.tfReplicaSpecs.Worker.replicas
    subsets:
    - name: anywhere
    """,
)
ROLLOUT = _sample("workloadspread-demo", "argoproj.io/v1alpha1 Rollout rollouts-demo", "subsets:\n- name: anywhere\n")
TOLERATION = '{key: "key1", operator: "Equal", value: "value1", effect: "NoSchedule"}'
PATCHES = (
    "{metadata: {labels: {topology.application.deploy/zone: zone-a}}}",
    "{spec: {containers: [{name: main, image: main:1, resources: {limit: {cpu: '2', memory: 800Mi}}}]}}",
    "{spec: {containers: [{name: main, image: main:1, env: [{name: K8S_AZ_NAME, value: zone-a}]}]}}",
)
"""The patches of the samples; the second is as it stands there, although Kubernetes calls them limits."""
