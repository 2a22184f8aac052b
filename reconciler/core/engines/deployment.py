"""A placement to be written, and the charts, autoscalers and namespaces of its rendered spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.core.engines.autoscaled_replicas import (
    REPLICAS,
    has_unnamed_target,
    owned_replica_paths,
    pointer,
    targets,
)
from reconciler.core.safety import commands
from reconciler.core.safety.scope import outlives_placements
from reconciler.core.spread.subset_pods import Injection
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.core.workloads.held_objects import with_wrapped
from reconciler.core.workloads.paths import at
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS, ObjectSchemas
from reconciler.model.placement import Placement
from reconciler.model.policy import Fleet, Workspace
from reconciler.model.workload import DeploySpec, HelmConfig, Json, StepType

_DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A placement to be written: its record, its rendered spec, and the settings that its files depend on."""

    placement: Placement
    spec: DeploySpec
    workspace: Workspace
    charts: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)
    """The objects of the charts that Overspill rendered, by helm config, in the order of ``helm template``."""
    fleet: Fleet = field(default_factory=Fleet)
    """The settings of the fleet, among them those of each engine."""
    kinds: Kinds = field(default_factory=dict)
    """The kinds of workloads that the fleet declares."""
    schemas: ObjectSchemas = NO_SCHEMAS
    """The schemas that objects of charts are held to."""
    injection: Injection | None = None
    """The change that the placement's subset of a WorkloadSpread makes to its pods; None without a subset."""


def chart_steps(spec: DeploySpec) -> tuple[HelmConfig, ...]:
    """Return the charts of a spec's helm steps, in the order of the steps, as often as they are named."""
    charts = {chart.name: chart for chart in spec.helm}
    return tuple(charts[step.name] for step in spec.steps if step.type is StepType.HELM)


def stated_manifests(spec: DeploySpec, *, kept: bool = False) -> Iterator[Mapping[str, Json]]:
    """Yield the objects that a spec states itself, in the order of its steps: those of manifests and of commands.

    Namespaces that commands make, which outlive the placement, are among them if `kept`; objects of others that
    commands patch never are.
    """
    manifests = {resource.name: resource.manifest for resource in spec.manifests}
    lines = {command.name: command.cmd for command in spec.commands}
    for step in spec.steps:
        if step.type is StepType.MANIFEST:
            yield manifests[step.name]
        elif step.type is StepType.COMMAND:
            outcome = commands.read_command(lines[step.name])
            if isinstance(outcome, commands.ObjectCommand) and not (outcome.partial if kept else outcome.kept):
                yield outcome.manifest


def made_manifests(spec: DeploySpec, kinds: Kinds, *, kept: bool = False) -> Iterator[Mapping[str, Json]]:
    """Yield the objects that a spec makes: those that it states itself (`stated_manifests`), and what these wrap."""
    for manifest in stated_manifests(spec, kept=kept):
        yield from with_wrapped(manifest, kinds)


def autoscaled(spec: DeploySpec) -> bool:
    """Return whether an autoscaler of a spec does not name what it scales, which then may be any of its objects."""
    return has_unnamed_target(resource.manifest for resource in spec.manifests)


def scaled_objects(spec: DeploySpec, namespace: str) -> list[Json]:
    """List the objects that the autoscalers of a spec name, each with its field of replicas, as Argo CD's rules do.

    `namespace` is that of objects which name none.
    """
    objects = [(resource.manifest, _namespace(resource.manifest) or namespace) for resource in spec.manifests]
    scaled = targets(objects)
    paths = {
        (group_kind(manifest), around, at(manifest, ("metadata", "name"))): path
        for manifest, around in objects
        if (path := owned_replica_paths(manifest, around, scaled, {}))
    }
    return [
        {
            "group": kind.partition("/")[0],
            "kind": kind.partition("/")[2],
            "namespace": around,
            "name": name,
            "jsonPointers": [pointer(paths.get((kind, around, name), REPLICAS))],
        }
        for kind, around, name in sorted(scaled)
    ]


def shares_objects(spec: DeploySpec, kinds: Kinds, schemas: ObjectSchemas) -> bool:
    """Return whether a manifest of a spec makes what others live in, which several placements may have made."""
    return any(outlives_placements(resource.manifest, kinds, schemas) for resource in spec.manifests)


def target_namespace(spec: DeploySpec, workspace: Workspace) -> str:
    """Return the namespace that a rendered spec as a whole belongs to.

    It is the first chart's, else that of the first manifest that names one, else that of the first command, else
    ``default``; in a workspace that may not use that, the first of its namespaces. Objects without a namespace go
    there, and so does the marker; the rights of `bootstrap` allow a workspace no namespace but its own.
    """
    for chart in chart_steps(spec):
        if chart.release_namespace:
            return chart.release_namespace
    manifests = {resource.name: resource.manifest for resource in spec.manifests}
    lines = {command.name: command.cmd for command in spec.commands}
    ordered = [manifests[step.name] for step in spec.steps if step.type is StepType.MANIFEST]
    for manifest in ordered:
        if namespace := _namespace(manifest):
            return namespace
    for step in spec.steps:
        if step.type is StepType.COMMAND and (namespace := command_namespace(lines[step.name])):
            return namespace
    own = workspace.namespaces
    return own[0] if own and _DEFAULT not in own else _DEFAULT


def _namespace(manifest: Json) -> str:
    metadata = manifest.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    return namespace if isinstance(namespace, str) else ""


def command_namespace(cmd: str) -> str:
    """Return the namespace that a command makes, or works in; empty for none."""
    outcome = commands.read_command(cmd)
    if isinstance(outcome, commands.ObjectCommand):
        metadata = outcome.manifest["metadata"]
        return str(metadata["name"]) if outcome.manifest["kind"] == "Namespace" else str(metadata.get("namespace", ""))
    return outcome.namespace if isinstance(outcome, commands.JobCommand | commands.ReadOnlyCommand) else ""
