"""Price: the cheapest cluster first."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

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
            price_at(clusters[candidate.cluster], labels, now) if candidate.cluster in clusters else None
            for candidate in candidates
        ]
        return [
            Points(value, "no price" if price is None else "")
            for value, price in zip(best_ratio(prices), prices, strict=True)
        ]

    def key(self, subject: Subject) -> Hashable:
        """Score workloads alike, but for those that require other nodes where spot nodes have a price of their own."""
        return node_labels(subject.shape) if subject.inputs.reach.has_spot_prices() else None
