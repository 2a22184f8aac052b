"""Which fields of a Pod hold objects or lists, and how a strategic merge patch treats each: as data.

Read from the Go types of Kubernetes 1.36.3 (k8s.io/api/core/v1 and apimachinery's ObjectMeta: the tags
``patchStrategy`` and ``patchMergeKey``); `evictionResponders` is the one such list of a pod's spec that 1.37 adds. A
list without a merge key is atomic, such as tolerations, envFrom and the claims of resources: a patch replaces it.
``retainKeys``, which volumes and resourceClaims have as well, is for who computes patches; the directive of that name
works wherever it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ROOT = "Pod"
FLAT = ""
"""The name of every type that has no object and no list in it, maps of texts among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodField:
    """A field that holds an object `of` a type, or (`many`) a list of them; of scalars it is `FLAT`.

    Lists that `merges` are merged: of objects by the field `key`, of scalars as sets. Others are replaced.
    """

    of: str = FLAT
    many: bool = False
    merges: bool = False
    key: str = ""


def _by(key: str, of: str = FLAT) -> PodField:
    return PodField(of=of, many=True, merges=True, key=key)


def _all(of: str, *names: str) -> dict[str, PodField]:
    return dict.fromkeys(names, PodField(of=of))


def _lists(*names: str, of: str = FLAT) -> dict[str, PodField]:
    return dict.fromkeys(names, PodField(of=of, many=True))


