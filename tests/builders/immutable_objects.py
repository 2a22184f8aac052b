"""Two versions of an object that differ in one field: one that nobody can change, or one that anybody can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciler.core.workloads.api_kinds import group_kind

NAMESPACE = "default"


@dataclass(frozen=True, kw_only=True)
class FieldChange:
    """A change of one object."""

    field: str
    """The field that changes, dotted."""
    before: dict[str, Any]
    after: dict[str, Any]

    @property
    def kind(self) -> str:
        """The ``group/Kind``."""
        return group_kind(self.before)

    @property
    def id(self) -> str:
        """The name of the case."""
        return f"{self.before['kind']}-{self.field}"


def _change(version: str, kind: str, field: str, before: Any, after: Any, **rest: Any) -> FieldChange:
    """Put two values (None: absent) at a dotted field of an object whose other fields are `rest`."""
    metadata = {"name": f"{kind}-{field.rpartition('.')[2]}".lower()[:50]}
    if not kind.startswith("Cluster") and kind not in _CLUSTER_SCOPED:
        metadata["namespace"] = NAMESPACE
    made = []
    for value in (before, after):
        manifest: dict[str, Any] = {"apiVersion": version, "kind": kind, "metadata": dict(metadata), **rest}
        *above, last = field.split(".")
        inside = manifest
        for part in above:
            inside[part] = dict(inside.get(part, {}))
            inside = inside[part]
        if value is not None:
            inside[last] = value
        made.append(manifest)
    return FieldChange(field=field, before=made[0], after=made[1])


_CLUSTER_SCOPED = {
    "IngressClass",
    "PersistentVolume",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "VolumeAttributesClass",
}


def _pod(image: str = "registry.example.com/server:1", **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "a", **labels}},
        "spec": {"containers": [{"name": "server", "image": image}]},
    }


def _once(image: str = "registry.example.com/prep:1") -> dict[str, Any]:
    return {"spec": {"restartPolicy": "Never", "containers": [{"name": "prep", "image": image}]}}


_SELECTOR = {"matchLabels": {"app": "a"}}
_NARROW = {"matchLabels": {"app": "a", "tier": "gpu"}}
_WORKLOAD = {"selector": _SELECTOR, "template": _pod(tier="gpu")}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "a"}
_SET = {**_WORKLOAD, "serviceName": "a"}
_JOB = {"template": _once(), "backoffLimit": 1}
_INDEXED = {**_JOB, "completionMode": "Indexed", "completions": 2}
_PORTS = {"ports": [{"port": 80}], "selector": {"app": "a"}}
_VOLUME = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "hostPath": {"path": "/data"},
    "storageClassName": "a",
}
_POLICY = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]}
_OTHER_POLICY = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2]}}]}
_SUCCESS = {"rules": [{"succeededCount": 1}]}
_DEVICES = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "a"}}]}}
_OTHER_DEVICES = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "b"}}]}}
_SUBJECT = [{"kind": "ServiceAccount", "name": "a", "namespace": NAMESPACE}]
_RBAC = "rbac.authorization.k8s.io"


def _role(kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": _RBAC, "kind": kind, "name": name}


CHANGES: tuple[FieldChange, ...] = (
    *(
        _change("apps/v1", kind, "spec.selector", _SELECTOR, _NARROW, spec={"template": _pod(tier="gpu")})
        for kind in ("DaemonSet", "Deployment", "ReplicaSet")
    ),
    _change("apps/v1", "StatefulSet", "spec", _SET, {**_SET, "serviceName": "b"}),
    _change("batch/v1", "Job", "spec.backoffLimitPerIndex", 1, 2, spec=_INDEXED),
    _change("batch/v1", "Job", "spec.completionMode", "NonIndexed", "Indexed", spec={**_JOB, "completions": 1}),
    _change("batch/v1", "Job", "spec.completions", 2, 3, spec=_JOB),
    _change("batch/v1", "Job", "spec.managedBy", None, "example.com/controller", spec=_JOB),
    _change("batch/v1", "Job", "spec.podFailurePolicy", _POLICY, _OTHER_POLICY, spec=_JOB),
    _change(
        "batch/v1",
        "Job",
        "spec.selector",
        {"matchLabels": {"app": "a"}},
        {"matchLabels": {"app": "a", "tier": "gpu"}},
        spec={
            **_JOB,
            "manualSelector": True,
            "template": {**_once(), "metadata": {"labels": {"app": "a", "tier": "gpu"}}},
        },
    ),
    _change("batch/v1", "Job", "spec.successPolicy", _SUCCESS, {"rules": [{"succeededIndexes": "0"}]}, spec=_INDEXED),
    _change(
        "batch/v1", "Job", "spec.template", _once(), _once("registry.example.com/prep:2"), spec={"backoffLimit": 1}
    ),
    _change("v1", "ConfigMap", "binaryData", {"a": "YQ=="}, {"a": "Yg=="}, immutable=True),
    _change("v1", "ConfigMap", "data", {"a": "1"}, {"a": "2"}, immutable=True),
    _change("v1", "ConfigMap", "immutable", True, False, data={"a": "1"}),
    _change("v1", "Secret", "data", {"a": "YQ=="}, {"a": "Yg=="}, immutable=True),
    _change("v1", "Secret", "immutable", True, False, data={"a": "YQ=="}),
    _change("v1", "Secret", "stringData", {"a": "1"}, {"a": "2"}, immutable=True),
    _change("v1", "Secret", "type", "Opaque", "example.com/token", data={"a": "YQ=="}),
    _change("v1", "PersistentVolumeClaim", "spec", _CLAIM, {**_CLAIM, "storageClassName": "b"}),
    _change("v1", "Pod", "spec", {**_pod()["spec"], "hostname": "a"}, {**_pod()["spec"], "hostname": "b"}),
    _change(
        "v1",
        "PersistentVolumeClaim",
        "spec.resources.requests.storage",
        "20Gi",
        "10Gi",
        spec={**_CLAIM, "resources": {"requests": {}}},
    ),
    _change(
        "v1",
        "Service",
        "spec.clusterIPs",
        ["10.0.0.201"],
        ["10.0.0.202"],
        spec={**_PORTS, "clusterIP": "10.0.0.201"},
    ),
    _change(
        "v1",
        "Service",
        "spec.loadBalancerClass",
        "example.com/a",
        "example.com/b",
        spec={**_PORTS, "type": "LoadBalancer"},
    ),
    _change(
        "v1",
        "Service",
        "spec.healthCheckNodePort",
        None,
        32101,
        spec={**_PORTS, "type": "LoadBalancer", "externalTrafficPolicy": "Local"},
    ),
    _change("discovery.k8s.io/v1", "EndpointSlice", "addressType", "IPv4", "IPv6", endpoints=[], ports=[]),
    _change("v1", "Service", "spec.clusterIP", None, "None", spec=_PORTS),
    _change("v1", "Service", "spec.ipFamilies", ["IPv4"], ["IPv6"], spec={**_PORTS, "ipFamilyPolicy": "SingleStack"}),
    _change("v1", "PersistentVolume", "spec", _VOLUME, {**_VOLUME, "hostPath": {"path": "/other"}}),
    _change("v1", "ResourceQuota", "spec.scopes", ["BestEffort"], ["NotBestEffort"], spec={"hard": {"pods": "1"}}),
    _change(
        f"{_RBAC}/v1",
        "ClusterRoleBinding",
        "roleRef",
        _role("ClusterRole", "view"),
        _role("ClusterRole", "edit"),
        subjects=_SUBJECT,
    ),
    _change(
        f"{_RBAC}/v1",
        "RoleBinding",
        "roleRef",
        _role("ClusterRole", "view"),
        _role("ClusterRole", "edit"),
        subjects=_SUBJECT,
    ),
    _change("node.k8s.io/v1", "RuntimeClass", "handler", "a", "b"),
    _change("networking.k8s.io/v1", "IngressClass", "spec.controller", "example.com/a", "example.com/b"),
    _change("scheduling.k8s.io/v1", "PriorityClass", "preemptionPolicy", "PreemptLowerPriority", "Never", value=1),
    _change("scheduling.k8s.io/v1", "PriorityClass", "value", 1, 2),
    _change("storage.k8s.io/v1", "StorageClass", "parameters", {"a": "1"}, {"a": "2"}, provisioner="example.com/a"),
    _change("storage.k8s.io/v1", "StorageClass", "provisioner", "example.com/a", "example.com/b"),
    _change("storage.k8s.io/v1", "StorageClass", "reclaimPolicy", "Delete", "Retain", provisioner="example.com/a"),
    _change(
        "storage.k8s.io/v1",
        "StorageClass",
        "volumeBindingMode",
        "Immediate",
        "WaitForFirstConsumer",
        provisioner="example.com/a",
    ),
    _change(
        "storage.k8s.io/v1",
        "VolumeAttributesClass",
        "driverName",
        "example.com/a",
        "example.com/b",
        parameters={"a": "1"},
    ),
    _change(
        "storage.k8s.io/v1", "VolumeAttributesClass", "parameters", {"a": "1"}, {"a": "2"}, driverName="example.com/a"
    ),
    _change("resource.k8s.io/v1", "ResourceClaim", "spec", _DEVICES, _OTHER_DEVICES),
    _change("resource.k8s.io/v1", "ResourceClaimTemplate", "spec", {"spec": _DEVICES}, {"spec": _OTHER_DEVICES}),
)
"""A change of each immutable field of Kubernetes."""

FREE_CHANGES: tuple[FieldChange, ...] = (
    _change(
        "v1",
        "Service",
        "spec.type",
        "ClusterIP",
        "LoadBalancer",
        spec={**_PORTS, "ports": [{"port": 82}]},
    ),
    _change(
        "apps/v1",
        "Deployment",
        "spec.template",
        _pod(),
        _pod("registry.example.com/server:2"),
        spec={"selector": _SELECTOR},
    ),
    _change("apps/v1", "Deployment", "spec.replicas", 1, 3, spec=_WORKLOAD),
    _change("apps/v1", "Deployment", "spec.strategy", None, {"rollingUpdate": {"maxSurge": 1}}, spec=_WORKLOAD),
    *(
        _change("apps/v1", "StatefulSet", f"spec.{field}", before, after, spec=_SET)
        for field, before, after in (
            ("minReadySeconds", 1, 2),
            ("ordinals", {"start": 0}, {"start": 3}),
            ("persistentVolumeClaimRetentionPolicy", None, {"whenDeleted": "Delete", "whenScaled": "Retain"}),
            ("replicas", 1, 2),
            ("revisionHistoryLimit", 2, 3),
            ("updateStrategy", {"type": "RollingUpdate"}, {"type": "OnDelete"}),
        )
    ),
    _change("batch/v1", "Job", "spec.parallelism", 1, 2, spec=_JOB),
    _change("batch/v1", "Job", "spec.backoffLimit", 1, 2, spec={"template": _once()}),
    _change("batch/v1", "Job", "spec.activeDeadlineSeconds", 10, 20, spec=_JOB),
    _change("batch/v1", "Job", "spec.ttlSecondsAfterFinished", 10, 20, spec=_JOB),
    _change("batch/v1", "Job", "spec.suspend", True, False, spec=_JOB),
    _change("v1", "ConfigMap", "data", {"a": "1"}, {"a": "2"}),
    _change("v1", "Secret", "data", {"a": "YQ=="}, {"a": "Yg=="}),
    _change("v1", "Service", "spec.ports", [{"port": 80}], [{"port": 81}], spec={"selector": {"app": "a"}}),
    _change("v1", "Service", "spec.selector", {"app": "a"}, {"app": "b"}, spec={"ports": [{"port": 80}]}),
    _change("v1", "Service", "spec.type", "ClusterIP", "NodePort", spec=_PORTS),
    _change(
        "v1",
        "Pod",
        "spec.containers",
        _pod()["spec"]["containers"],
        _pod("registry.example.com/server:2")["spec"]["containers"],
    ),
    _change("scheduling.k8s.io/v1", "PriorityClass", "description", "a", "b", value=1),
    _change("storage.k8s.io/v1", "StorageClass", "allowVolumeExpansion", False, True, provisioner="example.com/a"),
    _change("policy/v1", "PodDisruptionBudget", "spec.minAvailable", 1, 2, spec={"selector": _SELECTOR}),
    _change("networking.k8s.io/v1", "NetworkPolicy", "spec.podSelector", _SELECTOR, _NARROW),
    _change(
        "batch/v1",
        "CronJob",
        "spec.jobTemplate",
        {"spec": _JOB},
        {"spec": {"template": _once("registry.example.com/prep:2")}},
        spec={"schedule": "0 * * * *"},
    ),
)
"""Changes that an API server takes."""
