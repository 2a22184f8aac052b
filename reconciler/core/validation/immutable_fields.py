"""Fields that an API server lets nobody change once their object exists.

`FIELDS` is what Kubernetes and controllers of GPU platforms validate in code, a row for each rule with its source. A
CustomResourceDefinition of the fleet repository adds the fields whose validation rule is ``self == oldSelf``
(https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#transition-rules).

Values are compared as they are written. A default that one version of an object states and the other leaves out counts
as a change, which keeps the object as it is for no need, and harms nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.paths import at
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS, ObjectSchemas, Schema
from reconciler.model.kubernetes.workload_kind import Path
from reconciler.model.units import parse_quantity
from reconciler.model.workload import Json
from reconciler.text.digits import is_digits

_SERVER = "https://github.com/kubernetes/kubernetes/blob/master/pkg/apis"
_KUEUE = "https://github.com/kubernetes-sigs/kueue/blob/main/pkg/controller/jobframework/validation.go"
_KUEUE_API = "https://github.com/kubernetes-sigs/kueue/blob/main/apis/kueue/v1beta2"
_KRUISE = "https://github.com/openkruise/kruise/blob/master/pkg/webhook"
_KSERVE = "https://github.com/kserve/kserve/blob/master/pkg/apis/serving"
_VOLCANO = "https://github.com/volcano-sh/volcano/blob/master/pkg/webhooks/admission/jobs/validate/admit_job.go"

_ANY = "*"
"""In place of a kind: every kind."""

When = Literal["always", "marked", "set", "first", "balanced", "shrunk"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImmutableField:
    """A field that stays as it was created."""

    kind: str
    """The ``group/Kind``; ``*`` for every kind."""
    path: Path
    source: str
    """The validation that refuses the change."""
    but: frozenset[str] = frozenset()
    """Fields below it that may change; of a list, those of each item, the number of which stays."""
    when: When = "always"
    """Whether it counts ``always``; where the object is ``marked`` with ``immutable: true``; where the new version has
    it ``set``, since the server fills it in and keeps it; for the ``first`` item of lists that both have; where both
    Services are ``balanced`` by a load balancer; or where the amount has ``shrunk``."""


def _rows(kinds: str, paths: str, source: str, *, but: str = "", when: When = "always") -> Iterator[ImmutableField]:
    """Make a row of each kind and each dotted path."""
    for kind in kinds.split():
        for field_path in paths.split():
            path = tuple(field_path.split("."))
            yield ImmutableField(kind=kind, path=path, source=source, but=frozenset(but.split()), when=when)


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
        "leaderworkerset.x-k8s.io/LeaderWorkerSet",
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
    *_rows(
        "ray.io/RayCluster",
        "spec.gcsFaultToleranceOptions.backend",
        "https://github.com/ray-project/kuberay/blob/master/ray-operator/apis/ray/v1/raycluster_types.go",
    ),
    ImmutableField(kind=_ANY, path=("metadata", "labels", "kueue.x-k8s.io/queue-name"), source=_KUEUE),
)  # fmt: skip # a table, filled row by row
"""The rules of Kubernetes, and of controllers whose webhooks judge updates of objects that templates hold.

