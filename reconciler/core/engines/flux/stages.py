"""Stages of a placement: one Kustomization each, and its objects in a directory of their own.

``stages/NN/`` holds the objects, ``flux/<placement>.yaml`` beside the placement the Kustomizations that apply them,
each waiting for the one before (docs/background/upstream/flux.md, "Stages"). Flux checks only every half minute whether
the one before is ready, so steps share a stage where nothing has to be waited for: plain objects in a row do. A chart
and a Job stand alone: they begin once everything before them is ready, and the steps that follow wait for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from reconciler.core.engines import autoscaled_replicas, subset_patches
from reconciler.core.engines import objects as payload
from reconciler.core.engines.deployment import Deployment
from reconciler.core.engines.flux import charts as flux_charts
from reconciler.core.engines.flux.names import APPLIER, SOURCE, SUBSTITUTE, TOOLKIT, flux_duration
from reconciler.core.safety import commands
from reconciler.core.schema.yaml import emit
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.errors import InvalidInput
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.workload import DeletionPolicy, HelmConfig, Json, StepType

_SETTLE = timedelta(minutes=10)
"""The time that plain objects may take to be ready: that of Kubernetes for the progress of a Deployment."""

_SLACK = timedelta(minutes=1)
"""The time of a stage beyond that of the chart or the Job in it, so that the error of these is reported first."""

_INTERVAL = timedelta(minutes=10)
_RETRY = timedelta(seconds=30)


def files(deployment: Deployment) -> Mapping[str, bytes]:
    """Write ``<placement>/stages/``."""
    stages = _stages(deployment)
    numbers = {id(item): number for number, stage in enumerate(stages) for item in stage}
    items = [item for stage in stages for item in stage]
    written = payload.write(deployment, items, _annotations, lambda item: _directory(numbers[id(item)]))
    for number in range(len(stages)):
        directory = f"{deployment.placement.name}/{_directory(number)}/"
        inside = [path.removeprefix(directory) for path in written if path.startswith(directory)]
        written[f"{directory}{payload.KUSTOMIZATION}"] = payload.kustomization(inside)
    return written


def kustomizations(deployment: Deployment) -> bytes:
    """Write the Kustomizations of all stages, each with the placement's digest."""
    stages = _stages(deployment)
    written = (emit(_kustomization(deployment, number, stages)) for number in range(len(stages)))
    return "---\n".join(written).encode()


def _stages(deployment: Deployment) -> list[list[payload.PayloadObject]]:
    """Divide the objects of all steps into stages; namespaces go to the first.

    Raises InvalidInput when there are none, since a Kustomization of nothing fails, and where a subset makes a change
    to the pods of a chart that no patch can express.
    """
    items = payload.items(deployment, ())
    charts = _charts(deployment)
    guested = tuple(chart for number, chart in charts.items() if _has_guests(deployment, items, number, chart))
    namespaces = [*payload.namespaces(guested, items), *(item for item in items if item.is_namespace)]
    steps: dict[int, list[payload.PayloadObject]] = {}
    for item in items:
        if not item.is_namespace:
            steps.setdefault(item.step, []).append(item)
    injection = subset_patches.left_to_charts(deployment, payload.of_subset(items), ())
    patches = [] if injection is None else subset_patches.patches(injection, deployment.workspace, deployment.kinds)
    for number, chart in charts.items():
        changes = [*flux_charts.keep_patches(deployment.workspace, deployment.kinds, deployment.schemas), *patches]
        objects = flux_charts.objects(deployment.placement.name, chart, deployment.fleet.flux, changes)
        steps[number] = [payload.PayloadObject(step=number, name=chart.name, manifest=manifest) for manifest in objects]
    stages: list[list[payload.PayloadObject]] = []
    open_ended = False
    for _, step in sorted(steps.items()):
        alone = any(_alone(item.manifest) for item in step)
        if open_ended and not alone:
            stages[-1].extend(step)
        else:
            stages.append(list(step))
        open_ended = not alone
    if namespaces:
        stages[:1] = [[*namespaces, *(stages[0] if stages else [])]]
    if not stages:
        raise InvalidInput("none of its steps makes an object, so there is nothing for Flux to apply")
    return stages


