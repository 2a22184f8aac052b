"""Warnings about shares without effect, since an autoscaler owns the number that they are written to.

A number that an autoscaler owns is not written (`engines.autoscaled_replicas`). A share then needs to bound the
autoscaler, or to be read by another expression. The number that Ray's autoscaler owns is written, but only as the
start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from reconciler.core.capacity.chart_gangs import is_declared_gang
from reconciler.core.engines import autoscaled_replicas
from reconciler.core.expressions import render
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.core.workloads.paths import at
from reconciler.errors import Severity
from reconciler.model.workload import DeploySpec, Json, WorkloadTemplate
from reconciler.text.findings import Finding

_BOUNDS = {"ScaledObject": "maxReplicaCount", "HTTPScaledObject": "replicas.max"}
"""The field with the maximum of each kind of autoscaler, if not ``maxReplicas``."""


def warn_autoscaled(template: WorkloadTemplate, kinds: Kinds) -> Iterator[Finding]:
    """Warn of a template whose autoscaler owns the replicas, if no other written field uses the share.

    `kinds` are those that the fleet repository declares. A gang that states its size has no share.
    """
    spec = template.spec
    if template.unread or not (
        template.uses_replicas or not is_declared_gang(spec, template.ref, template.group_size, kinds)
    ):
        return
    finding = _warn_autoscaler(spec, kinds)
    if finding is not None:
        yield finding


def _warn_autoscaler(spec: DeploySpec, kinds: Kinds) -> Finding | None:
    """Warn of a share that is used only where an autoscaler beside the objects overwrites it."""
    placed = [(manifest.manifest, _namespace(manifest.manifest)) for manifest in spec.manifests]
    scaled = autoscaled_replicas.targets(placed)
    owned = [
        autoscaled_replicas.owned_replica_paths(manifest, namespace, scaled, kinds) for manifest, namespace in placed
    ]
    if not any(owned):
        return _warn_ray_autoscaler(spec)
    rest = tuple(
        replace(manifest, manifest=autoscaled_replicas.without(manifest.manifest, replicas_path))
        for manifest, replicas_path in zip(spec.manifests, owned, strict=True)
    )
    if render.reads_variable(replace(spec, manifests=rest), "replicas"):
        return None
    kind = next(str(manifest["kind"]) for manifest, _ in placed if autoscaled_replicas.autoscaler(manifest))
    return Finding(
        loc=("spec",),
        message=f"its {kind} owns the replicas, and no expression bounds it: every placement deploys the same,"
        " whatever its share",
        hint=f'write {_BOUNDS.get(kind, "maxReplicas")}: "{{{{ replicas }}}}" there',
        severity=Severity.WARNING,
    )


def _warn_ray_autoscaler(spec: DeploySpec) -> Finding | None:
    """Warn of a share that is used only where Ray's own autoscaler overwrites it."""
    kinds = [
        str(manifest.manifest["kind"])
        for manifest in spec.manifests
        if autoscaled_replicas.ray_worker_paths(manifest.manifest)
    ]
    if not kinds or not render.reads_variable(spec, "replicas"):
        return None
    rest = []
    for resource in spec.manifests:
        manifest: Json = resource.manifest
        for group in autoscaled_replicas.ray_worker_paths(manifest):
            manifest = autoscaled_replicas.without(manifest, (*group, "replicas"))
        rest.append(replace(resource, manifest=manifest))
    if render.reads_variable(replace(spec, manifests=tuple(rest)), "replicas"):
        return None
    return Finding(
        loc=("spec",),
        message=f"Ray's autoscaler owns the replicas of its {kinds[0]}, and no expression bounds it: a placement's"
        " share is no more than what its workers begin with",
        hint='write maxReplicas: "{{ replicas }}" in its workerGroupSpecs',
        severity=Severity.WARNING,
    )


def _namespace(manifest: Json) -> str:
    return str(at(manifest, ("metadata", "namespace")) or "")
