"""The kinds of objects that templates, requests and charts may deploy: an allow-list, and never a deny-list.

Engines apply what a placement holds with rights of their own, and a controller may act on a namespaced object with more
rights still: k3s installs a HelmChart as cluster-admin, Kyverno and Crossplane make objects anywhere. So a kind is
allowed where it is a workload that is counted, an ordinary companion of one, or named in the Workspace's
``allowedKinds``. The AppProject and the roles of Flux are written from the same list (`engines`).
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.core.workloads.api_kinds import cluster_scoped
from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS, Kinds
from reconciler.model.policy import Workspace

COMPANIONS = frozenset({
    # Of Kubernetes. Not here: Role, RoleBinding (rights), Endpoints, EndpointSlice (traffic of other namespaces),
    # ResourceQuota, LimitRange (bounds of others in the namespace), Lease (leaders of controllers).
    "/ConfigMap", "/PersistentVolumeClaim", "/PodTemplate", "/Secret", "/Service", "/ServiceAccount",
    "autoscaling/HorizontalPodAutoscaler", "networking.k8s.io/Ingress", "networking.k8s.io/NetworkPolicy",
    "policy/PodDisruptionBudget", "resource.k8s.io/ResourceClaim", "resource.k8s.io/ResourceClaimTemplate",
    "autoscaling.k8s.io/VerticalPodAutoscaler", "snapshot.storage.k8s.io/VolumeSnapshot",
    # Routes within and beyond a cluster. Not here: Gateway (load balancers), ReferenceGrant (access for others).
    "gateway.networking.k8s.io/GRPCRoute", "gateway.networking.k8s.io/HTTPRoute",
    "gateway.networking.k8s.io/TCPRoute", "gateway.networking.k8s.io/TLSRoute",
    "inference.networking.k8s.io/InferencePool", "inference.networking.x-k8s.io/InferenceModel",
    "inference.networking.x-k8s.io/InferenceModelRewrite", "inference.networking.x-k8s.io/InferenceObjective",
    "inference.networking.x-k8s.io/InferencePool",
    "multicluster.x-k8s.io/ServiceExport", "networking.kubeslice.io/ServiceExport",
    # Scale and metrics. Not here: PrometheusRule, Probe (a Prometheus that all share).
    "keda.sh/ScaledJob", "keda.sh/ScaledObject", "keda.sh/TriggerAuthentication",
    "monitoring.coreos.com/PodMonitor", "monitoring.coreos.com/ServiceMonitor",
    # Secrets that are sealed, or fetched from a store that an admin has set up. Not here: SecretStore, PushSecret.
    "bitnami.com/SealedSecret", "cert-manager.io/Certificate", "external-secrets.io/ExternalSecret",
    # Groups of pods, and devices. Not here: queues, which bound tenants.
    "resource.nvidia.com/ComputeDomain", "scheduling.run.ai/PodGroup", "scheduling.volcano.sh/PodGroup",
    "scheduling.x-k8s.io/PodGroup",
    # Parts of workloads that are counted.
    "apps.kruise.io/WorkloadSpread", "argoproj.io/AnalysisRun", "argoproj.io/AnalysisTemplate",
    "argoproj.io/Experiment", "nvidia.com/DynamoModel", "policy.kruise.io/PodUnavailableBudget",
    "serving.kserve.io/InferenceGraph", "serving.kserve.io/LLMInferenceServiceConfig",
    "serving.kserve.io/ServingRuntime", "serving.kserve.io/TrainedModel", "trainer.kubeflow.org/TrainingRuntime",
})  # fmt: skip # a list of words, filled line by line
"""Namespaced kinds, as ``group/Kind``, that come with workloads and act in their namespace alone."""

_RIGHTS = frozenset({"authorization.openshift.io", "rbac.authorization.k8s.io"})
_K3S = frozenset({"helm.cattle.io", "k3s.cattle.io"})
"""HelmCharts, whose Jobs are bound to the ClusterRole cluster-admin, and Addons (https://docs.k3s.io/helm)."""
_WORKFLOWS = frozenset({"CronWorkflow", "Workflow", "WorkflowTemplate"})


def allowed(kinds: Kinds = NO_KINDS, workspaces: Iterable[Workspace] = ()) -> frozenset[str]:
    """Return the kinds that may be deployed: by any workspace, and by these. `kinds` are the fleet's WorkloadKinds."""
    usual = frozenset(kind for kind in (*BUILT_IN, *kinds) if not _overreach(kind))
    return usual | COMPANIONS | {kind for workspace in workspaces for kind in workspace.allowed_kinds}


def refuse_kind(kind: str, workspace: Workspace, kinds: Kinds = NO_KINDS) -> str:
    """Return why a workspace may not deploy a ``group/Kind``; empty where it may."""
    # 1. What the workspace names, whatever it is.
    if kind in workspace.allowed_kinds:
        return ""
    group, _, name = kind.partition("/")
    # 2. What reaches beyond its namespace, also where a WorkloadKind describes it.
    if why := _overreach(kind):
        return f"{name} {why}, which templates may not"
    # 3. Workloads and their companions.
    if kind in BUILT_IN or kind in kinds or kind in COMPANIONS:
        return ""
    # 4. Anything else.
    return f"{name}{f' of {group}' if group else ''} is not among the kinds that templates may hold"


def _overreach(kind: str) -> str:
    """Return what an object of a kind does beyond its namespace; empty where that is not known of it."""
    group, _, name = kind.partition("/")
    if group in _RIGHTS:
        return "grants rights (RBAC)"
    if group == "argoproj.io" and kind not in COMPANIONS and kind not in BUILT_IN and name not in _WORKFLOWS:
        return "steers Argo CD"
    if group.endswith("toolkit.fluxcd.io") or group == "fluxcd.controlplane.io":
        return "steers Flux"
    if group in _K3S:
        return "has k3s install things with the rights of its administrator"
    if kind in BUILT_IN and BUILT_IN[kind].wraps:
        return "makes objects of any kind"
    if kind == "apiextensions.k8s.io/CustomResourceDefinition":
        return "defines a kind for the whole cluster"
    return "belongs to the whole cluster" if cluster_scoped(kind) else ""
