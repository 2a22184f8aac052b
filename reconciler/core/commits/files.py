"""The files of one placement as they lie on the output branch: what its engine applies, and its record beside that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconciler.core.engines import Deployment, engine, target_namespace
from reconciler.core.ledger import placement_record
from reconciler.core.spread.inject import placement_injection
from reconciler.model.placement import Placement
from reconciler.model.policy import Desired
from reconciler.model.tree import checked_path
from reconciler.model.workload import DeploySpec, Json


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementFiles:
    """A placement as its record has it, and its files."""

    # The placement as it was decided, with its target namespace and digest: its rendered files alone tell these two.
    placement: Placement
    # Contents by path on the output branch.
    files: Mapping[str, bytes]


def write_placement_files(
    desired: Desired, placement: Placement, spec: DeploySpec, charts: Mapping[str, tuple[Json, ...]]
) -> PlacementFiles:
    """Write the files of a placement; the digest over them goes into its record and its marker.

    Raises InvalidInput for files that cannot be written, and for a record that could not be read again: a placement
    without one would never end.
    """
    chosen = engine(placement.engine)
    workspace = desired.workspaces[placement.workload.workspace]
    placement = replace(placement, target_namespace=target_namespace(spec, workspace), digest="")
    deployment = Deployment(
        placement=placement,
        spec=spec,
        workspace=workspace,
        charts=charts,
        fleet=desired.fleet,
        kinds=desired.kinds,
        injection=placement_injection(desired, placement),
    )
    files = dict(chosen.files(deployment))
    placement = replace(placement, digest=placement_record.digest(files, placement, spec))
    files[chosen.marker_path(placement)] = chosen.marker(replace(deployment, placement=placement))
    files[f"{placement.name}/placement.yaml"] = placement_record.write_placement(
        placement, spec, charts=chosen.charts_mode(spec)
    )
    cluster = f"clusters/{placement.cluster}"
    written = {checked_path(f"{cluster}/{name}"): data for name, data in sorted(files.items())}
    return PlacementFiles(placement=placement, files=written)
