"""Kubeflow Trainer's TrainJobs: the runtime that one refers to, and the JobSet that Trainer makes of both.

The rules are those of Trainer 2.0.0: `pkg/runtime/core/trainingruntime.go` (numbers of nodes, overrides), the plugins
`torch`, `plainml` and `mpi` below `pkg/runtime/framework/plugins` (numbers that a job states itself), and
`plugins/jobset/builder.go` (its resources, labels and suspension). Overrides are `podTemplateOverrides` in 2.1, and
`runtimePatches` since 2.2, which replace the labels and annotations of a job's spec as well
(`pkg/apis/trainer/v1alpha1/trainjob_types.go`, and `mergeRuntimePatches` of `trainingruntime.go`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.core.pods.pod_references import as_mapping
from reconciler.core.pods.strategic_merge import merge
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.paths import at
from reconciler.model.workload import Json

TRAINER = "trainer.kubeflow.org"
_TRAIN_JOB = f"{TRAINER}/TrainJob"
_CLUSTER_RUNTIME, _RUNTIME = "ClusterTrainingRuntime", "TrainingRuntime"
_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
"""The label of a replicated job with the part of a TrainJob that it runs."""
_TRAINS = "trainer"
_INITIALIZERS = ("dataset-initializer", "model-initializer")
_NODE = "node"
"""The container that trains, and with MPI the replicated job beside the launcher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeRef:
    """The runtime of a TrainJob."""

    kind: str
    namespace: str
    """Empty for one of the whole cluster."""
    name: str

    @property
    def title(self) -> str:
        """The runtime in messages."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    def is_meant(self, manifest: Mapping[str, Json]) -> bool:
        """Return whether an object is this runtime; what is deployed together may leave the namespace out."""
        named = group_kind(manifest), at(manifest, ("metadata", "name"))
        namespace = at(manifest, ("metadata", "namespace")) or ""
        alike = namespace == self.namespace or not (namespace and self.namespace)
        return alike and named == (f"{TRAINER}/{self.kind}", self.name)


def runtime_ref(manifest: Mapping[str, Json], namespace: str = "") -> RuntimeRef | None:
    """Return the runtime that an object refers to; None of any other kind, and where it names none.

    `namespace` is that of an object that leaves it out.
    """
    name = at(manifest, ("spec", "runtimeRef", "name"))
    group = at(manifest, ("spec", "runtimeRef", "apiGroup")) or TRAINER
    kind = at(manifest, ("spec", "runtimeRef", "kind")) or _CLUSTER_RUNTIME
    if group_kind(manifest) != _TRAIN_JOB or group != TRAINER or not isinstance(name, str) or not name:
        return None
    if kind not in (_CLUSTER_RUNTIME, _RUNTIME):
        return None
    own = str(at(manifest, ("metadata", "namespace")) or namespace)
    return RuntimeRef(kind=kind, namespace=own if kind == _RUNTIME else "", name=name)


def runtime_among(ref: RuntimeRef, objects: Iterable[Mapping[str, Json]]) -> Mapping[str, Json] | None:
    """Return the runtime that is meant; None where it is not among the objects."""
    return next((each for each in objects if ref.is_meant(each)), None)


def states_its_pods(manifest: Mapping[str, Json]) -> bool:
    """Return whether a TrainJob states its nodes and what each of them needs, whatever its runtime says."""
    stated = as_mapping(at(manifest, ("spec", "trainer", "resourcesPerNode")))
    return at(manifest, ("spec", "trainer", "numNodes")) is not None and bool(
        stated.get("requests") or stated.get("limits")
    )


def job_set(job: Mapping[str, Json], runtime: Mapping[str, Json]) -> dict[str, Json]:
    """Return the JobSet that Trainer makes of a TrainJob and its runtime, as far as its pods and their needs go.

    Raises one of AttributeError, LookupError, TypeError and ValueError for a runtime that no API server has checked.
    """
    spec, own = runtime["spec"], job["spec"]
    template = spec["template"]
    written = {part: (template.get("metadata") or {}).get(part) or {} for part in ("labels", "annotations")}
    metadata = {part: {**values, **(own.get(part) or {})} for part, values in written.items()}
    for patch in _patches(job):
        for part, values in metadata.items():
            values.update((patch.get("metadata") or {}).get(part) or {})
    # The queue that the job waits in holds back all that is made of it.
    metadata["labels"] |= (job.get("metadata") or {}).get("labels") or {}
    named = {name: at(job, ("metadata", name)) for name in ("name", "namespace")}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {**{name: value for name, value in named.items() if value is not None}, **metadata},
        "spec": {
            **template["spec"],
            "replicatedJobs": [
                _replicated_job(each, job, spec.get("mlPolicy")) for each in template["spec"]["replicatedJobs"]
            ],
            "suspend": own.get("suspend"),
        },
    }


def _replicated_job(replicated: Mapping[str, Json], job: Mapping[str, Json], policy: Json) -> dict[str, Json]:
    """Return a replicated job of a runtime with what the TrainJob states for it."""
    step = at(replicated, ("template", "metadata", "labels", _STEP))
    made = replicated["template"]["spec"]
    nodes = _nodes(replicated, job, policy, trains=step == _TRAINS)
    pod = made["template"]
    for override in _overrides(job, str(replicated["name"])):
        pod = merge(pod, override)
    if step == _TRAINS:
        pod = {**pod, "spec": _with_resources(pod["spec"], at(job, ("spec", "trainer", "resourcesPerNode")) or {})}
    whole = {**made, "parallelism": nodes, "completions": nodes, "template": pod}
    return {
        **replicated,
        **({"replicas": 1} if step in (_TRAINS, *_INITIALIZERS) else {}),
        "template": {**replicated["template"], "spec": whole},
    }


def _nodes(replicated: Mapping[str, Json], job: Mapping[str, Json], policy: Json, *, trains: bool) -> Json:
    """Return the pods of a replicated job; a number in the TrainJob may still be an expression."""
    parallelism = at(replicated, ("template", "spec", "parallelism"))
    number = 1 if parallelism is None else parallelism
    if trains and policy is not None:
        number = 1 if policy.get("numNodes") is None else policy["numNodes"]
    wanted, mpi = at(job, ("spec", "trainer", "numNodes")), (policy or {}).get("mpi")
    # 1. The TrainJob leaves it to the runtime.
    if wanted is None:
        return number
    # 2. With MPI it is the number of the workers, one of which the launcher may be.
    if mpi is not None:
        if replicated["name"] != _NODE:
            return number
        return max(wanted - 1, 1) if mpi.get("runLauncherAsNode") and type(wanted) is int else wanted
    # 3. Else it is that of the pods that train.
    return wanted if trains else number


def _overrides(job: Mapping[str, Json], name: str) -> Iterator[dict[str, Json]]:
    """Yield what a TrainJob changes in the pod template of a replicated job, by the fields of 2.0, 2.1 and 2.2."""
    for field, is_spec in (("podSpecOverrides", True), ("podTemplateOverrides", False)):
        for override in at(job, ("spec", field)) or ():
            if any(target.get("name") == name for target in override.get("targetJobs") or ()):
                changed = {part: value for part, value in override.items() if part != "targetJobs"}
                yield {"spec": changed} if is_spec else changed
    for patch in _patches(job):
        for replicated in (patch.get("spec") or {}).get("replicatedJobs") or ():
            changed = at(replicated, ("template", "spec", "template"))
            if replicated.get("name") == name and changed:
                yield changed


def _patches(job: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """Yield the patches of a TrainJob to the JobSet of its runtime, in the order in which Trainer applies them."""
    for patch in at(job, ("spec", "runtimePatches")) or ():
        yield at(patch, ("trainingRuntimeSpec", "template")) or {}


def _with_resources(pod: Mapping[str, Json], stated: Mapping[str, Json]) -> dict[str, Json]:
    """Replace the requirements of the container that trains, where the TrainJob states any."""
    parts = {part: stated[part] for part in ("limits", "requests") if stated.get(part)}
    containers = [
        {**each, "resources": parts} if parts and each.get("name") == _NODE else each for each in pod["containers"]
    ]
    return {**pod, "containers": containers}
