"""Workloads that an API server refuses or takes, by what is in their pods; tests/e2e asks one about each."""

from __future__ import annotations

from typing import Any

from reconciler.model.workload import Json

Manifest = dict[str, Any]
NAMESPACE = "judged"


def workload(spec: Json, kind: str = "Deployment", *, labels: Json = None) -> Manifest:
    """Make a workload of one container; a pod spec and labels replace what it has."""
    pod = {"containers": [{"name": "main", "image": "main"}], **spec}
    metadata = {"name": "web", "namespace": NAMESPACE}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": kind, "metadata": {**metadata, "labels": labels or {}}, "spec": pod}
    template = {"metadata": {"labels": {"app": "web", **(labels or {})}}, "spec": pod}
    if kind == "Job":
        return {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": {"template": template}}
    if kind == "CronJob":
        job = {"spec": {"template": template}}
        cron = {"schedule": "0 * * * *", "jobTemplate": job}
        return {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": cron}
    whole = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    more = {"serviceName": "web"} if kind == "StatefulSet" else {}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {**whole, **more}}


def main(**fields: Json) -> Json:
    """Make a pod spec of one container with these fields."""
    return {"containers": [{"name": "main", "image": "main", **fields}]}


def mounted(volume: Json, **mount: Json) -> Json:
    """Make a pod spec whose container mounts a volume."""
    return {
        "volumes": [{"name": "v", **volume}],
        **main(volumeMounts=[{"name": "v", "mountPath": "/v", **mount}]),
    }


def _probe(**fields: Json) -> Json:
    return main(livenessProbe=fields)


def _affine(**fields: Json) -> Json:
    term = {"matchExpressions": [{"key": "a", **fields}]}
    required = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def _apart(**fields: Json) -> Json:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, **fields}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _over(**fields: Json) -> Json:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}
    return {"topologySpreadConstraints": [constraint]}


