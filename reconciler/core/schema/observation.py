"""The kind Observation: the state of a cluster at one moment, from a file or by HTTP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from reconciler.core.schema.node_affinity import NodeTermFile
from reconciler.core.schema.pod_affinity import HostPortFile, PodAffinityTermFile, PodsOnNodeFile, TopologySpreadFile
from reconciler.core.schema.strict_model import Amounts, Labels, Name, Strict, Text, refusal
from reconciler.core.schema.taints import CheckedTolerationFile, TaintFile
from reconciler.model.rollout import EngineState
from reconciler.model.wait_reason import WaitReason
from reconciler.model.workload import Json
from reconciler.text.findings import shortened
from reconciler.text.spelling import suggested
from reconciler.text.timestamps import NO_SUCH_YEAR, is_plausible

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[-+]\d\d:\d\d)", re.ASCII)

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


_BLOCKED_REASONS = tuple(reason for reason in WaitReason if not reason.lacks_room)


def _not_for_room(value: Json) -> Json:
    """Refuse a reason that more room would end, and name only the others."""
    if any(value == reason for reason in WaitReason if reason.lacks_room):
        raise refusal(f"{value} is a lack of room", "try unschedulable")
    if value not in _BLOCKED_REASONS:
        hint = str(suggested(str(value), _BLOCKED_REASONS))
        names = ", ".join(_BLOCKED_REASONS)
        raise refusal(f"{shortened(str(value))!r} is not one of {names}", f"try {hint!r}" if hint else "")
    return value


_CORE_VERSION = re.compile("v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
_GROUP_VERSION = re.compile("[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[a-z]([-a-z0-9]*[a-z0-9])?")


def _served_version(text: str) -> str:
    """Accept an API version as an API server lists it: ``v1``, or a group and a version."""
    if _CORE_VERSION.fullmatch(text) is None and _GROUP_VERSION.fullmatch(text) is None:
        raise refusal(f"{shortened(text)!r} is no API version", "try what `kubectl api-versions` prints, as apps/v1")
    return text


def _expressions(value: Json) -> Json:
    """Refuse a whole scope selector where its expressions belong."""
    if isinstance(value, Mapping):
        raise refusal("must be a list", "write its matchExpressions here, as a list")
    return value


ScopeName = Literal[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
]
"""The scopes of a quota (``ResourceQuotaScope`` of k8s.io/api/core/v1)."""
_EXIST_ONLY = frozenset(get_args(ScopeName)) - {"PriorityClass", "VolumeAttributesClass"}
"""Scopes that take no other operator than Exists (``validateScopedResourceSelectorRequirement``)."""


class NodeFile(Strict):
    """A node with its free resources."""

    name: Text
    used: Amounts = Field({}, description="Requests of its pods, by resource.")
    allocatable: Amounts = Field({}, description="Instead of the pool's, for the resources named.")
    labels: Labels = Field({})
    taints: list[TaintFile] = Field([])
    pods: list[PodsOnNodeFile] | None = Field(
        None, description="The pods on it, for rules about neighbours; left out if unknown."
    )
    ready: bool = True
    cordoned: bool = False


class PoolFile(Strict):
    """Nodes of one kind."""

    name: Text
    allocatable: Amounts = Field({}, description="Allocatable amounts of each node, by resource.")
    labels: Labels = Field({}, description="Labels of each of its nodes.")
    taints: list[TaintFile] = Field([], description="Taints of each of its nodes.")
    nodes: list[NodeFile] = Field([])


class WaitingFile(Strict):
    """Replicas that the scheduler has found no node for."""

    replicas: Count
    since: Time
    cause: str = Field("", description="Why, in a few words for the commit message.")


class BlockedFile(Strict):
    """Replicas that wait for something else than room."""

    replicas: Count
    since: Time
    reason: Annotated[
        WaitReason,
        Field(strict=False),
        BeforeValidator(_not_for_room),
        WithJsonSchema({"type": "string", "enum": list(map(str, _BLOCKED_REASONS))}),
    ]
    cause: str = Field("", description="What they wait for, in a few words.")
    way_out: str = Field("", description="What ends the wait.")


class ObservedSignalFile(Strict):
    """A request for replicas in addition to unschedulable pods."""

    name: Text = Field(description="The source, as 'hpa llm/vllm' or 'queue depth'.")
    replicas: Count
    since: Time
    beyond_wanted: bool = Field(
        False, description="Whether they come on top of those wanted, as for an autoscaler at its maximum."
    )
    cause: str = Field("", description="Why, in a few words for the commit message.")


class ReplicaFile(Strict):
    """The requests and scheduling rules of a replica."""

    requests: Amounts = Field({})
    node_selector: Labels = Field({})
    node_selector_terms: list[NodeTermFile] = Field([], description="Required node affinity: one of them has to hold.")
    tolerations: list[CheckedTolerationFile] = Field([])
    labels: Labels = Field({}, description="The labels of its pods, which the rules below go by.")
    pod_affinity: list[PodAffinityTermFile] = Field([], description="Required: pods that it must be beside.")
    pod_anti_affinity: list[PodAffinityTermFile] = Field([], description="Required: pods that it must not be beside.")
    topology_spread_constraints: list[TopologySpreadFile] = Field([])
    host_ports: list[HostPortFile] = Field([], description="Ports of its node that each pod takes.")
    group_size: Annotated[int, Field(ge=1, le=100_000)] = Field(1, description="Pods of these requests in one replica.")
    runtime_class_name: str = Field("", description="The RuntimeClass that its pods name.")
    overhead: Amounts = Field({}, description="The part of its requests that the RuntimeClass adds.")
    unrequested: dict[Text, Count] = Field(
        {}, description="Containers of a pod that request nothing of a resource; LimitRanges give them some."
    )


class ContainerFile(Strict):
    """A container of a workload's pod template."""

    name: Text
    image: Text | None = Field(None, description="Its image; not compared if absent.")
    command: list[str] | None = Field(None, description="Its command; not compared if neither it nor args is there.")
    args: list[str] | None = Field(None, description="Arguments of the command.")
    requests: Amounts | None = Field(
        None, description="Requests by resource, the limits where nothing is requested; not compared if absent."
    )


