"""Files for everything that applies plain manifests: kubectl, kustomize, or an engine that is pointed at a directory.

``manifests/`` is what the argocd engine writes, with every chart rendered; ``kustomization.yaml`` beside it lists the
files in order, so that ``kubectl apply -f .../manifests``, ``kubectl apply -k ...`` and ``kustomize build ...`` all
work. Nobody waits between steps here, and nobody is there who could be told what to leave behind when the placement
goes: an annotation says it to whoever prunes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from reconciler.core.engines import objects
from reconciler.core.engines.engine import Deployment, chart_steps
from reconciler.core.engines.unsupported import chart_refusals, command_refusals, command_steps, once
from reconciler.core.safety import commands
from reconciler.core.spread.subset_pods import Injection
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.model.placement import Placement
from reconciler.model.policy import EngineName, Workspace
from reconciler.model.workload import DeletionPolicy, DeploySpec, HelmConfig, Json
from reconciler.text.findings import shortened

DELETION_POLICY = "overspill.dev/deletion-policy"


class ManifestsEngine:
    """Plain directories (an `Engine`)."""

    name = EngineName.MANIFESTS
    hooks = False
    heeds = frozenset[str]()

    def charts_mode(self, spec: DeploySpec) -> Literal["engine", "rendered"]:
        """Render every chart: there is nobody to install it."""
        return "rendered" if chart_steps(spec) else "engine"

    def to_render(self, spec: DeploySpec) -> tuple[HelmConfig, ...]:
        """List all charts."""
        return once(chart_steps(spec))

    def refusals(self, spec: DeploySpec, workspace: Workspace, *, helm: bool) -> tuple[str, ...]:
        """Refuse charts that cannot be rendered, and objects that are not made but only marked."""
        found = chart_refusals(chart_steps(spec), "the manifests engine installs no charts", helm=helm)
        found += command_refusals(spec, workspace)
        found += [
            f"command {shortened(name)!r} marks an object that others own, and the manifests engine cannot keep it "
            "from being pruned when the placement goes (use the argocd engine, or label the object where it is made)"
            for name, outcome in command_steps(spec)
            if isinstance(outcome, commands.Makes) and outcome.partial
        ]
        return tuple(found)

    def patches(self, left: Injection, kinds: Kinds) -> list[Json]:  # noqa: ARG002 - it is the same for all
        """Write none: it installs no charts."""
        return []

    def files(self, deployment: Deployment) -> Mapping[str, bytes]:
        """Write ``<placement>/manifests/`` and the kustomization that lists it."""
        rendered = self.to_render(deployment.spec)
        made = objects.items(deployment, rendered)
        made = [*objects.namespaces(rendered, made), *made]
        retain = deployment.spec.deletion_policy is DeletionPolicy.RETAIN
        files = objects.write(deployment, made, lambda item: {DELETION_POLICY: "Retain"} if retain or item.kept else {})
        directory = f"{deployment.placement.name}/"
        listed = [path.removeprefix(directory) for path in (self.marker_path(deployment.placement), *files)]
        files[f"{directory}{objects.KUSTOMIZATION}"] = objects.kustomization(listed)
        return files

    def marker_path(self, placement: Placement) -> str:
        """Put the marker beside the objects."""
        return objects.marker_path(placement)

    def marker(self, deployment: Deployment) -> bytes:
        """Write the marker."""
        return objects.marker(deployment.placement)
