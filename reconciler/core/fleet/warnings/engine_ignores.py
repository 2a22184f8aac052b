"""Warnings about content that the engines refuse or ignore, reported when files are read.

Deciding checks the engine of each cluster again (`candidates.filter`). Here only statements that hold for every cluster
of a spec are reported, and never as errors, since another cluster or engine would do. Helm is assumed to be installed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from reconciler.core.engines import engine
from reconciler.core.engines.deployment import chart_steps
from reconciler.core.safety.lifetime import has_own_effect
from reconciler.core.safety.scope import has_unknown_scope, is_cluster_scoped
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.errors import Severity
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Desired, EngineName, Workspace
from reconciler.model.workload import DeploySpec, HelmConfig
from reconciler.text.findings import Finding, Loc
from reconciler.text.wording import join_names

_SPEC: Loc = ("spec",)
_INSTEAD: Mapping[str, str] = {
    "atomic": "leave it out: a placement that does not get well is taken back in any case",
    "cleanupOnFail": "leave it out: a placement that does not get well is taken back in any case",
    "wait": "leave it out, or give the cluster another engine",
    "timeout": "try rolloutTimeout of a BurstPolicy",
    "secretRef": "give the engine a login for the repository",
}


def warn_engine_ignores(
    spec: DeploySpec, workspace: Workspace, names: Collection[ClusterName], desired: Desired
) -> Iterator[Finding]:
    """Warn of content that no engine of these clusters takes, or prunes; silent if any of them is undescribed."""
    if not names or any(name not in desired.clusters for name in names):
        return
    engines = sorted({desired.clusters[name].engine for name in names})
    refused = [engine(name).refusals(spec, workspace, helm=True) for name in engines]
    if all(refused):
        for text in dict.fromkeys(text for texts in refused for text in texts):
            message = f"{join_names(engines)} cannot take it on any cluster it may go to: {text}"
            yield Finding(loc=_SPEC, message=message, severity=Severity.WARNING)
        return
    yield from _warn_pruned(spec, workspace, engines, desired)
    yield from _warn_unknown_scopes(spec, workspace, engines, desired)
    heeded = frozenset[str]().union(*(engine(name).heeds for name in engines))
    used = {chart.name for chart in chart_steps(spec)}
    for index, chart in enumerate(spec.helm):
        if chart.name in used:
            yield from _warn_ignored_flags(chart, (*_SPEC, "helmConfig", index), heeded, engines)


def _warn_pruned(
    spec: DeploySpec, workspace: Workspace, engines: Collection[EngineName], desired: Desired
) -> Iterator[Finding]:
    """Warn of charts from which an engine prunes what others live in, where the workspace allows such kinds."""
    shared = sorted(
        kind.rpartition("/")[2]
        for kind in workspace.allowed_kinds
        if is_cluster_scoped(kind, desired.kinds, desired.schemas) and not has_own_effect(kind)
    )
    pruning = [engine(name) for name in engines if not engine(name).keeps]
    for chosen in pruning if shared and chart_steps(spec) else ():
        if chosen.charts_mode(spec) == "engine":
            yield Finding(
                loc=(*_SPEC, "helmConfig"),
                message=f"{chosen.title} installs the chart itself: a {join_names(shared)} in it goes with the"
                " placement, and with it all that others have there",
                hint="make it by a manifest or a command of this template, which stays, or give it the annotation"
                " helm.sh/resource-policy: keep in the chart",
                severity=Severity.WARNING,
            )


def _warn_unknown_scopes(
    spec: DeploySpec, workspace: Workspace, engines: Collection[EngineName], desired: Desired
) -> Iterator[Finding]:
    """Warn of objects that stay when their placement goes, since nobody says whether they live in a namespace."""
    for index, resource in enumerate(spec.manifests):
        kind = group_kind(resource.manifest)
        if kind in workspace.allowed_kinds and has_unknown_scope(resource.manifest, desired.kinds, desired.schemas):
            yield Finding(
                loc=(*_SPEC, "manifestResources", index, "manifest"),
                message=f"the {kind.rpartition('/')[2]} names no namespace, and may have none: it stays when the"
                " placement goes, for others may live in it",
                hint="set metadata.namespace, or put the kind's CustomResourceDefinition into the fleet repository",
                severity=Severity.WARNING,
            )
    unknown = sorted(
        kind.rpartition("/")[2]
        for kind in workspace.allowed_kinds
        if is_cluster_scoped(kind, desired.kinds, desired.schemas) is None
    )
    if unknown and any(engine(name).to_render(spec) for name in engines):
        yield Finding(
            loc=(*_SPEC, "helmConfig"),
            message=f"a {join_names(unknown)} in a chart that names no namespace may have none: it stays when the"
            " placement goes, for others may live in it",
            hint="put the kind's CustomResourceDefinition into the fleet repository",
            severity=Severity.WARNING,
        )


def _warn_ignored_flags(
    chart: HelmConfig, loc: Loc, heeded: frozenset[str], engines: Collection[EngineName]
) -> Iterator[Finding]:
    """Warn of chart fields that have no effect. Text flags are reported as a whole."""
    flags = chart.flags
    fields = {
        "atomic": flags.atomic,
        "cleanupOnFail": flags.cleanup_on_fail,
        "wait": flags.wait,
        "timeout": flags.timeout is not None,
        "secretRef": bool(chart.secret_ref),
    }
    for field, given in fields.items():
        if given and field not in heeded:
            place, what = ("secretRef", "") if field == "secretRef" else ("helmFlags", f"{field} ")
            message = f"{what}has no effect with {join_names(engines)}, the engine of each cluster it may go to"
            yield Finding(loc=(*loc, place), message=message, hint=_INSTEAD[field], severity=Severity.WARNING)