class WorkloadFile(Strict):
    """A workload in its primary cluster, or one that another cluster runs."""

    kind: str = ""
    namespace: Text
    name: Text
    release: str = Field("", description="The Helm release that it is part of: its name, or namespace/name.")
    placement: Name | None = Field(
        None, description="The object's label overspill.dev/placement; left out where it has none."
    )
    wanted: Count = Field(description="spec.replicas")
    running: Count = Field(description="Replicas that have a node.")
    held: bool = Field(
        False, description="Whether it is suspended, queued or gated, so that none of its pods can get a node."
    )
    unschedulable: list[WaitingFile] = Field([])
    blocked: list[BlockedFile] = Field([], description="Replicas that no room would help: they are no demand.")
    signals: list[ObservedSignalFile] = Field(
        [], description="Requests for replicas by other sources than the scheduler."
    )
    deficit_since: Time | None = Field(None, description="Since when replicas have been missing, where that is known.")
    replica: ReplicaFile | None = None
    containers: list[ContainerFile] = Field(
        [], description="Containers of its pod template, to be compared with the WorkloadTemplate's."
    )


class HomelessFile(Strict):
    """Pods of a placement of ours that have no node."""

    pods: Count
    since: Time | None = Field(
        None, description="When the scheduler first found none for one of them; left out where it has not looked yet."
    )


class GpuPodFile(Strict):
    """A pod of a placement of ours that has a node and GPUs."""

    namespace: Text
    name: Text
    gpus: Count = Field(description="GPUs that it requests; 0 where it claims devices, whose number is unknown.")


