"""An object of each kind of workload that is built in, and its pods: how many, with how many GPUs each."""

from __future__ import annotations

import json

from reconciler.model.workload import Json
from tests.builders.inputs import GPU

_SELECTING = frozenset({"CloneSet", "StatefulSet", "DaemonSet", "UnitedDeployment"})
"""Kinds of OpenKruise that need a selector, as all of apps/v1 do."""

Pods = dict[int, int]
"""Pods by the GPUs that each of them asks for."""


def pod(gpus: int = 0, name: str = "main") -> Json:
    """Describe a pod with one container."""
    resources = {"limits": {GPU: str(gpus)}} if gpus else {"requests": {"cpu": "1"}}
    return {"containers": [{"name": name, "image": "registry.example.com/model:1", "resources": resources}]}


def template(gpus: int = 0, name: str = "main") -> Json:
    return {"metadata": {"labels": {"app": "model"}}, "spec": pod(gpus, name)}


def run(gpus: int) -> Json:
    """Describe the template of a Job, whose pods may not be restarted for ever."""
    made = template(gpus)
    return {**made, "spec": {**made["spec"], "restartPolicy": "Never"}}


def workload(api_version: str, kind: str, spec: Json, **metadata: Json) -> Json:
    named = {"name": "model", "namespace": "demo", **metadata}
    if api_version == "apps/v1" or (api_version.startswith("apps.kruise.io/") and kind in _SELECTING):
        spec = {"selector": {"matchLabels": {"app": "model"}}, **spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": named, "spec": spec}


def lws(replicas: Json = 2, size: int = 4, *, leader: int | None = None, worker: int = 8, **spec: Json) -> Json:
    """Make a LeaderWorkerSet of so many groups, whose pods ask for so many GPUs each."""
    group: dict[str, Json] = {"size": size, "workerTemplate": template(worker)}
    if leader is not None:
        group["leaderTemplate"] = template(leader)
    return workload(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"replicas": replicas, "leaderWorkerTemplate": group, **spec},
    )


GAME_SERVERS = """\
apiVersion: overspill.dev/v1alpha1
kind: WorkloadKind
metadata: {name: game-servers}
spec:
  group: game.example.com
  kind: GameServerSet
"""
"""The head of a kind that a fleet repository declares; the next line is line 7, and belongs into the spec."""


def game_servers(size: int, **more: Json) -> Json:
    """Make an object of that kind."""
    return workload("game.example.com/v1", "GameServerSet", {"size": size, **more})


def asked(made: Json, *clusters: str, **spec: Json) -> str:
    """Write a file that asks for an object on some clusters; `spec` is more of what it asks."""
    return json.dumps(
        {
            "apiVersion": "gpr.kubeslice.io/v1alpha1",
            "kind": "WorkloadPlacement",
            "metadata": {"name": "model"},
            "spec": {
                "workspaceName": "llm",
                "clusterNames": [*clusters],
                "burstDuration": "15m",
                "manifestResources": [{"name": "model", "manifest": made}],
                "steps": [{"name": "model", "type": "manifest"}],
                **spec,
            },
        }
    )


def _ray(workers: int = 3, hosts: int = 1, **group: Json) -> Json:
    return {
        "headGroupSpec": {"rayStartParams": {}, "template": template()},
        "workerGroupSpecs": [
            {"groupName": "gpu", "replicas": workers, "numOfHosts": hosts, "template": template(4), **group}
        ],
    }


def _roles(container: str = "main", /, **roles: tuple[int | None, int]) -> Json:
    return {
        role: {"template": template(gpus, container), **({} if replicas is None else {"replicas": replicas})}
        for role, (replicas, gpus) in roles.items()
    }


_TENSORFLOW = _roles("tensorflow", PS=(2, 0), Worker=(4, 1), Chief=(None, 1))
_PYTORCH = _roles("pytorch", Master=(1, 8), Worker=(3, 8))
_SET = {"replicas": 3, "template": template(1)}
_CANARY = {"selector": {"matchLabels": {"app": "model"}}, "strategy": {"canary": {}}}
_MPI = {"mpiReplicaSpecs": _roles(Launcher=(None, 0), Worker=(2, 8))}
_JOBS = [
    {"name": "leader", "template": {"spec": {"template": template()}}},
    {
        "name": "workers",
        "replicas": 2,
        "template": {"spec": {"parallelism": 4, "completions": 4, "template": template(8)}},
    },
]
_CLIQUES = {
    "cliques": [
        {"name": name, "spec": {"roleName": name, "replicas": replicas, "podSpec": pod(gpus)}}
        for name, replicas, gpus in (("router", 1, 0), ("leader", 1, 8), ("worker", 3, 8))
    ],
    "podCliqueScalingGroups": [{"name": "decode", "cliqueNames": ["leader", "worker"], "replicas": 2}],
}
_SERVICES = {
    "Frontend": {"replicas": 1, "extraPodSpec": {"mainContainer": {"image": "dynamo:1"}}},
    "Decode": {"replicas": 2, "multinode": {"nodeCount": 2}, "resources": {"limits": {"gpu": "8"}}},
}
_COMPONENTS = [
    {"name": "Frontend", "podTemplate": template()},
    {"name": "Decode", "replicas": 2, "multinode": {"nodeCount": 2}, "podTemplate": template(8)},
]
_SERVER = {"minReplicas": 2, "model": {"modelFormat": {"name": "llm"}, "resources": {"limits": {GPU: "2"}}}}
_LLM = {
    "replicas": 2,
    "parallelism": {"data": 16, "dataLocal": 4},
    "template": pod(4),
    "worker": pod(4),
    "prefill": {"replicas": 3, "template": pod(1)},
    "router": {"scheduler": {"template": pod()}},
}

