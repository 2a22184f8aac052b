"""What the turns of some workloads have assigned and refused in a pass that keeps their assessments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.model.candidate import Candidate
from reconciler.model.ids import WorkloadId
from reconciler.model.placement import ClusterSubset
from reconciler.model.plan import Refusal, WorkloadAssessment


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """The outcome of the turns of one workload so far."""

    assigned: Mapping[ClusterSubset, Candidate] = field(default_factory=dict)
    """The candidates that its turns have taken, each with all replicas that it got."""
    refusals: Mapping[ClusterSubset, Refusal] = field(default_factory=dict)
    """Those that its last turn refused."""
    out_of_reach: str = ""
    """The lower bound that its last turn could not reach, in words."""

    def with_turn(self, chosen: Iterable[Candidate], refusals: Iterable[Refusal], out_of_reach: str) -> TurnRecord:
        """Return the record after another turn."""
        assigned = dict(self.assigned)
        for candidate in chosen:
            earlier = assigned.get(candidate.key)
            more = candidate.replicas + (0 if earlier is None else earlier.replicas)
            assigned[candidate.key] = candidate.with_replicas(more, candidate.because)
        refused = {(refusal.cluster, refusal.subset): refusal for refusal in refusals}
        return TurnRecord(assigned, refused, out_of_reach)


class KeptTurns:
    """The records and assessments of the workloads that a pass was asked to keep them of; of the others it has none."""

    def __init__(self, workloads: Collection[WorkloadId]) -> None:
        """Begin without any turn."""
        self.workloads = frozenset(workloads)
        self.records: dict[WorkloadId, TurnRecord] = {}
        self.assessments: dict[WorkloadId, WorkloadAssessment] = {}

    def note(
        self,
        workload: WorkloadId,
        chosen: Iterable[Candidate],
        refusals: Iterable[Refusal],
        out_of_reach: str = "",
    ) -> None:
        """Record what a turn assigns and refuses, if the workload is one of those that are kept."""
        if workload in self.workloads:
            before = self.records.get(workload, TurnRecord())
            self.records[workload] = before.with_turn(chosen, refusals, out_of_reach)
