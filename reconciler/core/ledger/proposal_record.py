"""ledger/<workspace>/proposals/<workload>.yaml and ledger/<workspace>/approvals/<workload>-<id>.yaml.

A proposal is the daemon's own record. An approval repeats what was shown: a pull request brings it to the output
branch, or `overspill approve`. It counts where it says exactly what the proposal says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from reconciler.core.ledger.record_fields import RECORD, Duration, Moment, Name, quote_value, read_model, record_error
from reconciler.core.schema.strict_model import refusal
from reconciler.core.schema.yaml import emit
from reconciler.model.approval import BRANCHES, Approval, BurstProposal, ProposedPlacement, is_page
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.ledger import Ledger
from reconciler.model.units import format_duration
from reconciler.model.workload import Json
from reconciler.text.findings import Finding
from reconciler.text.timestamps import format_time

_DIGITS = 12
_DOLLARS = 4
"""Digits after the point of a price."""


def _page(text: str) -> str:
    """Accept the address of a page, which people follow from ours."""
    if not is_page(text):
        raise refusal(f"{quote_value(text)} is not an address that begins with https:// or http://", "delete the field")
    return text


class _ProposedPlacement(BaseModel):
    model_config = RECORD
    cluster: Name
    subset: str = ""
    replicas: int = Field(ge=1)
    beside: int = Field(0, ge=0)
    gpus: int = Field(ge=0)
    dollars_per_gpu_hour: float | None = None
    duration: Duration


class _ProposalSpec(BaseModel):
    model_config = RECORD
    workspace: Name
    workload: Name
    policy: str
    proposed_at: Moment
    until: Moment
    reason: str
    renewals: str
    placements: list[_ProposedPlacement] = Field(min_length=1)
    pull_request: Annotated[str, AfterValidator(_page)] = ""
    foreign: str = ""


class _ProposalMetadata(BaseModel):
    model_config = RECORD
    name: str


class _ProposalRecord(BaseModel):
    model_config = RECORD
    api_version: Literal["overspill.dev/v1alpha1"]
    kind: Literal["BurstProposal"]
    metadata: _ProposalMetadata
    spec: _ProposalSpec


class _ApprovalRecord(BaseModel):
    model_config = RECORD
    api_version: Literal["overspill.dev/v1alpha1"]
    kind: Literal["BurstApproval"]
    metadata: _ProposalMetadata
    spec: _ProposalSpec


def proposal_path(workload: WorkloadId) -> str:
    """Return the path of a workload's proposal on the output branch; it has one at a time."""
    return f"ledger/{workload.workspace}/proposals/{workload.name}.yaml"


def approval_path(proposal: BurstProposal) -> str:
    """Return the path of the approval of a proposal."""
    workload = proposal.workload
    return f"ledger/{workload.workspace}/approvals/{workload.name}-{proposal_id(proposal)}.yaml"


def proposal_branch(proposal: BurstProposal) -> str:
    """Return the name of the branch that proposes it."""
    workload = proposal.workload
    return f"{BRANCHES}{workload.workspace}/{workload.name}-{proposal_id(proposal)}"


def proposal_id(proposal: BurstProposal) -> str:
    """Return the digest of what was shown; no two proposals have the same, since each has its time."""
    return sha256(write_proposal(proposal.shown)).hexdigest()[:_DIGITS]


def write_proposal(proposal: BurstProposal) -> bytes:
    """Write a proposal as a file."""
    return emit(_document("BurstProposal", proposal)).encode()


def write_approval(proposal: BurstProposal) -> bytes:
    """Write the approval of a proposal as a file."""
    return emit(_document("BurstApproval", proposal.shown)).encode()


def read_proposal(data: bytes, path: str) -> BurstProposal:
    """Read a proposal at its path in the output branch. Raises InvalidInput with every problem of the file."""
    file, document = read_model(data, path, _ProposalRecord)
    proposal = _value(file.spec)
    if path != proposal_path(proposal.workload):
        message = f"{proposal.workload} belongs in {proposal_path(proposal.workload)}"
        raise record_error([Finding(loc=("spec", "workload"), message=message)], document, path)
    return proposal


def read_approval(data: bytes, path: str) -> Approval:
    """Read an approval at its path in the output branch. Raises InvalidInput with every problem of the file.

    One that says something else than its proposal is refused: nobody was shown that.
    """
    file, document = read_model(data, path, _ApprovalRecord)
    proposal = _value(file.spec)
    if path != approval_path(proposal):
        message = "it does not say what was proposed under this name"
        hint = "delete it, and approve the proposal as it was shown"
        raise record_error([Finding(loc=("spec",), message=message, hint=hint)], document, path)
    return Approval(path=path, proposal=proposal)


def approvals_of(ledger: Ledger, proposal: BurstProposal) -> tuple[str, ...]:
    """Return the paths of the approvals of a proposal."""
    path = approval_path(proposal)
    approval = ledger.approvals.get(path)
    return (path,) if approval is not None and approval.proposal == proposal.shown else ()


def as_written(placement: ProposedPlacement) -> ProposedPlacement:
    """Round a price and a duration to what a file holds of them: whole seconds, and one at least."""
    price, seconds = placement.price_per_gpu_hour, int(placement.duration.total_seconds())
    return replace(
        placement,
        price_per_gpu_hour=None if price is None else round(float(price), _DOLLARS),
        duration=timedelta(seconds=max(1, seconds)),
    )


def _document(kind: str, proposal: BurstProposal) -> dict[str, Json]:
    workload = proposal.workload
    spec: dict[str, Json] = {
        "workspace": workload.workspace,
        "workload": workload.name,
        "policy": proposal.policy,
        "proposedAt": format_time(proposal.proposed_at),
        "until": format_time(proposal.until),
        "reason": proposal.reason,
        "renewals": proposal.renewals,
        "placements": [_placement(placement) for placement in proposal.placements],
    }
    if proposal.pull_request:
        spec["pullRequest"] = proposal.pull_request
    if proposal.foreign:
        spec["foreign"] = proposal.foreign
    return {"apiVersion": "overspill.dev/v1alpha1", "kind": kind, "metadata": {"name": workload.name}, "spec": spec}


def _placement(placement: ProposedPlacement) -> Mapping[str, Json]:
    document: dict[str, Json] = {"cluster": placement.cluster}
    if placement.subset:
        document["subset"] = placement.subset
    document["replicas"] = placement.replicas
    if placement.beside:
        document["beside"] = placement.beside
    document["gpus"] = placement.gpus
    if placement.price_per_gpu_hour is not None:
        document["dollarsPerGpuHour"] = placement.price_per_gpu_hour
    document["duration"] = format_duration(placement.duration)
    return document


def _value(spec: _ProposalSpec) -> BurstProposal:
    return BurstProposal(
        workload=WorkloadId(WorkspaceName(spec.workspace), TemplateName(spec.workload)),
        policy=spec.policy,
        proposed_at=spec.proposed_at,
        until=spec.until,
        reason=spec.reason,
        renewals=spec.renewals,
        placements=tuple(
            ProposedPlacement(
                cluster=ClusterName(placement.cluster),
                subset=placement.subset,
                replicas=placement.replicas,
                beside=placement.beside,
                gpus=placement.gpus,
                price_per_gpu_hour=placement.dollars_per_gpu_hour,
                duration=placement.duration or timedelta(),
            )
            for placement in spec.placements
        ),
        pull_request=spec.pull_request,
        foreign=spec.foreign,
    )
