"""WorkloadSpread files as people have them: OpenKruise's own samples, and a small one to change one thing about."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.ids import WorkloadId
from reconciler.model.policy import Desired
from reconciler.model.workloadspread import WorkloadSpread
from tests.fleet.samples import FLEET, TEMPLATE, cluster, errors, load, text, warnings, workspace

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
    """Write a fleet whose template lends replicas to this object, with a cluster for each zone of the samples."""
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
        "templates/vllm.yaml": template.replace("        name: vllm", f"        name: {name}"),
        "workspaces/llm.yaml": workspace()
        .replace("llm-demo", namespace)
        .replace("[worker-1, worker-2]", f"[{', '.join(zones)}]"),
    }


DEMO = text("""
    apiVersion: apps.kruise.io/v1alpha1
    kind: WorkloadSpread
    metadata:
      name: workloadspread-demo
    spec:
      targetRef:
        apiVersion: apps.kruise.io/v1alpha1
        kind: CloneSet
        name: workload-xxx
      subsets:
        - name: subset-a
          requiredNodeSelectorTerm:
            matchExpressions:
              - key: topology.kubernetes.io/zone
                operator: In
                values:
                  - zone-a
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
        - name: subset-b
          requiredNodeSelectorTerm:
            matchExpressions:
              - key: topology.kubernetes.io/zone
                operator: In
                values:
                  - zone-b
      scheduleStrategy:
        type: Adaptive
        adaptive:
          rescheduleCriticalSeconds: 30
    """)
ELASTIC = text("""
    apiVersion: apps.kruise.io/v1alpha1
    kind: WorkloadSpread
    metadata:
      name: ws-demo
      namespace: deploy
    spec:
      targetRef:
        apiVersion: apps.kruise.io/v1alpha1
        kind: CloneSet
        name: workload-xxx
      subsets:
      - name: ACK
        requiredNodeSelectorTerm:
          matchExpressions:
          - key: topology.kubernetes.io/zone
            operator: In
            values:
            - ack
        maxReplicas: 100
        patch:
          metadata:
            labels:
              deploy/zone: ack
      - name: ECI
        requiredNodeSelectorTerm:
          matchExpressions:
          - key: topology.kubernetes.io/zone
            operator: In
            values:
            - eci
    """)
DOMAINS = text("""
    apiVersion: apps.kruise.io/v1alpha1
    kind: WorkloadSpread
    metadata:
      name: ws-demo
      namespace: deploy
    spec:
      targetRef:
        apiVersion: apps.kruise.io/v1alpha1
        kind: CloneSet
        name: workload-xxx
      subsets:
      - name: subset-a
        requiredNodeSelectorTerm:
          matchExpressions:
          - key: topology.kubernetes.io/zone
            operator: In
            values:
            - zone-a
        maxReplicas: 100
        patch:
          metadata:
            labels:
              deploy/zone: zone-a
      - name: subset-b
        requiredNodeSelectorTerm:
          matchExpressions:
          - key: topology.kubernetes.io/zone
            operator: In
            values:
            - zone-b
        maxReplicas: 100
        patch:
          metadata:
            labels:
              deploy/zone: zone-b
    """)
TFJOB = text("""
    apiVersion: apps.kruise.io/v1alpha1
    kind: WorkloadSpread
    metadata:
      name: ws-tfjob-demo
    spec:
      targetRef:
        apiVersion: kubeflow.org/v1alpha1
        kind: TFJob
        name: tfjob-demo
      targetFilter:
        selector:
          matchLabels:
            role: worker
        replicasPathList:
          - spec.tfReplicaSpecs.Worker.replicas
      subsets:
      - name: anywhere
    """)
ROLLOUT = text("""
    apiVersion: apps.kruise.io/v1alpha1
    kind: WorkloadSpread
    metadata:
      name: workloadspread-demo
    spec:
      targetRef:
        apiVersion: argoproj.io/v1alpha1
        kind: Rollout
        name: rollouts-demo
      subsets:
      - name: anywhere
    """)
TOLERATION = '{key: "key1", operator: "Equal", value: "value1", effect: "NoSchedule"}'
PATCHES = (
    "{metadata: {labels: {topology.application.deploy/zone: zone-a}}}",
    "{spec: {containers: [{name: main, resources: {limit: {cpu: '2', memory: 800Mi}}}]}}",
    "{spec: {containers: [{name: main, env: [{name: K8S_AZ_NAME, value: zone-a}]}]}}",
)
"""The patches of the samples; the second is as it stands there, although Kubernetes calls them limits."""
