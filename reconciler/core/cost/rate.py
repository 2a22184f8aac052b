"""The rate of placements: their GPUs, and what these cost by the hour at the prices of a moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from reconciler.core.capacity.gpu_models import gpus_paid, plain_number
from reconciler.core.cost.prices import price_of
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement
from reconciler.model.policy import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyRate:
    """GPUs, slices as parts of one, and dollars an hour for those whose cluster has a price."""

    gpus: float = 0
    dollars: float = 0.0
    unpriced_gpus: float = 0
    priced: bool = False
    """Whether any of the placements has a price; the dollars of a difference may be 0 all the same."""

    def minus(self, other: HourlyRate) -> HourlyRate:
        """Return the difference from another rate."""
        return HourlyRate(
            gpus=self.gpus - other.gpus,
            dollars=self.dollars - other.dollars,
            unpriced_gpus=self.unpriced_gpus - other.unpriced_gpus,
            priced=self.priced or other.priced,
        )


def hourly_rate(
    placements: Iterable[Placement], clusters: Mapping[ClusterName, Cluster], moment: datetime
) -> HourlyRate:
    """Add up placements; a cluster that is not in the fleet repository has no price."""
    gpus, dollars, unpriced, priced = Fraction(), 0.0, Fraction(), False
    for placement in placements:
        cluster, shape = clusters.get(placement.cluster), placement.shape
        number = gpus_paid(shape) * shape.group_size * placement.replicas
        price = None if cluster is None else price_of(cluster, shape, moment)
        gpus += number
        dollars += 0 if price is None else price * float(number)
        unpriced += number if price is None else 0
        priced = priced or price is not None
    return HourlyRate(gpus=plain_number(gpus), dollars=dollars, unpriced_gpus=plain_number(unpriced), priced=priced)
