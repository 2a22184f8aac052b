"""The input of a decision, as one value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self

from reconciler.core.cost.budgets import budget_problems
from reconciler.core.decide.state.enrolment import Enrolment
from reconciler.core.decide.state.order import Order
from reconciler.core.fleet.cluster_order import ClusterOrder
from reconciler.core.fleet.paths import FLEET_FILE
from reconciler.core.fleet.sources.rendering_basis import RenderingComparison
from reconciler.core.ledger.read import ROOTS
from reconciler.core.observe.demand import DemandHistory, Demands, PastDemand, seen_at
from reconciler.core.observe.rollouts import Rollouts
from reconciler.core.observe.track_record import TrackRecord
from reconciler.core.spread.placement_subset import cluster_subset
from reconciler.errors import Problem, Severity
from reconciler.model.budget import NO_BUDGETS, Budgets
from reconciler.model.capacity import Observed
from reconciler.model.demand import Demand
from reconciler.model.drafted_subsets import DraftedSubsets
from reconciler.model.ids import ClusterName, CommitId, WorkloadId, WorkspaceName
from reconciler.model.ledger import Ledger
from reconciler.model.placement import ClusterSubset, Placement, place_name
from reconciler.model.plan import CHARTS_PENDING, UNTRIED, ReasonTraits, Refusal
from reconciler.model.policy import Desired
from reconciler.model.request import RequestRecord
from reconciler.model.tree import ROOT, describe_standing

LostClusters = Mapping[ClusterName, datetime]
"""Since when clusters have been lost."""

Unwritable = Mapping[tuple[WorkloadId, str], str]
"""Why a workload cannot be written for a cluster, or for a subset's part of one (``worker-2/h100``).