TYPES: Mapping[str, Mapping[str, PodField]] = {
    FLAT: {},
    ROOT: {**_all("ObjectMeta", "metadata"), **_all("PodSpec", "spec")},
    "ObjectMeta": {
        **_all(FLAT, "annotations", "labels"),
        **_lists("managedFields", of="ManagedFields"),
        "finalizers": PodField(many=True, merges=True),
        "ownerReferences": _by("uid"),
    },
    "ManagedFields": _all(FLAT, "fieldsV1"),
    "PodSpec": {
        **_all("Affinity", "affinity"),
        **_all("DNSConfig", "dnsConfig"),
        **_all(FLAT, "nodeSelector", "os", "overhead", "schedulingGroup"),
        **_all("Resources", "resources"),
        **_all("PodSecurityContext", "securityContext"),
        **_lists("readinessGates", "tolerations"),
        "containers": _by("name", "Container"),
        "ephemeralContainers": _by("name", "Container"),
        "evictionResponders": _by("name"),
        "hostAliases": _by("ip", "HostAlias"),
        "imagePullSecrets": _by("name"),
        "initContainers": _by("name", "Container"),
        "resourceClaims": _by("name"),
        "schedulingGates": _by("name"),
        "topologySpreadConstraints": _by("topologyKey", "TopologySpread"),
        "volumes": _by("name", "Volume"),
    },
    "Affinity": {**_all("NodeAffinity", "nodeAffinity"), **_all("NearPods", "podAffinity", "podAntiAffinity")},
    "NearPods": {
        **_lists("preferredDuringSchedulingIgnoredDuringExecution", of="WeightedPodTerm"),
        **_lists("requiredDuringSchedulingIgnoredDuringExecution", of="PodTerm"),
    },
    "NodeAffinity": {
        **_lists("preferredDuringSchedulingIgnoredDuringExecution", of="PreferredNodeTerm"),
        **_all("NodeSelector", "requiredDuringSchedulingIgnoredDuringExecution"),
    },
    "NodeSelector": _lists("nodeSelectorTerms", of="NodeTerm"),
    "NodeTerm": _lists("matchExpressions", "matchFields", of="Requirement"),
    "PreferredNodeTerm": _all("NodeTerm", "preference"),
    "Requirement": _lists("values"),
    "WeightedPodTerm": _all("PodTerm", "podAffinityTerm"),
    "PodTerm": {
        **_all("LabelSelector", "labelSelector", "namespaceSelector"),
        **_lists("matchLabelKeys", "mismatchLabelKeys", "namespaces"),
    },
    "LabelSelector": {**_all(FLAT, "matchLabels"), **_lists("matchExpressions", of="Requirement")},
    "TopologySpread": {**_all("LabelSelector", "labelSelector"), **_lists("matchLabelKeys")},
    "DNSConfig": _lists("nameservers", "options", "searches"),
    "HostAlias": _lists("hostnames"),
    "PodSecurityContext": {
        **_all(FLAT, "appArmorProfile", "seLinuxOptions", "seccompProfile", "windowsOptions"),
        **_lists("supplementalGroups", "sysctls"),
    },
    "SecurityContext": {
        **_all(FLAT, "appArmorProfile", "seLinuxOptions", "seccompProfile", "windowsOptions"),
        **_all("Capabilities", "capabilities"),
    },
    "Capabilities": _lists("add", "drop"),
    "Resources": {**_all(FLAT, "limits", "requests"), **_lists("claims")},
    "Container": {
        **_lists("args", "command", "resizePolicy"),
        **_lists("envFrom", of="EnvFrom"),
        **_lists("restartPolicyRules", of="RestartRule"),
        "env": _by("name", "EnvVar"),
        "ports": _by("containerPort"),
        "volumeDevices": _by("devicePath"),
        "volumeMounts": _by("mountPath"),
        **_all("Lifecycle", "lifecycle"),
        **_all("Probe", "livenessProbe", "readinessProbe", "startupProbe"),
        **_all("Resources", "resources"),
        **_all("SecurityContext", "securityContext"),
    },
    "RestartRule": _all("ExitCodes", "exitCodes"),
    "ExitCodes": _lists("values"),
    "EnvFrom": _all(FLAT, "configMapRef", "secretRef"),
    "EnvVar": _all("EnvSource", "valueFrom"),
    "EnvSource": _all(FLAT, "configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"),
    "Lifecycle": _all("Handler", "postStart", "preStop"),
    "Handler": {**_all("Exec", "exec"), **_all("HTTPGet", "httpGet"), **_all(FLAT, "sleep", "tcpSocket")},
    "Probe": {**_all("Exec", "exec"), **_all("HTTPGet", "httpGet"), **_all(FLAT, "grpc", "tcpSocket")},
    "Exec": _lists("command"),
    "HTTPGet": _lists("httpHeaders"),
    "Volume": {
        **_all(
            FLAT, "awsElasticBlockStore", "azureDisk", "azureFile", "emptyDir", "flocker", "gcePersistentDisk",
            "gitRepo", "glusterfs", "hostPath", "image", "nfs", "persistentVolumeClaim", "photonPersistentDisk",
            "portworxVolume", "quobyte", "vsphereVolume",
        ),
        **_all("OfItems", "configMap", "secret"),
        **_all("OfDownward", "downwardAPI"),
        **_all("OfMonitors", "cephfs", "rbd"),
        **_all("OfSecret", "cinder", "scaleIO", "storageos"),
        **_all("CSI", "csi"),
        **_all("FlexVolume", "flexVolume"),
        **_all("ISCSI", "iscsi"),
        **_all("Ephemeral", "ephemeral"),
        **_all("FibreChannel", "fc"),
        **_all("Projected", "projected"),
    },
    "OfItems": _lists("items"),
    "OfDownward": _lists("items", of="DownwardFile"),
    "DownwardFile": _all(FLAT, "fieldRef", "resourceFieldRef"),
    "OfMonitors": {**_all(FLAT, "secretRef"), **_lists("monitors")},
    "OfSecret": _all(FLAT, "secretRef"),
    "CSI": _all(FLAT, "nodePublishSecretRef", "volumeAttributes"),
    "FlexVolume": _all(FLAT, "options", "secretRef"),
    "ISCSI": {**_all(FLAT, "secretRef"), **_lists("portals")},
    "FibreChannel": _lists("targetWWNs", "wwids"),
    "Ephemeral": _all("ClaimTemplate", "volumeClaimTemplate"),
    "ClaimTemplate": {**_all("ObjectMeta", "metadata"), **_all("ClaimSpec", "spec")},
    "ClaimSpec": {
        **_all(FLAT, "dataSource", "dataSourceRef"),
        **_all("ClaimResources", "resources"),
        **_all("LabelSelector", "selector"),
        **_lists("accessModes"),
    },
    "ClaimResources": _all(FLAT, "limits", "requests"),
    "Projected": _lists("sources", of="Projection"),
    "Projection": {
        **_all("OfSelector", "clusterTrustBundle"),
        **_all("OfItems", "configMap", "secret"),
        **_all("OfDownward", "downwardAPI"),
        **_all("OfUser", "podCertificate"),
        **_all(FLAT, "serviceAccountToken"),
    },
    "OfSelector": _all("LabelSelector", "labelSelector"),
    "OfUser": _all(FLAT, "userAnnotations"),
}  # fmt: skip # a table, a row a line
"""The fields of each type, by the names that a Pod has them under; scalars are left out, since they are replaced."""
