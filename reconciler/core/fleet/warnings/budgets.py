"""Warns of a budget that cannot count the GPUs of a cluster, since it has no price."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.errors import Severity
from reconciler.model.budget import Budget
from reconciler.model.policy import Cluster
from reconciler.text.findings import Finding
from reconciler.text.wording import conjugate, join_names


def warn_unpriced(budget: Budget | None, clusters: Iterable[Cluster]) -> Iterable[Finding]:
    """Warn of clusters without a price among those that a budget is for."""
    if budget is None:
        return
    names = sorted({cluster.name for cluster in clusters if cluster.price_per_gpu_hour is None})
    if not names:
        return
    verb = conjugate(len(names), "has")
    yield Finding(
        loc=("spec", "budget"),
        message=f"{join_names(names)} {verb} no price, so that GPUs there count as nothing",
        hint="add spec.pricePerGPUHour to the Cluster"
        if len(names) == 1
        else "add spec.pricePerGPUHour to the Clusters",
        severity=Severity.WARNING,
    )
