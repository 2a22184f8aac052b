"""ledger/<workspace>/<workload>.yaml: the restraints of a workload, which outlive their placements."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from reconciler.core.ledger.record_fields import RECORD, Moment, Name, read_model, record_error
from reconciler.core.schema.yaml import emit
from reconciler.model.ids import ClusterName, PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.placement import Restraint, RestraintKind
from reconciler.model.policy import BurstPolicy
from reconciler.text.findings import Finding
from reconciler.text.timestamps import format_time

MOVES_PERIOD = timedelta(hours=1)
"""The time over which the moves of a workload are counted, and for which the ledger keeps them."""


class _Restraint(BaseModel):
    model_config = RECORD
    kind: Annotated[RestraintKind, Field(strict=False)]
    cluster: Name | None = None
    subset: str = ""
    since: Moment
    until: Moment
    reason: str
    placement: Name
    move: bool = False


class _Spec(BaseModel):
    model_config = RECORD
    workspace: Name
    workload: Name
    restraints: list[_Restraint]


class _Metadata(BaseModel):
    model_config = RECORD
    name: str


class _LedgerEntry(BaseModel):
    model_config = RECORD
    api_version: Literal["overspill.dev/v1alpha1"]
    kind: Literal["LedgerEntry"]
    metadata: _Metadata
    spec: _Spec


def ledger_path(workload: WorkloadId) -> str:
    """Return the path of a workload's restraints on the output branch."""
    return f"ledger/{workload.workspace}/{workload.name}.yaml"


def write_restraints(workload: WorkloadId, restraints: Sequence[Restraint]) -> bytes:
    """Write a workload's restraints in the order given. Without restraints the bytes are empty: the file is deleted."""
    if not restraints:
        return b""
    document = {
        "apiVersion": "overspill.dev/v1alpha1",
        "kind": "LedgerEntry",
        "metadata": {"name": workload.name},
        "spec": {
            "workspace": workload.workspace,
            "workload": workload.name,
            "restraints": [_document(restraint) for restraint in restraints],
        },
    }
    return emit(document).encode()


def read_restraints(data: bytes, path: str) -> tuple[WorkloadId, tuple[Restraint, ...]]:
    """Read a ledger file at its path in the output branch. Raises InvalidInput with every problem of the file."""
    file, document = read_model(data, path, _LedgerEntry)
    workload = WorkloadId(WorkspaceName(file.spec.workspace), TemplateName(file.spec.workload))
    if path != ledger_path(workload):
        finding = Finding(loc=("spec", "workload"), message=f"{workload} belongs in {ledger_path(workload)}")
        raise record_error([finding], document, path)
    return workload, tuple(_value(restraint) for restraint in file.spec.restraints)


def is_kept(restraint: Restraint, now: datetime) -> bool:
    """Return whether the ledger keeps a restraint: while it holds, and while it counts as a move."""
    return now < restraint.until or counts_as_move(restraint, now)


def counts_as_move(restraint: Restraint, now: datetime) -> bool:
    """Return whether a restraint tells of a move within the last hour."""
    return restraint.move and now < restraint.since + MOVES_PERIOD


def is_in_force(restraint: Restraint, policy: BurstPolicy | None) -> bool:
    """Return whether a restraint holds under the current policy: some subsets are no longer adaptive."""
    spread = policy.spread if policy is not None else None
    return restraint.kind is not RestraintKind.UNSCHEDULABLE or (
        spread is not None and spread.gives_up(restraint.subset)
    )


def _document(restraint: Restraint) -> dict[str, str | bool]:
    document: dict[str, str | bool] = {"kind": restraint.kind.value}
    if restraint.cluster is not None:
        document["cluster"] = restraint.cluster
    if restraint.subset:
        document["subset"] = restraint.subset
    return document | {
        "since": format_time(restraint.since),
        "until": format_time(restraint.until),
        "reason": restraint.reason,
        "placement": restraint.placement,
        **({"move": True} if restraint.move else {}),
    }


def _value(restraint: _Restraint) -> Restraint:
    return Restraint(
        kind=restraint.kind,
        cluster=None if restraint.cluster is None else ClusterName(restraint.cluster),
        since=restraint.since,
        until=restraint.until,
        reason=restraint.reason,
        placement=PlacementName(restraint.placement),
        subset=restraint.subset,
        move=restraint.move,
    )
