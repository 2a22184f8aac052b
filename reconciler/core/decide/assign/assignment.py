"""The outcome of assigning missing replicas to candidates, by whatever rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reconciler.core.capacity.pod_requirements import PodRequirements
from reconciler.core.decide.candidates.finder import MOST, CandidateFinder
from reconciler.model.candidate import Candidate
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.placement import ClusterSubset
from reconciler.model.plan import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Returns:
    """How released replicas may stay where they are after all: they are assigned as if none of them stood."""

    keeps: Callable[[ClusterSubset, Refusal | None], int]
    """The most that may stay on a cluster, by its refusal of new ones; None where it takes new ones."""
    ended: Callable[[Mapping[ClusterSubset, int]], int]
    """The number of placements that end where clusters then have these replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Replicas of one workload that leave their clusters, and are assigned."""

    places: Mapping[ClusterSubset, int]
    """How many leave each cluster and subset."""
    ends: int
    """The most placements that end with them, each of which makes room for the GPR of another."""
    closed: Mapping[ClusterSubset, Refusal] = field(default_factory=dict)
    """The clusters and subsets that they may not go to, and why."""
    leaving: frozenset[ClusterName] = frozenset()
    """Other clusters that the workload has to leave as well, which count for no bound."""
    returns: Returns | None = None
    """How they may go back to where they are; None where those clusters get none of them."""

    @property
    def replicas(self) -> int:
        """How many leave in all."""
        return sum(self.places.values())

    @property
    def left(self) -> frozenset[ClusterSubset]:
        """The clusters and subsets that get none of them, since they leave these."""
        return frozenset(self.places if self.returns is None else ())

    def ended(self, counts: Mapping[ClusterSubset, int]) -> int:
        """Return the number of placements that end where clusters then have these replicas."""
        return self.ends if self.returns is None else self.returns.ended(counts)

    def staying(self, held: Mapping[ClusterSubset, int]) -> dict[ClusterName, int]:
        """Return the replicas of each cluster that stay where they are, or may; they count for the policy's bounds."""
        stays = Counter[ClusterName]()
        for (cluster, _), has in held.items():
            stays[cluster] += 0 if cluster in self.leaving else has
        for cluster, subset in self.left:
            stays[cluster] -= self.places[cluster, subset]
        return dict(+stays)

    def bounds_of(self, slot: ClusterSubset, has: int, room: int, refusal: Refusal | None) -> tuple[int, int]:
        """Return the replicas that a slot keeps for certain of those that it has, and the most that it may have then.

        What may go back to it is room, and nothing that it keeps. `refusal` says why it takes no new ones.
        """
        if self.returns is None:
            return has, has + room
        return 0, min(MOST, room + (self.returns.keeps(slot, refusal) if has else 0))


NOT_RELEASED = Released(places={}, ends=0)
"""Of missing replicas, which leave no cluster."""


class SetPods(NamedTuple):
    """What a set, or a request, takes on the only cluster that gets it."""

    needs: PodRequirements
    shape: ReplicaShape
    """Its replicas as they are recorded."""
    by_pod: bool = False
    """Whether each of its main pods is a replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Where missing replicas go."""

    # The candidates that get some, each with its `replicas` and `because`, in order.
    chosen: tuple[Candidate, ...]
    refusals: tuple[Refusal, ...]
    # The lower bound of the policy that is out of reach, in words; empty where all are kept.
    out_of_reach: str = ""
    # The missing replicas that go nowhere, since their primary has room for them.
    home: int = 0
    # The replicas that each cluster and subset has afterwards, where they are divided over all of them.
    counts: Mapping[ClusterSubset, int] = field(default_factory=dict)
    # The pods of a set that goes whole; None where replicas take room by their shapes.
    pods: SetPods | None = None


def by_cluster(candidates: Iterable[Candidate]) -> Mapping[ClusterName, list[Candidate]]:
    """Group candidates by their cluster, in their order."""
    groups: dict[ClusterName, list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(candidate.cluster, []).append(candidate)
    return groups


def assign_within_gpr_limit(
    finder: CandidateFinder,
    workload: WorkloadId,
    assign: Callable[[Sequence[Refusal]], Assignment],
    *,
    released: Released = NOT_RELEASED,
) -> Assignment:
    """Assign, and once more without each cluster whose GPR would be one too many for the workspace.

    `assign` takes the refusals of these clusters. Placements that end with what is `released` make room for others.
    """
    if not finder.gprs.may_refuse(workload.workspace):
        return assign(())
    held, beyond = finder.held(workload), list[Refusal]()
    while True:
        assignment = assign(beyond)
        new = [candidate for candidate in assignment.chosen if not held[candidate.key]]
        refusal = _refuse_beyond_gpr_limit(finder, workload.workspace, new, ended=released.ended(assignment.counts))
        if refusal is None:
            return assignment
        beyond.append(refusal)


def _refuse_beyond_gpr_limit(
    finder: CandidateFinder, workspace: WorkspaceName, new: Iterable[Candidate], *, ended: int
) -> Refusal | None:
    """Refuse a candidate whose GPR the workspace may not begin beside those of the others: that of fewest replicas."""
    for begun, candidate in enumerate(sorted(new, key=lambda share: (-share.replicas, share.rank)), -ended):
        limited = finder.gprs.refusal(workspace, candidate.cluster, candidate.shape, more_gprs=begun)
        if limited is not None:
            return replace(limited, subset=candidate.subset)
    return None
