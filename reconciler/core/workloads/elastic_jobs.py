"""Elastic jobs: those that grow while they run, as Kueue's workload slices have it.

The annotation is `EnabledAnnotationKey` of `pkg/workloadslicing/workloadslicing.go` of kubernetes-sigs/kueue at
ff69552. MultiKueue carries the parallelism of such a Job to the worker that runs it, also without it: a slice that
replaces another goes to the same cluster and the same flavor.
"""

from __future__ import annotations

from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.paths import at
from reconciler.model.workload import DeploySpec, StepType

_ELASTIC = "kueue.x-k8s.io/elastic-job"


def is_elastic(spec: DeploySpec) -> bool:
    """Return whether a spec deploys an elastic Job, whose parallelism may change while it runs."""
    named = {step.name for step in spec.steps if step.type is StepType.MANIFEST}
    return any(
        group_kind(resource.manifest) == "batch/Job"
        and at(resource.manifest, ("metadata", "annotations", _ELASTIC)) == "true"
        for resource in spec.manifests
        if resource.name in named
    )
