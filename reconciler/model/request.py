"""Requests by name: placements and reservations, from a file of the fleet repository or through the API."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from reconciler.errors import Problem
from reconciler.model.gpr import GprTerms, GpuAsk
from reconciler.model.ids import ClusterName, CommitId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.workload import DeploySpec


class Provisioning(StrEnum):
    """Whether a request or a placement has its GPUs (EGS's provisioningStatus)."""

    PENDING = "Pending"
    QUEUED = "Queued"
    SUCCESSFUL = "Successful"
    COMPLETED = "Completed"
    FAILED = "Failed"


class Asker(StrEnum):
    """The origin of a request."""

    FILE = "file"
    API = "api"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A placement that a file or an API call requests."""

    name: TemplateName
    """Unique among the requests of the workspace."""
    workspace: WorkspaceName
    namespace: str
    spec: DeploySpec
    clusters: tuple[ClusterName, ...] = ()
    """In order of preference; empty for every cluster of the workspace."""
    placements: int | None = None
    """How many of the clusters to deploy to, the first with room; None for each of them."""
    template: str = ""
    ask: GpuAsk | None = None
    """Requested GPUs; None leaves them to the objects."""
    terms: GprTerms = field(default_factory=GprTerms)
    redistributes: bool = True
    """Whether a request without clusters may go to clusters that join the workspace later."""
    assumed: tuple[str, ...] = ()
    """Terms by their names in a GPR that the policy of the workspace supplied."""
    path: str = ""
    line: int = 0

    @property
    def workload(self) -> WorkloadId:
        """The id of its placements: never that of a template."""
        return WorkloadId(self.workspace, self.name, request=True)

    @property
    def settled(self) -> Request:
        """The request as the ledger keeps it: with all terms of its own, and without its place in a file."""
        return replace(self, assumed=(), path="", line=0)

    @property
    def reserves(self) -> bool:
        """Whether the request only reserves GPUs: it has no steps."""
        return not self.spec.steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a request: its status, time and message."""

    status: Provisioning
    """Completed or Failed."""
    at: datetime
    message: str
    succeeded: bool = False
    """Whether its last placement ran to completion; its phase is Succeeded then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """A request in the ledger: its fields, author, time and end."""

    request: Request
    """Without path and line."""
    asker: Asker
    author: str
    received_at: datetime
    changed_at: datetime
    source_commit: CommitId
    asked: str = ""
    """Digest of the file's request when it was last taken over, to notice changes; empty for the API."""
    key: str = ""
    """Digest of the idempotency key of the API call."""
    body: str = ""
    """Digest of the body of that call."""
    began_at: datetime | None = None
    """When its first placement was made; None before."""
    cluster: ClusterName | None = None
    """The cluster of a reservation, which has no placement."""
    avoids: tuple[ClusterName, ...] = ()
    """Clusters where it failed or was evicted."""
    attempts: int = 0
    """Number of failures and evictions."""
    evicted_by: str = ""
    """The request that evicted it last."""
    observed: tuple[ClusterName, ...] = ()
    """Clusters of the workspace when it was received, if it may use no others; else empty."""
    ended: Ended | None = None

    @property
    def workload(self) -> WorkloadId:
        """The id of its placements."""
        return self.request.workload


class Verb(StrEnum):
    """Actions of an API order."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    RELEASE = "release"
    REVERT = "revert"
    EXTEND = "extend"
    APPROVE = "approve"
    REJECT = "reject"
    ANNOTATE = "annotate"


class Denial(StrEnum):
    """Why an order is not carried out, in the words of EGS's REST interface where it has any."""

    EXISTS = "Already Exists"
    MISSING = "Not Found"
    INVALID_UPDATE = "InvalidUpdate"
    DELETION_RESTRICTED = "DeletionRestricted"
    INVALID = "Invalid"
    KEY_REUSED = "KeyReused"
    BUG = "Bug"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The outcome of an API order."""

    denial: Denial | None = None
    """None where it was carried out."""
    message: str = ""
    hint: str = ""
    """The way out of a denial; empty where the denial alone says it."""
    change: int | None = None
    """Position of its change in the plan; None where nothing had to change."""
    first: int | None = None
    """Position of the first of several changes, of which `change` is the last; None where one is all."""
    workload: WorkloadId | None = None
    since: datetime | None = None
    """When an earlier call with the same key was carried out, whose answer this is."""
    problems: tuple[Problem, ...] = ()
    """Problems of an invalid order."""
    notes: tuple[str, ...] = ()
    """Assumptions about what the order does not state."""