SAMPLES: dict[str, tuple[Json, Pods]] = {
    "Pod": (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "model", "namespace": "demo"}, "spec": pod(2)},
        {2: 1},
    ),
    "ReplicationController": (workload("v1", "ReplicationController", _SET), {1: 3}),
    "Deployment": (workload("apps/v1", "Deployment", _SET), {1: 3}),
    "ReplicaSet": (workload("apps/v1", "ReplicaSet", _SET), {1: 3}),
    "StatefulSet": (workload("apps/v1", "StatefulSet", _SET), {1: 3}),
    "DaemonSet": (workload("apps/v1", "DaemonSet", {"template": template(1)}), {}),
    "Job": (workload("batch/v1", "Job", {"parallelism": 4, "completions": 3, "template": run(1)}), {1: 3}),
    "CronJob": (
        workload("batch/v1", "CronJob", {"schedule": "@daily", "jobTemplate": {"spec": {"template": run(1)}}}),
        {},
    ),
    "CloneSet": (workload("apps.kruise.io/v1alpha1", "CloneSet", _SET), {1: 3}),
    "StatefulSet of OpenKruise": (workload("apps.kruise.io/v1beta1", "StatefulSet", _SET), {1: 3}),
    "DaemonSet of OpenKruise": (workload("apps.kruise.io/v1alpha1", "DaemonSet", {"template": template(1)}), {}),
    "UnitedDeployment": (
        workload(
            "apps.kruise.io/v1alpha1",
            "UnitedDeployment",
            {
                "replicas": 3,
                "template": {
                    "advancedStatefulSetTemplate": {
                        "metadata": {"labels": {"app": "model"}},
                        "spec": {"selector": {"matchLabels": {"app": "model"}}, "template": template(1)},
                    }
                },
            },
        ),
        {1: 3},
    ),
    "BroadcastJob": (workload("apps.kruise.io/v1alpha1", "BroadcastJob", {"template": run(1)}), {}),
    "AdvancedCronJob": (
        workload(
            "apps.kruise.io/v1alpha1",
            "AdvancedCronJob",
            {"schedule": "@daily", "template": {"jobTemplate": {"spec": {"template": run(1)}}}},
        ),
        {},
    ),
    "Rollout": (workload("argoproj.io/v1alpha1", "Rollout", {**_SET, **_CANARY}), {1: 3}),
    "LeaderWorkerSet": (lws(), {8: 8}),
    "LeaderWorkerSet with a leader of its own": (lws(leader=1), {1: 2, 8: 6}),
    "LeaderWorkerSet of leaders alone": (lws(size=1, leader=1), {1: 2}),
    "DisaggregatedSet": (
        workload(
            "disaggregatedset.x-k8s.io/v1",
            "DisaggregatedSet",
            {
                "slices": 2,
                "roles": [
                    {"name": "prefill", "spec": lws(2, 2)["spec"]},
                    {"name": "decode", "spec": lws(1, 4, leader=1)["spec"]},
                ],
            },
        ),
        {1: 2, 8: 14},
    ),
    "JobSet": (workload("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": _JOBS}), {0: 1, 8: 8}),
    "PodCliqueSet": (
        workload("grove.io/v1alpha1", "PodCliqueSet", {"replicas": 2, "template": _CLIQUES}),
        {0: 2, 8: 16},
    ),
    "Job of Volcano": (
        workload(
            "batch.volcano.sh/v1alpha1",
            "Job",
            {
                "minAvailable": 3,
                "tasks": [
                    {"name": "master", "replicas": 1, "template": template()},
                    {"name": "worker", "replicas": 4, "template": template(2)},
                    {"name": "idle", "template": template(2)},
                ],
            },
        ),
        {0: 1, 2: 4},
    ),
    "TFJob": (
        workload(
            "kubeflow.org/v1",
            "TFJob",
            {"tfReplicaSpecs": _TENSORFLOW},
        ),
        {0: 2, 1: 5},
    ),
    "PyTorchJob": (
        workload("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": _PYTORCH}),
        {8: 4},
    ),
    "PaddleJob": (
        workload(
            "kubeflow.org/v1", "PaddleJob", {"paddleReplicaSpecs": _roles("paddle", Master=(1, 8), Worker=(3, 8))}
        ),
        {8: 4},
    ),
    "XGBoostJob": (
        workload("kubeflow.org/v1", "XGBoostJob", {"xgbReplicaSpecs": _roles("xgboost", Master=(1, 8), Worker=(2, 8))}),
        {8: 3},
    ),
    "JAXJob": (
        workload("kubeflow.org/v1", "JAXJob", {"jaxReplicaSpecs": _roles("jax", Worker=(2, 8))}),
        {8: 2},
    ),
    "MPIJob": (workload("kubeflow.org/v1", "MPIJob", _MPI), {0: 1, 8: 2}),
    "MPIJob v2beta1": (workload("kubeflow.org/v2beta1", "MPIJob", _MPI), {0: 1, 8: 2}),
    "TrainJob": (
        workload(
            "trainer.kubeflow.org/v1alpha1",
            "TrainJob",
            {
                "runtimeRef": {"name": "torch-distributed"},
                "trainer": {"numNodes": 4, "resourcesPerNode": {"limits": {GPU: "8"}}},
            },
        ),
        {8: 4},
    ),
    "RayCluster": (workload("ray.io/v1", "RayCluster", _ray(3, 2)), {0: 1, 4: 6}),
    "RayCluster with too few workers": (
        workload("ray.io/v1", "RayCluster", _ray(0, minReplicas=2, maxReplicas=4)),
        {0: 1, 4: 2},
    ),
    "RayJob": (
        workload("ray.io/v1", "RayJob", {"rayClusterSpec": _ray(), "submitterPodTemplate": template()}),
        {0: 2, 4: 3},
    ),
    "RayJob on a cluster that is there": (
        workload("ray.io/v1", "RayJob", {"clusterSelector": {"ray.io/cluster": "model"}}),
        {},
    ),
    "RayService": (workload("ray.io/v1", "RayService", {"rayClusterConfig": _ray()}), {0: 1, 4: 3}),
    "InferenceService": (
        workload("serving.kserve.io/v1beta1", "InferenceService", {"predictor": _SERVER, "transformer": pod()}),
        {0: 1, 2: 2},
    ),
    "LLMInferenceService": (workload("serving.kserve.io/v1alpha2", "LLMInferenceService", _LLM), {0: 1, 1: 3, 4: 8}),
    "LLMInferenceService in a pipeline": (
        workload(
            "serving.kserve.io/v1alpha1",
            "LLMInferenceService",
            {"template": pod(8), "worker": pod(8), "parallelism": {"pipeline": 3}},
        ),
        {8: 3},
    ),
    "DynamoGraphDeployment v1alpha1": (
        workload("nvidia.com/v1alpha1", "DynamoGraphDeployment", {"services": _SERVICES}),
        {0: 1, 8: 4},
    ),
    "AppWrapper": (
        workload(
            "workload.codeflare.dev/v1beta2",
            "AppWrapper",
            {
                "components": [
                    {
                        "template": workload(
                            "batch/v1", "Job", {"parallelism": 2, "completions": 2, "template": run(8)}, name="train"
                        )
                    },
                    {"template": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "train"}, "spec": {}}},
                ]
            },
        ),
        {8: 2},
    ),
    "AppWrapper of several objects": (
        workload(
            "workload.codeflare.dev/v1beta2",
            "AppWrapper",
            {
                "components": [
                    {"template": workload("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": _PYTORCH})},
                    {"template": workload("apps/v1", "Deployment", _SET, name="metrics")},
                ]
            },
        ),
        {1: 3, 8: 4},
    ),
    "DynamoGraphDeployment v1beta1": (
        workload("nvidia.com/v1beta1", "DynamoGraphDeployment", {"components": _COMPONENTS}),
        {0: 1, 8: 4},
    ),
}

