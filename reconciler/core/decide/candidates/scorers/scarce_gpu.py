"""Scarce GPUs: GPUs that others need and have no other choice of are left to them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from reconciler.core.decide.candidates.scorers.scorer import ALIKE, Points, Subject
from reconciler.model.candidate import Candidate
from reconciler.model.score import BEST


class ScarceGPU:
    """Scores a cluster by how little the workloads with less choice press on the GPUs that the workload would take.

    The pressure on a GPU is the number of workloads that can use it and have not all the choice that this one has,
    each divided by the GPUs that it can use. The cluster with the greatest pressure scores 0, one without any 100.
    """

    follows_plan = False
    weighs_delay = False

    def points(self, subject: Subject, candidates: Sequence[Candidate]) -> Sequence[Points]:
        """Score candidates by the pressure on their GPUs."""
        if subject.shape is None:
            return [ALIKE] * len(candidates)
        pressures = subject.pressure.on_clusters(subject.workload, subject.shape)
        most = max((pressures.get(candidate.cluster, 0.0) for candidate in candidates), default=0.0)
        if not most:
            return [ALIKE] * len(candidates)
        return [self._points(pressures.get(candidate.cluster, 0.0), most) for candidate in candidates]

    def key(self, subject: Subject) -> Hashable:
        """Score workloads alike that can use the same GPUs."""
        return None if subject.shape is None else subject.pressure.places(subject.workload, subject.shape)

    @staticmethod
    def _points(pressure: float, most: float) -> Points:
        detail = "GPUs that others cannot do without" if pressure else "GPUs that others can do without"
        return Points(BEST * (1 - pressure / most), detail)
