"""What an engine is given, and what it has to answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from reconciler.core.engines.autoscaled_replicas import autoscaler
from reconciler.core.safety import commands
from reconciler.core.spread.subset_pods import Injection
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.model.placement import Placement
from reconciler.model.policy import EngineName, Flux, Workspace
from reconciler.model.workload import DeploySpec, HelmConfig, Json, StepType

_DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One placement to be written: its rendered spec, and the objects of the charts that Overspill rendered itself.

    `charts` are keyed by the name of the helm config and hold what ``helm template`` printed, in its order. `flux` are
    the fleet's settings for Flux, and `kinds` the kinds of workloads that it declares. `injection` is what the subset
    of a WorkloadSpread that it is placed for changes in its pods.
    """

    placement: Placement
    spec: DeploySpec
    workspace: Workspace
    charts: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)
    flux: Flux = field(default_factory=Flux)
    kinds: Kinds = field(default_factory=dict)
    injection: Injection | None = None


class Engine(Protocol):
    """How one kind of engine wants its files."""

    name: EngineName
    hooks: bool
    """Whether the engine runs Helm's hooks, so that charts rendered for it keep them."""
    heeds: frozenset[str]
    """Which fields of a chart it acts on, of those that not every engine does."""

    def charts_mode(self, spec: DeploySpec) -> Literal["engine", "rendered"]:
        """Tell whether the engine installs the charts of a spec itself."""
        ...

    def to_render(self, spec: DeploySpec) -> tuple[HelmConfig, ...]:
        """List the charts that Overspill has to render for this engine, each once, in the order of the steps."""
        ...

    def refusals(self, spec: DeploySpec, workspace: Workspace, *, helm: bool) -> tuple[str, ...]:
        """Say why this engine cannot take a spec, a sentence each; `helm` tells whether charts can be rendered."""
        ...

    def patches(self, left: Injection, kinds: Kinds) -> list[Json]:
        """Say what a subset changes in the pods of charts that it installs itself, in patches as it takes them.

        Raises InvalidInput with what of it cannot be said.
        """
        ...

    def files(self, deployment: Deployment) -> Mapping[str, bytes]:
        """Write the files of a placement, by path below its cluster's directory, but for placement.yaml and the marker.

        Raises InvalidInput when a chart makes what `validate` refuses, or two steps make the same object.
        """
        ...

    def marker_path(self, placement: Placement) -> str:
        """Return where the marker of a placement lies, below its cluster's directory."""
        ...

    def marker(self, deployment: Deployment) -> bytes:
        """Write what shows in a cluster which version of a placement it has: it holds the placement's digest."""
        ...


def chart_steps(spec: DeploySpec) -> tuple[HelmConfig, ...]:
    """Return the charts of a spec's helm steps, in the order of the steps, as often as they are named."""
    charts = {chart.name: chart for chart in spec.helm}
    return tuple(charts[step.name] for step in spec.steps if step.type is StepType.HELM)


def autoscaled(spec: DeploySpec) -> bool:
    """Tell whether an autoscaler ships with a spec, so that the engine has to leave the replica count alone."""
    return any(autoscaler(resource.manifest) for resource in spec.manifests)


def target_namespace(spec: DeploySpec, workspace: Workspace) -> str:
    """Return the namespace that a rendered spec as a whole belongs to.

    It is the first chart's, else that of the first manifest that names one, else that of the first command, else
    ``default``; in a workspace that may not use that, the first of its namespaces. Objects without a namespace go
    there, and so does the marker, and what `bootstrap` prints allows a workspace no namespace but its own.
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
    outcome = commands.read(cmd)
    if isinstance(outcome, commands.Makes):
        made = outcome.manifest["metadata"]
        return str(made["name"]) if outcome.manifest["kind"] == "Namespace" else str(made.get("namespace", ""))
    return outcome.namespace if isinstance(outcome, commands.Runs | commands.Checks) else ""
