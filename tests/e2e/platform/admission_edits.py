"""Objects edited at random to ask webhooks about: with values that they take, and values that they refuse."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.builders.workload_kinds import SAMPLES, lws, pod, template
from tests.e2e.api_server import Json

_KUEUE = "kueue.x-k8s.io/"
Edits = Mapping[str, Sequence[Json]]
"""Values by the path of their field; a slash in a name is written as ``~``, and None takes a field away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """Objects to edit, and what to edit in them."""

    name: str
    bases: tuple[Json, ...]
    edits: Edits
    programs: tuple[str, ...] = ("kueue-webhooks",)
    """The programs that ask the webhooks of its kind; the gates of JobSet's and Kueue's exclude each other in one."""


def edited(family: Edited, number: int, seed: int) -> Iterator[Json]:
    """Yield objects with one to three edits, the same for a seed."""
    chance = random.Random(f"{family.name} {seed}")
    for _ in range(number):
        made = json.loads(json.dumps(chance.choice(family.bases)))
        for field_path in chance.sample(sorted(family.edits), k=min(len(family.edits), chance.choice((1, 1, 2, 3)))):
            edit(made, field_path, copy.deepcopy(chance.choice(family.edits[field_path])))
        yield made


def edit(made: Json, field_path: str, value: Json) -> None:
    """Put a value at a path; where an item of a list on it is missing, nothing happens."""
    *parents, last = (part.replace("~", "/") for part in field_path.split("/"))
    inner = made
    for part in parents:
        if isinstance(inner, list):
            if int(part) >= len(inner):
                return
            inner = inner[int(part)]
        else:
            inner = inner.setdefault(part, {})
    if value is None and isinstance(inner, dict):
        inner.pop(last, None)
    elif isinstance(inner, list):
        inner[int(last)] = value
    else:
        inner[last] = value


def _topologies(*roots: str) -> Edits:
    """Edit the annotations of pod templates by which Kueue places pod sets."""
    topologies = ("rack", "topology.kubernetes.io/zone", "a b", "-x")
    layers = (
        '[{"topology": "rack", "size": 2}]',
        '[{"topology": "rack", "size": 4}, {"topology": "host", "size": 2}]',
        '[{"topology": "rack", "size": 3}, {"topology": "host", "size": 2}]',
        '[{"topology": "rack", "size": 2}, {"topology": "rack", "size": 1}]',
        '[{"topology": "rack", "size": 0}]',
        "[]",
        "rack",
    )
    values: Edits = {
        "podset-required-topology": topologies,
        "podset-preferred-topology": topologies,
        "podset-unconstrained-topology": ("true", "false", "maybe", "T"),
        "podset-slice-required-topology": topologies,
        "podset-slice-size": ("1", "2", "3", "4", "20", "0", "-1", "+2", "two", "1.5"),
        "podset-slice-required-topology-constraints": layers,
        "podset-group-name": ("g", "h", "7", ""),
    }
    return {
        f"{root}/metadata/annotations/{_KUEUE}{name}".replace(_KUEUE, "kueue.x-k8s.io~"): each
        for root in roots
        for name, each in values.items()
    }


def _pairs(root: str, *others: str) -> Edits:
    """Edit all annotations of topologies of pod templates at once, to what is right together or nearly so."""
    required = {f"{_KUEUE}podset-required-topology": "rack"}
    sliced = {f"{_KUEUE}podset-slice-required-topology": "rack", f"{_KUEUE}podset-slice-size": "2"}
    grouped = {**required, f"{_KUEUE}podset-group-name": "g"}
    preferred = {f"{_KUEUE}podset-preferred-topology": "rack", f"{_KUEUE}podset-group-name": "g"}
    alone = {f"{_KUEUE}podset-group-name": "g"}
    wholes = (required, sliced, {**required, **sliced}, grouped, preferred, alone, {**grouped, **sliced})
    return {f"{each}/metadata/annotations": wholes for each in (root, *others)}


_OBJECT: Edits = {
    "metadata/labels/kueue.x-k8s.io~queue-name": ("user-queue", "user-queue", "Bad_Queue", "a.b", None),
    "metadata/labels/kueue.x-k8s.io~max-exec-time-seconds": ("60", "0", "soon"),
    "metadata/labels/kueue.x-k8s.io~prebuilt-workload-name": ("made", "Made_Before"),
    "metadata/annotations/kueue.x-k8s.io~elastic-job": ("true", "false"),
    "metadata/annotations/kueue.x-k8s.io~admission-gated-by": (
        "example.com/a", "example.com/a,example.com/b", "example.com/a,example.com/a", "a", "example.com/", ",",
    ),
}  # fmt: skip # a table, filled line by line

