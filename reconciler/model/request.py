"""What people ask for by name: placements and reservations, from a file of the fleet repository or through the API."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from reconciler.errors import Problem
from reconciler.model.gpr import GprTerms, GpuAsk
from reconciler.model.ids import ClusterName, CommitId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.workload import DeploySpec


class Provisioning(StrEnum):
    """The capacity axis of a request's or a placement's state: whether it has its GPUs (EGS's provisioningStatus)."""

    PENDING = "Pending"
    QUEUED = "Queued"
    SUCCESSFUL = "Successful"
    COMPLETED = "Completed"
    FAILED = "Failed"


class Asker(StrEnum):
    """Where a request came from."""

    FILE = "file"
    API = "api"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A placement that somebody asks for, as the fleet repository or a call says it.

    `clusters` are in the order in which they were named; none stands for every cluster of the workspace. `placements`
    None deploys on each of them; a number on so many, the first ones that have room. `ask` is the GPUs that it says it
    needs, None where its objects have to tell. A request without steps deploys nothing: it only reserves what it asks
    for. `name` is unique among the requests of its workspace. `redistributes` lets it go to clusters that are added to
    the workspace later, where it names none. `assumed` are the terms that it says nothing of, and that the policy of
    its workspace gave it, by their names in a GPR.
    """

    name: TemplateName
    workspace: WorkspaceName
    namespace: str
    spec: DeploySpec
    clusters: tuple[ClusterName, ...] = ()
    placements: int | None = None
    template: str = ""
    ask: GpuAsk | None = None
    terms: GprTerms = field(default_factory=GprTerms)
    redistributes: bool = True
    assumed: tuple[str, ...] = ()
    path: str = ""
    line: int = 0

    @property
    def workload(self) -> WorkloadId:
        """The id under which its placements are known: never that of a template."""
        return WorkloadId(self.workspace, self.name, request=True)

    @property
    def settled(self) -> Request:
        """The request as the ledger keeps it: all of its terms are its own from here on, wherever it stood."""
        return replace(self, assumed=(), path="", line=0)

    @property
    def reserves(self) -> bool:
        """Whether it only reserves GPUs."""
        return not self.spec.steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a request ended: Completed or Failed, when, and why in words."""

    status: Provisioning
    at: datetime
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """A request as the ledger has it, complete: what was asked for, by whom and when, and how it ended.

    `request` is what is carried out, without path and line. `asked` digests what a file asked for when it was last
    taken over, so that a change of the file is noticed; of an API request it is empty. `key` digests the idempotency
    key of the call that made it, and `body` what that call asked for. `began_at` is when its first placement was made,
    None before; a reservation begins on its `cluster`, and has no placement. `avoids` are clusters where it failed or
    was evicted, `attempts` how often that happened, `evicted_by` by whom it was last. `observed` are the clusters that
    its workspace had when it was received, of a request that may use no others; else empty.
    """

    request: Request
    asker: Asker
    author: str
    received_at: datetime
    changed_at: datetime
    source_commit: CommitId
    asked: str = ""
    key: str = ""
    body: str = ""
    began_at: datetime | None = None
    cluster: ClusterName | None = None
    avoids: tuple[ClusterName, ...] = ()
    attempts: int = 0
    evicted_by: str = ""
    observed: tuple[ClusterName, ...] = ()
    ended: Ended | None = None

    @property
    def workload(self) -> WorkloadId:
        """The id under which its placements are known."""
        return self.request.workload


class Verb(StrEnum):
    """What an order does."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class Denial(StrEnum):
    """Why an order is not carried out, in the words of EGS's REST interface where it has any."""

    EXISTS = "Already Exists"
    MISSING = "Not Found"
    INVALID_UPDATE = "InvalidUpdate"
    DELETION_RESTRICTED = "DeletionRestricted"
    INVALID = "Invalid"
    KEY_REUSED = "KeyReused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of an order.

    One that was carried out has no `denial`; `change` is then the position in the plan of the change that carries it,
    None when everything was so already. `since` is when an earlier call with the same key was carried out, whose answer
    this is. `problems` say what is wrong with an invalid one. `notes` say what is taken to be so because what was asked
    for does not say it.
    """

    denial: Denial | None = None
    message: str = ""
    change: int | None = None
    workload: WorkloadId | None = None
    since: datetime | None = None
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