REFUSED_SPECS: dict[str, Json] = {
    # The containers.
    "no container": {"containers": []},
    "no image": {"containers": [{"name": "main"}]},
    "empty image": {"containers": [{"name": "main", "image": ""}]},
    "no name": {"containers": [{"image": "main"}]},
    "name in capitals": {"containers": [{"name": "Main", "image": "main"}]},
    "name twice": {"containers": [{"name": "a", "image": "a"}, {"name": "a", "image": "a"}]},
    "name of an init container twice": {"initContainers": [{"name": "main", "image": "a"}]},
    "pull policy": main(imagePullPolicy="Sometimes"),
    "message policy": main(terminationMessagePolicy="Never"),
    "restart of a container": main(restartPolicy="Always", livenessProbe={"tcpSocket": {"port": 70000}}),
    "lifecycle of an init container": {
        "initContainers": [
            {"name": "a", "image": "a", "lifecycle": {"preStop": {"exec": {"command": ["a"]}}}},
        ]
    },
    "probe of an init container": {
        "initContainers": [{"name": "a", "image": "a", "readinessProbe": {"exec": {"command": ["a"]}}}]
    },
    "ephemeral container": {"ephemeralContainers": [{"name": "a", "image": "a"}]},
    # Ports.
    "port 0": main(ports=[{"containerPort": 0}]),
    "port 70000": main(ports=[{"containerPort": 70000}]),
    "host port 70000": main(ports=[{"containerPort": 1, "hostPort": 70000}]),
    "host port twice": main(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]),
    "host port of two containers": {
        "containers": [
            {"name": name, "image": "a", "ports": [{"containerPort": 1, "hostPort": 9}]} for name in ("a", "b")
        ]
    },
    "host port unlike the port on the host network": {
        "hostNetwork": True,
        **main(ports=[{"containerPort": 1, "hostPort": 2}]),
    },
    "port name with an underscore": main(ports=[{"containerPort": 1, "name": "a_b"}]),
    "port name of 16": main(ports=[{"containerPort": 1, "name": "a" * 16}]),
    "port name without a letter": main(ports=[{"containerPort": 1, "name": "12"}]),
    "port name with two dashes": main(ports=[{"containerPort": 1, "name": "a--b"}]),
    "port name twice": main(ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]),
    "protocol": main(ports=[{"containerPort": 1, "protocol": "HTTP"}]),
    # Variables.
    "variable with an equals sign": main(env=[{"name": "A=B", "value": "c"}]),
    "variable without a name": main(env=[{"value": "c"}]),
    "variable with two values": main(
        env=[{"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    ),
    "variable from nothing": main(env=[{"name": "A", "valueFrom": {}}]),
    "variable of an unknown field": main(
        env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.generation"}}}]
    ),
    "variable of an unknown resource": main(
        env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.disk"}}}]
    ),
    "variable of a ConfigMap without a key": main(
        env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": ""}}}]
    ),
    "key of a ConfigMap without its name": main(
        env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "", "key": "a"}}}]
    ),
    "key of a Secret without its name": main(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"key": "a"}}}]),
    "variables from nothing": main(envFrom=[{"prefix": "A"}]),
    "variables from two": main(envFrom=[{"configMapRef": {"name": "a"}, "secretRef": {"name": "b"}}]),
    "variables from a ConfigMap without a name": main(envFrom=[{"configMapRef": {}}]),
    # Probes and hooks.
    "probe without a handler": _probe(periodSeconds=3),
    "probe with two handlers": _probe(exec={"command": ["a"]}, tcpSocket={"port": 1}),
    "probe without a command": _probe(exec={}),
    "probe of port 0": _probe(tcpSocket={"port": 0}),
    "probe of a bad port name": _probe(tcpSocket={"port": "a_b"}),
    "probe with a negative period": _probe(tcpSocket={"port": 1}, periodSeconds=-1),
    "probe with a negative delay": _probe(tcpSocket={"port": 1}, initialDelaySeconds=-1),
    "probe with a negative timeout": _probe(tcpSocket={"port": 1}, timeoutSeconds=-1),
    "probe with a negative threshold": _probe(tcpSocket={"port": 1}, failureThreshold=-1),
    "probe with a grace of 0": _probe(tcpSocket={"port": 1}, terminationGracePeriodSeconds=0),
    "liveness by two successes": _probe(tcpSocket={"port": 1}, successThreshold=2),
    "startup by two successes": main(startupProbe={"tcpSocket": {"port": 1}, "successThreshold": 2}),
    "readiness with a grace": main(readinessProbe={"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 9}),
    "probe with a scheme": _probe(httpGet={"port": 1, "scheme": "ftp"}),
    "probe with a bad header": _probe(httpGet={"port": 1, "httpHeaders": [{"name": "a b", "value": "c"}]}),
    "hook without a handler": main(lifecycle={"preStop": {}}),
    "hook with two handlers": main(lifecycle={"preStop": {"exec": {"command": ["a"]}, "sleep": {"seconds": 1}}}),
    "hook that sleeps beyond the grace": main(lifecycle={"preStop": {"sleep": {"seconds": 99}}}),
    # Resources.
    "request above the limit": main(resources={"requests": {"cpu": 1}, "limits": {"cpu": "500m"}}),
    "half a GPU": main(resources={"limits": {"nvidia.com/gpu": "0.5"}}),
    "GPUs without a limit": main(resources={"requests": {"nvidia.com/gpu": 1}}),
    "GPUs unlike their limit": main(resources={"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}}),
    "negative request": main(resources={"requests": {"cpu": "-1"}}),
    "resource without a domain": main(resources={"limits": {"gpu": 1}}),
    "resource of requests": main(resources={"limits": {"requests.cpu": 1}}),
    "huge pages alone": main(resources={"limits": {"hugepages-2Mi": "2Mi"}}),
    "huge pages unlike their limit": main(
        resources={"requests": {"hugepages-2Mi": "2Mi", "cpu": 1}, "limits": {"hugepages-2Mi": "4Mi", "cpu": 1}}
    ),
    "part of a huge page": main(resources={"limits": {"hugepages-2Mi": "1Mi", "cpu": 1}}),
    "claim that is not there": main(resources={"claims": [{"name": "gpu"}]}),
    "resize policy twice": main(
        resizePolicy=[
            {"resourceName": "cpu", "restartPolicy": "NotRequired"},
            {"resourceName": "cpu", "restartPolicy": "RestartContainer"},
        ]
    ),
    "resize policy of a GPU": main(
        resizePolicy=[{"resourceName": "nvidia.com/gpu", "restartPolicy": "NotRequired"}],
    ),
    # Volumes.
    "volume without a name": {"volumes": [{"emptyDir": {}}]},
    "volume name in capitals": {"volumes": [{"name": "V", "emptyDir": {}}]},
    "volume of two sources": {"volumes": [{"name": "v", "emptyDir": {}, "configMap": {"name": "c"}}]},
    "volume twice": {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]},
    "volume of a claim without a name": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": ""}}]},
    "volume of a ConfigMap without a name": {"volumes": [{"name": "v", "configMap": {}}]},
    "volume of a Secret without a name": {"volumes": [{"name": "v", "secret": {}}]},
    "volume with a mode beyond 0777": {"volumes": [{"name": "v", "configMap": {"name": "c", "defaultMode": 1000}}]},
    "volume with a path upwards": {
        "volumes": [{"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": "../a"}]}}]
    },
    "volume with an absolute path": {
        "volumes": [{"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": "/a"}]}}]
    },
    "volume of the host upwards": {"volumes": [{"name": "v", "hostPath": {"path": "/a/../b"}}]},
    "volume of the host without a path": {"volumes": [{"name": "v", "hostPath": {"path": ""}}]},
    "volume of the host of a bad type": {"volumes": [{"name": "v", "hostPath": {"path": "/a", "type": "Dir"}}]},
    "volume with a negative size": {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "-1"}}]},
    "volume of NFS without a server": {"volumes": [{"name": "v", "nfs": {"server": "", "path": "/a"}}]},
    "volume of NFS with a relative path": {"volumes": [{"name": "v", "nfs": {"server": "a", "path": "a"}}]},
    "volume of a CSI driver without a name": {"volumes": [{"name": "v", "csi": {"driver": ""}}]},
    "projection of a token of a minute": {
        "volumes": [
            {
                "name": "v",
                "projected": {"sources": [{"serviceAccountToken": {"path": "a", "expirationSeconds": 60}}]},
            }
        ]
    },
    "claim of a pod without modes": {
        "volumes": [
            {
                "name": "v",
                "ephemeral": {
                    "volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}},
                },
            }
        ]
    },
    "claim of a pod without a size": {
        "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}]
    },
    # Mounts.
    "mount of no volume": main(volumeMounts=[{"name": "v", "mountPath": "/a"}]),
    "mount without a path": mounted({"emptyDir": {}}, mountPath=""),
    "two mounts at one path": {
        "volumes": [{"name": "v", "emptyDir": {}}],
        **main(volumeMounts=[{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}]),
    },
    "mount of a path upwards": mounted({"emptyDir": {}}, subPath="../a"),
    "mount of an absolute path": mounted({"emptyDir": {}}, subPath="/a"),
    "mount by a path and an expression": mounted({"emptyDir": {}}, subPath="a", subPathExpr="b"),
    "mount propagated both ways": mounted({"emptyDir": {}}, mountPropagation="Bidirectional"),
    "mount propagated oddly": mounted({"emptyDir": {}}, mountPropagation="Up"),
    "device of no claim": {
        "volumes": [{"name": "v", "emptyDir": {}}],
        **main(volumeDevices=[{"name": "v", "devicePath": "/dev/a"}]),
    },
    # The whole pod.
    "restart policy": {"restartPolicy": "Never"},
    "deadline": {"activeDeadlineSeconds": 9},
    "DNS policy": {"dnsPolicy": "Mine"},
    "DNS of nobody": {"dnsPolicy": "None"},
    "DNS by a name": {"dnsConfig": {"nameservers": ["dns.example.com"]}},
    "four nameservers": {"dnsConfig": {"nameservers": ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]}},
    "DNS option without a name": {"dnsConfig": {"options": [{"value": "2"}]}},
    "host of no address": {"hostAliases": [{"ip": "a", "hostnames": ["b"]}]},
    "host alias of a bad name": {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["b_c"]}]},
    "hostname in capitals": {"hostname": "Web"},
    "subdomain with a dot": {"subdomain": "a.b"},
    "host processes shared": {"hostPID": True, "shareProcessNamespace": True},
    "node selector with a bad key": {"nodeSelector": {"a b": "c"}},
    "node selector with a bad value": {"nodeSelector": {"a": "-"}},
    "account with a bad name": {"serviceAccountName": "A"},
    "node with a bad name": {"nodeName": "A"},
    "class with a bad name": {"priorityClassName": "A"},
    "runtime class with a bad name": {"runtimeClassName": "A"},
    "readiness gate with a bad type": {"readinessGates": [{"conditionType": "a b"}]},
    "scheduling gate twice": {"schedulingGates": [{"name": "a/b"}, {"name": "a/b"}]},
    "operating system": {"os": {"name": "plan9"}},
    "Windows with a fsGroup": {"os": {"name": "windows"}, "securityContext": {"fsGroup": 1}},
    "preemption policy": {"preemptionPolicy": "Sometimes"},
    "overhead without a class": {"overhead": {"cpu": "-1"}},
    # Tolerations.
    "toleration of everything by value": {"tolerations": [{"operator": "Exists", "value": "a"}]},
    "toleration without a key": {"tolerations": [{"operator": "Equal", "value": "a"}]},
    "toleration by a bad key": {"tolerations": [{"key": "a b", "operator": "Exists"}]},
    "toleration by a bad value": {"tolerations": [{"key": "a", "value": "b c"}]},
    "toleration by a bad operator": {"tolerations": [{"key": "a", "operator": "In"}]},
    "toleration of a bad effect": {"tolerations": [{"key": "a", "operator": "Exists", "effect": "Never"}]},
    "toleration for a time of what stays away": {
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 9}]
    },
    # Affinities.
    "affinity without a term": {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
    },
    "affinity in no value": _affine(operator="In"),
    "affinity of what exists by value": _affine(operator="Exists", values=["a"]),
    "affinity above two": _affine(operator="Gt", values=["1", "2"]),
    "affinity above less than 0": _affine(operator="Gt", values=["-1"]),
    "affinity by a bad operator": _affine(operator="Like", values=["a"]),
    "affinity of a bad value": _affine(operator="In", values=["a b"]),
    "affinity by two fields": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["a"]}]}]
                }
            }
        }
    },
    "preference of weight 0": {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 0, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
                ]
            }
        }
    },
    "apart without a topology": _apart(),
    "apart by a bad topology": _apart(topologyKey="a b"),
    "apart by no value": _apart(
        topologyKey="zone", labelSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}
    ),
    "apart in a bad namespace": _apart(topologyKey="zone", namespaces=["A"]),
    "preference apart of weight 101": {
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}
                ]
            }
        }
    },
    # Topology spread constraints.
    "spread with a skew of 0": _over(maxSkew=0),
    "spread without a topology": _over(topologyKey=""),
    "spread otherwise": _over(whenUnsatisfiable="Perhaps"),
    "spread over no domain": _over(minDomains=0),
    "spread over domains by preference": _over(minDomains=2, whenUnsatisfiable="ScheduleAnyway"),
    "spread by a bad policy": _over(nodeAffinityPolicy="Perhaps"),
    "spread over one topology twice": {
        "topologySpreadConstraints": [
            {"maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"} for skew in (1, 2)
        ]
    },
    "spread by the label of nothing": _over(matchLabelKeys=["app"]),
    # Security.
    "user below 0": {"securityContext": {"runAsUser": -1}},
    "policy of a fsGroup": {"securityContext": {"fsGroup": 1, "fsGroupChangePolicy": "Sometimes"}},
    "sysctl with a bad name": {"securityContext": {"sysctls": [{"name": "A!", "value": "1"}]}},
    "sysctl twice": {
        "securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": value} for value in ("0", "1")]}
    },
    "profile on a host without its name": {"securityContext": {"seccompProfile": {"type": "Localhost"}}},
    "name of a profile of the runtime": {
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault", "localhostProfile": "a"}}
    },
    "privileged without escalation": main(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
    "mount of processes in a user namespace": main(securityContext={"procMount": "Some"}),
    # Claims of devices.
    "claim of two sources": {
        "resourceClaims": [{"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "c"}]
    },
    "claim of no source": {"resourceClaims": [{"name": "a"}]},
    "claim twice": {"resourceClaims": [{"name": "a", "resourceClaimName": "b"}] * 2},
}
"""Pod specs of a Deployment that an API server refuses."""

TAKEN_SPECS: dict[str, Json] = {
    "plain": {},
    "all of a pod": {
        "restartPolicy": "Always",
        "nodeSelector": {"a/b": ""},
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["1.1.1.1"], "options": [{"name": "ndots", "value": "2"}]},
        "hostAliases": [{"ip": "::1", "hostnames": ["a.b-c"]}],
        "hostname": "web",
        "subdomain": "web",
        "serviceAccountName": "a.b",
        "imagePullSecrets": [{"name": "a.b"}],
        "terminationGracePeriodSeconds": 0,
        "readinessGates": [{"conditionType": "example.com/Ready"}],
        "runtimeClassName": "a.b",
        "os": {"name": "linux"},
    },
    "volumes without a source": mounted({}),
    "two mounts": {
        "volumes": [{"name": "v"}],
        **main(volumeMounts=[{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b", "subPath": "c..d"}]),
    },
    "resources": main(resources={"requests": {"cpu": "500m"}, "limits": {"cpu": 1, "nvidia.com/gpu": "2000m"}}),
    "huge pages": main(resources={"limits": {"hugepages-2Mi": "4Mi", "memory": "1Gi"}}),
    "variables": main(
        env=[
            {"name": "a.b-c", "value": ""},
            {"name": "1", "value": "b"},
            {"name": "A", "value": "", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
            {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
            {"name": "A", "value": "twice"},
        ],
        envFrom=[{"configMapRef": {"name": "a", "optional": True}, "prefix": "A_"}],
    ),
    "ports": main(
        ports=[
            {"containerPort": 65535, "name": "http-1"},
            {"containerPort": 65535, "protocol": "UDP"},
            {"containerPort": 1, "hostPort": 9},
            {"containerPort": 1, "hostPort": 9, "protocol": "UDP"},
            {"containerPort": 1, "hostPort": 9, "hostIP": "10.0.0.1"},
        ]
    ),
    "ports on the host network": {"hostNetwork": True, **main(ports=[{"containerPort": 1}])},
    "probes": main(
        readinessProbe={"grpc": {"port": 1}, "successThreshold": 2},
        livenessProbe={"httpGet": {"port": "http", "path": "healthz"}, "terminationGracePeriodSeconds": 1},
        startupProbe={"exec": {"command": ["a"]}, "periodSeconds": 0},
    ),
    "sidecar": {
        "initContainers": [
            {
                "name": "a",
                "image": "a",
                "restartPolicy": "Always",
                "readinessProbe": {"exec": {"command": ["a"]}},
                "lifecycle": {"preStop": {"exec": {"command": ["a"]}}},
            }
        ]
    },
    "grace that becomes one second": {"terminationGracePeriodSeconds": -1},
    "tolerations": {
        "tolerations": [
            {"operator": "Exists"},
            {"key": "a", "value": "b"},
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -1},
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -1},
        ]
    },
    "affinity": _affine(operator="Gt", values=["1"]),
    "affinity that excludes": _affine(operator="DoesNotExist"),
    "apart": _apart(topologyKey="zone", namespaces=["a"]),
    "apart of what is not said": _apart(topologyKey="zone", labelSelector=None),
    "spread": _over(minDomains=2, labelSelector={"matchLabels": {"app": "web"}}, matchLabelKeys=["pod-template-hash"]),
    "spread in two ways": {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when}
            for when in ("DoNotSchedule", "ScheduleAnyway")
        ]
    },
    "projection": {
        "volumes": [
            {
                "name": "v",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "a"}},
                        {"configMap": {"name": "c", "items": [{"key": "k", "path": "a/..b", "mode": 0o777}]}},
                        {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                    ]
                },
            }
        ]
    },
    "claim of a pod": {
        "volumes": [
            {
                "name": "v",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        }
                    }
                },
            }
        ]
    },
    "claim of devices": {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "a"}],
        **main(resources={"claims": [{"name": "gpu"}]}),
    },
    "security": {
        "securityContext": {
            "runAsUser": 0,
            "fsGroup": 1,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "Localhost", "localhostProfile": "a"},
            "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}],
        }
    },
    "empty profile": {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": ""}}},
    "scheduling gate": {"schedulingGates": [{"name": "a/b"}]},
    "host port of a sidecar and of a container": {
        "initContainers": [
            {"name": "a", "image": "a", "restartPolicy": "Always", "ports": [{"containerPort": 1, "hostPort": 9}]}
        ],
        **main(ports=[{"containerPort": 1, "hostPort": 9}]),
    },
    "preference above less than 0": {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "preference": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["-1"]}]},
                    }
                ]
            }
        }
    },
    "devices and huge pages in other units": main(
        resources={
            "requests": {"nvidia.com/gpu": "1", "hugepages-1Gi": "1Gi"},
            "limits": {"nvidia.com/gpu": "1000m", "hugepages-1Gi": "1024Mi", "cpu": 1},
        }
    ),
    "names with a part of 70": {"serviceAccountName": "a" * 70, "priorityClassName": "b" * 70},
    "words that are empty": {
        "restartPolicy": "",
        "dnsPolicy": "",
        "tolerations": [{"key": "a", "operator": "", "value": "b", "effect": ""}],
        **main(
            imagePullPolicy="",
            terminationMessagePolicy="",
            ports=[{"containerPort": 1, "protocol": ""}],
            livenessProbe={"httpGet": {"port": 1, "scheme": ""}},
        ),
    },
    "hook that sleeps no time": main(lifecycle={"preStop": {"sleep": {"seconds": 0}}}),
    "hook that sleeps": main(lifecycle={"preStop": {"sleep": {"seconds": 3}}}),
}
"""Pod specs of a Deployment that an API server takes."""


