"""Packing: replicas fill nodes that are in use, so that whole nodes stay whole for those who need them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from reconciler.core.decide.candidates.scorers.scorer import ALIKE, Points, Subject
from reconciler.model.candidate import Candidate
from reconciler.model.score import BEST


class Packing:
    """Scores a cluster by how full the fullest of its nodes is that takes a replica, with that replica on it.

    This is MostAllocated of the kube-scheduler, for the resource that is scarcest. A cluster without room scores 0.
    """

    follows_plan = True
    weighs_delay = False

    def points(self, subject: Subject, candidates: Sequence[Candidate]) -> Sequence[Points]:
        """Score candidates by their free capacity, less what this pass has handed out."""
        capacity, shape = subject.capacity, subject.shape
        if capacity is None or shape is None:
            return [ALIKE] * len(candidates)
        points = []
        for candidate in candidates:
            seen = candidate.cluster in subject.inputs.observed.clusters
            room = capacity.room(candidate.cluster, subject.workload.workspace) if seen else None
            full = None if room is None else room.fullest_use(shape)
            points.append(Points(0.0) if full is None else Points(BEST * full, f"fills a node to {full:.0%}"))
        return points

    def key(self, subject: Subject) -> Hashable:
        """Score workloads alike that have the same shape, until room is handed out."""
        if subject.capacity is None or subject.shape is None:
            return None
        moment = subject.working_plan.position, subject.capacity.changes, subject.capacity.is_grown
        return subject.shape.likeness, subject.workload.workspace, moment