_KSERVE, _TRAINER = "serving.kserve.io/v1beta1", "trainer.kubeflow.org/v1alpha1"
_OTHER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"}
_HEAD = {"template": template()}

ELSEWHERE: dict[str, Json] = {
    "a Deployment that is not there": workload("argoproj.io/v1alpha1", "Rollout", {"workloadRef": _OTHER}),
    "the resources of a runtime": workload(_TRAINER, "TrainJob", {"trainer": {"numNodes": 2}}),
    "the nodes of a runtime": workload(_TRAINER, "TrainJob", {"trainer": {"resourcesPerNode": {"limits": {GPU: "1"}}}}),
    "the container of a runtime": workload(_KSERVE, "InferenceService", {"predictor": {"model": {"name": "a"}}}),
    "several nodes": workload(_KSERVE, "InferenceService", {"predictor": {**pod(1), "workerSpec": {}}}),
    "a base": workload("serving.kserve.io/v1alpha2", "LLMInferenceService", {"model": {"uri": "hf://org/model"}}),
    "no template": workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"leaderWorkerTemplate": {}}),
    "no mapping": workload("ray.io/v1", "RayCluster", {"headGroupSpec": {"template": "none"}}),
    "no group": workload("ray.io/v1", "RayCluster", {"headGroupSpec": _HEAD, "workerGroupSpecs": [3]}),
}
"""Objects of which nobody knows what their pods need, since it is said elsewhere or makes no sense."""
