"""The decision of one pass, with reasons: commits, tables, logs and API answers are written from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import Flag, StrEnum, auto

from reconciler.errors import Bug
from reconciler.model.action import TRAITS, Action, FieldRules
from reconciler.model.approval import BurstProposal, ProposalEnd
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import GpuSlices
from reconciler.model.drafted_subsets import DraftedSubsets
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
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

    def has(self, trait: ReasonTraits) -> bool:
        """Return whether this follows from the reason."""
        return trait in REASONS[self]


class ReasonTraits(Flag):
    """What follows from a reason."""

    NONE = 0
    OF_KIND = auto()
    """A cluster that refuses one request by it refuses all of its kind: it names nothing of the request itself."""
    PASSING = auto()
    """A refusal by it may be over in a minute: what is approved waits for that."""
    ABSENCE = auto()
    """A refusal by it is for something that is absent: while a file cannot be read, that file may have it."""
    NEEDS_ROOM = auto()
    """A workload that it holds back waits for room, or for a GPR: its wait can be estimated."""
    QUEUES = auto()
    """The GPR of a workload that it holds back is Queued, and not Pending."""
    IS_LIMIT = auto()
    """Where no cluster lacks room, it is what a workload waits for."""
    LEAVES_ROOM = auto()
    """It keeps a workload from no cluster that refuses nothing: that cluster would take the next replica."""
    OF_STANDING = auto()
    """A change that it holds back is one of replicas that stand: it says nothing of those that are missing."""
    CAUTION = auto()
    """It is marked as something that may take a while."""
    TROUBLE = auto()
    """It is marked as something that somebody has to look into."""


_OF_STANDING = ReasonTraits.OF_STANDING | ReasonTraits.LEAVES_ROOM

REASONS: Mapping[Reason, ReasonTraits] = {
    Reason.NOT_IN_WORKSPACE: ReasonTraits.OF_KIND,
    Reason.NOT_IN_POLICY: ReasonTraits.ABSENCE,
    Reason.UNKNOWN_CLUSTER: ReasonTraits.OF_KIND | ReasonTraits.ABSENCE,
    Reason.SLURM_PARTITION: ReasonTraits.OF_KIND,
    Reason.CORDONED: ReasonTraits.OF_KIND,
    Reason.UNSEEN: ReasonTraits.OF_KIND | ReasonTraits.PASSING | ReasonTraits.TROUBLE,
    Reason.UNHEALTHY: ReasonTraits.OF_KIND | ReasonTraits.PASSING | ReasonTraits.TROUBLE,
    Reason.LABELS: ReasonTraits.NONE,
    Reason.TAINTED: ReasonTraits.NONE,
    Reason.ENGINE: ReasonTraits.NONE,
    Reason.NEEDS_FIRST: ReasonTraits.NONE,
    Reason.HELD: ReasonTraits.QUEUES | ReasonTraits.CAUTION,
    Reason.RUNS_ONCE: ReasonTraits.NONE,
    Reason.CLUSTER_LIMIT: ReasonTraits.NONE,
    Reason.CLUSTER_LOST: _OF_STANDING,
    Reason.MOVE_BUDGET: _OF_STANDING,
    Reason.NO_CAPACITY: ReasonTraits.OF_KIND | _OF_STANDING,
    Reason.POLICY_LIMIT: ReasonTraits.NONE,
    Reason.OVER_BUDGET: ReasonTraits.QUEUES | ReasonTraits.CAUTION,
    Reason.COOLING_DOWN: ReasonTraits.QUEUES | ReasonTraits.CAUTION,
    Reason.SCALE_UP_WINDOW: ReasonTraits.CAUTION,
    Reason.SCALE_DOWN_WINDOW: _OF_STANDING,
    Reason.PRIMARY_UNSEEN: ReasonTraits.NONE,
    Reason.NOT_FOUND: ReasonTraits.NONE,
    Reason.SIGNAL_UNHEARD: ReasonTraits.LEAVES_ROOM,
    Reason.NO_SHAPE: ReasonTraits.NONE,
    Reason.NOT_RENDERED: ReasonTraits.NONE,
    Reason.CHARTS_PENDING: ReasonTraits.PASSING,
    Reason.UNTRIED: ReasonTraits.PASSING,
    Reason.SOURCE_UNREAD: ReasonTraits.NONE,
    Reason.LEDGER_UNREADABLE: ReasonTraits.NONE,
    Reason.NOTHING_FITS: ReasonTraits.NEEDS_ROOM
    | ReasonTraits.QUEUES
    | ReasonTraits.LEAVES_ROOM
    | ReasonTraits.CAUTION,
    Reason.AVOIDED: ReasonTraits.NONE,
    Reason.TAKEN: ReasonTraits.NONE,
    Reason.GPR_LIMIT: ReasonTraits.OF_KIND | ReasonTraits.NEEDS_ROOM | ReasonTraits.QUEUES | ReasonTraits.IS_LIMIT,
    Reason.SPREAD_LIMIT: ReasonTraits.QUEUES | ReasonTraits.IS_LIMIT,
    Reason.BOUND_UNMET: _OF_STANDING,
    Reason.SPREAD_NOT_IN_FORCE: ReasonTraits.NONE,
    Reason.REQUEST_FIXED: ReasonTraits.NONE,
    Reason.DELETION_UNCONFIRMED: ReasonTraits.NONE,
    Reason.AWAITING_APPROVAL: ReasonTraits.QUEUES | ReasonTraits.CAUTION,
    Reason.BUG: ReasonTraits.TROUBLE,
}


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
    # The slices that are free in place of GPUs; None where a replica gets whole ones.
    slices: GpuSlices | None = None

    @property
    def key(self) -> ClusterSubset:
        """The cluster and the subset, empty for none."""
        return self.cluster, self.subset

    @property
    def where(self) -> str:
        """The cluster and the subset in words."""
        return place_name(self.cluster, self.subset)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedShare:
    """What a burst has of the replicas that it needs, by the weight of its policy, where room is short."""

    has: float
    """The part that is placed."""
    fair: float
    """The part that all of its priority together have placed."""


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
    share: NeedShare | None = None
    """Its share after all turns; None where no other workload of its priority waits for room."""


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
    slices: GpuSlices | None = None
    """The slices that are free in place of GPUs; None where a replica gets whole ones."""

    @property
    def where(self) -> str:
        """The cluster, and the subset that it was taken for."""
        return place_name(self.cluster, self.subset)


_NOT_GIVEN = WorkloadId(WorkspaceName(""), TemplateName(""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A decision of a pass, which becomes one commit.

    It is about a placement, the record of a request, or a proposal; a Release is about a workload. `TRAITS` says which
    fields changes of an action have. Raises ValueError for any others, and for one that lacks a required field.
    """

    action: Action
    workload: WorkloadId = _NOT_GIVEN
    """Taken from what the change is about; of a Release it is given."""
    before: Placement | None = None
    """The placement until then; None where it begins."""
    after: Placement | None = None
    """The placement from here on; None where it ends."""
    joined: Placement | None = None
    """The placement that takes the replicas of a Move, before it did; `after` is the same one, grown."""
    drifted: Drift | None = None
    """The placement of a Restore, which is the same before and after, with its files."""
    record: RequestRecord | None = None
    """The request as the change leaves it, or as it removes it. The first Place of a request begins it."""
    record_before: RequestRecord | None = None
    proposal: BurstProposal | None = None
    """The proposal as the change leaves it, or as it removes it."""
    proposal_before: BurstProposal | None = None
    """The same proposal, before it got its pull request; None where it begins."""
    why: EndReason | ProposalEnd | None = None
    """Why replicas go, or the proposal ends; None where none do."""
    detail: str = ""
    """The reason in a clause."""
    phase: Phase = Phase.COMPLETED
    """The final phase of the placement that a Revert ends."""
    shortage: Shortage | None = None
    """The demand behind replicas that begin; None for requests, and for replicas that were elsewhere before."""
    choice: Choice | None = None
    """Why the cluster was taken; None where no replicas arrive on any."""
    refused: tuple[Refusal, ...] = ()
    restraint: Restraint | None = None
    """Begins with the change, and keeps the workload, or the removed replicas, from coming straight back."""
    restraints: tuple[Restraint, ...] = ()
    """Restraints that a Release ends."""
    approvals: tuple[str, ...] = ()
    """Paths of approvals that end with their proposal."""
    notes: tuple[str, ...] = ()
    """Sentences about unknown facts of the workload of a request."""
    author: Identity | None = None
    """The person who asked for it; None if no person did, or if unknown."""
    written: bytes | None = field(default=None, repr=False, compare=False)
    """The record of a request as a file, if it was already written on trial."""

    def __post_init__(self) -> None:
        """Check the fields by the action, and take the workload from what the change is about."""
        if self.drifted is not None:
            object.__setattr__(self, "before", self.drifted.placement)
            object.__setattr__(self, "after", self.drifted.placement)
        about = self.after or self.before or self.record or self.proposal
        if about is not None:
            object.__setattr__(self, "workload", about.workload)
        if self.action not in _RULES:
            raise ValueError(f"a plan does not decide on {self.action}")
        if fault := _RULES[self.action].describe_fault(self):
            raise ValueError(f"a {self.action} {fault}")

    @property
    def placement(self) -> Placement:
        """The placement as the change leaves it, or as it was when it ends. Raises ValueError where there is none."""
        placement = self.after or self.before
        if placement is None:
            raise ValueError(f"{self.action} of {self.workload} is about no placement")
        return placement

    @property
    def former(self) -> Placement:
        """The placement until then. Raises ValueError where it begins, or there is none."""
        if self.before is None:
            raise ValueError(f"{self.action} of {self.workload} begins with no placement")
        return self.before

    @property
    def replicas_before(self) -> int:
        """Replicas of the placement until then; 0 where it begins."""
        return 0 if self.before is None else self.before.replicas

    @property
    def replicas_after(self) -> int:
        """Replicas of the placement from here on, without those of one that it joins; 0 where it ends."""
        if self.after is None:
            return 0
        return self.after.replicas - (0 if self.joined is None else self.joined.replicas)

    @property
    def growth(self) -> int:
        """Replicas that begin; negative for those that go. A move has none."""
        return self.replicas_after - self.replicas_before

    @property
    def grows(self) -> bool:
        """Whether replicas begin."""
        return self.growth > 0

    @property
    def begins(self) -> bool:
        """Whether the placement begins under this id."""
        return self.action in (Action.PLACE, Action.MOVE)

    @property
    def ended(self) -> Placement | None:
        """The placement whose files go, since it ends or moves; None where it stays, or a person deleted it."""
        return self.before if self.action in (Action.REVERT, Action.MOVE) else None

    @property
    def deploys(self) -> bool:
        """Whether the version of the template that is in force now is deployed."""
        return self.action in (Action.PLACE, Action.RESIZE, Action.MOVE)

    @property
    def rewritten(self) -> Placement | None:
        """The placement whose files are written from its template; None where they stay or go.

        Engines keep or prune objects by the deletion policy in each file, so that another one rewrites all of them.
        """
        if self.action is Action.EXTEND and self.before is not None and self.after is not None:
            return self.after if self.before.deletion_policy is not self.after.deletion_policy else None
        return self.after if self.deploys else None

    @property
    def is_update(self) -> bool:
        """Whether it changes no number, and brings a placement to another version of its source."""
        if self.action is not Action.RESIZE or self.before is None or self.after is None:
            return False
        return replaces_source(self.before, self.after)

    @property
    def is_of_request(self) -> bool:
        """Whether it changes a request and no placement."""
        return self.record is not None and self.after is None

    @property
    def clusters(self) -> tuple[ClusterName, ...]:
        """The clusters that it is about; of a move the one that it leaves, then the other."""
        if self.action is Action.MOVE and self.before is not None and self.after is not None:
            return self.before.cluster, self.after.cluster
        if (placement := self.after or self.before) is not None:
            return (placement.cluster,)
        if self.record is not None:
            return self.record.request.clusters
        places = self.restraints if self.proposal is None else self.proposal.placements
        return tuple(sorted({place.cluster for place in places if place.cluster is not None}))


def replaces_source(before: Placement, after: Placement) -> bool:
    """Return whether a placement has the same numbers as before, and is made from another version of its source."""
    number = (before.replicas, before.shape.group_size) == (after.replicas, after.shape.group_size)
    return number and before.source_digest not in ("", after.source_digest)


_RULES = {
    action: FieldRules(traits, {each.name: each.default for each in fields(Change)})
    for action, traits in TRAITS.items()
}


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
    drafted: DraftedSubsets = field(default_factory=DraftedSubsets, compare=False)
    """The pods of subsets that passes have rendered, this one included: a part of the next one's input."""
