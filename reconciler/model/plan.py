"""The decision of one pass, with reasons: commits, tables, logs and API answers are written from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from reconciler.errors import Bug
from reconciler.model.approval import BurstProposal, ProposalEnd
from reconciler.model.candidate import Candidate
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.ledger import Drift
from reconciler.model.placement import ClusterSubset, Phase, Placement, Restraint, place_name
from reconciler.model.request import Answer, RequestRecord
from reconciler.model.score import Score
from reconciler.model.tree import Identity
from reconciler.model.units import Resources


class Reason(StrEnum):
    """Why a cluster was refused, or a change suppressed."""

    NOT_IN_WORKSPACE = "NotInWorkspace"
    NOT_IN_POLICY = "NotInPolicy"
    UNKNOWN_CLUSTER = "UnknownCluster"
    SLURM_PARTITION = "SlurmPartition"
    CORDONED = "Cordoned"
    UNSEEN = "Unseen"
    UNHEALTHY = "Unhealthy"
    LABELS = "Labels"
    TAINTED = "Tainted"
    ENGINE = "Engine"
    NEEDS_FIRST = "NeedsFirst"
    HELD = "Held"
    RUNS_ONCE = "RunsOnce"
    CLUSTER_LIMIT = "ClusterLimit"
    CLUSTER_LOST = "ClusterLost"
    MOVE_BUDGET = "MoveBudget"
    NO_CAPACITY = "NoCapacity"
    POLICY_LIMIT = "PolicyLimit"
    OVER_BUDGET = "OverBudget"
    COOLING_DOWN = "CoolingDown"
    SCALE_UP_WINDOW = "ScaleUpWindow"
    SCALE_DOWN_WINDOW = "ScaleDownWindow"
    PRIMARY_UNSEEN = "PrimaryUnseen"
    NOT_FOUND = "NotFound"
    SIGNAL_UNHEARD = "SignalUnheard"
    NO_SHAPE = "NoShape"
    NOT_RENDERED = "NotRendered"
    CHARTS_PENDING = "ChartsPending"
    UNTRIED = "Untried"
    SOURCE_UNREAD = "SourceUnread"
    LEDGER_UNREADABLE = "LedgerUnreadable"
    NOTHING_FITS = "NothingFits"
    AVOIDED = "Avoided"
    TAKEN = "Taken"
    GPR_LIMIT = "GprLimit"
    SPREAD_LIMIT = "SpreadLimit"
    BOUND_UNMET = "BoundUnmet"
    SPREAD_NOT_IN_FORCE = "SpreadNotInForce"
    REQUEST_FIXED = "RequestFixed"
    DELETION_UNCONFIRMED = "DeletionUnconfirmed"
    AWAITING_APPROVAL = "AwaitingApproval"
    BUG = "Bug"


BELONGS = "is there already, and belongs to"
"""The words between an object on a cluster and its owner, for which nothing else may be placed there."""

TAKEN_REMEDY = "use another name, another namespace or another cluster"

CHARTS_PENDING = "its charts are being rendered"
"""Why a change is not written in this pass: the charts of it are rendered in the background, and no pass waits."""

UNTRIED = (
    "templates of its workspace failed one after another, took too long or wait for their charts in this pass,"
    " and it was not tried"
)
"""Why a change is not written in this pass: what its workspace may cost others in one pass is used up."""

PODS_UNTRIED = (
    "the pods of this subset, or of one before it, are not rendered yet: the subsets of its workspace took too long in"
    " this pass"
)
"""Why nothing is placed in a subset in this pass, nor in those after it."""
PODS_UNTRIED_REMEDY = "wait: the daemon and `overspill once` go on with them in their next passes"


def unwritten_reason(problem: str) -> Reason:
    """Return the reason that goes with the text that says why a placement cannot be written."""
    if problem == CHARTS_PENDING:
        return Reason.CHARTS_PENDING
    if problem == UNTRIED:
        return Reason.UNTRIED
    return Reason.TAKEN if BELONGS in problem else Reason.NOT_RENDERED


def unwritten_remedy(problem: str, subset: str = "") -> str:
    """Say what lets a placement be written that cannot be for this problem."""
    match unwritten_reason(problem):
        case Reason.CHARTS_PENDING:
            return "wait: it goes on once they are"
        case Reason.UNTRIED:
            return "wait: it is tried in one of the next passes, the sooner the fewer templates fail or take long"
        case Reason.TAKEN:
            return TAKEN_REMEDY
        case _:
            return "mend the template, or what its subset changes" if subset else "mend the template"


class EndReason(StrEnum):
    """Why a placement ends."""

    EXPIRED = "expired"
    DEMAND_GONE = "demand-gone"
    FAILED = "failed"
    SUCCEEDED = "succeeded"
    PREEMPTED = "preempted"
    IDLE = "idle"
    FAIR_SHARE = "fair-share"
    CLUSTER_LOST = "cluster-lost"
    POLICY = "policy"
    REQUESTED = "requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A cluster that one workload cannot use now."""

    cluster: ClusterName
    reason: Reason
    message: str
    """With the numbers."""
    remedy: str = ""
    """The change that would allow it."""
    subset: str = ""
    """The only subset that is refused; empty for all."""

    @property
    def where(self) -> str:
        """The cluster, and the subset that it is refused for."""
        return place_name(self.cluster, self.subset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """A cluster, or the part of it in a subset, as a pass finds it for a workload in its turn."""

    cluster: ClusterName
    # None for a cluster that is not in the order.
    rank: int | None
    # The replicas that it has before the pass, and those that it would take.
    placed: int
    fits: int
    limit: int | None
    # Free amounts of the requested resources on the nodes that admit the workload.
    free: Resources
    price_per_gpu_hour: float | None
    refusal: Refusal | None
    subset: str = ""
    # The nodes to come that its pods wait for, or the pods of a gang that start there.
    start: str = ""
    # The scores by which it has its rank; empty where the policy weighs none.
    scores: tuple[Score, ...] = ()

    @property
    def key(self) -> ClusterSubset:
        """The cluster and the subset, empty for none."""
        return self.cluster, self.subset

    @property
    def where(self) -> str:
        """The cluster and the subset in words."""
        return place_name(self.cluster, self.subset)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadAssessment:
    """The clusters of a workload at its turn, and what becomes of its missing replicas."""

    candidates: tuple[Assessment, ...] = ()
    """Those of its order first, then the others of its workspace; empty where nothing says what a replica requests."""
    assigned: tuple[Candidate, ...] = ()
    """The candidates that its missing replicas go to, or would, each with its `replicas` and `because`."""
    out_of_reach: str = ""
    """The lower bound of the policy that is out of reach, in words; empty where all are kept."""
    restraints: tuple[Restraint, ...] = ()
    """What holds it back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """A change that demand asks for and that is not made."""

    workload: WorkloadId
    reason: Reason
    message: str
    replicas: int = 0
    until: datetime | None = None
    """When it is considered again; None where unknown."""
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """The demand behind a decision."""

    primary: ClusterName
    replicas: int
    """Replicas missing on the primary, with those that are wanted beforehand."""
    waited: timedelta
    """Time since the first of the replicas became missing."""
    requests: Resources
    node_selector: tuple[tuple[str, str], ...] = ()
    causes: tuple[str, ...] = ()
    """Reasons of unschedulable pods, in the words of their source; empty where unknown."""
    unschedulable: int = 0
    """The part of `replicas` that waits as pods."""
    asks: tuple[str, ...] = ()
    """Other signals that request replicas, by label and cause."""
    spare: int = 0
    """The part of `replicas` that is wanted before it is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Why a cluster was taken."""

    cluster: ClusterName
    rank: int
    """Place in the order."""
    fits: int
    """Replicas that fit."""
    free: Resources
    """Free amounts of the scarce resources, on nodes that are there."""
    addable: Resources = field(default_factory=Resources)
    """Amounts of them on nodes that the cluster's autoscaler has yet to add; empty where none is taken."""
    price_per_gpu_hour: float | None = None
    limit: int | None = None
    because: str = ""
    """Reasons beside the rank: of the policy's strategy, or the part of a gang that starts; empty for none."""
    subset: str = ""
    """The WorkloadSpread subset that it was taken for."""
    scores: tuple[Score, ...] = ()
    """The scores by which it has its rank; empty where the policy weighs none."""

    @property
    def where(self) -> str:
        """The cluster, and the subset that it was taken for."""
        return place_name(self.cluster, self.subset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A new placement."""

    placement: Placement
    shortage: Shortage | None
    """None for a request or a replacement; `detail` then has the reason."""
    choice: Choice
    refused: tuple[Refusal, ...] = ()
    record: RequestRecord | None = None
    """The request from here on, where the placement changes it: its first placement begins it."""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """A changed number of replicas of a placement that stays."""

    before: Placement
    after: Placement
    detail: str
    shortage: Shortage | None = None
    """None where it shrinks, as is `choice`."""
    choice: Choice | None = None
    refused: tuple[Refusal, ...] = ()
    restraint: Restraint | None = None
    """Keeps removed replicas from coming straight back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extend:
    """A later or earlier expiry, or another deletion policy, on a person's request."""

    before: Placement
    after: Placement
    detail: str
    author: Identity | None = None
    """None where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The same replicas on another cluster, in one commit; the expiry stays."""

    before: Placement
    after: Placement
    why: EndReason
    detail: str
    choice: Choice
    refused: tuple[Refusal, ...] = ()
    joined: Placement | None = None
    """An existing placement there, before it took the replicas; `after` is the same one, grown."""
    restraint: Restraint | None = None
    """Keeps the workload from coming straight back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revert:
    """The end of a placement, in a final phase."""

    placement: Placement
    why: EndReason
    detail: str
    restraint: Restraint | None = None
    """Keeps the workload from coming straight back."""
    phase: Phase = Phase.COMPLETED
    author: Identity | None = None
    """The person who requested it; None if no person did, or if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A placement that a person deleted; the workload is held back on that cluster."""

    workload: WorkloadId
    placement: Placement
    restraint: Restraint


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The end of a workload's restraints: its demand has gone once, or a person asked for it."""

    workload: WorkloadId
    restraints: tuple[Restraint, ...]
    detail: str
    author: Identity | None = None
    """None where the demand has gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """A placement whose files a person edited; they are restored."""

    drifted: Drift
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receive:
    """A request that the ledger takes in."""

    record: RequestRecord
    notes: tuple[str, ...] = ()
    """Sentences about unknown facts of the workload."""
    author: Identity | None = None
    """The API caller; None for a file."""
    written: bytes | None = field(default=None, repr=False, compare=False)
    """The record as a file, if it was already written on trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amend:
    """A change of an open request: of its spec, or of its notes."""

    before: RequestRecord
    after: RequestRecord
    detail: str
    author: Identity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """The end of a request. The record stays in the ledger, so that the request does not begin again."""

    before: RequestRecord
    after: RequestRecord
    author: Identity | None = None
    """The person who released it early; None otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """A request without a file or caller, which leaves the ledger."""

    record: RequestRecord
    detail: str
    author: Identity | None = None


RequestChange = Receive | Amend | Close | Forget
"""A change of a request and of no placement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Propose:
    """A burst that waits for an approval from here on."""

    proposal: BurstProposal
    before: BurstProposal | None = None
    """The same proposal, which has got its pull request; None where it begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve:
    """A person's yes to a proposal; the next pass places it."""

    proposal: BurstProposal
    detail: str
    author: Identity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndProposal:
    """The end of a proposal, and of the approvals of it."""

    proposal: BurstProposal
    why: ProposalEnd
    detail: str
    approvals: tuple[str, ...] = ()
    """Paths of approvals that end with it."""
    restraint: Restraint | None = None
    """Keeps the workload from being proposed straight again."""
    author: Identity | None = None
    """The person who refused it; None if no person did."""


ProposalChange = Propose | Approve | EndProposal
"""A change of a proposal and of no placement."""

Change = Place | Resize | Extend | Move | Revert | Hold | Release | Restore | RequestChange | ProposalChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The outcome of a decision."""

    changes: tuple[Change, ...] = ()
    """In the order of the commits."""
    suppressed: tuple[Suppressed, ...] = ()
    """Changes that were not made."""
    wake_at: datetime | None = None
    """When the same inputs could first decide otherwise; None where only a changed input can."""
    answers: Mapping[int, Answer] = field(default_factory=dict)
    """The answer to each API order of this pass, by the order's number."""
    bugs: tuple[Bug, ...] = ()
    """Exceptions that nothing foresaw; each cost its own workload or order the decision, and nothing else."""
    assessments: Mapping[WorkloadId, WorkloadAssessment] = field(default_factory=dict)
    """The assessments of the workloads that `decide` was asked to keep them of."""
