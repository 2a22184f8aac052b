"""The price of a GPU on a cluster at a moment, by its Cluster file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from reconciler.core.pods.node_affinity import required_labels
from reconciler.core.signals.schedule import first_after
from reconciler.model.capacity import ReplicaShape
from reconciler.model.cluster import PriceWindow
from reconciler.model.policy import Cluster

NodeLabels = tuple[tuple[str, str], ...]
"""Labels that pods require of their nodes."""


class PricePiece(NamedTuple):
    """A time in which a price does not change."""

    begin: datetime
    end: datetime
    price: float | None
    """Dollars for a GPU and hour; None where unknown."""


def node_labels(shape: ReplicaShape | None) -> NodeLabels:
    """Return the labels that the pods of a replica require of their nodes, sorted."""
    return () if shape is None else tuple(sorted(required_labels(shape)))


def price_at(cluster: Cluster, labels: NodeLabels, moment: datetime) -> float | None:
    """Return the price of a GPU for pods that require these labels of their nodes; None where unknown."""
    price, _ = _price(cluster, labels, moment)
    return price


def price_of(cluster: Cluster, shape: ReplicaShape | None, moment: datetime) -> float | None:
    """Return the price of a GPU for a replica of this shape; None where unknown."""
    return price_at(cluster, () if cluster.spot is None else node_labels(shape), moment)


def price_pieces(cluster: Cluster | None, labels: NodeLabels, begin: datetime, end: datetime) -> Iterator[PricePiece]:
    """Yield the prices from one moment to another, in order."""
    while begin < end:
        price, until = (None, None) if cluster is None else _price(cluster, labels, begin)
        last = end if until is None else min(until, end)
        yield PricePiece(begin, last, price)
        begin = last


def _price(cluster: Cluster, labels: NodeLabels, moment: datetime) -> tuple[float | None, datetime | None]:
    """Return a price and until when it holds for certain; None for ever.

    1. Spot nodes have their own. 2. The first window that is open holds. 3. Else it is the plain one.
    """
    spot = cluster.spot
    if spot is not None and spot.labels.items() <= {*labels}:
        return spot.price_per_gpu_hour, None
    if not cluster.prices:
        return cluster.price_per_gpu_hour, None
    changes: list[datetime] = []
    for window in cluster.prices:
        start = _start(window, moment)
        if start is not None and start <= moment:
            return window.price_per_gpu_hour, min([*changes, start + window.duration])
        if start is not None:
            changes.append(start)
    return cluster.price_per_gpu_hour, min(changes, default=None)


def _start(window: PriceWindow, moment: datetime) -> datetime | None:
    """Return the start of a window that is open at a moment, else of the next."""
    return first_after(window.start, window.zone, moment - window.duration)
