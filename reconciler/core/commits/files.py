"""The files of one placement as they lie on the output branch: what its engine applies, and its record beside that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconciler.core.engines import Deployment, engine, target_namespace
from reconciler.core.ledger import placement_record
from reconciler.core.spread.inject import of_placement
from reconciler.model.placement import Placement
from reconciler.model.policy import Desired
from reconciler.model.tree import checked_path
from reconciler.model.workload import DeploySpec, Json


def laid_out(
    desired: Desired, placement: Placement, spec: DeploySpec, charts: Mapping[str, tuple[Json, ...]]
) -> tuple[Placement, dict[str, bytes]]:
    """Write a placement's files by path; the digest over them goes into its record and its marker.

    Raises InvalidInput for what cannot be written, and for a record that could not be read again: nobody would ever end
    such a placement.
    """
    chosen = engine(placement.engine)
    workspace = desired.workspaces[placement.workload.workspace]
    target = target_namespace(spec, workspace)
    placement = replace(placement, target_namespace=target, deletion_policy=spec.deletion_policy, digest="")
    deployment = Deployment(
        placement=placement,
        spec=spec,
        workspace=workspace,
        charts=charts,
        fleet=desired.fleet,
        kinds=desired.kinds,
        injection=of_placement(desired, placement),
    )
    files = dict(chosen.files(deployment))
    placement = replace(placement, digest=placement_record.digest(files, placement, spec))
    files[chosen.marker_path(placement)] = chosen.marker(replace(deployment, placement=placement))
    files[f"{placement.name}/placement.yaml"] = placement_record.write_placement(
        placement, spec, charts=chosen.charts_mode(spec)
    )
    cluster = f"clusters/{placement.cluster}"
    return placement, {checked_path(f"{cluster}/{name}"): data for name, data in sorted(files.items())}