def _changed(made: Manifest, path: str, value: Json) -> Manifest:
    *parents, last = path.split(".")
    place: Any = made
    for name in parents:
        place = place.setdefault(name, {})
    place[last] = value
    return made


REFUSED: dict[str, Manifest] = {
    **{f"Deployment: {name}": workload(spec) for name, spec in REFUSED_SPECS.items()},
    "Deployment: selector of other labels": _changed(workload({}), "spec.selector.matchLabels", {"app": "api"}),
    "Deployment: empty selector": _changed(workload({}), "spec.selector", {}),
    "Deployment: selector by a bad label": _changed(workload({}), "spec.selector.matchLabels", {"app": "a b"}),
    "Deployment: label of pods": workload({}, labels={"a": "b c"}),
    "Deployment: negative replicas": _changed(workload({}), "spec.replicas", -1),
    "Deployment: negative minReadySeconds": _changed(workload({}), "spec.minReadySeconds", -1),
    "Deployment: short progress deadline": _changed(
        _changed(workload({}), "spec.minReadySeconds", 60), "spec.progressDeadlineSeconds", 60
    ),
    "Deployment: recreation that rolls": _changed(
        workload({}), "spec.strategy", {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}
    ),
    "Deployment: roll of nothing": _changed(
        workload({}), "spec.strategy", {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}
    ),
    "Deployment: surge in words": _changed(workload({}), "spec.strategy", {"rollingUpdate": {"maxSurge": "many"}}),
    "StatefulSet: Never": workload({"restartPolicy": "Never"}, "StatefulSet"),
    "StatefulSet: claim without a size": _changed(
        workload({}, "StatefulSet"),
        "spec.volumeClaimTemplates",
        [{"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
    ),
    "DaemonSet: Never": workload({"restartPolicy": "Never"}, "DaemonSet"),
    "Job: no restart policy": workload({}, "Job"),
    "Job: Always": workload({"restartPolicy": "Always"}, "Job"),
    "Job: negative parallelism": _changed(workload({"restartPolicy": "Never"}, "Job"), "spec.parallelism", -1),
    "Job: negative limit": _changed(workload({"restartPolicy": "Never"}, "Job"), "spec.backoffLimit", -1),
    "Job: a selector of its own": _changed(
        workload({"restartPolicy": "Never"}, "Job"), "spec.selector", {"matchLabels": {"app": "web"}}
    ),
    "Job: failures of pods that restart": _changed(
        workload({"restartPolicy": "OnFailure"}, "Job"),
        "spec.podFailurePolicy",
        {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]},
    ),
    "CronJob: schedule": _changed(workload({"restartPolicy": "Never"}, "CronJob"), "spec.schedule", "daily"),
    "CronJob: Always": workload({"restartPolicy": "Always"}, "CronJob"),
    "Pod: negative deadline": workload({"activeDeadlineSeconds": 0}, "Pod"),
}
"""Whole workloads that an API server refuses."""

TAKEN: dict[str, Manifest] = {
    **{f"Deployment: {name}": workload(spec) for name, spec in TAKEN_SPECS.items()},
    "Job: an empty selector": _changed(workload({"restartPolicy": "Never"}, "Job"), "spec.selector", {}),
    "Job: Never": workload({"restartPolicy": "Never", "activeDeadlineSeconds": 9}, "Job"),
    "CronJob: OnFailure": workload({"restartPolicy": "OnFailure"}, "CronJob"),
    "Pod: Never": workload({"restartPolicy": "Never", "activeDeadlineSeconds": 9}, "Pod"),
    "StatefulSet: claim": _changed(
        workload(mounted({}), "StatefulSet"),
        "spec.volumeClaimTemplates",
        [
            {
                "metadata": {"name": "w"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }
        ],
    ),
    "DaemonSet: plain": workload({}, "DaemonSet"),
}
"""Whole workloads that an API server takes."""