_ONCE_GATED = {name: values for name, values in _OBJECT.items() if "elastic" not in name}
"""Kueue's defaults put gates into an elastic Ray cluster, without which its webhook refuses it."""

_ROLLING = "spec/rolloutStrategy/rollingUpdateConfiguration"
_LWS: Edits = {
    "metadata/name": ("llama", "1-llama", "a" * 63, "a" * 64, "a.b"),
    "spec/replicas": (0, 1, 2, 3, 4, -1, 1_000_000),
    "spec/leaderWorkerTemplate/size": (1, 2, 3, 4, 0, 2_000_000_000),
    "spec/leaderWorkerTemplate/subGroupPolicy": (
        {"subGroupSize": 1},
        {"subGroupSize": 2},
        {"subGroupSize": 3},
        {"subGroupSize": 5},
        {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"},
        {"subGroupSize": 2, "subGroupPolicyType": "Odd"},
    ),
    "metadata/annotations/leaderworkerset.sigs.k8s.io~subgroup-exclusive-topology": ("rack",),
    "spec/startupPolicy": ("LeaderReady", "Never"),
    "spec/leaderWorkerTemplate/restartPolicy": ("None", "Always"),
    "spec/rolloutStrategy/type": ("RollingUpdate", "Recreate"),
    "spec/networkConfig/subdomainPolicy": ("UniquePerReplica", "Own"),
    _ROLLING: (
        {"maxUnavailable": 0, "maxSurge": 1},
        {"maxUnavailable": 0, "maxSurge": "1%"},
        {"maxUnavailable": "25%", "maxSurge": 0},
        {"maxUnavailable": "50%"},
        {"maxUnavailable": 0},
        {"maxUnavailable": "0%", "maxSurge": "0%"},
        {"maxSurge": 2},
        {},
    ),
    f"{_ROLLING}/maxUnavailable": (0, 1, 5, "25%", "100%", "101%", "5", -1, "0%"),
    f"{_ROLLING}/maxSurge": (0, 1, 5, "25%", "100%", "101%", "some", -1),
    f"{_ROLLING}/partition": (0, 1, 9),  # below 0 is refused from 0.10 on, which no module proxy has
}


_ROLES = [
    {"name": name, "spec": made["spec"]} for name, made in (("prefill", lws(2, 2)), ("decode", lws(4, 2, leader=1)))
]
_ROLE = "spec/roles/0"
_DISAGGREGATED: Edits = {
    "metadata/name": ("llama", "1-llama", "a" * 60, "a.b"),
    f"{_ROLE}/name": ("prefill", "decode", "1st", "Pre_fill"),
    "spec/roles": (
        _ROLES[:1],
        [*_ROLES, {**_ROLES[0], "name": "route"}],
        [{**_ROLES[0], "name": f"r{n}"} for n in range(11)],
    ),
    f"{_ROLE}/metadata/annotations/leaderworkerset.sigs.k8s.io~subgroup-exclusive-topology": ("rack",),
    **{
        f"{_ROLE}/{path}": values
        for path, values in _LWS.items()
        if path.startswith("spec/") and path != "spec/networkConfig/subdomainPolicy"
    },
    "spec/roles/1/spec/replicas": (0, 1, 3),
}
"""Edits of the fields that LeaderWorkerSet 0.9 has: it knows no slices, no placement policy and no scaling of roles."""


def _jobset() -> Json:
    made = json.loads(json.dumps(SAMPLES["JobSet"][0]))
    made["spec"]["replicatedJobs"] = [
        {
            "name": name,
            "replicas": 2,
            "template": {"spec": {"parallelism": 2, "completions": 2, "template": template()}},
        }
        for name in ("driver", "workers")
    ]
    return made


_JOBS = "spec/replicatedJobs"
_JOBSET: Edits = {
    "metadata/name": ("train", "1-train", "a" * 40, "a" * 50, "a" * 60),
    f"{_JOBS}/0/name": ("driver", "a" * 30, "b" * 60, "1st"),
    f"{_JOBS}/0/replicas": (1, 10, 2_000_000_000),
    f"{_JOBS}/0/groupName": ("group", "Group", "a" * 64),
    f"{_JOBS}/0/template/spec/completions": (1, 2, 100_000),
    f"{_JOBS}/0/template/spec/completionMode": ("Indexed", "NonIndexed"),
    f"{_JOBS}/0/dependsOn": ([{"name": "workers", "status": "Ready"}],),
    f"{_JOBS}/1/dependsOn": (
        [{"name": "driver", "status": "Ready"}],
        [{"name": "driver", "status": "Done"}],
        [{"name": "workers", "status": "Complete"}],
        [{"name": "nobody", "status": "Ready"}],
    ),
    "spec/startupPolicy": ({"startupPolicyOrder": "InOrder"}, {"startupPolicyOrder": "Late"}),
    "spec/successPolicy": (
        {"operator": "Any"},
        {"operator": "Most"},
        {"operator": "All", "targetReplicatedJobs": ["driver"]},
        {"operator": "All", "targetReplicatedJobs": ["nobody"]},
    ),
    "spec/network": ({"subdomain": "own"}, {"subdomain": "1own"}, {"subdomain": "a.b"}, {"subdomain": "a" * 64}),
    "spec/managedBy": ("jobset.sigs.k8s.io/jobset-controller", "me", "example.com/", f"example.com/{'a' * 60}"),
    "spec/failurePolicy": (
        {"maxRestarts": 3},
        {"restartStrategy": "BlockingRecreate"},
        {"restartStrategy": "Never"},
        {"rules": [{"name": "first", "action": "FailJobSet", "targetReplicatedJobs": ["driver"]}]},
        {"rules": [{"name": "first", "action": "FailJobSet", "targetReplicatedJobs": ["nobody"]}]},
        {"rules": [{"name": "1st", "action": "FailJobSet"}]},
        {"rules": [{"name": "a", "action": "FailJobSet"}, {"name": "a", "action": "RestartJobSet"}]},
        {"rules": [{"name": "a", "action": "Ignore"}]},
        {"rules": [{"name": "a", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]}]},
        {"rules": [{"name": "a", "action": "FailJobSet", "onJobFailureReasons": ["Tired"]}]},
    ),
    "spec/coordinator": (
        {"replicatedJob": "driver"},
        {"replicatedJob": "nobody"},
        {"replicatedJob": "driver", "jobIndex": 1, "podIndex": 1},
        {"replicatedJob": "driver", "jobIndex": 2},
        {"replicatedJob": "driver", "podIndex": 2},
    ),
    "spec/volumeClaimPolicies": tuple(
        [{"templates": [{"metadata": {"name": name}, "spec": _CLAIM} for name in names]}]
        for _CLAIM in [{"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}]
        for names in (("data",), ("cache",), ("data", "data"), ("Data",), (f"data-{'a' * 60}",))
    ),
    f"{_JOBS}/0/template/spec/template/spec/containers/0/volumeMounts": ([{"name": "data", "mountPath": "/data"}],),
}

_JOB: Edits = {
    "spec/parallelism": (0, 1, 2, 4, 8),
    "spec/completions": (1, 2, 4, 8, None),
    "spec/completionMode": ("Indexed", "NonIndexed"),
    "metadata/annotations/kueue.x-k8s.io~job-min-parallelism": ("1", "2", "4", "0", "x"),
    "metadata/annotations/kueue.x-k8s.io~job-completions-equal-parallelism": ("true", "false", "often"),
}


def _ray(root: str) -> Edits:
    group = {"groupName": "w", "replicas": 1, "minReplicas": 0, "maxReplicas": 2, "rayStartParams": {}}
    groups = [{**group, "groupName": f"w{index}", "template": template()} for index in range(20)]
    return {
        f"{root}/enableInTreeAutoscaling": (True, False),
        f"{root}/workerGroupSpecs/0/groupName": ("workers", "head"),
        f"{root}/workerGroupSpecs": (groups[:1], groups[:3], groups[:17], groups[:18]),
        f"{root}/workerGroupSpecs/0/replicas": (1, 2, 4),
    }


def _sample(*names: str) -> tuple[Json, ...]:
    return tuple(SAMPLES[name][0] for name in names)


def _kubeflow(kind: str, field: str, *roles: str) -> Edited:
    roots = [f"spec/{field}/{role}/template" for role in roles]
    replicas: Edits = {f"spec/{field}/{roles[-1]}/replicas": (1, 2, 4)}
    return Edited(
        name=kind, bases=_sample(kind), edits={**_OBJECT, **_topologies(*roots), **_pairs(*roots), **replicas}
    )


_KRUISE = ("kruise-rules",)
_AMOUNTS = (0, 1, 2, "0%", "20%", "100%", "120%", -1, "all")
_SELECTING: Edits = {
    "spec/selector": ({"matchLabels": {"app": "model"}}, {"matchLabels": {"app": "other"}}, {}, None),
    "spec/template/spec/restartPolicy": ("Always", "Never"),
    "spec/template/spec/activeDeadlineSeconds": (60,),
}


def _subsets() -> tuple[Json, ...]:
    """Make lists of two subsets, with names and numbers that go together or do not."""
    numbers: tuple[tuple[Json, Json], ...] = (
        ({}, {}),
        ({"replicas": 1}, {}),
        ({"replicas": 1}, {"replicas": 2}),
        ({"replicas": "50%"}, {"replicas": "50%"}),
        ({"replicas": "30%"}, {}),
        ({"replicas": 9}, {}),
        ({"replicas": "101%"}, {}),
        ({"minReplicas": 1}, {"maxReplicas": 2}),
        ({"minReplicas": 1, "maxReplicas": 2}, {}),
        ({"minReplicas": 3, "maxReplicas": 2}, {}),
        ({"maxReplicas": 1}, {"maxReplicas": 2}),
        ({"replicas": 1}, {"maxReplicas": 2}),
    )
    return tuple(
        [{"name": name, **own} for name, own in zip(names, owns, strict=True)]
        for names in (("a", "b"), ("a", "a"), ("a", "B_"))
        for owns in numbers
    )


_LWT = "spec/leaderWorkerTemplate"
FAMILIES = (
    Edited(name="LeaderWorkerSet", bases=(lws(), lws(leader=1), lws(1, 1)), edits=_LWS),
    Edited(
        name="DisaggregatedSet",
        bases=(
            {
                "apiVersion": "disaggregatedset.x-k8s.io/v1",
                "kind": "DisaggregatedSet",
                "metadata": {"name": "model", "namespace": "demo"},
                "spec": {"roles": _ROLES},
            },
        ),
        edits=_DISAGGREGATED,
    ),
    Edited(
        name="LeaderWorkerSet in Kueue",
        bases=(lws(), lws(leader=1), lws(leader=1)),
        edits={
            **_OBJECT,
            **_topologies(f"{_LWT}/workerTemplate"),
            **_pairs(f"{_LWT}/workerTemplate"),
            f"{_LWT}/size": (1, 2, 3),
        },
    ),
    Edited(
        name="LeaderWorkerSet with a leader in Kueue",
        bases=(lws(leader=1),),
        edits={
            **_topologies(f"{_LWT}/workerTemplate", f"{_LWT}/leaderTemplate"),
            **_pairs(f"{_LWT}/workerTemplate", f"{_LWT}/leaderTemplate"),
            f"{_LWT}/size": (2, 3),
        },
    ),
    Edited(name="JobSet", bases=(_jobset(),), edits=_JOBSET, programs=("jobset-webhooks",)),
    Edited(
        name="JobSet in Kueue",
        bases=(_jobset(),),
        edits={
            **_OBJECT,
            **_topologies(f"{_JOBS}/0/template/spec/template", f"{_JOBS}/1/template/spec/template"),
            **_pairs(f"{_JOBS}/0/template/spec/template", f"{_JOBS}/1/template/spec/template"),
            f"{_JOBS}/0/replicas": (1, 2),
            f"{_JOBS}/0/template/spec/parallelism": (1, 2),
        },
    ),
    Edited(
        name="Job in Kueue",
        bases=_sample("Job"),
        edits={**_OBJECT, **_JOB, **_topologies("spec/template"), **_pairs("spec/template")},
    ),
    Edited(name="Deployment in Kueue", bases=_sample("Deployment"), edits=_OBJECT),
    Edited(name="StatefulSet in Kueue", bases=_sample("StatefulSet"), edits=_OBJECT),
    Edited(
        name="Pod in Kueue",
        bases=(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "model", "namespace": "demo"}, "spec": pod(1)},
        ),
        edits={
            **_OBJECT,
            **{path.removeprefix("/"): values for path, values in _topologies("").items()},
            "metadata/labels/kueue.x-k8s.io~managed": ("true", "false"),
            "metadata/labels/kueue.x-k8s.io~pod-group-name": ("g", "G_", ""),
            "metadata/annotations/kueue.x-k8s.io~pod-group-name": ("g", "G_"),
            "metadata/annotations/kueue.x-k8s.io~pod-group-total-count": ("2", "0", "x"),
        },
    ),
    Edited(
        name="RayCluster in Kueue",
        bases=_sample("RayCluster"),
        edits={
            **_ONCE_GATED,
            **_ray("spec"),
            "spec/workerGroupSpecs/0/groupName": ("workers",),  # one that is called head is checked as the head is
            **_topologies("spec/headGroupSpec/template", "spec/workerGroupSpecs/0/template"),
            **_pairs("spec/headGroupSpec/template", "spec/workerGroupSpecs/0/template"),
        },
    ),
    Edited(
        name="RayJob in Kueue",
        bases=_sample("RayJob"),
        edits={**_OBJECT, **_ray("spec/rayClusterSpec"), "spec/shutdownAfterJobFinishes": (True, False)},
    ),
    Edited(
        name="RayService in Kueue",
        bases=_sample("RayService"),
        edits={
            **_OBJECT,
            **_ray("spec/rayClusterConfig"),
            **_topologies("spec/rayClusterConfig/workerGroupSpecs/0/template"),
        },
    ),
    _kubeflow("PyTorchJob", "pytorchReplicaSpecs", "Master", "Worker"),
    _kubeflow("TFJob", "tfReplicaSpecs", "Worker"),
    Edited(
        name="CloneSet",
        bases=_sample("CloneSet"),
        edits={
            **_SELECTING,
            "spec/replicas": (0, 1, 3, -1),
            "spec/updateStrategy/type": ("ReCreate", "InPlaceIfPossible", "InPlaceOnly", "Rolling"),
            "spec/updateStrategy/maxUnavailable": _AMOUNTS,
            "spec/updateStrategy/maxSurge": _AMOUNTS,
            "spec/updateStrategy/partition": _AMOUNTS,
        },
        programs=_KRUISE,
    ),
    Edited(
        name="StatefulSet of OpenKruise",
        bases=_sample("StatefulSet of OpenKruise"),
        edits={
            **_SELECTING,
            "spec/podManagementPolicy": ("OrderedReady", "Parallel", "Parallel", "Loose"),
            "spec/updateStrategy/type": ("RollingUpdate", "OnDelete", "Never"),
            "spec/updateStrategy/rollingUpdate": ({}, {"partition": 1}, {"minReadySeconds": 400}, {"partition": -1}),
            "spec/updateStrategy/rollingUpdate/maxUnavailable": _AMOUNTS,
            "spec/updateStrategy/rollingUpdate/podUpdatePolicy": ("ReCreate", "InPlaceOnly", "Never"),
            "spec/updateStrategy/rollingUpdate/unorderedUpdate": ({},),
            "spec/template/spec/readinessGates": ([{"conditionType": "InPlaceUpdateReady"}],),
            "spec/scaleStrategy/maxUnavailable": _AMOUNTS,
            "spec/reserveOrdinals": ([1, 2], ["1-3"], ["3-1"], ["x"], [-1]),
        },
        programs=_KRUISE,
    ),
    Edited(
        name="DaemonSet of OpenKruise",
        bases=_sample("DaemonSet of OpenKruise"),
        edits={
            **_SELECTING,
            "spec/updateStrategy/type": ("RollingUpdate", "OnDelete", "Never"),
            "spec/updateStrategy/rollingUpdate/rollingUpdateType": ("Standard", "InPlaceIfPossible", "Surging", "Odd"),
            "spec/updateStrategy/rollingUpdate/maxUnavailable": _AMOUNTS,
            "spec/updateStrategy/rollingUpdate/maxSurge": _AMOUNTS,
            "spec/updateStrategy/rollingUpdate/partition": (0, 1, -1),
            "spec/lifecycle": ({"preDelete": {}}, {"inPlaceUpdate": {}}),
        },
        programs=_KRUISE,
    ),
    Edited(
        name="UnitedDeployment",
        bases=_sample("UnitedDeployment"),
        edits={
            "spec/replicas": (0, 1, 3, 4, -1, None),
            "spec/topology/subsets": _subsets(),
            "spec/topology/scheduleStrategy": ({"type": "Adaptive"}, {"type": "Fixed"}),
            "spec/template/advancedStatefulSetTemplate/spec/replicas": (3,),
            "spec/updateStrategy": ({"manualUpdate": {"partitions": {"a": 1}}},),
        },
        programs=_KRUISE,
    ),
    Edited(
        name="BroadcastJob",
        bases=_sample("BroadcastJob"),
        edits={
            "metadata/name": ("job", "a" * 63, "a" * 64, "a.b"),
            "spec/completionPolicy": (
                {"type": "Always", "activeDeadlineSeconds": 9},
                {"type": "Never"},
                {"type": "Never", "activeDeadlineSeconds": 9},
                {"type": "Never", "ttlSecondsAfterFinished": 9},
            ),
            "spec/template/spec/restartPolicy": ("Never", "OnFailure", "Always", None),
            "spec/template/metadata/labels/broadcastjob-name": ("job", ""),
        },
        programs=_KRUISE,
    ),
)
"""Objects of the kinds that the webhooks of Kueue, LeaderWorkerSet, JobSet and OpenKruise are asked about."""