class PlacedFile(Strict):
    """The pods of a placement in the cluster, and the report of its engine."""

    name: Name
    bound: Count = Field(description="Pods that have a node: replicas, where a replica is one pod.")
    ready: Count | None = Field(None, description="Pods that serve; left out if unknown.")
    waiting: list[HomelessFile] = Field([], description="Pods of the placement without a node, and since when.")
    state: Annotated[EngineState, Field(strict=False)] | None = Field(
        None, description="State by the engine; absent where the engine was not asked."
    )
    gpu_pods: list[GpuPodFile] = Field(
        [], description="Its pods with a node and GPUs, whose use Prometheus is asked for."
    )
    unused_since: Time | None = Field(None, description="Since when none of its GPUs has been used, where it is so.")
    evicted: str = Field(
        "", description="Why a queue has ended its pods, as the condition Evicted of Kueue's Workload; empty otherwise."
    )
    reserved: Count | None = Field(
        None, description="Pods that have quota of a queue below `queues`; those with a node if left out."
    )
    completion_time: Time | None = Field(
        None,
        description="When its run was complete, as status.completionTime of a Job; not of what serves.",
    )
    message: str = Field("", description="The engine's own words, or what the pods wait for.")
    digest: str = Field("", description="The annotation overspill.dev/digest of the engine's object.")
    revision: Revision = Field("", description="The commit of the output branch that the engine is at, in full.")
    branch: str = Field("", description="The branch that the revision is of, by the engine's object.")
    repo_url: str = Field("", alias="repoURL", description="The repository that the revision is of, where it is known.")
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
    """The overhead and scheduling rules that a RuntimeClass adds to its pods."""

    name: Text
    overhead: Amounts = Field({}, description="The overhead.podFixed of the RuntimeClass.")
    node_selector: Labels = Field({}, description="The scheduling.nodeSelector of the RuntimeClass.")
    tolerations: list[CheckedTolerationFile] = Field([], description="The scheduling.tolerations of the RuntimeClass.")


class LimitRangeFile(Strict):
    """The defaults and bounds of a LimitRange in a namespace, for each container, pod or PersistentVolumeClaim."""

    namespace: Text
    name: str = Field("", description="Its name, for refusals.")
    type: Literal["Container", "Pod", "PersistentVolumeClaim"] = Field(
        "Container", description="What it is about: each container, each pod or each claim of a volume."
    )
    default_request: Amounts = Field({}, description="Requests of a container that states none.")
    default: Amounts = Field({}, description="Limits of a container that states none.")
    min: Amounts = Field({}, description="The least that may be requested.")
    max: Amounts = Field({}, description="The most that a limit may be.")
    max_limit_request_ratio: Amounts = Field({}, description="The most that a limit may be, in requests.")


class ScopeFile(Strict):
    """An expression of the scope selector of a ResourceQuota."""

    scope_name: ScopeName
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] = Field([])

    @model_validator(mode="after")
    def _as_the_api_server_takes_it(self) -> ScopeFile:
        """Refuse an expression that no quota can have."""
        if self.scope_name in _EXIST_ONLY and self.operator != "Exists":
            raise refusal(f"{self.scope_name} takes no {self.operator}", "try Exists")
        if bool(self.values) is not (self.operator in ("In", "NotIn")):
            wants = "no values" if self.values else "values"
            raise refusal(f"{self.operator} takes {wants}", "In and NotIn take values, the other operators none")
        return self


class ResourceQuotaFile(Strict):
    """A ResourceQuota."""

    namespace: Text
    name: Text = Field("quota", description="Its name, by which refusals call it; each of a namespace has its own.")
    hard: Amounts = Field(description="Its status.hard.")
    used: Amounts = Field({}, description="Its status.used; of a resource that is left out nothing is used.")
    scopes: list[ScopeName] = Field([], description="Its spec.scopes.")
    scope_selector: Annotated[list[ScopeFile], BeforeValidator(_expressions)] = Field(
        [], description="Its spec.scopeSelector.matchExpressions."
    )

    @model_validator(mode="before")
    @classmethod
    def _not_as_kubectl_prints_it(cls, value: Json) -> Json:
        """Refuse a quota as an API server has it, and say which of its fields go where."""
        if isinstance(value, Mapping) and not {"spec", "status"}.isdisjoint(value):
            hint = "write its status.hard as hard, its status.used as used, and its spec.scopes as scopes"
            raise refusal("is a ResourceQuota as kubectl prints it", hint)
        return value


