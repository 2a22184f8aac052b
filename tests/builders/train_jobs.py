"""Kubeflow Trainer's TrainJobs, and runtimes as Trainer 2.0.0 releases them."""

from __future__ import annotations

from reconciler.core.workloads.train_job import TRAINER
from reconciler.model.workload import Json
from tests.builders.inputs import GPU

STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
VERSION = f"{TRAINER}/v1alpha1"


def replicated(name: str = "node", step: str = "trainer", gpus: int = 0, **job: Json) -> Json:
    """Make a replicated job of a runtime, whose container asks for so many GPUs; an empty `step` is no label."""
    container = {"name": "node", "image": "registry.example.com/train:1"}
    container |= {"resources": {"limits": {GPU: str(gpus)}}} if gpus else {}
    template = {"spec": {"template": {"spec": {"containers": [container]}}, **job}}
    return {"name": name, "template": {**({"metadata": {"labels": {STEP: step}}} if step else {}), **template}}


def runtime(*jobs: Json, nodes: int | None = 1, name: str = "torch-distributed", **policy: Json) -> Json:
    """Make a runtime of the whole cluster; without jobs it is Trainer's own for PyTorch."""
    own = {"numNodes": nodes} if nodes is not None else {}
    return {
        "apiVersion": VERSION,
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {
            "mlPolicy": {**own, **(policy or {"torch": {"numProcPerNode": "auto"}})},
            "template": {"spec": {"replicatedJobs": list(jobs or (replicated(),))}},
        },
    }


def mpi(nodes: int | None = 1, *, as_node: bool = True) -> Json:
    """Make Trainer's own runtime for MPI: a launcher, which trains as well, and workers."""
    jobs = replicated("launcher", gpus=1), replicated("node", step="", gpus=8)
    return runtime(*jobs, nodes=nodes, name="mpi-distributed", mpi={"runLauncherAsNode": as_node})


def of_namespace(made: Json, namespace: str = "demo") -> Json:
    """Make a runtime one of a namespace."""
    return {**made, "kind": "TrainingRuntime", "metadata": {**made["metadata"], "namespace": namespace}}


def train_job(name: str = "torch-distributed", kind: str = "", trainer: Json = None, **spec: Json) -> Json:
    """Make a TrainJob that names its runtime, as the example of Trainer's page for contributors does."""
    ref = {"name": name, **({"kind": kind, "apiGroup": TRAINER} if kind else {})}
    own = {"trainer": trainer} if trainer is not None else {}
    return {
        "apiVersion": VERSION,
        "kind": "TrainJob",
        "metadata": {"name": "mnist", "namespace": "demo"},
        "spec": {"runtimeRef": ref, **own, **spec},
    }
