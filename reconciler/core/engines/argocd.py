"""Files for Argo CD: one Application a placement, made by the ApplicationSet of `bootstrap`.

The Application's first source is ``manifests/``, a flat directory; a chart is a source of its own that Argo CD installs
(docs/reference/argocd.md, "Waves and hooks" and "Charts"). The order of the steps is that of sync waves, ten apart. The
objects of a chart cannot be annotated, so a chart is wave 0 and the steps round it count from there. Two charts cannot
be ordered in one Application: then Overspill renders them, and every object gets the wave of its step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from reconciler.core.engines import objects, subset_patches
from reconciler.core.engines.engine import Deployment, chart_steps
from reconciler.core.engines.unsupported import chart_refusals, command_refusals, once, unreachable
from reconciler.core.spread import inject
from reconciler.core.spread.subset_pods import Injection
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.model.placement import Placement
from reconciler.model.policy import EngineName, Workspace
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
    hooks = True
    heeds = frozenset({"wait"})

    def charts_mode(self, spec: DeploySpec) -> Literal["engine", "rendered"]:
        """Leave one chart to Argo CD; render two or more, whose order one Application cannot keep."""
        return "rendered" if len(chart_steps(spec)) > 1 else "engine"

    def to_render(self, spec: DeploySpec) -> tuple[HelmConfig, ...]:
        """List the charts when there are several."""
        return once(chart_steps(spec)) if self.charts_mode(spec) == "rendered" else ()

    def refusals(self, spec: DeploySpec, workspace: Workspace, *, helm: bool) -> tuple[str, ...]:
        """Refuse charts from nowhere, and several charts without helm."""
        charts = chart_steps(spec)
        if self.charts_mode(spec) == "engine":
            found = [reason for chart in charts if (reason := unreachable(chart, "Argo CD"))]
        else:
            why = f"{len(charts)} helm steps cannot keep their order in one Argo CD Application"
            found = chart_refusals(charts, why, helm=helm)
        return (*found, *command_refusals(spec, workspace))

    def patches(self, left: Injection, kinds: Kinds) -> list[Json]:  # noqa: ARG002 - it is the same for all
        """Refuse any change: an Application of a chart has no patches."""
        if left.changes:
            message = "Argo CD installs the chart itself, and changes nothing in it"
            raise inject.refusal(left, message, subset_patches.INSTEAD)
        return []

    def files(self, deployment: Deployment) -> Mapping[str, bytes]:
        """Write ``<placement>/manifests/``.

        Raises InvalidInput as well where a subset changes the pods of a chart.
        """
        rendered = self.to_render(deployment.spec)
        made = objects.items(deployment, rendered)
        left = subset_patches.left_to_charts(deployment, objects.of_subset(made), rendered)
        if left is not None:
            self.patches(left, deployment.kinds)
        target = deployment.placement.target_namespace  # Argo CD makes this one itself (CreateNamespace)
        made = [*objects.namespaces(rendered, made, but=target), *made]
        helm = [number for number, step in enumerate(deployment.spec.steps) if step.type is StepType.HELM]
        zero = helm[0] if helm and not rendered else 0
        retain = deployment.spec.deletion_policy is DeletionPolicy.RETAIN
        return objects.write(deployment, made, lambda item: _annotations(item, zero, retain=retain))

    def marker_path(self, placement: Placement) -> str:
        """Put the marker beside the objects."""
        return objects.marker_path(placement)

    def marker(self, deployment: Deployment) -> bytes:
        """Write the marker."""
        return objects.marker(deployment.placement)


def _annotations(item: objects.PayloadObject, zero: int, *, retain: bool) -> dict[str, str]:
    """Give an object its wave, the step `zero` being 0, and keep what must outlive the placement.

    A wave that the user wrote on a manifest stands, as does a chart's hook, whose weight Argo CD reads as its wave. To
    `retain` is an option of the whole Application too, but only since Argo CD 3.4; on an object it has long been one.
    """
    own = item.manifest["metadata"].get("annotations") or {}
    wanted: dict[str, str] = {}
    wave = _NAMESPACE_WAVE if item.is_namespace else (item.step - zero) * _STEP
    if not any(hook in own for hook in _HOOKS) and (item.ordinal or WAVE not in own):
        wanted[WAVE] = str(wave)
    if item.kept or retain:
        wanted[SYNC_OPTIONS] = ",".join(part for part in (own.get(SYNC_OPTIONS, ""), KEEP) if part)
    return wanted
