"""Price: the cheapest cluster first; a slice of a GPU has its part of the price."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from reconciler.core.capacity.gpu_slices import gpu_slices, has_slices, placement_key
from reconciler.core.cost.prices import node_labels, price_at
from reconciler.core.decide.candidates.scorers.scorer import Points, Subject, best_ratio
from reconciler.model.candidate import Candidate


class Price:
    """Scores the cheapest cluster highest, one of twice its price half as high, one without a price 0."""

    follows_plan = False
    weighs_delay = False

    def points(self, subject: Subject, candidates: Sequence[Candidate]) -> Sequence[Points]:
        """Score candidates by the prices of their Cluster files at this moment."""
        clusters, labels, now = subject.inputs.desired.clusters, node_labels(subject.shape), subject.inputs.now
        prices = [
            _share(subject, candidate, price_at(clusters[candidate.cluster], labels, now))
            if candidate.cluster in clusters
            else None
            for candidate in candidates
        ]
        return [
            Points(value, "no price" if price is None else "")
            for value, price in zip(best_ratio(prices), prices, strict=True)
        ]

    def key(self, subject: Subject) -> Hashable:
        """Score all workloads the same, unless spot nodes have a price of their own or clusters slices of GPUs."""
        shape, observed = subject.shape, subject.inputs.observed.clusters.values()
        return (
            node_labels(shape) if subject.inputs.reach.has_spot_prices() else None,
            placement_key(shape) if shape is not None and any(map(has_slices, observed)) else None,
        )


def _share(subject: Subject, candidate: Candidate, price: float | None) -> float | None:
    """Return the price of what a replica gets on a cluster for each GPU that it asks for."""
    slices = gpu_slices(subject.inputs.observed.clusters.get(candidate.cluster), subject.shape)
    return price if price is None or slices is None else float(price * slices.paid_share)