def _charts(deployment: Deployment) -> dict[int, HelmConfig]:
    """Return the chart of each helm step by the number of the step, each chart where it comes first."""
    charts = {chart.name: chart for chart in deployment.spec.helm}
    first: dict[str, int] = {}
    for number, step in enumerate(deployment.spec.steps):
        if step.type is StepType.HELM:
            first.setdefault(step.name, number)
    return {number: charts[name] for name, number in first.items()}


def _has_guests(deployment: Deployment, items: Sequence[payload.PayloadObject], number: int, chart: HelmConfig) -> bool:
    """Return whether an object goes to a chart's namespace before the chart can have made it."""
    target = deployment.placement.target_namespace
    return any(
        item.step < number and (item.manifest["metadata"].get("namespace") or target) == chart.release_namespace
        for item in items
    )


def _alone(manifest: Json) -> bool:
    """Return whether an object has to be waited for: a command, or a chart."""
    return group_kind(manifest) == "batch/Job" or group_kind(manifest).startswith(f"helm.{TOOLKIT}/")


def _directory(number: int) -> str:
    return f"stages/{number:02d}"


def _annotations(item: payload.PayloadObject) -> dict[str, str]:
    """Guard an object's text from substitution, and keep what must outlive the placement.

    Flux would fill in ``${...}`` wherever a Kustomization is given variables. A namespace of which nothing but the name
    is written is left as it is where others made it; of any other shared object, Flux owns no more than the fields
    written here.
    """
    annotations = {SUBSTITUTE: "disabled"}
    if item.kept:
        annotations[f"kustomize.{TOOLKIT}/prune"] = "disabled"
        named_alone = item.is_namespace and item.manifest["metadata"].keys() == {"name"}
        annotations[f"kustomize.{TOOLKIT}/ssa"] = "IfNotPresent" if named_alone else "Merge"
    return annotations


def _kustomization(deployment: Deployment, number: int, stages: Sequence[Sequence[payload.PayloadObject]]) -> Json:
    placement, spec = deployment.placement, deployment.spec
    retain = spec.deletion_policy is DeletionPolicy.RETAIN
    document: dict[str, Json] = {
        "apiVersion": f"kustomize.{TOOLKIT}/v1",
        "kind": "Kustomization",
        "metadata": {
            "name": f"{placement.name}-s{number:02d}",
            "namespace": deployment.fleet.flux.namespace,
            "labels": {PLACEMENT_LABEL: str(placement.name)},
            "annotations": {"overspill.dev/digest": placement.digest, SUBSTITUTE: "disabled"},
        },
        "spec": {
            "interval": flux_duration(_INTERVAL),
            "retryInterval": flux_duration(_RETRY),
            "timeout": flux_duration(_timeout(deployment, stages[number])),
            "path": f"./{placement.path}/{_directory(number)}",
            "prune": True,
            "deletionPolicy": "Orphan" if retain else "Delete",
            "wait": True,
            "serviceAccountName": APPLIER,
            "sourceRef": {"kind": "GitRepository", "name": SOURCE},
        },
    }
    if number:
        document["spec"]["dependsOn"] = [{"name": f"{placement.name}-s{number - 1:02d}"}]
    if ignored := _ignored_fields(deployment, stages, number):
        document["spec"]["ignore"] = ignored
    return document


def _ignored_fields(
    deployment: Deployment, stages: Sequence[Sequence[payload.PayloadObject]], number: int
) -> list[Json]:
    """Write the rules for the replicas of a stage's objects that an autoscaler of any stage owns."""
    scalers = [item for stage in stages for item in stage if autoscaled_replicas.autoscaler(item.manifest)]
    scaled = autoscaled_replicas.targets((item.manifest, payload.namespace_of(item, deployment)) for item in scalers)
    every = autoscaled_replicas.has_unnamed_target(item.manifest for item in scalers)
    here = ((item.manifest, payload.namespace_of(item, deployment)) for item in stages[number])
    return list(autoscaled_replicas.ignore_rules(here, scaled, deployment.kinds, every=every))


def _timeout(deployment: Deployment, stage: Sequence[payload.PayloadObject]) -> timedelta:
    """Return the time that a stage may take to be ready."""
    for item in stage:
        if group_kind(item.manifest).startswith(f"helm.{TOOLKIT}/"):
            charts = {chart.name: chart for chart in deployment.spec.helm}
            return flux_charts.timeout(charts[item.name]) + _SLACK
    if any(_alone(item.manifest) for item in stage):
        return timedelta(seconds=commands.JOB_DEADLINE) + _SLACK
    return _SETTLE
