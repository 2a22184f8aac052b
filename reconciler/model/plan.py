"""What one pass decided, and why: the value that commits, tables, logs and answers are all written from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.ledger import Drift
from reconciler.model.placement import Phase, Placement, Restraint, place_name
from reconciler.model.request import Answer, RequestRecord
from reconciler.model.tree import Identity
from reconciler.model.units import Resources


class Reason(StrEnum):
    """Why a cluster was refused, or a change suppressed."""

    NOT_IN_WORKSPACE = "NotInWorkspace"
    NOT_IN_POLICY = "NotInPolicy"
    UNKNOWN_CLUSTER = "UnknownCluster"
    CORDONED = "Cordoned"
    UNSEEN = "Unseen"
    UNHEALTHY = "Unhealthy"
    LABELS = "Labels"
    TAINTED = "Tainted"
    ENGINE = "Engine"
    NEEDS_FIRST = "NeedsFirst"
    HELD = "Held"
    CLUSTER_LIMIT = "ClusterLimit"
    CLUSTER_LOST = "ClusterLost"
    NO_CAPACITY = "NoCapacity"
    POLICY_LIMIT = "PolicyLimit"
    COOLING_DOWN = "CoolingDown"
    SCALE_UP_WINDOW = "ScaleUpWindow"
    SCALE_DOWN_WINDOW = "ScaleDownWindow"
    PRIMARY_UNSEEN = "PrimaryUnseen"
    SIGNAL_UNHEARD = "SignalUnheard"
    NO_SHAPE = "NoShape"
    NOT_RENDERED = "NotRendered"
    LEDGER_UNREADABLE = "LedgerUnreadable"
    NOTHING_FITS = "NothingFits"
    AVOIDED = "Avoided"
    TAKEN = "Taken"
    GPR_LIMIT = "GprLimit"
    SPREAD_LIMIT = "SpreadLimit"
    REQUEST_FIXED = "RequestFixed"


class Why(StrEnum):
    """Why a placement ends."""

    EXPIRED = "expired"
    DEMAND_GONE = "demand-gone"
    FAILED = "failed"
    PREEMPTED = "preempted"
    IDLE = "idle"
    CLUSTER_LOST = "cluster-lost"
    POLICY = "policy"
    REQUESTED = "requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One cluster that one workload cannot use now. `message` carries the numbers, `remedy` what would change it.

    With a `subset` it is refused as that one's; for others it may do.
    """

    cluster: ClusterName
    reason: Reason
    message: str
    remedy: str = ""
    subset: str = ""

    @property
    def where(self) -> str:
        """The cluster, and the subset that it is refused for."""
        return place_name(self.cluster, self.subset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """A change that the demand asks for and that is not made. `until` is when it will be looked at again, if known."""

    workload: WorkloadId
    reason: Reason
    message: str
    replicas: int = 0
    until: datetime | None = None
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """The demand as the decision saw it: replicas missing on the primary, the longest for `waited`.

    Of these `unschedulable` wait as pods, and `causes` are what for, in the words of whoever saw it; empty where nobody
    said. `asks` are the other signals that ask for replicas, each by its name and in its words.
    """

    primary: ClusterName
    replicas: int
    waited: timedelta
    requests: Resources
    node_selector: tuple[tuple[str, str], ...] = ()
    causes: tuple[str, ...] = ()
    unschedulable: int = 0
    asks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Why a cluster was taken: its place in the order, what was free of each scarce resource, how many would fit.

    `because` is what spoke for it by the strategy of the policy, where that is not its place alone, or what of a gang
    starts there where not all of it has room. `subset` is what it was taken for, where there is a WorkloadSpread.
    """

    cluster: ClusterName
    rank: int
    fits: int
    free: Resources
    price_per_gpu_hour: float | None = None
    limit: int | None = None
    because: str = ""
    subset: str = ""

    @property
    def where(self) -> str:
        """The cluster, and the subset that it was taken for."""
        return place_name(self.cluster, self.subset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A new placement. What a person asked for, or what comes from elsewhere, has no shortage; `detail` then says why.

    `record` is its request as it is from here on, where the placement changes it: the first one is when it began.
    """

    placement: Placement
    shortage: Shortage | None
    choice: Choice
    refused: tuple[Refusal, ...] = ()
    record: RequestRecord | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """Another number of replicas for a placement that stays. Growing has a shortage and a choice, shrinking neither.

    `restraint` is what keeps what has been taken away from coming straight back.
    """

    before: Placement
    after: Placement
    detail: str
    shortage: Shortage | None = None
    choice: Choice | None = None
    refused: tuple[Refusal, ...] = ()
    restraint: Restraint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extend:
    """A later (or earlier) end or another deletion policy, asked for by a person: `author`, where that is known."""

    before: Placement
    after: Placement
    detail: str
    author: Identity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The same replicas on another cluster, both sides in one commit; the expiry stays.

    `joined` is the placement there that they become part of, as it was; then `after` is that one, grown. `restraint` is
    what keeps the workload from coming straight back.
    """

    before: Placement
    after: Placement
    why: Why
    detail: str
    choice: Choice
    refused: tuple[Refusal, ...] = ()
    joined: Placement | None = None
    restraint: Restraint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revert:
    """The end of a placement, in a final phase. `restraint` is what keeps the workload from coming straight back.

    `author` is who asked for it, where a person did and is known.
    """

    placement: Placement
    why: Why
    detail: str
    restraint: Restraint | None = None
    phase: Phase = Phase.COMPLETED
    author: Identity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A person deleted a placement, and the workload is held back on that cluster."""

    workload: WorkloadId
    placement: Placement
    restraint: Restraint


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The demand has gone once, so holds of a workload end."""

    workload: WorkloadId
    restraints: tuple[Restraint, ...]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """A person edited a placement's files, and they are put back as they were."""

    drifted: Drift
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receive:
    """A request is taken into the ledger. `author` is who asked for it by the API, None where a file did.

    `notes` say what is not known of it, a sentence each. `written` is its record as a file where somebody has tried
    whether it can be one.
    """

    record: RequestRecord
    notes: tuple[str, ...] = ()
    author: Identity | None = None
    written: bytes | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amend:
    """A request that has not ended is changed: what it asks for, or what has been noted about it."""

    before: RequestRecord
    after: RequestRecord
    detail: str
    author: Identity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """A request has ended: `after` says how. It stays in the ledger, so that it does not begin again."""

    before: RequestRecord
    after: RequestRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """A request leaves the ledger, since nobody asks for it any more."""

    record: RequestRecord
    detail: str
    author: Identity | None = None


RequestChange = Receive | Amend | Close | Forget
"""What happens to a request itself, and to no placement."""

Change = Place | Resize | Extend | Move | Revert | Hold | Release | Restore | RequestChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The outcome of deciding: changes in the order in which they are committed, and what was not done.

    `wake_at` is the next moment at which the same inputs could decide otherwise; None when only a change of input can.
    `answers` are what became of each order of this pass, by the order's number.
    """

    changes: tuple[Change, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    wake_at: datetime | None = None
    answers: Mapping[int, Answer] = field(default_factory=dict)
