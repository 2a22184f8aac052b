"""The Observation: what somebody saw of a cluster, by file or by HTTP."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from reconciler.core.findings import shortened
from reconciler.core.schema.affinity import NodeTermFile
from reconciler.core.schema.fleet import TaintFile, TolerationFile
from reconciler.core.schema.strict import Amounts, Labels, Name, Strict, Text, refusal
from reconciler.core.times import NO_SUCH_YEAR, is_plausible
from reconciler.model.workload import Json

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[-+]\d\d:\d\d)")


def _time(value: Json) -> datetime:
    """Read a moment as RFC 3339 writes it, into UTC; below a microsecond is dropped."""
    example = "try '2026-11-20T10:15:00Z'"
    if not isinstance(value, str):
        raise refusal("must be a time", example)
    if _RFC3339.fullmatch(value) is None:
        raise refusal(f"{shortened(value, 40)!r} is not a time of RFC 3339", example)
    try:
        moment = datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise refusal(f"{value!r} does not exist", example) from error
    if not is_plausible(moment):
        raise refusal(f"{value!r} {NO_SUCH_YEAR}", example)
    return moment


Time = Annotated[datetime, BeforeValidator(_time), WithJsonSchema({"type": "string", "format": "date-time"})]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


class NodeFile(Strict):
    """One node."""

    name: Text
    used: Amounts = Field({}, description="What the pods on it request, by resource.")
    allocatable: Amounts = Field({}, description="Instead of the pool's, for the resources named.")
    labels: Labels = Field({})
    taints: list[TaintFile] = Field([])
    ready: bool = True
    cordoned: bool = False


class PoolFile(Strict):
    """Nodes of one kind."""

    name: Text
    allocatable: Amounts = Field({}, description="What each of its nodes has for pods, by resource.")
    labels: Labels = Field({}, description="Labels of each of its nodes.")
    taints: list[TaintFile] = Field([], description="Taints of each of its nodes.")
    nodes: list[NodeFile] = Field([])


class WaitingFile(Strict):
    """Replicas that the scheduler has found no node for."""

    replicas: Count
    since: Time


class ReplicaFile(Strict):
    """What one replica needs."""

    requests: Amounts = Field({})
    node_selector: Labels = Field({})
    node_selector_terms: list[NodeTermFile] = Field([], description="Required node affinity: one of them has to hold.")
    tolerations: list[TolerationFile] = Field([])
    group_size: Annotated[int, Field(ge=1, le=100_000)] = Field(1, description="Pods of these requests in one replica.")


class WorkloadFile(Strict):
    """One workload in its primary cluster."""

    kind: str = ""
    namespace: Text
    name: Text
    wanted: Count = Field(description="spec.replicas")
    running: Count = Field(description="Replicas that have a node.")
    unschedulable: list[WaitingFile] = Field([])
    deficit_since: Time | None = Field(None, description="Since when replicas have been missing, where that is known.")
    replica: ReplicaFile | None = None


class BoundFile(Strict):
    """How far a placement of ours has come there."""

    name: Name
    bound: Count = Field(description="Replicas that have a node.")


class ObservationFile(Strict):
    """What was seen of one cluster at one moment."""

    api_version: Literal["overspill.dev/v1alpha1"]
    kind: Literal["Observation"]
    cluster: Name
    observed_at: Time
    healthy: bool = True
    message: str = Field("", description="Why the cluster is not healthy.")
    pools: list[PoolFile] = Field([])
    workloads: list[WorkloadFile] = Field([])
    placements: list[BoundFile] = Field([])
