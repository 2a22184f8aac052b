"""The kind Observation: the state of a cluster at one moment, from a file or by HTTP."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from reconciler.core.schema.node_affinity import NodeTermFile
from reconciler.core.schema.pod_affinity import HostPortFile, PodAffinityTermFile, PodsOnNodeFile, TopologySpreadFile
from reconciler.core.schema.strict_model import Amounts, Labels, Name, Strict, Text, refusal
from reconciler.core.schema.taints import TaintFile, TolerationFile
from reconciler.model.rollout import EngineState
from reconciler.model.workload import Json
from reconciler.text.findings import shortened
from reconciler.text.timestamps import NO_SUCH_YEAR, is_plausible

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[-+]\d\d:\d\d)")

_COMMIT_PATTERN = "[0-9a-f]{40}|[0-9a-f]{64}"
_COMMIT = re.compile(_COMMIT_PATTERN)


def _time(value: Json) -> datetime:
    """Read a moment in RFC 3339 into UTC; digits below a microsecond are dropped."""
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


def _revision(text: str) -> str:
    """Accept a commit's full id, or an empty text."""
    if text and _COMMIT.fullmatch(text) is None:
        raise refusal(f"{shortened(text, 40)!r} is not a commit's full id", "try what `git rev-parse` prints")
    return text


Revision = Annotated[
    str, AfterValidator(_revision), WithJsonSchema({"type": "string", "pattern": f"^({_COMMIT_PATTERN})?$"})
]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


class NodeFile(Strict):
    """One node."""

    name: Text
    used: Amounts = Field({}, description="What the pods on it request, by resource.")
    allocatable: Amounts = Field({}, description="Instead of the pool's, for the resources named.")
    labels: Labels = Field({})
    taints: list[TaintFile] = Field([])
    pods: list[PodsOnNodeFile] | None = Field(
        None, description="The pods on it, for rules about neighbours; left out where nobody looked."
    )
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
    cause: str = Field("", description="Why, in a few words for the commit message.")


class ObservedSignalFile(Strict):
    """Somebody's word that replicas are missing, beside what the scheduler says."""

    name: Text = Field(description="Who says so, as in 'hpa llm/vllm' or 'queue depth'.")
    replicas: Count
    since: Time
    beyond_wanted: bool = Field(
        False, description="Whether they come on top of those wanted, as for an autoscaler at its maximum."
    )
    cause: str = Field("", description="Why, in a few words for the commit message.")


class ReplicaFile(Strict):
    """What one replica needs."""

    requests: Amounts = Field({})
    node_selector: Labels = Field({})
    node_selector_terms: list[NodeTermFile] = Field([], description="Required node affinity: one of them has to hold.")
    tolerations: list[TolerationFile] = Field([])
    labels: Labels = Field({}, description="The labels of its pods, which the rules below go by.")
    pod_affinity: list[PodAffinityTermFile] = Field([], description="Required: pods that it must be beside.")
    pod_anti_affinity: list[PodAffinityTermFile] = Field([], description="Required: pods that it must not be beside.")
    topology_spread_constraints: list[TopologySpreadFile] = Field([])
    host_ports: list[HostPortFile] = Field([], description="Ports of its node that each pod takes.")
    group_size: Annotated[int, Field(ge=1, le=100_000)] = Field(1, description="Pods of these requests in one replica.")
    runtime_class_name: str = Field("", description="The RuntimeClass that its pods name.")
    overhead: Amounts = Field({}, description="What of its requests is that RuntimeClass's.")
    unrequested: dict[Text, Count] = Field(
        {}, description="Containers of a pod that request nothing of a resource; LimitRanges give them some."
    )


class WorkloadFile(Strict):
    """One workload in its primary cluster."""

    kind: str = ""
    namespace: Text
    name: Text
    wanted: Count = Field(description="spec.replicas")
    running: Count = Field(description="Replicas that have a node.")
    unschedulable: list[WaitingFile] = Field([])
    signals: list[ObservedSignalFile] = Field(
        [], description="Who says that replicas are missing, beside the scheduler."
    )
    deficit_since: Time | None = Field(None, description="Since when replicas have been missing, where that is known.")
    replica: ReplicaFile | None = None


class HomelessFile(Strict):
    """Pods of a placement of ours that have no node."""

    pods: Count
    since: Time | None = Field(
        None, description="When the scheduler first found none for one of them; left out where it has not looked yet."
    )


class PlacedFile(Strict):
    """How far a placement of ours has come there, and what its engine says of it."""

    name: Name
    bound: Count = Field(description="Pods that have a node: replicas, where a replica is one pod.")
    ready: Count | None = Field(None, description="Pods that serve; left out where nobody looked.")
    waiting: list[HomelessFile] = Field([], description="Its pods that have no node, and since when.")
    state: Annotated[EngineState, Field(strict=False)] | None = Field(
        None, description="How far the engine is; left out where nobody asked it."
    )
    unused_since: Time | None = Field(None, description="Since when none of its GPUs has been used, where it is so.")
    message: str = Field("", description="The engine's own words, or what the pods wait for.")
    digest: str = Field("", description="The annotation overspill.dev/digest of the engine's object.")
    revision: Revision = Field("", description="The commit of the output branch that the engine is at, in full.")
    since: Time | None = Field(None, description="Since when it has been in that state.")

    @model_validator(mode="after")
    def _of_a_version(self) -> PlacedFile:
        """Refuse a state without its digest, and Healthy without a revision."""
        if self.state is not None and not self.digest:
            raise refusal("has a state but no digest", "try the annotation overspill.dev/digest of the engine's object")
        if self.state is EngineState.HEALTHY and not self.revision:
            raise refusal("is Healthy at no revision", "try the commit that the engine has applied")
        return self


class RuntimeClassFile(Strict):
    """What a cluster adds to each pod that names this RuntimeClass."""

    name: Text
    overhead: Amounts = Field({}, description="Its overhead.podFixed.")
    node_selector: Labels = Field({}, description="Its scheduling.nodeSelector.")
    tolerations: list[TolerationFile] = Field([], description="Its scheduling.tolerations.")


class LimitRangeFile(Strict):
    """What a container in this namespace is given that states no requests."""

    namespace: Text
    default_request: Amounts


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
    placements: list[PlacedFile] = Field([])
    runtime_classes: list[RuntimeClassFile] | None = Field(
        None, description="All of its RuntimeClasses; what names one does not fit where nobody says."
    )
    limit_ranges: list[LimitRangeFile] = Field([], description="What its LimitRanges have containers request.")