class NodePoolFile(Strict):
    """A NodePool of Karpenter."""

    name: Text
    limits: Amounts = Field({}, description="Its spec.limits.")
    resources: Amounts = Field({}, description="Its status.resources: what its nodes have in all.")
    not_ready: str = Field("", description="Why its condition Ready is not True; empty while it is.")
    taints: list[TaintFile] = Field([], description="Its spec.template.spec.taints.")
    labels: Labels = Field({}, description="Its spec.template.metadata.labels.")
    requirements: dict[Text, list[str]] = Field(
        {}, description="The values that its spec.template.spec.requirements leave for labels."
    )


class ObjectNames(Strict):
    """The names of an object; all other metadata are kept as they are."""

    model_config = ConfigDict(extra="allow")

    name: Text
    namespace: str = ""


class ObjectFile(Strict):
    """An object of the cluster."""

    model_config = ConfigDict(extra="allow")

    api_version: Text = Field(description="Its apiVersion.")
    kind: Text = Field(description="Its kind.")
    metadata: ObjectNames = Field(description="Its metadata.")


class ObservationFile(Strict):
    """The observation of a cluster at one moment."""

    api_version: Literal["overspill.dev/v1alpha1"]
    kind: Literal["Observation"]
    cluster: Name
    observed_at: Time
    healthy: bool = True
    message: str = Field("", description="Why the cluster is not healthy.")
    pools: list[PoolFile] = Field([])
    workloads: list[WorkloadFile] = Field([])
    objects: list[ObjectFile] = Field(
        [], description="Objects that templates are made from (`spec.from.workload`), as kubectl prints them."
    )
    placements: list[PlacedFile] = Field([])
    api_versions: list[Annotated[Text, AfterValidator(_served_version)]] | None = Field(
        None,
        description=(
            "All API versions that it serves, as `kubectl api-versions` prints them; if left out, objects of any "
            "version may go there."
        ),
    )
    runtime_classes: list[RuntimeClassFile] | None = Field(
        None, description="All RuntimeClasses of the cluster; if left out, pods that name a RuntimeClass do not fit."
    )
    limit_ranges: list[LimitRangeFile] = Field([], description="Defaults and bounds of its LimitRanges.")
    resource_quotas: list[ResourceQuotaFile] = Field([], description="All ResourceQuotas of the cluster.")
    default_priority_class: str = Field("", description="The PriorityClass with globalDefault; empty for none.")
    queues: list[ObjectFile] | None = Field(
        None,
        description=(
            "All LocalQueues, ClusterQueues, Cohorts and ResourceFlavors of Kueue, as kubectl prints them, and the "
            "Namespaces whose labels they select; if left out, no quota of theirs bounds what fits."
        ),
    )
    node_pools: list[NodePoolFile] | None = Field(
        None,
        description=(
            "All NodePools of Karpenter, which bound the nodes that the Cluster declares of them; if left out, "
            "nothing but the Cluster bounds these."
        ),
    )

    @field_validator("resource_quotas", mode="after")
    @classmethod
    def _refuse_repeated_quotas(cls, given: list[ResourceQuotaFile]) -> list[ResourceQuotaFile]:
        """Refuse two quotas of one name in a namespace, one of which would bound nothing."""
        names = set[tuple[str, str]]()
        for quota in given:
            if (quota.namespace, quota.name) in names:
                raise refusal(f"has quota {quota.name} of {quota.namespace} twice", "give each its own name")
            names.add((quota.namespace, quota.name))
        return given
