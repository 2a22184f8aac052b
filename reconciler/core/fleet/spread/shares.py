"""The share of a placement, written at the paths of a WorkloadSpread's `replicasPathList`.

OpenKruise only reads these paths; Overspill writes the share there as well (docs/background/upstream/workloadspread.md,
"Replicas and the whitelist"). The numbers in the template give the proportion. They become expressions when the files
are read, so that rendering and fit divide the share alike. Templates without such a spread are left to
`burst_replicas`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.core.expressions import render
from reconciler.core.fleet.objects import DeclaredValue, FleetObjects
from reconciler.core.fleet.policies import Templates
from reconciler.core.fleet.replica_paths import SHARE, share_expressions
from reconciler.core.schema.workloadspread import WorkloadSpreadFile
from reconciler.core.spread.inject import target_indexes
from reconciler.core.workloads.paths import at, items, put, within
from reconciler.errors import Severity
from reconciler.model.ids import WorkloadId
from reconciler.model.kubernetes.workload_kind import Path, path
from reconciler.model.kubernetes.workload_spread import WorkloadSpread
from reconciler.model.policy import BurstPolicy
from reconciler.model.workload import DeploySpec, Json, ManifestResource, ReplicaCount, WorkloadTemplate
from reconciler.text.findings import Finding, Loc, shortened

_PATHS: Loc = ("spec", "targetFilter", "replicasPathList")
_MOST = 64
"""Paths in one object that a share is divided over."""


class IndivisibleReplicasError(Exception):
    """A share cannot be written at the paths of a spread; `hint` is the remedy."""

    def __init__(self, message: str, hint: str) -> None:
        """Take the reason and the remedy."""
        super().__init__(message)
        self.hint = hint


def divide_templates(
    work: FleetObjects, templates: Templates, policies: Mapping[WorkloadId, BurstPolicy]
) -> dict[WorkloadId, WorkloadTemplate]:
    """Return the templates whose policy has a spread with paths, divided over them; failures are reported."""
    made = dict[WorkloadId, WorkloadTemplate]()
    files = {(declared.path, declared.declared.line): declared for declared in work.all(WorkloadSpreadFile)}
    for workload, policy in policies.items():
        spread = policy.spread
        if workload not in templates or spread is None or not spread.replicas_paths:
            continue
        template, placed = templates[workload]
        if placed.value.fixed is not None:
            continue
        try:
            spec, counts = divide_replicas(template.spec, spread)
        except IndivisibleReplicasError as error:
            _report(work, files[spread.path, spread.line], template, error)
            continue
        if spec is not template.spec:
            count = counts[0] if len(counts) == 1 else None
            made[workload] = replace(template, spec=spec, own_spec=template.spec, uses_replicas=True, count=count)
    return made


def divide_replicas(spec: DeploySpec, spread: WorkloadSpread) -> tuple[DeploySpec, tuple[ReplicaCount, ...]]:
    """Divide a share over the paths of a spread in the objects that it targets; also return where it is written.

    Returns the same spec without such objects, as in a chart, or if the only path holds the share already. Raises
    IndivisibleReplicasError if an object has expressions of its own over the share, or no numbers at the paths.
    """
    chosen = target_indexes([manifest.manifest for manifest in spec.manifests], spread)
    made = tuple(
        _divide_manifest(manifest, spread) if index in chosen else manifest
        for index, manifest in enumerate(spec.manifests)
    )
    divided = [made for made, own in zip(made, spec.manifests, strict=True) if made is not own]
    if not divided:
        return spec, ()
    counts = (ReplicaCount(manifest=made.name, paths=(*_single_paths(made.manifest, spread),)) for made in divided)
    return replace(spec, manifests=made), tuple(counts)


def _divide_manifest(resource: ManifestResource, spread: WorkloadSpread) -> ManifestResource:
    manifest, share_paths = resource.manifest, _single_paths(resource.manifest, spread)
    if [at(manifest, share_path) for share_path in share_paths] in ([], [SHARE]):
        return resource  # an empty path leads nowhere, and OpenKruise counts no replicas there
    called = f"{spread.target.kind} {spread.target.name}"
    if render.reads_variable(DeploySpec(manifests=(resource,)), "replicas"):
        message = f"{called} says itself what becomes of a share, by an expression that reads replicas"
        raise IndivisibleReplicasError(
            message, "write there what is deployed without a burst, or leave the paths out here"
        )
    if len(share_paths) > _MOST:
        raise IndivisibleReplicasError(
            f"they lead to {len(share_paths)} places in {called}, of at most {_MOST}", "name fewer"
        )
    numbers = [_written_number(manifest, share_path, called) for share_path in share_paths]
    for share_path, share in zip(share_paths, share_expressions(numbers), strict=True):
        manifest = put(manifest, share_path, share)
    return replace(resource, manifest=manifest)


def _single_paths(manifest: Mapping[str, Json], spread: WorkloadSpread) -> Sequence[Path]:
    """List the single paths that the paths of the spread lead to, in its order, each once."""
    paths = [path(replicas_path) for replicas_path in spread.replicas_paths if replicas_path]
    return tuple(
        dict.fromkeys(
            within(share_path, item, share_path)
            for share_path in paths
            for item in [*items(manifest, share_path)] or [()]
        )
    )


def _written_number(manifest: Mapping[str, Json], share_path: Path, called: str) -> int:
    value = at(manifest, share_path)
    if type(value) is int and value >= 0:
        return value
    stands = "nothing stands" if value is None else "no number of replicas stands"
    where = shortened(".".join(share_path))
    raise IndivisibleReplicasError(
        f"{stands} at {where} in {called}", "write out there what is deployed without a burst"
    )


def _report(
    work: FleetObjects,
    placed: DeclaredValue[WorkloadSpreadFile],
    template: WorkloadTemplate,
    error: IndivisibleReplicasError,
) -> None:
    message = f"{error}, so that no share of {template.workload} is divided over them"
    work.report(placed, Finding(loc=_PATHS, message=message, hint=error.hint, severity=Severity.WARNING))
