"""Gangs with a minimum, as a whole or for each of their roles, and what is decided of one that its primary lacks."""

from __future__ import annotations

from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation
from reconciler.model.placement import Placement
from reconciler.model.plan import Change, Plan
from reconciler.model.workload import Json
from tests.builders.group_bursts import fleet, lacks
from tests.builders.inputs import ledger, plan
from tests.builders.workload_kinds import template, workload


def volcano(*tasks: tuple[int, int, int | None], least: int | None = None) -> Json:
    """Make a Job of Volcano whose tasks are so many pods, with so many GPUs each, of which so many are the minimum."""
    made = [
        {"name": f"task-{at}", "replicas": pods, "template": template(each)}
        | ({} if minimum is None else {"minAvailable": minimum})
        for at, (pods, each, minimum) in enumerate(tasks)
    ]
    return workload("batch.volcano.sh/v1alpha1", "Job", {"tasks": made} | ({"minAvailable": least} if least else {}))


def torch(workers: int = 4, *, elastic: int | None = None, least: int | None = None, gpus: int = 8) -> Json:
    roles = {
        name: {"replicas": pods, "template": template(gpus)} for name, pods in (("Master", 1), ("Worker", workers))
    }
    spec: dict[str, Json] = {"pytorchReplicaSpecs": roles}
    spec |= {"elasticPolicy": {"minReplicas": elastic, "maxReplicas": workers}} if elastic is not None else {}
    spec |= {"runPolicy": {"schedulingPolicy": {"minAvailable": least}}} if least else {}
    return workload("kubeflow.org/v1", "PyTorchJob", spec)


def grove(replicas: int = 1, *, workers: int | None = None, decode: int | None = None) -> Json:
    """Make a PodCliqueSet with a router, and two times a leader and three workers, of which so many are the minimum."""
    cliques = [
        {"name": name, "spec": {"replicas": pods, "podSpec": template(each)["spec"]}}
        for name, pods, each in (("router", 1, 0), ("leader", 1, 4), ("worker", 3, 8))
    ]
    cliques[2]["spec"] |= {"minAvailable": workers} if workers is not None else {}
    scaled = {"name": "decode", "cliqueNames": ["leader", "worker"], "replicas": 2}
    scaled |= {"minAvailable": decode} if decode is not None else {}
    return workload(
        "grove.io/v1alpha1",
        "PodCliqueSet",
        {"replicas": replicas, "template": {"cliques": cliques, "podCliqueScalingGroups": [scaled]}},
    )


JOB = volcano((5, 8, None), least=3)
"""A gang of five pods with eight GPUs each, of which three are enough."""


def burst(*seen: ClusterObservation, made: Json = JOB, there: Placement | None = None, missing: int = 5) -> Plan:
    """Decide while the primary has room for none of the job."""
    wanted = fleet(made, reads_replicas=False)
    return plan(lacks(missing, running=0), *seen, wanted=wanted, there=ledger(*((there,) if there else ())))


def placed(of: Plan) -> Change:
    (change,) = of.changes
    assert change.action is Action.PLACE
    return change