A Service keeps its address unless it is, or becomes, an ExternalName. A Job that is suspended may change where its pods
are scheduled; since a queue resumes a Job without a word in git, its template counts as immutable here throughout.
Webhooks of KubeRay and Volcano let anybody change a RayJob and a PodGroup otherwise (read in November 2026). Nobody
refuses another selector of a Rollout, but its ReplicaSets are orphaned, and their pods outlive the placement.
"""

_SERVICE_TYPE: Path = ("spec", "type")
_COMPLETIONS: Path = ("spec", "completions")
_POD_IMAGES = ("containers", "initContainers")
_IMAGE = frozenset({"image"})


def rules_of(manifest: Mapping[str, Json]) -> Iterator[ImmutableField]:
    """Yield the rules of Kubernetes and of controllers that hold for an object."""
    kind, marked = group_kind(manifest), manifest.get("immutable") is True
    for field in FIELDS:
        if field.kind in (kind, _ANY) and (marked or field.when != "marked"):
            yield field


def immutable_changes(
    before: Mapping[str, Json], after: Mapping[str, Json], schemas: ObjectSchemas = NO_SCHEMAS
) -> tuple[Path, ...]:
    """List the immutable fields that differ between two versions of one object, in the order of the rules."""
    changes = [field.path for field in rules_of(before) if _differs(field, before, after)]
    if group_kind(before) == "/Pod" and _pod_changes_beyond_images(before, after):
        changes.append(("spec", "containers"))
    kind = schemas.custom.get(group_kind(before))
    schema = kind.versions.get(str(after.get("apiVersion", "")).rpartition("/")[2]) if kind is not None else None
    if schema is not None:
        changes.extend(_transitions(schema, before, after, ()))
    return tuple(dict.fromkeys(changes))


def is_immutable(manifest: Mapping[str, Json], path: Path, schemas: ObjectSchemas = NO_SCHEMAS) -> bool:
    """Return whether the value at a path of an object, an index standing for an item, is part of an immutable field."""
    for field in rules_of(manifest):
        size = len(field.path)
        below = path[size:]
        name = below[1:2] if below and is_digits(below[0]) else below[:1]
        if path[:size] == field.path and name not in {(part,) for part in field.but} and field.when != "shrunk":
            return True
    kind = schemas.custom.get(group_kind(manifest))
    schema = kind.versions.get(str(manifest.get("apiVersion", "")).rpartition("/")[2]) if kind is not None else None
    for part in path:
        if schema is None or schema.is_immutable:
            break
        schema = schema.values if schema.type == "array" else schema.fields.get(part, schema.values)
    return schema is not None and schema.is_immutable


def _differs(field: ImmutableField, before: Mapping[str, Json], after: Mapping[str, Json]) -> bool:
    old, new = at(before, field.path), at(after, field.path)
    if field.when in ("set", "first") and "ExternalName" in (at(before, _SERVICE_TYPE), at(after, _SERVICE_TYPE)):
        return False
    if field.when == "set":
        return bool(new and old != new)
    if field.when == "balanced":
        # What stands may be of any type, since people write to the output branch.
        balanced = all(at(each, _SERVICE_TYPE) == "LoadBalancer" for each in (before, after))
        return balanced and bool(old != new)
    if field.when == "shrunk":
        return _has_shrunk(old, new)
    if field.when == "first":
        return isinstance(old, list) and isinstance(new, list) and bool(old and new and old[:1] != new[:1])
    if field.path == _COMPLETIONS and _is_elastic(before) and _is_elastic(after):
        return False
    return bool(_without(old, field.but) != _without(new, field.but))


def _has_shrunk(old: Json, new: Json) -> bool:
    """Return whether one amount is below another; what is no amount is refused elsewhere."""
    try:
        return parse_quantity(str(new)) < parse_quantity(str(old))
    except ValueError:
        return False


def _without(value: Json, names: frozenset[str]) -> Json:
    """Leave fields out, and those without a value, also in items; of a value with nothing else, None remains."""
    if isinstance(value, Mapping):
        return {name: part for name, part in value.items() if part is not None and name not in names} or None
    if isinstance(value, list) and names:
        return [_without(item, names) for item in value]
    return value


def _is_elastic(job: Mapping[str, Json]) -> bool:
    """Return whether a Job's completions may change: those of an indexed Job that follow its parallelism.

    https://kubernetes.io/docs/concepts/workloads/controllers/job/#elastic-indexed-jobs
    """
    spec = job.get("spec")
    if not isinstance(spec, Mapping) or spec.get("completionMode") != "Indexed":
        return False
    return spec.get("completions") is not None and spec.get("completions") == spec.get("parallelism")


def _pod_changes_beyond_images(before: Mapping[str, Json], after: Mapping[str, Json]) -> bool:
    return any(
        _without(at(before, ("spec", name)), _IMAGE) != _without(at(after, ("spec", name)), _IMAGE)
        for name in _POD_IMAGES
    )


def _transitions(schema: Schema, before: Json, after: Json, path: Path) -> Iterator[Path]:
    """Yield the fields that both versions have and whose rule forbids a change; items of lists have no old version.

    API servers compare a field with its old value only where it had one.
    """
    if before is None or after is None or before == after:
        return
    if schema.is_immutable:
        yield path
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted(before.keys() & after.keys()):
            below = schema.fields.get(name, schema.values)
            if below is not None:
                yield from _transitions(below, before[name], after[name], (*path, name))