Its template cannot be filled in there, its chart not rendered, or the subset's patch not merged.
"""


_TRIES = 3
"""Clusters for which a workload may fail to be written before all of its others are given up as well."""


_UNFINISHED = frozenset({UNTRIED, CHARTS_PENDING})
"""Problems that a later pass ends, though nobody mends anything."""


_NO_FLEET = Problem(
    path=FLEET_FILE,
    message="the source branch describes no cluster, workspace or template, so nothing is done",
    hint="name the fleet repository with --repo and its branch with --source-branch NAME, or begin one with"
    " `overspill init`",
    severity=Severity.WARNING,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MassDeletion:
    """A fleet repository that has lost many workloads with placements, or clusters, at once: it may be an accident."""

    workloads: tuple[WorkloadId, ...]
    """The bursting workloads without a template or policy, and the requests without a file, by name."""
    left: int
    """How many are still there."""
    clusters: tuple[ClusterName, ...] = ()
    """The clusters with placements or of a workspace that no file describes, by name, where they are many."""
    clusters_left: int = 0
    """How many are still described."""

    @property
    def problem(self) -> Problem:
        """The deletion as a problem of the source branch as a whole."""
        lost = [
            f"{len(names)} of {len(names) + left} {what}"
            for names, left, what in (
                (self.workloads, self.left, "workloads"),
                (self.clusters, self.clusters_left, "clusters"),
            )
            if names
        ]
        return Problem(
            path="",
            message=f"{' and '.join(lost)} are gone from the fleet repository at once; their placements stay"
            " until they expire, or until somebody confirms the deletion",
            hint="try `overspill confirm` if it is meant, or revert the commit that deleted them",
            severity=Severity.WARNING,
        )


_NOT_DRAFTED = DraftedSubsets()
_NOT_ENROLLED = Enrolment(Desired(commit=CommitId("")), {})
"""Stands for the enrolment of an input whose requests are not yet among its workloads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassInput:
    """The whole input of one pass. The same input gives the same plan."""

    desired: Desired
    """The fleet in force, at one source commit."""
    ledger: Ledger
    """The output branch, at one commit."""
    observed: Observed
    """All clusters at one moment."""
    demands: Demands
    """The missing replicas of each workload."""
    now: datetime
    reach: ClusterOrder
    """The clusters of each workload, in order, for readers of the input. It follows from `desired`; decisions fill a
    table of their own (`PassMemory.own`)."""
    drafted: DraftedSubsets = _NOT_DRAFTED
    """The pods of subsets that earlier passes have rendered. The plan has those that this pass leaves to the next."""
    history: DemandHistory = field(default_factory=dict)
    """The demand before this pass, which `demands` continue."""
    past: PastDemand = field(default_factory=dict)
    """The past demand before this pass, of workloads with a signal that looks back."""
    unwritable: Unwritable = field(default_factory=dict)
    """Clusters that a workload could not be written for in an earlier try of this pass, or in an earlier pass."""
    begun: Mapping[tuple[WorkloadId, str], datetime] = field(default_factory=dict)
    """When earlier passes decided what waits for its charts, by workload and place. It begins as of then: its name and
    its times may be among the values of its charts."""
    rollouts: Rollouts = field(default_factory=Rollouts)
    """The health of the placements of `ledger`."""
    enrolment: Enrolment = _NOT_ENROLLED
    """The open requests, which `with_requests` puts among the workloads of `desired`; before that it has none."""
    orders: tuple[Order, ...] = ()
    """Orders of API callers, in the order in which they came."""
    lost: LostClusters = field(default_factory=dict)
    """Since when clusters have been unseen or unwell, as far as this process has watched."""
    track_record: TrackRecord = field(default_factory=TrackRecord)
    """How long placements took to become ready on each cluster, and what failed there, as far as this process has
    watched."""
    budgets: Budgets = NO_BUDGETS
    """What is spent of the fleet's budgets; it follows from the two branches and `now`."""
    deletion: MassDeletion | None = None
    """An unconfirmed mass deletion."""
    obstacles: Mapping[str, str] = field(default_factory=dict)
    """Files, links and submodules on the output branch where directories of ours may belong: their kinds, by path."""

    def began_at(self, workload: WorkloadId, cluster: ClusterName, subset: str = "") -> datetime:
        """Return when something begins that is placed now: now, unless it has waited for its charts."""
        return self.begun.get((workload, place_name(cluster, subset)), self.now) if self.begun else self.now

    def slot(self, placement: Placement) -> ClusterSubset:
        """Return the cluster and the subset that a placement counts for; its workload has a policy."""
        return cluster_subset(placement, self.desired.policies[placement.workload], self.desired.clusters)

    def seen_at(self, demand: Demand) -> datetime:
        """Return when the primary of a demand was seen last."""
        return seen_at(self.observed, demand.primary, self.now)

    @property
    def fleet(self) -> Desired:
        """The fleet without its requests."""
        return self.desired if self.enrolment is _NOT_ENROLLED else self.enrolment.base

    @property
    def requests(self) -> Mapping[WorkloadId, RequestRecord]:
        """The records of requests: as the pass leaves them where they are enrolled, else those of the ledger."""
        return self.ledger.requests if self.enrolment is _NOT_ENROLLED else self.enrolment.records

    def exclusion(self, placement: Placement) -> Refusal | None:
        """Return why a placement has to leave its cluster, as far as files are certain; None where it may stay."""
        if placement.workload not in self.desired.policies:
            return None
        refusal = self.reach.exclusion_of(placement)
        is_absent = refusal is not None and refusal.reason.has(ReasonTraits.ABSENCE)
        return None if is_absent and not self.absence_counts else refusal

    @property
    def absence_counts(self) -> bool:
        """Whether what no file has is meant to be gone.

        It may be an accident while a file without a good version cannot be read, or after a mass deletion.
        """
        return not self.desired.incomplete and self.deletion is None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems of the files of both branches and of the observations."""
        deletion = () if self.deletion is None else (self.deletion.problem,)
        empty = (_NO_FLEET,) if self.desired.is_empty and not self.desired.incomplete else ()
        budgets = budget_problems(self.budgets)
        kept = map(_kept_problem, (each for each in self.ledger.placements.values() if each.kept))
        standing = self._standing_problems()
        return (
            *empty, *deletion, *budgets, *self.desired.problems, *self.ledger.problems, *kept, *standing,
            *self.observed.problems,
        )  # fmt: skip # in their order

    def _standing_problems(self) -> Iterator[Problem]:
        """Report what of people's stands in place of a directory of ours."""
        ours = {*ROOTS, *(f"{ROOT}/{name}" for name in self.desired.clusters)}
        for path, kind in self.obstacles.items():
            if path in ours:
                message, remedy = describe_standing(kind, path)
                yield Problem(
                    path=path,
                    message=f"{message}; nothing is written below it",
                    hint=f"try: {remedy}",
                    severity=Severity.WARNING,
                )

    def with_requests(self, records: Mapping[WorkloadId, RequestRecord]) -> Self:
        """Return the input with these requests among its workloads; itself where it has them."""
        if self.enrolment is _NOT_ENROLLED:
            enrolment = Enrolment(self.desired, records)
        elif self.enrolment.records is records:
            return self
        else:
            enrolment = self.enrolment.updated(self.enrolment.base, records)
        return replace(self, desired=enrolment.desired, reach=enrolment.reach, enrolment=enrolment)


