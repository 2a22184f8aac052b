"""Warnings of templates that part from the workload that they burst: another image, command or size in a container.

A burst runs what its template says. After a change of the primary alone, its replicas elsewhere are of the old version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from reconciler.errors import Problem, Severity
from reconciler.model.capacity import ClusterObservation, Observed, WorkloadObservation
from reconciler.model.policy import Desired
from reconciler.model.workload import ContainerSummary, WorkloadRef, WorkloadTemplate
from reconciler.text.findings import shortened
from reconciler.text.wording import join_names

REASON = "TemplateDiffers"
"""The word that these warnings begin with, for searches of logs."""


def with_template_differences(observed: Observed, desired: Desired) -> Observed:
    """Add a warning for each template that deploys other containers than its workload on the primary has."""
    index = {
        name: _by_name(observed.clusters[name])
        for name in {workspace.primary for workspace in desired.workspaces.values()}
        if name in observed.clusters
    }
    if not any(index.values()):
        return observed
    problems = tuple(
        _problem(template, seen, differences)
        for template in desired.templates.values()
        if template.containers and template.ref is not None
        for seen in index.get(desired.workspaces[template.workspace].primary, {}).get(_key(template.ref), ())
        if seen.ref.may_be(template.ref) and seen.containers != template.containers
        if (differences := [*_differences(template.containers, seen.containers)])
    )
    return replace(observed, problems=(*observed.problems, *problems)) if problems else observed


def _by_name(observation: ClusterObservation) -> dict[tuple[str, str], list[WorkloadObservation]]:
    """Index the workloads whose containers are known by namespace and name."""
    named: dict[tuple[str, str], list[WorkloadObservation]] = {}
    for seen in observation.workloads:
        if seen.containers:
            named.setdefault(_key(seen.ref), []).append(seen)
    return named


def _key(ref: WorkloadRef) -> tuple[str, str]:
    return ref.namespace, ref.name


def _differences(own: tuple[ContainerSummary, ...], seen: tuple[ContainerSummary, ...]) -> Iterator[str]:
    """Say in what a template parts from the primary, container by container; an expression parts from nothing."""
    by_name = {summary.name: summary for summary in seen}
    for summary in own:
        other = by_name.pop(summary.name, None)
        if other is None:
            yield f"the primary has no container {summary.name}"
            continue
        if None not in (summary.image, other.image) and summary.image != other.image:
            yield f"{summary.name} runs {_shown(other.image)} there and {_shown(summary.image)} here"
        if None not in (summary.command, other.command) and summary.command != other.command:
            yield f"{summary.name} has another command there"
        if None not in (summary.resources, other.resources) and summary.resources != other.resources:
            yield f"{summary.name} requests {_shown(other.resources)} there and {_shown(summary.resources)} here"
    yield from (f"the primary has a container {name} as well" for name in by_name)


def _problem(template: WorkloadTemplate, seen: WorkloadObservation, differences: list[str]) -> Problem:
    return Problem(
        path=template.path,
        line=template.line,
        field="spec",
        message=f"{REASON}: bursts of {seen.ref.full_kind} {seen.ref.name} would not be what the primary runs: "
        f"{join_names(differences, 3)}",
        hint="bring the template up to date; running placements follow the next time they are written",
        severity=Severity.WARNING,
    )


def _shown(text: str | None) -> str:
    return shortened(text or "nothing", 100)
