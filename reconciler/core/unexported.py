"""What a workspace's shared network will not reach of a template, told when its file is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.core.engines import engine
from reconciler.core.engines.deployment import chart_steps
from reconciler.core.engines.exporting import Unexportable, export, service
from reconciler.core.fieldpath import at
from reconciler.core.findings import Finding, Loc, shortened
from reconciler.core.wording import listed
from reconciler.core.workloadkinds import Kinds
from reconciler.errors import Severity
from reconciler.model.policy import EngineName, Workspace
from reconciler.model.workload import DeploySpec


def warn_unexported(
    spec: DeploySpec, workspace: Workspace, engines: Iterable[EngineName], kinds: Kinds
) -> Iterator[Finding]:
    """Warn of Services that cannot be exported, and of charts whose Services nobody here sees with these engines."""
    shared = workspace.shared_networking
    if shared is None:
        return
    manifests = [resource.manifest for resource in spec.manifests]
    for index, manifest in enumerate(manifests):
        made = export(manifest, shared, manifests, kinds) if service(manifest) else None
        if isinstance(made, Unexportable):
            loc: Loc = ("spec", "manifestResources", index)
            what = f"Service {shortened(str(at(manifest, ('metadata', 'name'))))} is not exported: {made.message}"
            yield Finding(loc=loc, message=what, hint=made.hint, severity=Severity.WARNING)
    charts = {chart.name: index for index, chart in enumerate(spec.helm)}
    for chart in dict.fromkeys(chart.name for chart in chart_steps(spec)):
        blind = [
            str(name) for name in sorted({*engines}) if all(chart != one.name for one in engine(name).to_render(spec))
        ]
        if blind:
            installs = "which installs it" if len(blind) == 1 else "which install it"
            yield Finding(
                loc=("spec", "helmConfig", charts[chart]),
                message=f"the Services of chart {chart} are not exported under {listed(blind)}, {installs}",
                hint="add a ServiceExport for each as a manifest",
                severity=Severity.WARNING,
            )
