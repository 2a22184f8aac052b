"""A cluster for each subset of a StatefulSet: on a second one, ordinals would count from the same number.

The subsets of an ordinal workload are ranges of ordinals (docs/background/upstream/workloadspread.md, "StatefulSets").
Two clusters of one subset would make pods of the same names, each with a volume of its own; so would replicas in no
subset, whose ordinals begin where those of the workload itself do. The cluster of a subset is the primary where that is
in it, then the first with replicas of it, then the first with room.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.spread.subset_pods import first_ordinal, has_ordinals
from reconciler.core.spread.subset_selection import holds_cluster
from reconciler.model.candidate import Candidate
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.kubernetes.workload_spread import WorkloadSpread
from reconciler.model.placement import ClusterSubset, Placement
from reconciler.model.plan import Reason, Refusal
from reconciler.text.wording import sanitize


def refuse_ordinals(finder: CandidateFinder, workload: WorkloadId, candidate: Candidate) -> Refusal | None:
    """Refuse a cluster that would have the ordinals of another."""
    spread = _ordinal_spread(finder, workload)
    if spread is None:
        return None
    held = finder.held(workload)
    taken = sorted(cluster for (cluster, name), replicas in held.items() if name == candidate.subset and replicas > 0)
    return (
        _refusal(spread, candidate.key, _home(finder, workload, candidate.subset) or taken)
        or _past(finder, workload, spread, candidate.key, 1)[1]
    )


def limit_to_free_ordinals(
    finder: CandidateFinder,
    workload: WorkloadId,
    able: Mapping[ClusterSubset, Candidate],
    refusals: list[Refusal],
) -> dict[ClusterSubset, Candidate]:
    """Lower the room of candidates to the ordinals that no other placement has; refuse those without any.

    The ranges of a spread are apart. Placements from before it was changed keep the ordinals that they were given.
    """
    left, spread = dict(able), _ordinal_spread(finder, workload)
    if spread is None:
        return left
    for place, candidate in able.items():
        free, refusal = _past(finder, workload, spread, place, candidate.room)
        if free:
            left[place] = candidate._replace(room=free)
            continue
        del left[place]
        refusals += [refusal] if refusal is not None else []
    return left


def refuse_second_clusters(
    finder: CandidateFinder,
    workload: WorkloadId,
    rows: Sequence[Sequence[ClusterSubset]],
    held: Mapping[ClusterSubset, int],
    able: Collection[ClusterSubset],
) -> Iterator[Refusal]:
    """Refuse all but one of the clusters of each subset that have room; none for a workload without ordinals.

    `rows` are the clusters of each subset in order, with those of no subset last.
    """
    spread = _ordinal_spread(finder, workload)
    if spread is None:
        return
    for row in rows:
        taken = [place[0] for place in row if held.get(place)] or [place[0] for place in row if place in able]
        for place in row:
            refusal = _refusal(spread, place, _home(finder, workload, place[1]) or taken) if place in able else None
            if refusal is not None:
                yield refusal


def _ordinal_spread(finder: CandidateFinder, workload: WorkloadId) -> WorkloadSpread | None:
    """Return the spread of a workload whose subsets are ranges of ordinals; None for any other workload."""
    spread = finder.inputs.desired.policies[workload].spread
    return spread if spread is not None and has_ordinals(spread) else None


def _home(finder: CandidateFinder, workload: WorkloadId, subset: str) -> list[ClusterName]:
    """Name the primary where it is in a subset."""
    desired = finder.inputs.desired
    chosen, primary = desired.policies[workload].subset(subset), desired.workspaces[workload.workspace].primary
    cluster, seen = desired.clusters.get(primary), finder.inputs.observed.clusters.get(primary)
    is_home = chosen is not None and cluster is not None and holds_cluster(chosen, cluster, seen)
    return [primary] if is_home else []


def _past(
    finder: CandidateFinder, workload: WorkloadId, spread: WorkloadSpread, place: ClusterSubset, replicas: int
) -> tuple[int, Refusal | None]:
    """Count how many ordinals for `replicas`, from a subset's next one on, no other placement has been given."""
    inputs = finder.inputs
    has, others = [], list[tuple[int, Placement]]()
    for placement in inputs.ledger.placements.of(workload).placements:
        if placement.first_ordinal is None:
            continue
        if inputs.slot(placement) == place:
            has.append(placement.first_ordinal + placement.replicas)
        elif placement.subset != place[1]:
            others.append((placement.first_ordinal, placement))
    begin = max(has, default=first_ordinal(inputs.desired.policies[workload], place[1]) or 0)
    later = ((max(first, begin), other.where) for first, other in others if first + other.replicas > begin)
    ahead = min(later, default=None)
    if ahead is None or ahead[0] >= begin + replicas:
        return replicas, None
    if ahead[0] > begin:
        return ahead[0] - begin, None
    name = f"{spread.target.kind} {spread.target.name}"
    return 0, Refusal(
        cluster=place[0],
        subset=place[1],
        reason=Reason.TAKEN,
        message=(
            f"{name} has ordinal {ahead[0]} on {sanitize(ahead[1])} since before WorkloadSpread {spread.id} changed"
        ),
        remedy="wait until that placement has ended, or end it with `overspill revert`",
    )


def _refusal(spread: WorkloadSpread, place: ClusterSubset, taken: Sequence[ClusterName]) -> Refusal | None:
    """Refuse a cluster whose ordinals others have `taken`; the first of several that have them may get more."""
    cluster, subset = place
    if subset and (not taken or cluster == taken[0]):
        return None
    target, name = f"{spread.target.kind} {spread.target.name}", sanitize(subset)
    message = f"{target} has no ordinals for what is in no subset"
    remedy = f"have a subset of WorkloadSpread {spread.id} take it"
    if subset:
        message = f"{target} has the ordinals of subset {name} on {taken[0]}, and two clusters would have the same"
        remedy = f"give it a subset of its own in WorkloadSpread {spread.id}, with a maxReplicas in each before it"
    return Refusal(cluster=cluster, subset=subset, reason=Reason.TAKEN, message=message, remedy=remedy)
