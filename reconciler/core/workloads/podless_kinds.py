"""Kinds whose objects make no pods, so that nothing of them has to fit.

An object of a kind that stands neither here nor in the register of `builtin_kinds` may make any number of pods; a
WorkloadKind with ``makesPods: false`` adds to these. CPU-only helpers that a controller adds by itself, as the solver
of a certificate, are not pods of the object.
"""

from __future__ import annotations

from reconciler.core.workloads.api_kinds import KUBERNETES_GROUPS, cluster_scoped

_GROUPS = frozenset({
    "autoscaling.k8s.io", "cert-manager.io", "cilium.io", "crd.projectcalico.org", "external-secrets.io",
    "gateway.networking.k8s.io", "generators.external-secrets.io", "inference.networking.k8s.io",
    "inference.networking.x-k8s.io", "k8s.cni.cncf.io", "kai.scheduler", "keda.sh", "kueue.x-k8s.io", "metallb.io",
    "monitoring.coreos.com", "multicluster.x-k8s.io", "networking.istio.io", "networking.kubeslice.io",
    "networking.x-k8s.io", "policy.kruise.io", "projectcalico.org", "resource.nvidia.com", "rollouts.kruise.io",
    "scheduling.run.ai", "scheduling.volcano.sh", "secrets-store.csi.x-k8s.io", "security.istio.io",
    "snapshot.storage.k8s.io", "sriovnetwork.openshift.io", "telemetry.istio.io", "topology.volcano.sh",
})  # fmt: skip # a list of words, filled line by line
"""API groups of which no kind but those of `_MAKERS` makes pods that need room."""

_MAKERS = frozenset({
    "keda.sh/ScaledJob", "monitoring.coreos.com/Alertmanager", "monitoring.coreos.com/Prometheus",
    "monitoring.coreos.com/PrometheusAgent", "monitoring.coreos.com/ThanosRuler",
})  # fmt: skip # a list of words, filled line by line

_KINDS = frozenset({
    "apps.kruise.io/ContainerRecreateRequest", "apps.kruise.io/EphemeralJob", "apps.kruise.io/ImageListPullJob",
    "apps.kruise.io/ImagePullJob", "apps.kruise.io/NodeImage", "apps.kruise.io/NodePodProbe",
    "apps.kruise.io/PersistentPodState", "apps.kruise.io/PodProbeMarker", "apps.kruise.io/ResourceDistribution",
    "apps.kruise.io/SidecarSet", "apps.kruise.io/WorkloadSpread", "argoproj.io/AnalysisTemplate",
    "argoproj.io/WorkflowTemplate", "bitnami.com/SealedSecret", "grove.io/ClusterTopology", "nvidia.com/DynamoModel",
    "serving.kserve.io/LLMInferenceServiceConfig", "serving.kserve.io/ServingRuntime",
    "serving.kserve.io/TrainedModel", "trainer.kubeflow.org/TrainingRuntime",
})  # fmt: skip # a list of words, filled line by line


def makes_no_pods(kind: str) -> bool:
    """Return whether objects of a ``group/Kind`` that is no kind of workload make no pods."""
    group = kind.partition("/")[0]
    if group in KUBERNETES_GROUPS or kind in _KINDS:
        return True
    return (group in _GROUPS and kind not in _MAKERS) or cluster_scoped(kind)
