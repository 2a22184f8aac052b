"""Warnings about jobs that are written for MultiKueue: a placement has them in a cluster where nobody makes their pods.

Kueue gives a job of a queue whose jobs MultiKueue runs the manager `kueue.x-k8s.io/multikueue`
(`ApplyDefaultForManagedBy` in pkg/controller/jobframework/defaults.go of Kueue 0.14); Kubernetes' and other controllers
pass such jobs over.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.workloads.paths import at
from reconciler.core.workloads.portable_object import MANAGERS, MULTIKUEUE
from reconciler.errors import Severity
from reconciler.model.workload import DeploySpec
from reconciler.text.findings import Finding, shortened


def warn_managed_by_multikueue(spec: DeploySpec) -> Iterator[Finding]:
    """Warn of each object whose manager is MultiKueue."""
    for index, resource in enumerate(spec.manifests):
        manifest = resource.manifest
        for field_path in MANAGERS:
            if at(manifest, field_path) == MULTIKUEUE:
                what = shortened(f"{manifest.get('kind')} {at(manifest, ('metadata', 'name'))}")
                yield Finding(
                    loc=("spec", "manifestResources", index, "manifest", *field_path),
                    message=f"{what} is managed by MultiKueue: where its queue does not lead to other clusters, nobody"
                    " makes its pods",
                    hint="leave the field out: Kueue sets it where it has to be",
                    severity=Severity.WARNING,
                )
