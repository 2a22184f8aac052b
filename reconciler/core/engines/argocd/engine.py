"""Argo CD as an `Engine`: the files of a placement, its rights, webhook and reports.

Each placement is one Application, made by the ApplicationSet of `bootstrap`. The Application's first source is
``manifests/``, a flat directory; a chart is a source of its own that Argo CD installs
(docs/background/upstream/argocd.md, "Waves and hooks" and "Charts"). The order of the steps is that of sync waves, ten
apart. The objects of a chart cannot be annotated, so a chart is wave 0 and the steps round it count from there. Two
charts cannot be ordered in one Application: then Overspill renders them, and every object gets the wave of its step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from reconciler.core.engines import objects, subset_patches
from reconciler.core.engines.argocd.applications import APPLICATIONS, ApplicationSource
from reconciler.core.engines.argocd.bootstrap import ArgoCDBootstrap
from reconciler.core.engines.argocd.cluster_secrets import ClusterSecretSource
from reconciler.core.engines.deployment import Deployment, chart_steps
from reconciler.core.engines.engine import Bootstrap, ControlPlane, Installation
from reconciler.core.engines.refusals import chart_refusals, command_refusals, unique_charts, unreachable
from reconciler.core.engines.webhook import Webhook
from reconciler.core.spread import inject
from reconciler.core.spread.subset_pods import Injection
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement
from reconciler.model.policy import EngineName, Fleet, Workspace
from reconciler.model.workload import DeletionPolicy, DeploySpec, HelmConfig, Json, StepType

WAVE = "argocd.argoproj.io/sync-wave"
SYNC_OPTIONS = "argocd.argoproj.io/sync-options"
KEEP = "Prune=false,Delete=false"

_STEP = 10
"""Between the waves of two steps, so that a person can put something between them."""

_NAMESPACE_WAVE = -1000
"""Before every step: the marker, too, needs its namespace."""

_HOOKS = ("helm.sh/hook", "argocd.argoproj.io/hook")


class ArgoCDEngine:
    """Argo CD 3.4 or newer with the ApplicationSet of `bootstrap` (an `Engine`)."""

    name = EngineName.ARGOCD
    title = "Argo CD"
    parts = frozenset({objects.DIRECTORY})
    directory = ""
    hooks = True
    heeds = frozenset({"wait"})
    keeps = False
    bootstrap: Bootstrap | None = ArgoCDBootstrap()
    webhook: Webhook | None = Webhook(
        example="argocd=https://argocd.example.com/api/webhook",
        signature_header="X-Hub-Signature-256",
        headers={"X-GitHub-Event": "push"},
        path_hint="the path ends in /api/webhook",
        page_refusal="Argo CD knows a repository by its https or ssh address, and the Fleet's spec.repoURL is none",
    )
    installation: Installation | None = Installation(
        resource=APPLICATIONS, selector="app.kubernetes.io/part-of=argocd", image="argocd", minimum=(3, 4)
    )

    def charts_mode(self, spec: DeploySpec) -> Literal["engine", "rendered"]:
        """Leave one chart to Argo CD; render two or more, whose order one Application cannot keep."""
        return "rendered" if len(chart_steps(spec)) > 1 else "engine"

    def to_render(self, spec: DeploySpec) -> tuple[HelmConfig, ...]:
        """List the charts when there are several."""
        return unique_charts(chart_steps(spec)) if self.charts_mode(spec) == "rendered" else ()

    def refusals(self, spec: DeploySpec, workspace: Workspace, *, helm: bool) -> tuple[str, ...]:
        """Refuse charts from nowhere, and several charts without helm."""
        charts = chart_steps(spec)
        if self.charts_mode(spec) == "engine":
            reasons = [reason for chart in charts if (reason := unreachable(chart, self.title))]
        else:
            why = f"{len(charts)} helm steps cannot keep their order in one Argo CD Application"
            reasons = chart_refusals(charts, why, helm=helm)
        return (*reasons, *command_refusals(spec, workspace))

    def patches(self, injection: Injection, workspace: Workspace, kinds: Kinds) -> list[Json]:  # noqa: ARG002 - it is the same for all
        """Refuse any change: an Application of a chart has no patches."""
        if injection.changes:
            message = "Argo CD installs the chart itself, and changes nothing in it"
            raise inject.injection_error(injection, message, subset_patches.INSTEAD)
        return []

    def files(self, deployment: Deployment) -> Mapping[str, bytes]:
        """Write ``<placement>/manifests/``.

        Raises InvalidInput as well where a subset changes the pods of a chart.
        """
        rendered = self.to_render(deployment.spec)
        payload = objects.items(deployment, rendered)
        injection = subset_patches.left_to_charts(deployment, objects.of_subset(payload), rendered)
        if injection is not None:
            self.patches(injection, deployment.workspace, deployment.kinds)
        target = deployment.placement.target_namespace  # Argo CD makes this one itself (CreateNamespace)
        payload = [*objects.namespaces(rendered, payload, but=target), *payload]
        helm = [number for number, step in enumerate(deployment.spec.steps) if step.type is StepType.HELM]
        zero = helm[0] if helm and not rendered else 0
        retain = deployment.spec.deletion_policy is DeletionPolicy.RETAIN
        return objects.write(deployment, payload, lambda item: _annotations(item, zero, retain=retain))

    def marker_path(self, placement: Placement) -> str:
        """Put the marker beside the objects."""
        return objects.marker_path(placement)

    def marker(self, deployment: Deployment) -> bytes:
        """Write the marker."""
        return objects.marker(deployment.placement)

    def anchor(self, cluster: ClusterName) -> None:  # noqa: ARG002 - it is the same for all
        """Write none: an ApplicationSet finds no placements in a directory that is not there."""
        return

    def cluster_reports(self, fleet: Fleet, cluster: ClusterName) -> None:  # noqa: ARG002 - it is the same for all
        """Return none: all Applications are in the control plane."""
        return

    def control_plane(self, fleet: Fleet) -> ControlPlane:
        """Return the cluster with the Applications and the cluster Secrets."""
        settings = fleet.argocd
        return ControlPlane(
            connection=settings.connection,
            reports=ApplicationSource(namespace=settings.namespace, project=settings.project),
            logins=ClusterSecretSource(namespace=settings.namespace),
            names_sources=True,
        )


def _annotations(item: objects.PayloadObject, zero: int, *, retain: bool) -> dict[str, str]:
    """Give an object its wave, the step `zero` being 0, and keep what must outlive the placement.

    A wave that the user wrote on a manifest stands, as does a chart's hook, whose weight Argo CD reads as its wave. To
    `retain` is an option of the whole Application too, but only since Argo CD 3.4; on an object it has long been one.
    """
    own = item.manifest["metadata"].get("annotations") or {}
    annotations: dict[str, str] = {}
    wave = _NAMESPACE_WAVE if item.is_namespace else (item.step - zero) * _STEP
    if not any(hook in own for hook in _HOOKS) and (item.ordinal or WAVE not in own):
        annotations[WAVE] = str(wave)
    if item.kept or retain:
        annotations[SYNC_OPTIONS] = ",".join(part for part in (own.get(SYNC_OPTIONS, ""), KEEP) if part)
    return annotations