def _kept_problem(placement: Placement) -> Problem:
    """Tell that a placement does not run what its template says now."""
    return Problem(
        path=f"{placement.path}/placement.yaml",
        message=f"{placement.workload}: {placement.kept}",
        hint="the next placement takes it up; `overspill revert` ends this one",
        severity=Severity.WARNING,
    )


def given_up(inputs: PassInput, failures: Unwritable) -> Unwritable:
    """Add failures to those that are known. A workload that failed for several clusters is taken to fail for all.

    One that waits for its charts waits with all of it, so that what it gets does not hang on which are rendered first.

    Of subsets each is taken by itself: it may be the patch of one alone that fails.
    """
    problems = {**inputs.unwritable, **failures}
    counts: Counter[tuple[WorkloadId, str]] = Counter()
    messages: dict[tuple[WorkloadId, str], str] = {}
    for (workload, place), problem in problems.items():
        part = workload, _subset_of_place(place)
        counts[part] += 1
        messages[part] = problem
    failed = (
        (workload, _subset_of_place(place), problem == CHARTS_PENDING)
        for (workload, place), problem in failures.items()
    )
    for workload, subset, waits in dict.fromkeys(failed):
        if not waits and counts[workload, subset] < _TRIES:
            continue
        problem = CHARTS_PENDING if waits else messages[workload, subset]
        for candidate in inputs.reach.order(workload):
            if waits or candidate.subset == subset:
                problems.setdefault((workload, place_name(candidate.cluster, candidate.subset)), problem)
    return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierFailures:
    """What a pass could not write for workspaces of which it left something untried, or waiting for its charts.

    The next pass gives that up from its beginning, as far as it is rendered from the same as before, and tries what
    comes after it. So everything has its turn, also where more templates fail than one pass tries. Once a pass leaves
    nothing of a workspace untried or waiting, all of it has its next turn.
    """

    desired: Desired | None = None
    """The fleet that the pass was decided for; None before the first one."""
    unwritable: Unwritable = field(default_factory=dict)

    @classmethod
    def after(cls, inputs: PassInput, failures: Unwritable, pending: Collection[tuple[WorkloadId, str]]) -> Self:
        """Return what the next pass gives up, after one that was decided last on `inputs` and then had `failures`.

        The charts of what is `pending` are being rendered. The next pass has to come as far, to ask for them again.
        """
        problems = {**inputs.unwritable, **failures}
        unfinished = {workload.workspace for (workload, _), problem in problems.items() if problem in _UNFINISHED}
        unfinished |= {workload.workspace for workload, _ in pending}
        left = {
            (workload, place): problem
            for (workload, place), problem in problems.items()
            if workload.workspace in unfinished and problem not in _UNFINISHED
        }
        return cls(desired=inputs.desired, unwritable=left) if left else cls()

    def holding(self, inputs: PassInput) -> Unwritable:
        """Add what is given up to what is known. What would be rendered from something else has another try."""
        if self.desired is None:
            return inputs.unwritable
        comparison = RenderingComparison(self.desired, inputs.desired)
        same = {
            (workload, place): problem
            for (workload, place), problem in self.unwritable.items()
            if comparison.is_same(workload, _cluster_of_place(place))
        }
        return {**inputs.unwritable, **same}


def with_untried(
    inputs: PassInput, workspaces: Collection[WorkspaceName], good: Collection[tuple[WorkloadId, str]]
) -> PassInput:
    """Give up what workspaces could still be placed, for this pass alone. What they have stays as it is.

    `good` are the places whose templates this pass has filled in.
    """
    if not workspaces:
        return inputs
    untried = {
        place: UNTRIED
        for workload in inputs.desired.policies
        if workload.workspace in workspaces
        for candidate in inputs.reach.order(workload)
        if (place := (workload, place_name(candidate.cluster, candidate.subset))) not in good
    }
    return replace(inputs, unwritable={**untried, **inputs.unwritable})


def _subset_of_place(place: str) -> str:
    return place.partition("/")[2]


def _cluster_of_place(place: str) -> ClusterName:
    return ClusterName(place.partition("/")[0])
