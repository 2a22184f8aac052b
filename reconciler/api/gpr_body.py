"""The bodies of EGS's REST interface for GPRs, read into what they ask."""

from __future__ import annotations

from pydantic import ValidationError

from reconciler.core.explain.wait_time import GpuDemand
from reconciler.core.schema import complaints
from reconciler.core.schema.egs.gpr_bodies import ReleaseBody, WaitBody
from reconciler.model.gpr import DEFAULT_PRIORITY
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.workload import Json
from reconciler.text.findings import Finding


def read_asking(body: Json) -> GpuDemand | tuple[Finding, ...]:
    """Read what somebody would ask for, or say everything that is wrong with it."""
    try:
        asked = WaitBody.model_validate(body)
    except ValidationError as error:
        return complaints(error, WaitBody)
    return GpuDemand(
        workspace=WorkspaceName(asked.workspace),
        ask=asked.ask(),
        priority=DEFAULT_PRIORITY if asked.priority is None else asked.priority,
        clusters=tuple(dict.fromkeys(map(ClusterName, asked.named))),
        dedicated=asked.dedicated_nodes,
    )


def read_release(body: Json) -> str | tuple[Finding, ...]:
    """Read which GPR gives its GPUs back, or say everything that is wrong with it."""
    try:
        return ReleaseBody.model_validate(body).gpr_id
    except ValidationError as error:
        return complaints(error, ReleaseBody)
