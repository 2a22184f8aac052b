"""Files for Flux: one Kustomization a stage, and the objects of each stage in a directory of their own.

``stages/NN/`` holds what is applied, ``flux/<placement>.yaml`` beside the placement the Kustomizations that apply it,
each waiting for the one before (docs/reference/flux.md, "Stages"). A Kustomization is asked only every half minute
whether the one before it is ready, so steps share a stage where nothing has to be waited for: plain objects in a row
do. A chart and a Job stand alone: they begin once everything before them is ready, and what follows waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Literal

from reconciler.core.engines import autoscaled_replicas, flux_charts, subset_patches
from reconciler.core.engines import objects as payload
from reconciler.core.engines.engine import Deployment, chart_steps
from reconciler.core.engines.flux_names import APPLIER, SOURCE, SUBSTITUTE, TOOLKIT, lasting
from reconciler.core.engines.unsupported import command_refusals, once, unreachable
from reconciler.core.safety import commands
from reconciler.core.schema.yaml import emit
from reconciler.core.spread.subset_pods import Injection
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.errors import InvalidInput
from reconciler.model.ids import ClusterName
from reconciler.model.placement import PLACEMENT_LABEL, Placement
from reconciler.model.policy import EngineName, Workspace
from reconciler.model.workload import DeletionPolicy, DeploySpec, HelmConfig, Json, StepType

_SETTLE = timedelta(minutes=10)
"""How long plain objects may take to be ready: as long as Kubernetes gives a Deployment to get on."""

_SLACK = timedelta(minutes=1)
"""What a stage gets beyond the time of the chart or the Job in it, so that theirs is the error that is told."""

_INTERVAL = timedelta(minutes=10)
_RETRY = timedelta(seconds=30)

_ANCHOR = """\
# Keeps this directory alive. Flux fails where a directory that it follows is not there, and takes nothing away any
# more: without this file it would miss the end of the last placement. Overspill puts it back when it is gone.
"""


class FluxEngine:
    """Flux 2.9 or newer with what `fluxbootstrap` prints (an `Engine`)."""

    name = EngineName.FLUX
    hooks = True
    heeds = frozenset({"atomic", "cleanupOnFail", "wait", "timeout", "secretRef"})

    def charts_mode(self, spec: DeploySpec) -> Literal["engine", "rendered"]:  # noqa: ARG002 - it is the same for all
        """Leave every chart to Flux, which keeps their order."""
        return "engine"

    def to_render(self, spec: DeploySpec) -> tuple[HelmConfig, ...]:  # noqa: ARG002 - it is the same for all
        """List none."""
        return ()

    def refusals(self, spec: DeploySpec, workspace: Workspace, *, helm: bool) -> tuple[str, ...]:  # noqa: ARG002 - Flux has its own
        """Refuse charts from nowhere."""
        found = [reason for chart in once(chart_steps(spec)) if (reason := unreachable(chart, "Flux"))]
        return (*found, *command_refusals(spec, workspace))

    def patches(self, left: Injection, kinds: Kinds) -> list[Json]:
        """Write patches of Kustomize."""
        return subset_patches.patches(left, kinds)

    def files(self, deployment: Deployment) -> Mapping[str, bytes]:
        """Write ``<placement>/stages/``."""
        stages = _stages(deployment)
        numbers = {id(item): number for number, stage in enumerate(stages) for item in stage}
        made = [item for stage in stages for item in stage]
        files = payload.write(deployment, made, _annotations, lambda item: _directory(numbers[id(item)]))
        for number in range(len(stages)):
            directory = f"{deployment.placement.name}/{_directory(number)}/"
            inside = [path.removeprefix(directory) for path in files if path.startswith(directory)]
            files[f"{directory}{payload.KUSTOMIZATION}"] = payload.kustomization(inside)
        return files

    def marker_path(self, placement: Placement) -> str:
        """Put the Kustomizations, which show what a cluster has, where the root Kustomization of `bootstrap` looks."""
        return f"flux/{placement.name}.yaml"

    def marker(self, deployment: Deployment) -> bytes:
        """Write the Kustomizations, each with the digest."""
        stages = _stages(deployment)
        written = (emit(_kustomization(deployment, number, stages)) for number in range(len(stages)))
        return "---\n".join(written).encode()


def anchor(cluster: ClusterName) -> tuple[str, bytes]:
    """Return path and content of the file that keeps a cluster's ``flux/`` there while it has no placement.

    The root Kustomization says in which namespace the object in it lives.
    """
    metadata = {"name": "overspill-anchor", "annotations": {SUBSTITUTE: "disabled"}}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"cluster": cluster}}
    return f"clusters/{cluster}/flux/_anchor.yaml", (_ANCHOR + emit(manifest)).encode()


def _stages(deployment: Deployment) -> list[list[payload.PayloadObject]]:
    """Lay the objects of all steps out in stages; namespaces go to the first.

    Raises InvalidInput when there are none: a Kustomization of nothing fails. So it does where a subset changes what
    cannot be changed in the pods of a chart.
    """
    made = payload.items(deployment, ())
    charts = _charts(deployment)
    wanted = tuple(chart for number, chart in charts.items() if _has_guests(deployment, made, number, chart))
    namespaces = [*payload.namespaces(wanted, made), *(item for item in made if item.is_namespace)]
    steps: dict[int, list[payload.PayloadObject]] = {}
    for item in made:
        if not item.is_namespace:
            steps.setdefault(item.step, []).append(item)
    left = subset_patches.left_to_charts(deployment, payload.of_subset(made), ())
    patches = [] if left is None else subset_patches.patches(left, deployment.kinds)
    for number, chart in charts.items():
        objects = flux_charts.objects(deployment.placement.name, chart, deployment.flux, patches)
        steps[number] = [payload.PayloadObject(step=number, name=chart.name, manifest=it) for it in objects]
    stages: list[list[payload.PayloadObject]] = []
    open_ended = False
    for _, items in sorted(steps.items()):
        alone = any(_alone(item.manifest) for item in items)
        if open_ended and not alone:
            stages[-1].extend(items)
        else:
            stages.append(list(items))
        open_ended = not alone
    if namespaces:
        stages[:1] = [[*namespaces, *(stages[0] if stages else [])]]
    if not stages:
        raise InvalidInput("none of its steps makes an object, so there is nothing for Flux to apply")
    return stages


def _charts(deployment: Deployment) -> dict[int, HelmConfig]:
    """Return the chart of each helm step by the number of the step, each chart where it comes first."""
    charts = {chart.name: chart for chart in deployment.spec.helm}
    found: dict[str, int] = {}
    for number, step in enumerate(deployment.spec.steps):
        if step.type is StepType.HELM:
            found.setdefault(step.name, number)
    return {number: charts[name] for name, number in found.items()}


def _has_guests(deployment: Deployment, made: Sequence[payload.PayloadObject], number: int, chart: HelmConfig) -> bool:
    """Tell whether something goes to a chart's namespace before the chart can have made it."""
    target = deployment.placement.target_namespace
    return any(
        item.step < number and (item.manifest["metadata"].get("namespace") or target) == chart.release_namespace
        for item in made
    )


