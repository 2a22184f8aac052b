"""Flux as an `Engine`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from reconciler.core.engines import subset_patches
from reconciler.core.engines.deployment import Deployment, chart_steps
from reconciler.core.engines.engine import Anchor, Bootstrap, Installation
from reconciler.core.engines.flux import stages
from reconciler.core.engines.flux.bootstrap import FluxBootstrap
from reconciler.core.engines.flux.names import SUBSTITUTE
from reconciler.core.engines.flux.reports import KUSTOMIZATIONS, FluxSource
from reconciler.core.engines.refusals import command_refusals, unique_charts, unreachable
from reconciler.core.engines.webhook import Webhook
from reconciler.core.schema.yaml import emit
from reconciler.core.spread.subset_pods import Injection
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement
from reconciler.model.policy import EngineName, Fleet, Workspace
from reconciler.model.workload import DeploySpec, HelmConfig, Json

_ANCHOR = """\
# Keeps this directory alive. Flux fails where a directory that it follows is not there, and takes nothing away any
# more: without this file it would miss the end of the last placement. Overspill puts it back when it is gone.
"""


class FluxEngine:
    """Flux 2.9 or newer with what `bootstrap` prints (an `Engine`)."""

    name = EngineName.FLUX
    title = "Flux"
    parts = frozenset({"stages"})
    directory = "flux"
    hooks = True
    heeds = frozenset({"atomic", "cleanupOnFail", "wait", "timeout", "secretRef"})
    keeps = True
    bootstrap: Bootstrap | None = FluxBootstrap()
    webhook: Webhook | None = Webhook(
        example="flux=https://flux.example.com/hook/DIGEST, with the path that `kubectl get receiver` shows",
        signature_header="X-Signature",
        path_hint="`kubectl get receiver` shows the path",
        secret_path=True,  # Flux makes it up from the Receiver's token
    )
    installation: Installation | None = Installation(
        resource=KUSTOMIZATIONS, selector="app.kubernetes.io/part-of=flux", image="", minimum=(2, 9)
    )

    def charts_mode(self, spec: DeploySpec) -> Literal["engine", "rendered"]:  # noqa: ARG002 - it is the same for all
        """Leave every chart to Flux, which keeps their order."""
        return "engine"

    def to_render(self, spec: DeploySpec) -> tuple[HelmConfig, ...]:  # noqa: ARG002 - it is the same for all
        """List none."""
        return ()

    def refusals(self, spec: DeploySpec, workspace: Workspace, *, helm: bool) -> tuple[str, ...]:  # noqa: ARG002 - Flux has its own
        """Refuse charts from nowhere."""
        reasons = [reason for chart in unique_charts(chart_steps(spec)) if (reason := unreachable(chart, self.title))]
        return (*reasons, *command_refusals(spec, workspace))

    def patches(self, injection: Injection, workspace: Workspace, kinds: Kinds) -> list[Json]:
        """Write patches of Kustomize."""
        return subset_patches.patches(injection, workspace, kinds)

    def files(self, deployment: Deployment) -> Mapping[str, bytes]:
        """Write ``<placement>/stages/``."""
        return stages.files(deployment)

    def marker_path(self, placement: Placement) -> str:
        """Put the Kustomizations, which show what a cluster has, where the root Kustomization of `bootstrap` looks."""
        return f"{self.directory}/{placement.name}.yaml"

    def marker(self, deployment: Deployment) -> bytes:
        """Write the Kustomizations, each with the digest."""
        return stages.kustomizations(deployment)

    def anchor(self, cluster: ClusterName) -> Anchor:
        """Write a ConfigMap; the root Kustomization says in which namespace it lives."""
        metadata = {"name": "overspill-anchor", "annotations": {SUBSTITUTE: "disabled"}}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"cluster": cluster}}
        return Anchor(
            content=(_ANCHOR + emit(manifest)).encode(),
            reason="Flux fails where this directory is not there, so it stays when the last placement goes.",
        )

    def cluster_reports(self, fleet: Fleet, cluster: ClusterName) -> FluxSource:
        """Return the Kustomizations and HelmReleases in a cluster."""
        return FluxSource(namespace=fleet.flux.namespace, cluster=cluster)

    def control_plane(self, fleet: Fleet) -> None:  # noqa: ARG002 - it is the same for all
        """Return none: Flux runs in each cluster."""
        return
