"""The rules by which API servers and webhooks refuse changes of objects: a row for each field, with its source.

Of a kind of workload that has no row, `tests/validation` says why. Values are compared by `immutable_fields`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from reconciler.model.kubernetes.workload_kind import Path

_SERVER = "https://github.com/kubernetes/kubernetes/blob/master/pkg/apis"
_GANGS = "https://github.com/kubernetes/api/blob/master/scheduling/v1alpha2/types.go"
_KUEUE = "https://github.com/kubernetes-sigs/kueue/blob/main/pkg/controller"
_KUEUE_JOBS = f"{_KUEUE}/jobframework/validation.go"
_QUEUE = "kueue.x-k8s.io/queue-name"
_SHAPE = (
    "affinity",
    "containers.*.ports",
    "containers.*.resources.requests",
    "initContainers.*.ports",
    "initContainers.*.resources.requests",
    "nodeSelector",
    "overhead",
    "priority",
    "resourceClaims",
    "resources.requests",
    "runtimeClassName",
    "tolerations",
    "topologySpreadConstraints",
)
"""What Kueue compares of the pods of serving workloads, beside the number of their containers (`SpecShape`)."""
_KUEUE_API = "https://github.com/kubernetes-sigs/kueue/blob/main/apis/kueue/v1beta2"
_KRUISE = "https://github.com/openkruise/kruise/blob/master/pkg/webhook"
_KSERVE = "https://github.com/kserve/kserve/blob/master/pkg/apis/serving"
_LWS = "leaderworkerset.x-k8s.io/LeaderWorkerSet"
_TRAINING = "https://github.com/kubeflow/training-operator/blob/master/pkg/common/util/webhooks.go"
_APP_WRAPPER = "https://github.com/project-codeflare/appwrapper/blob/main/internal/webhook/appwrapper_webhook.go"
_WRAPPERS = "workload.codeflare.dev"
_GROVE = (
    "https://github.com/ai-dynamo/grove/blob/main/operator/internal/webhook/admission/pcs/validation/podcliqueset.go"
)
_DYNAMO = "https://github.com/ai-dynamo/dynamo/tree/main/deploy/operator/internal/webhook/validation"
_VOLCANO = "https://github.com/volcano-sh/volcano/blob/master/pkg/webhooks/admission/jobs/validate/admit_job.go"

ANY = "*"
"""In place of a kind: every kind."""

When = Literal["always", "marked", "set", "first", "balanced", "shrunk", "named", "present", "both", "counted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImmutableField:
    """A field that stays as it was created."""

    kind: str
    """The ``group/Kind``; ``*`` for every kind."""
    path: Path
    """Where it is; a ``*`` stands for each entry that both versions have, items of lists by their names."""
    source: str
    """The validation that refuses the change."""
    but: frozenset[str] = frozenset()
    """Fields below it that may change; of a list, those of each item, the number of which stays."""
    when: When = "always"
    """Whether it counts ``always``; where the object is ``marked`` with ``immutable: true``; where the new version has
    it ``set``, since the server fills it in and keeps it; for the ``first`` item of lists that both have; where both
    Services are ``balanced`` by a load balancer; where the amount has ``shrunk``; for the names of its entries alone
    (``named``); for whether it is ``present``; where ``both`` versions have it, as of a rule with ``oldSelf``; or for a
    number that is ``counted``: 1 where it is absent, and free to change from and to 0."""
    given: Path = ()
    """A field beside it; the rule holds where either version has that, and not as false. Empty for always."""
    label: str = ""
    """A label of the object without which the rule does not hold. Empty for always."""


def _rows(
    kinds: str, paths: str, source: str, *, but: str = "", when: When = "always", given: str = "", label: str = ""
) -> Iterator[ImmutableField]:
    """Make a row of each kind and each dotted path."""
    beside = tuple(given.split(".")) if given else ()
    for kind in kinds.split():
        for field_path in paths.split():
            path = tuple(field_path.split("."))
            yield ImmutableField(
                kind=kind, path=path, source=source, but=frozenset(but.split()), when=when, given=beside, label=label
            )


def _queued_rows(kind: str, path: str, source: str) -> Iterator[ImmutableField]:
    """Make the rows of a pod spec that Kueue keeps in a serving workload with a queue."""
    yield from _rows(kind, f"{path}.containers {path}.initContainers", source, when="named", label=_QUEUE)
    yield from _rows(kind, " ".join(f"{path}.{part}" for part in _SHAPE), source, label=_QUEUE)


FIELDS: tuple[ImmutableField, ...] = (
    *_rows(
        "apps/DaemonSet apps/Deployment apps/ReplicaSet", "spec.selector", f"{_SERVER}/apps/validation/validation.go"
    ),
    *_rows(
        "apps/StatefulSet",
        "spec",
        f"{_SERVER}/apps/validation/validation.go",
        but="minReadySeconds ordinals persistentVolumeClaimRetentionPolicy replicas revisionHistoryLimit template"
        " updateStrategy",
    ),
    *_rows(
        "batch/Job",
        "spec.backoffLimitPerIndex spec.completionMode spec.completions spec.managedBy spec.podFailurePolicy"
        " spec.selector spec.successPolicy spec.template",
        f"{_SERVER}/batch/validation/validation.go",
    ),
    *_rows("/ConfigMap", "binaryData data immutable", f"{_SERVER}/core/validation/validation.go", when="marked"),
    *_rows("/Secret", "data immutable stringData", f"{_SERVER}/core/validation/validation.go", when="marked"),
    *_rows("/Secret", "type", f"{_SERVER}/core/validation/validation.go"),
    *_rows(
        "/PersistentVolumeClaim",
        "spec",
        f"{_SERVER}/core/validation/validation.go",
        but="resources volumeAttributesClassName",
    ),
    *_rows(
        "/PersistentVolumeClaim",
        "spec.resources.requests.storage",
        f"{_SERVER}/core/validation/validation.go",
        when="shrunk",
    ),
    *_rows(
        "/Pod",
        "spec",
        f"{_SERVER}/core/validation/validation.go",
        but="activeDeadlineSeconds containers initContainers schedulingGates terminationGracePeriodSeconds tolerations",
    ),
    *_rows("/Service", "spec.clusterIP", f"{_SERVER}/core/validation/validation.go", when="set"),
    *_rows("/Service", "spec.healthCheckNodePort", f"{_SERVER}/core/validation/validation.go", when="set"),
    *_rows("/Service", "spec.loadBalancerClass", f"{_SERVER}/core/validation/validation.go", when="balanced"),
    *_rows("/Service", "spec.clusterIPs", f"{_SERVER}/core/validation/validation.go", when="first"),
    *_rows("/Service", "spec.ipFamilies", f"{_SERVER}/core/validation/validation.go", when="first"),
    *_rows(
        "/PersistentVolume",
        "spec",
        f"{_SERVER}/core/validation/validation.go",
        but="accessModes capacity claimRef mountOptions nodeAffinity persistentVolumeReclaimPolicy storageClassName"
        " volumeAttributesClassName",
    ),
    *_rows("/ResourceQuota", "spec.scopes", f"{_SERVER}/core/validation/validation.go"),
    *_rows(
        "rbac.authorization.k8s.io/ClusterRoleBinding rbac.authorization.k8s.io/RoleBinding",
        "roleRef",
        f"{_SERVER}/rbac/validation/validation.go",
    ),
    *_rows("discovery.k8s.io/EndpointSlice", "addressType", f"{_SERVER}/discovery/validation/validation.go"),
    *_rows(
        "apiextensions.k8s.io/CustomResourceDefinition",
        "spec.names.kind spec.scope",
        "https://github.com/kubernetes/apiextensions-apiserver/blob/master/pkg/apis/apiextensions/validation/validation.go",
    ),
    *_rows("node.k8s.io/RuntimeClass", "handler", f"{_SERVER}/node/validation/validation.go"),
    *_rows("networking.k8s.io/IngressClass", "spec.controller", f"{_SERVER}/networking/validation/validation.go"),
    *_rows(
        "scheduling.k8s.io/PriorityClass", "preemptionPolicy value", f"{_SERVER}/scheduling/validation/validation.go"
    ),
    *_rows(
        "scheduling.k8s.io/Workload",
        "spec.controllerRef spec.podGroupTemplates",
        _GANGS,
    ),
    *_rows(
        "scheduling.k8s.io/PodGroup",
        "spec.disruptionMode spec.podGroupTemplateRef spec.priority spec.priorityClassName spec.resourceClaims"
        " spec.schedulingConstraints spec.schedulingPolicy",
        _GANGS,
    ),
    *_rows(
        "storage.k8s.io/StorageClass",
        "parameters provisioner reclaimPolicy volumeBindingMode",
        f"{_SERVER}/storage/validation/validation.go",
    ),
    *_rows(
        "storage.k8s.io/VolumeAttributesClass",
        "driverName parameters",
        f"{_SERVER}/storage/validation/validation.go",
    ),
    *_rows(
        "resource.k8s.io/ResourceClaim resource.k8s.io/ResourceClaimTemplate",
        "spec",
        f"{_SERVER}/resource/validation/validation.go",
    ),
    *_rows(
        "jobset.x-k8s.io/JobSet",
        "spec.managedBy spec.replicatedJobs",
        "https://github.com/kubernetes-sigs/jobset/blob/main/pkg/webhooks/jobset_webhook.go",
    ),
    *_rows(
        "jobset.x-k8s.io/JobSet",
        "spec.failurePolicy spec.network spec.startupPolicy spec.successPolicy spec.volumeClaimPolicies",
        "https://github.com/kubernetes-sigs/jobset/blob/main/api/jobset/v1alpha2/jobset_types.go",
    ),
    *_rows(
        "trainer.kubeflow.org/TrainJob",
        "spec.activeDeadlineSeconds spec.initializer spec.managedBy spec.runtimeRef spec.trainer",
        "https://github.com/kubeflow/trainer/blob/master/pkg/apis/trainer/v1alpha1/trainjob_types.go",
    ),
    *_rows(
        "trainer.kubeflow.org/ClusterTrainingRuntime trainer.kubeflow.org/TrainingRuntime",
        "spec.template.spec.failurePolicy spec.template.spec.network spec.template.spec.startupPolicy"
        " spec.template.spec.successPolicy spec.template.spec.replicatedJobs.*.dependsOn",
        "https://github.com/kubernetes-sigs/jobset/blob/main/api/jobset/v1alpha2/jobset_types.go",
        when="both",
    ),
    *_rows(
        "apps.kruise.io/CloneSet",
        "spec",
        f"{_KRUISE}/cloneset/validating/validation.go",
        but="lifecycle minReadySeconds progressDeadlineSeconds replicas revisionHistoryLimit scaleStrategy template"
        " updateStrategy volumeClaimTemplates",
    ),
    *_rows(
        "apps.kruise.io/StatefulSet",
        "spec",
        f"{_KRUISE}/statefulset/validating/statefulset_validation.go",
        but="lifecycle ordinals persistentVolumeClaimRetentionPolicy replicas reserveOrdinals revisionHistoryLimit"
        " scaleStrategy template updateStrategy volumeClaimTemplates volumeClaimUpdateStrategy",
    ),
    *_rows(
        "apps.kruise.io/DaemonSet",
        "spec",
        f"{_KRUISE}/daemonset/validating/daemonset_create_update_handler.go",
        but="burstReplicas lifecycle minReadySeconds revisionHistoryLimit scaleStrategy template updateStrategy",
    ),
    *_rows(
        "apps.kruise.io/AdvancedCronJob",
        "spec",
        f"{_KRUISE}/advancedcronjob/validating/advancedcronjob_create_update_handler.go",
        but="concurrencyPolicy failedJobsHistoryLimit paused schedule startingDeadlineSeconds"
        " successfulJobsHistoryLimit template timeZone",
    ),
    *_rows(
        "apps.kruise.io/AdvancedCronJob",
        "spec.template",
        f"{_KRUISE}/advancedcronjob/validating/advancedcronjob_create_update_handler.go",
        but="imageListPullJobTemplate",
    ),
    *_rows(
        "apps.kruise.io/PersistentPodState",
        "spec.targetRef",
        f"{_KRUISE}/persistentpodstate/validating/persistent_create_update_handler.go",
    ),
    *_rows(
        "apps.kruise.io/PodProbeMarker",
        "spec.selector",
        f"{_KRUISE}/podprobemarker/validating/probe_create_update_handler.go",
    ),
    *_rows(
        "argoproj.io/Rollout",
        "spec.selector",
        "https://github.com/argoproj/argo-rollouts/blob/master/rollout/replicaset.go",
    ),
    *_rows("kueue.x-k8s.io/LocalQueue", "spec.clusterQueue", f"{_KUEUE_API}/localqueue_types.go"),
    *_rows("kueue.x-k8s.io/AdmissionCheck", "spec.controllerName", f"{_KUEUE_API}/admissioncheck_types.go"),
    *_rows("kueue.x-k8s.io/Topology", "spec.levels", f"{_KUEUE_API}/topology_types.go"),
    *_rows("kueue.x-k8s.io/ResourceFlavor", "spec.topologyName", f"{_KUEUE_API}/resourceflavor_types.go"),
    *_rows(
        "apps/StatefulSet",
        "spec.replicas",
        f"{_KUEUE}/jobs/statefulset/statefulset_webhook.go",
        when="counted",
        label=_QUEUE,
    ),
    *_queued_rows("apps/StatefulSet", "spec.template.spec", f"{_KUEUE}/jobs/statefulset/statefulset_webhook.go"),
    *_rows(
        _LWS,
        "spec.leaderWorkerTemplate.leaderTemplate",
        f"{_KUEUE}/jobs/leaderworkerset/leaderworkerset_webhook.go",
        when="present",
        label=_QUEUE,
    ),
    *(
        row
        for pods in ("leaderTemplate", "workerTemplate")
        for row in _queued_rows(
            _LWS,
            f"spec.leaderWorkerTemplate.{pods}.spec",
            f"{_KUEUE}/jobs/leaderworkerset/leaderworkerset_webhook.go",
        )
    ),
    *_rows(
        "karpenter.sh/NodePool",
        "spec.template.spec.nodeClassRef.group spec.template.spec.nodeClassRef.kind",
        "https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/apis/v1/nodepool.go",
    ),
    *_rows(
        "karpenter.sh/NodeClaim",
        "spec",
        "https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/apis/v1/nodeclaim.go",
    ),
    *_rows(
        "serving.kserve.io/LocalModelCache serving.kserve.io/LocalModelNamespaceCache",
        "spec.sourceModelUri",
        f"{_KSERVE}/v1alpha1/local_model_cache_types.go",
    ),
    *_rows(
        "snapshot.storage.k8s.io/VolumeSnapshot",
        "spec.source",
        "https://github.com/kubernetes-csi/external-snapshotter/blob/master/client/apis/volumesnapshot/v1/types.go",
    ),
    *_rows(
        "serving.kserve.io/LLMInferenceService",
        "spec.parallelism spec.prefill.parallelism",
        f"{_KSERVE}/v1alpha2/llm_inference_service_validation.go",
    ),
    *_rows("serving.kserve.io/TrainedModel", "spec.model.memory", f"{_KSERVE}/v1alpha1/trainedmodel_webhook.go"),
    *_rows(
        "pool.kubevirt.io/VirtualMachinePool",
        "spec.selector",
        "https://github.com/kubevirt/kubevirt/blob/main/pkg/virt-api/webhooks/validating-webhook/admitters"
        "/vmpool-admitter.go",
    ),
    *_rows(
        _LWS,
        "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize",
        "https://github.com/kubernetes-sigs/lws/blob/main/pkg/webhooks/leaderworkerset_webhook.go",
    ),
    *_rows("batch.volcano.sh/Job", "spec", _VOLCANO, but="minAvailable priorityClassName tasks"),
    *_rows("batch.volcano.sh/Job", "spec.tasks", _VOLCANO, but="minAvailable replicas"),
    *_rows(
        "ray.io/RayCluster ray.io/RayJob ray.io/RayService",
        "spec.managedBy",
        "https://github.com/ray-project/kuberay/tree/master/ray-operator/apis/ray/v1",
    ),
    *(
        row
        for kind, spec in (("RayCluster", ""), ("RayJob", "rayClusterSpec."), ("RayService", "rayClusterConfig."))
        for row in _rows(
            f"ray.io/{kind}",
            f"spec.{spec}gcsFaultToleranceOptions.backend" + (f" spec.{spec}managedBy" if spec else ""),
            "https://github.com/ray-project/kuberay/blob/master/ray-operator/apis/ray/v1/raycluster_types.go",
            when="both",
        )
    ),
    *_rows(f"{_WRAPPERS}/AppWrapper", "spec.managedBy", _APP_WRAPPER),
    *_rows(f"{_WRAPPERS}/AppWrapper", "spec.components", _APP_WRAPPER, but="annotations podSetInfos podSets"),
    *_rows(f"{_WRAPPERS}/AppWrapper", "spec.components.*.podSets", _APP_WRAPPER, but="annotations"),
    *_rows(
        "kubeflow.org/JAXJob kubeflow.org/PaddleJob kubeflow.org/PyTorchJob kubeflow.org/TFJob kubeflow.org/XGBoostJob",
        "spec.runPolicy.managedBy",
        _TRAINING,
    ),
    *_rows(
        "kubeflow.org/MPIJob",
        "spec.runPolicy.managedBy",
        "https://github.com/kubeflow/mpi-operator/blob/master/pkg/apis/kubeflow/v2beta1/types.go",
    ),
    *_rows(
        "kubeflow.org/JAXJob kubeflow.org/MPIJob kubeflow.org/PaddleJob kubeflow.org/PyTorchJob kubeflow.org/TFJob"
        " kubeflow.org/XGBoostJob",
        "spec.runPolicy.schedulingPolicy.queue",
        "https://github.com/kubeflow/training-operator/blob/release-1.9/pkg/apis/kubeflow.org/v1/common_types.go",
        when="both",
    ),
    *_rows(
        "apps.kruise.io/UnitedDeployment",
        "spec.template.advancedStatefulSetTemplate.spec spec.template.statefulSetTemplate.spec",
        f"{_KRUISE}/uniteddeployment/validating/uniteddeployment_validation.go",
        but="replicas template updateStrategy",
    ),
    *_rows(
        "apps.kruise.io/UnitedDeployment",
        "spec.topology.subsets.*.nodeSelectorTerm spec.topology.subsets.*.tolerations",
        f"{_KRUISE}/uniteddeployment/validating/uniteddeployment_validation.go",
    ),
    *_rows(
        "grove.io/PodCliqueSet", "spec.template.cliques spec.template.podCliqueScalingGroups", _GROVE, when="named"
    ),
    *_rows(
        "grove.io/PodCliqueSet",
        "spec.template.cliqueStartupType spec.template.resourceClaimTemplates spec.template.resourceSharing"
        " spec.template.topologyConstraint"
        " spec.template.cliques.*.resourceSharing spec.template.cliques.*.topologyConstraint"
        " spec.template.cliques.*.spec.minAvailable spec.template.cliques.*.spec.roleName"
        " spec.template.cliques.*.spec.startsAfter spec.template.cliques.*.spec.podSpec.schedulerName"
        " spec.template.podCliqueScalingGroups.*.cliqueNames spec.template.podCliqueScalingGroups.*.minAvailable"
        " spec.template.podCliqueScalingGroups.*.resourceSharing"
        " spec.template.podCliqueScalingGroups.*.topologyConstraint",
        _GROVE,
    ),
    *_rows("nvidia.com/DynamoGraphDeployment", "spec.components spec.services", _DYNAMO, when="named"),
    *_rows(
        "nvidia.com/DynamoGraphDeployment",
        "spec.backendFramework spec.topologyConstraint spec.components.*.minAvailable"
        " spec.components.*.topologyConstraint spec.services.*.minAvailable spec.services.*.topologyConstraint",
        _DYNAMO,
    ),
    *_rows(
        "nvidia.com/DynamoGraphDeployment",
        "spec.components.*.multinode spec.services.*.multinode",
        _DYNAMO,
        when="present",
    ),
    *_rows("nvidia.com/DynamoGraphDeployment", "spec.components.*.replicas", _DYNAMO, given="scalingAdapter"),
    *_rows("nvidia.com/DynamoGraphDeployment", "spec.services.*.replicas", _DYNAMO, given="scalingAdapter.enabled"),
    *(
        ImmutableField(kind=f"{_WRAPPERS}/AppWrapper", path=("metadata", "labels", label), source=_APP_WRAPPER)
        for label in (f"{_WRAPPERS}/user", f"{_WRAPPERS}/userid")
    ),
    ImmutableField(
        kind="serving.kserve.io/InferenceService",
        path=("metadata", "annotations", "serving.kserve.io/deploymentMode"),
        source=f"{_KSERVE}/v1beta1/inference_service_validation.go",
        when="set",
    ),
    ImmutableField(kind=ANY, path=("metadata", "labels", _QUEUE), source=_KUEUE_JOBS),
    *(
        ImmutableField(kind=ANY, path=("metadata", part, f"kueue.x-k8s.io/{name}"), source=_KUEUE_JOBS, label=_QUEUE)
        for part, name in (
            ("labels", "max-exec-time-seconds"),
            ("labels", "prebuilt-workload-name"),
            ("annotations", "prebuilt-workload-name"),
            ("annotations", "elastic-job"),
        )
    ),
    ImmutableField(
        kind=ANY,
        path=("metadata", "labels", "kueue.x-k8s.io/priority-class"),
        source=_KUEUE_JOBS,
        when="present",
        label=_QUEUE,
    ),
    ImmutableField(
        kind="/Pod",
        path=("metadata", "labels", "kueue.x-k8s.io/pod-group-name"),
        source=f"{_KUEUE}/jobs/pod/pod_webhook.go",
    ),
)  # fmt: skip # a table, filled row by row
"""The rules of Kubernetes, and of controllers whose webhooks judge updates of objects that templates hold.

A Service keeps its address unless it is, or becomes, an ExternalName. A Job that is suspended may change where its pods
are scheduled; since a queue resumes a Job without a word in git, its template counts as immutable here throughout.
Webhooks of KubeRay and Volcano let anybody change a RayJob and a PodGroup otherwise (read in November 2026). Nobody
refuses another selector of a Rollout, but its ReplicaSets are orphaned, and their pods outlive the placement; nor
another manager of an MPIJob, whose type calls the field immutable, but its pods are left to nobody. Kueue 0.14 keeps
the priority class of what runs as it is, later releases let it change and keep only whether there is one.
"""
