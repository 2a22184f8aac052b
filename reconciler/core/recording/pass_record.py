"""What is recorded of one pass: what it saw, what it remembered, and what it decided.

The files of both branches are not: they are in git, at the two commits. With them a record is all that deciding reads.
Of what was held back the lists of refused clusters are left out: they follow from the input, and are most of a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from reconciler.core.decide.state.order import Order
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.observe.rollouts import ClusterRollouts
from reconciler.core.observe.track_record import PlacementStart
from reconciler.core.recording.documents import DocumentType, LateDocumentType, LeftOut
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.demand import Sample
from reconciler.model.ids import ClusterName, CommitId, WorkloadId
from reconciler.model.plan import Change, Plan, Suppressed
from reconciler.model.request import Answer
from reconciler.model.signal import DemandLevel
from reconciler.model.tree import Tips
from reconciler.model.workload import Json

_UNKNOWN = datetime(1, 1, 1, tzinfo=UTC)
_LEFT_OUT: LeftOut = frozenset(
    {
        (Suppressed, "refusals", ()),
        (Change, "refused", ()),
        (ClusterObservation, "observed_at", _UNKNOWN),  # it goes on with each pass; `ages` do not
    }
)


class PassKind(StrEnum):
    """How much a pass decides."""

    WHOLE = "Whole"
    RECEIVE = "Receive"
    """Orders of API callers alone; everything else is left to the pass that follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPlan:
    """A plan as far as it is recorded."""

    changes: tuple[Change, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    wake_at: datetime | None = None
    answers: Mapping[int, Answer] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, kind: PassKind) -> RecordedPlan:
        """Record a plan; one that only receives orders repeats what earlier passes held back, and is recorded without.

        When it wakes is then of no interest either: at once.
        """
        if kind is PassKind.RECEIVE:
            return cls(changes=plan.changes, answers=plan.answers)
        return cls(changes=plan.changes, suppressed=plan.suppressed, wake_at=plan.wake_at, answers=plan.answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRecord:
    """One pass."""

    at: datetime
    kind: PassKind = PassKind.WHOLE
    first: bool = False
    """Whether no earlier pass of the process has handed it subsets that are rendered in advance."""
    source: CommitId
    """The commit of the source branch."""
    output: CommitId | None = None
    """The commit of the output branch; None before there is one."""
    observed: Observed
    ages: Mapping[ClusterName, timedelta] = field(default_factory=dict)
    """How old the observation of each cluster was."""
    history: Mapping[WorkloadId, tuple[Sample, ...]] = field(default_factory=dict)
    """The demand before this pass, as long as the process had watched it."""
    past: Mapping[WorkloadId, tuple[DemandLevel, ...]] = field(default_factory=dict)
    """The past demand before this pass, of workloads with a signal that looks back."""
    lost: Mapping[ClusterName, datetime] = field(default_factory=dict)
    """Since when clusters had been unseen or unwell."""
    rollouts: Mapping[ClusterName, ClusterRollouts] = field(default_factory=dict)
    watched: Mapping[ClusterName, datetime] = field(default_factory=dict)
    """Since when clusters had been in sight."""
    starts: Mapping[ClusterName, tuple[PlacementStart, ...]] = field(default_factory=dict)
    """How long placements took to become ready, by cluster."""
    failures: Mapping[ClusterName, tuple[datetime, ...]] = field(default_factory=dict)
    """When placements failed, by cluster."""
    orders: tuple[Order, ...] = ()
    orders_redacted: bool = False
    """Whether a credential was left out of an order: the pass cannot be decided again."""
    unwritable: Mapping[tuple[WorkloadId, str], str] = field(default_factory=dict)
    """What earlier tries of this pass, or earlier passes, could not write."""
    begun: Mapping[tuple[WorkloadId, str], datetime] = field(default_factory=dict)
    """When earlier passes decided what waits for its charts."""
    plan: RecordedPlan = RecordedPlan()
    commits: tuple[CommitId, ...] = ()
    """The commits that it made of its plan, whether or not their push succeeded."""

    @classmethod
    def of(cls, inputs: PassInput, tips: Tips, plan: Plan, commits: tuple[CommitId, ...], kind: PassKind) -> PassRecord:
        """Record a pass that has been decided."""
        return cls(
            at=inputs.now,
            kind=kind,
            first=inputs.drafted.desired is None,
            source=tips.source or CommitId(""),
            output=tips.output,
            observed=inputs.observed,
            ages={name: inputs.now - seen.observed_at for name, seen in inputs.observed.clusters.items()},
            history=inputs.history,
            past=inputs.past,
            lost=inputs.lost,
            rollouts=inputs.rollouts.clusters,
            watched=inputs.rollouts.watched,
            starts=inputs.track_record.starts,
            failures=inputs.track_record.failures,
            orders=inputs.orders,
            orders_redacted=bool(inputs.orders) and ORDERS.decode(ORDERS.encode(inputs.orders)) != inputs.orders,
            unwritable=inputs.unwritable,
            begun=inputs.begun,
            plan=RecordedPlan.of(plan, kind),
            commits=commits,
        )


RECORD: DocumentType = LateDocumentType(PassRecord, without=_LEFT_OUT)
"""How a record is written; `read_record` reads it."""
OUTLINE: DocumentType = LateDocumentType(PassRecord, without=_LEFT_OUT, outlined=True)
"""How a record is written for others than its owner, without the content of manifests and charts."""
PLAN: DocumentType = LateDocumentType(RecordedPlan, without=_LEFT_OUT)
ORDERS: DocumentType = LateDocumentType(tuple[Order, ...])


def read_record(document: Json) -> PassRecord:
    """Read what `RECORD` has written. Raises KeyError, TypeError or ValueError for anything else."""
    record: PassRecord = RECORD.decode(document)
    clusters = {
        name: replace(seen, observed_at=record.at - record.ages[name])
        for name, seen in record.observed.clusters.items()
    }
    return replace(record, observed=replace(record.observed, clusters=clusters))
