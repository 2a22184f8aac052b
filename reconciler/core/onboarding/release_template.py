"""The template of a Helm release: its chart with the values of its user, and what a person has to know of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.core.engines import ENGINES
from reconciler.core.engines.autoscaled_replicas import autoscaler
from reconciler.core.fleet.replica_paths import FIXED, REPLICAS, SHARE
from reconciler.core.onboarding.helm_release import ChartObject, HelmRelease, ReplicaValue, other_workloads, with_value
from reconciler.core.safety import credentials
from reconciler.core.safety.rules import check_chart_objects
from reconciler.core.workloads.api_kinds import cluster_scoped, group_kind
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.core.workloads.portable_object import quoted
from reconciler.errors import InvalidInput, Problem
from reconciler.model.policy import Desired, Workspace
from reconciler.model.workload import DeploySpec, HelmConfig, Json, Step, StepType
from reconciler.text.findings import dotted
from reconciler.text.wording import count, join_names

_CLAIM = "/PersistentVolumeClaim"
_CUSTOM_KIND = "apiextensions.k8s.io/CustomResourceDefinition"
_MOST_REFUSALS = 5
"""Rules of charts that are told of one release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedChart:
    """A live release, and what a template of its chart needs beside."""

    release: HelmRelease
    repo_url: str
    """Where engines fetch the chart from."""
    workload: ChartObject
    """The object whose replicas burst."""
    value: ReplicaValue
    foreign_values: str = ""
    """The file of the values, where they are not those that Helm keeps."""


def chart_spec(chart: ReleasedChart) -> Json:
    """Write the chart and its step as fields of a template's spec. Raises InvalidInput for values with credentials."""
    return {"helmConfig": [_helm_config(chart)], "steps": [{"name": chart.release.name, "type": "helm"}]}


def chart_annotations(chart: ReleasedChart) -> dict[str, Json]:
    """Write what tells how many replicas a placement deploys, where no value of the chart does."""
    return {} if chart.value.path else {REPLICAS: str(chart.value.copy or FIXED)}


def _helm_config(chart: ReleasedChart) -> dict[str, Json]:
    release = chart.release
    values, defaults = quoted(dict(release.values)), quoted(dict(release.defaults))
    if chart.value.path:
        values = with_value(values, defaults, chart.value.path, SHARE)
    _refuse_credentials(chart, values)
    return {
        "name": release.name,
        "chart": release.chart,
        "repoURL": chart.repo_url,
        "version": release.version,
        "releaseName": release.name,
        "releaseNamespace": release.namespace,
        **({"values": values} if values else {}),
    }


def _refuse_credentials(chart: ReleasedChart, values: Json) -> None:
    """Raise InvalidInput with the place of each value that looks like a credential; none is quoted."""
    source = chart.foreign_values or f"values of {chart.release.title}"
    problems = tuple(
        Problem(
            path=source,
            field=dotted(finding.loc),
            message=finding.message,
            hint=f"{finding.hint}; then pass the values with --values FILE",
        )
        for finding in credentials.check_document(values)
    )
    if problems:
        raise InvalidInput(problems=problems)


def chart_notes(chart: ReleasedChart, desired: Desired, workspace: Workspace) -> Iterator[str]:
    """Say what comes along with the chart on each cluster, and how its replicas are known."""
    release, kinds = chart.release, desired.kinds
    objects = [each for each in release.objects if each.name]
    if not chart.value.path:
        copy = f"one copy of {count(chart.value.copy or 1, 'replica')}"
        yield f"{chart.workload.title}: no value of the chart sets its replicas, so each placement is {copy}"
    elif chart.value.because:
        path = ".".join(chart.value.path)
        yield f"values.{path}: sets the replicas of {chart.workload.title}, {chart.value.because}; see that it does"
    if not release.values and not chart.foreign_values and not release.defaults:
        yield f"{release.title}: no values are known, so the chart's own apply (--values FILE takes others)"
    if others := other_workloads(release, chart.workload, kinds):
        yield f"with each burst comes along {others}, in numbers of the chart's own"
    for each in objects:
        if group_kind(each.manifest) == _CLAIM:
            yield f"claim {each.name}: each cluster has its own, which begins empty"
        elif autoscaler(each.manifest):
            yield f"{each.title}: comes along, and may scale a burst by itself; turn it off in the values"
    wide = [each for each in objects if cluster_scoped(group_kind(each.manifest))]
    if names := join_names(each.title for each in wide if group_kind(each.manifest) != _CUSTOM_KIND):
        yield (
            f"for a whole cluster: {names}; the engine needs the right to make that, and another release of the chart"
            " may have it already: see whether a value leaves it out"
        )
    if release.custom_kinds or any(group_kind(each.manifest) == _CUSTOM_KIND for each in wide):
        yield f"{release.title}: its chart brings CustomResourceDefinitions, which stay once a burst has ended"
    if release.hooks:
        yield f"{release.title}: {count(release.hooks, 'hook')} of its chart run on each cluster as well"
    yield from _rendered_notes(chart, desired, workspace, kinds)


def _rendered_notes(chart: ReleasedChart, desired: Desired, workspace: Workspace, kinds: Kinds) -> Iterator[str]:
    """Say what the rules of charts refuse, where an engine has Overspill render them."""
    config = _helm_config(chart)
    spec = DeploySpec(
        helm=(
            HelmConfig(
                name=config["name"],
                chart=config["chart"],
                repo_url=config["repoURL"],
                version=config["version"],
                release_name=config["releaseName"],
                release_namespace=config["releaseNamespace"],
            ),
        ),
        steps=(Step(name=config["name"], type=StepType.HELM),),
    )
    engines = {desired.clusters[name].engine for name in workspace.destinations if name in desired.clusters}
    rendering = sorted(name for name in engines if ENGINES[name].to_render(spec))
    if not rendering:
        return
    manifests: list[Mapping[str, Json]] = [each.manifest for each in chart.release.objects]
    findings = check_chart_objects(manifests, (), workspace, kinds)
    for finding in findings[:_MOST_REFUSALS]:
        hint = f" ({finding.hint})" if finding.hint else ""
        yield f"engine {join_names(rendering)} refuses this chart as it is: {finding.message}{hint}"
