"""Plain manifests as an `Engine`: for kubectl, kustomize, or a GitOps engine that is pointed at a directory.

``manifests/`` is what the argocd engine writes, with every chart rendered; ``kustomization.yaml`` beside it lists the
files in order, so that ``kubectl apply -f .../manifests``, ``kubectl apply -k ...`` and ``kustomize build ...`` all
work. Nothing waits between steps, and no controller knows which objects to leave behind when the placement goes: an
annotation says so to the tool that prunes. There is nothing to bootstrap, to notify, or to read reports from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from reconciler.core.engines import objects
from reconciler.core.engines.deployment import Deployment, chart_steps
from reconciler.core.engines.engine import Bootstrap, Installation
from reconciler.core.engines.refusals import chart_refusals, command_refusals, command_steps, unique_charts
from reconciler.core.engines.webhook import Webhook
from reconciler.core.safety import commands
from reconciler.core.spread.subset_pods import Injection
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement
from reconciler.model.policy import EngineName, Fleet, Workspace
from reconciler.model.workload import DeletionPolicy, DeploySpec, HelmConfig, Json
from reconciler.text.findings import shortened

DELETION_POLICY = "overspill.dev/deletion-policy"


class ManifestsEngine:
    """Plain directories (an `Engine`)."""

    name = EngineName.MANIFESTS
    title = "plain manifests"
    parts = frozenset({objects.DIRECTORY, objects.KUSTOMIZATION})
    directory = ""
    hooks = False
    heeds = frozenset[str]()
    keeps = True
    bootstrap: Bootstrap | None = None
    webhook: Webhook | None = None
    installation: Installation | None = None

    def charts_mode(self, spec: DeploySpec) -> Literal["engine", "rendered"]:
        """Render every chart: no controller installs it."""
        return "rendered" if chart_steps(spec) else "engine"

    def to_render(self, spec: DeploySpec) -> tuple[HelmConfig, ...]:
        """List all charts."""
        return unique_charts(chart_steps(spec))

    def refusals(self, spec: DeploySpec, workspace: Workspace, *, helm: bool) -> tuple[str, ...]:
        """Refuse charts that cannot be rendered, and objects that are not made but only marked."""
        reasons = chart_refusals(chart_steps(spec), "the manifests engine installs no charts", helm=helm)
        reasons += command_refusals(spec, workspace)
        reasons += [
            f"command {shortened(name)!r} marks an object that others own, and the manifests engine cannot keep it "
            "from being pruned when the placement goes (use the argocd engine, or label the object where it is made)"
            for name, outcome in command_steps(spec)
            if isinstance(outcome, commands.ObjectCommand) and outcome.partial
        ]
        return tuple(reasons)

    def patches(self, injection: Injection, workspace: Workspace, kinds: Kinds) -> list[Json]:  # noqa: ARG002 - it is the same for all
        """Write none: it installs no charts."""
        return []

    def files(self, deployment: Deployment) -> Mapping[str, bytes]:
        """Write ``<placement>/manifests/`` and the kustomization that lists it."""
        rendered = self.to_render(deployment.spec)
        payload = objects.items(deployment, rendered)
        payload = [*objects.namespaces(rendered, payload), *payload]
        retain = deployment.spec.deletion_policy is DeletionPolicy.RETAIN
        files = objects.write(
            deployment, payload, lambda item: {DELETION_POLICY: "Retain"} if retain or item.kept else {}
        )
        directory = f"{deployment.placement.name}/"
        paths = [path.removeprefix(directory) for path in (self.marker_path(deployment.placement), *files)]
        files[f"{directory}{objects.KUSTOMIZATION}"] = objects.kustomization(paths)
        return files

    def marker_path(self, placement: Placement) -> str:
        """Put the marker beside the objects."""
        return objects.marker_path(placement)

    def marker(self, deployment: Deployment) -> bytes:
        """Write the marker."""
        return objects.marker(deployment.placement)

    def anchor(self, cluster: ClusterName) -> None:  # noqa: ARG002 - it is the same for all
        """Write none: no engine follows a directory."""
        return

    def cluster_reports(self, fleet: Fleet, cluster: ClusterName) -> None:  # noqa: ARG002 - it is the same for all
        """Return none."""
        return

    def control_plane(self, fleet: Fleet) -> None:  # noqa: ARG002 - it is the same for all
        """Return none."""
        return
