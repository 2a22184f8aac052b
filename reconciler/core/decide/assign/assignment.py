"""The outcome of assigning missing replicas to candidates, by whatever rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.model.candidate import Candidate
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.placement import ClusterSubset
from reconciler.model.plan import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Replicas of a placement that leave its cluster, and are assigned to others."""

    place: ClusterSubset
    """The cluster and subset that they leave, which gets none of them."""
    replicas: int
    ends: bool
    """Whether the placement ends with them, so that its GPR makes room for another."""
    closed: Mapping[ClusterSubset, Refusal] = field(default_factory=dict)
    """The clusters and subsets that they may not go to, and why."""

    leaving: frozenset[ClusterName] = frozenset()
    """Other clusters that the workload has to leave as well, which count for no bound."""

    @property
    def ended(self) -> int:
        """The number of GPRs that end with them."""
        return int(self.ends)

    def staying(self, held: Mapping[ClusterName, int]) -> dict[ClusterName, int]:
        """Return the replicas of each cluster that stay where they are, and so count for the bounds of the policy."""
        stays = {cluster: has for cluster, has in held.items() if cluster not in self.leaving}
        if self.place[0] in stays:
            stays[self.place[0]] -= self.replicas
        return {cluster: has for cluster, has in stays.items() if has}


NOT_RELEASED = Released(place=(ClusterName(""), ""), replicas=0, ends=False)
"""Of missing replicas, which leave no cluster."""


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
    # The replicas that each cluster and subset comes to have, where all of them are assigned together.
    counts: Mapping[ClusterSubset, int] = field(default_factory=dict)


def refuse_beyond_gpr_limit(
    finder: CandidateFinder, workspace: WorkspaceName, new: Iterable[Candidate], *, ended: int = 0
) -> tuple[Candidate, Refusal] | None:
    """Find a candidate whose GPR the workspace may not begin beside those of the others: the one with fewest replicas.

    `ended` GPRs make room for them.
    """
    if not finder.gprs.may_refuse(workspace):
        return None
    for begun, candidate in enumerate(sorted(new, key=lambda share: (-share.replicas, share.rank)), -ended):
        limited = finder.gprs.refusal(workspace, candidate.cluster, candidate.shape, more_gprs=begun)
        if limited is not None:
            return candidate, limited
    return None