def _alone(manifest: Json) -> bool:
    """Tell whether an object has to be waited for: a command, or a chart."""
    return group_kind(manifest) == "batch/Job" or group_kind(manifest).startswith(f"helm.{TOOLKIT}/")


def _directory(number: int) -> str:
    return f"stages/{number:02d}"


def _annotations(item: payload.PayloadObject) -> dict[str, str]:
    """Guard an object's text from substitution, and keep what must outlive the placement.

    Flux would fill in ``${...}`` wherever somebody gives a Kustomization variables. A namespace that others made is
    left as it is; of an object that is only marked, Flux takes no more than what is written here.
    """
    found = {SUBSTITUTE: "disabled"}
    if item.kept:
        found[f"kustomize.{TOOLKIT}/prune"] = "disabled"
        found[f"kustomize.{TOOLKIT}/ssa"] = "IfNotPresent" if item.is_namespace else "Merge"
    return found


def _kustomization(deployment: Deployment, number: int, stages: Sequence[Sequence[payload.PayloadObject]]) -> Json:
    placement, spec = deployment.placement, deployment.spec
    retain = spec.deletion_policy is DeletionPolicy.RETAIN
    document: dict[str, Json] = {
        "apiVersion": f"kustomize.{TOOLKIT}/v1",
        "kind": "Kustomization",
        "metadata": {
            "name": f"{placement.name}-s{number:02d}",
            "namespace": deployment.flux.namespace,
            "labels": {PLACEMENT_LABEL: str(placement.name)},
            "annotations": {"overspill.dev/digest": placement.digest, SUBSTITUTE: "disabled"},
        },
        "spec": {
            "interval": lasting(_INTERVAL),
            "retryInterval": lasting(_RETRY),
            "timeout": lasting(_timeout(deployment, stages[number])),
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
    if ignored := _left_alone(deployment, stages, number):
        document["spec"]["ignore"] = ignored
    return document


def _left_alone(deployment: Deployment, stages: Sequence[Sequence[payload.PayloadObject]], number: int) -> list[Json]:
    """Say of which objects of a stage an autoscaler owns the replicas, whichever stage that is in."""
    scalers = [item for stage in stages for item in stage if autoscaled_replicas.autoscaler(item.manifest)]
    scaled = autoscaled_replicas.targets((item.manifest, payload.namespace_of(item, deployment)) for item in scalers)
    every = autoscaled_replicas.vague(item.manifest for item in scalers)
    here = ((item.manifest, payload.namespace_of(item, deployment)) for item in stages[number])
    return list(autoscaled_replicas.left_alone(here, scaled, deployment.kinds, every=every))


def _timeout(deployment: Deployment, stage: Sequence[payload.PayloadObject]) -> timedelta:
    """Work out how long a stage may take to be ready."""
    for item in stage:
        if group_kind(item.manifest).startswith(f"helm.{TOOLKIT}/"):
            charts = {chart.name: chart for chart in deployment.spec.helm}
            return flux_charts.timeout(charts[item.name]) + _SLACK
    if any(_alone(item.manifest) for item in stage):
        return timedelta(seconds=commands.JOB_DEADLINE) + _SLACK
    return _SETTLE
