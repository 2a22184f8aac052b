"""Objects of the primary that those of a template refer to and do not bring: the runtimes of TrainJobs.

They say what pods the template makes, and are never deployed with it: another cluster has to have its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.core.workloads.train_job import TRAINER, RuntimeRef, runtime_among, runtime_ref
from reconciler.model.manifest_source import SourceContent, SourceContents, SourceKey, WorkloadSource
from reconciler.model.policy import Workspace
from reconciler.model.workload import WorkloadTemplate


def referred_sources(template: WorkloadTemplate, workspace: Workspace, kinds: Kinds) -> Iterator[SourceKey]:
    """List the objects of the primary that a template refers to, without those that it brings."""
    brought = [resource.manifest for resource in template.spec.manifests]
    for ref in _runtimes(template, kinds):
        if runtime_among(ref, brought) is None:
            yield _key(ref, workspace)


def with_referred(
    template: WorkloadTemplate, workspace: Workspace, contents: SourceContents, kinds: Kinds
) -> WorkloadTemplate:
    """Put into a template the objects that it refers to, those that it brings and those that are seen."""
    brought = [resource.manifest for resource in template.spec.manifests]
    referred: list[Mapping[str, Any]] = []
    for ref in _runtimes(template, kinds):
        content = contents.get(_key(ref, workspace))
        seen = content.manifests if isinstance(content, SourceContent) else ()
        runtime = runtime_among(ref, (*brought, *seen))
        referred += () if runtime is None else (runtime,)
    return replace(template, spec=replace(template.spec, referred=tuple(referred))) if referred else template


def _runtimes(template: WorkloadTemplate, kinds: Kinds) -> Iterator[RuntimeRef]:
    """List the runtimes of the TrainJobs of a template; a WorkloadKind of the fleet says itself what such jobs make."""
    for resource in template.spec.manifests:
        ref = runtime_ref(resource.manifest, template.namespace)
        counted = ref is not None and group_kind(resource.manifest) not in kinds
        if ref is not None and counted and not has_expression(f"{ref.namespace}{ref.name}"):
            yield ref


def _key(ref: RuntimeRef, workspace: Workspace) -> SourceKey:
    source = WorkloadSource(kind=ref.kind, group=TRAINER, namespace=ref.namespace, name=ref.name)
    return SourceKey(source, workspace.primary)
