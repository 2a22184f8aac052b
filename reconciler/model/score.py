"""Scores: how well a cluster suits a workload, by each scorer that its policy weighs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

BEST = 100.0
"""The highest value of a score; the lowest is 0."""


class ScorerName(StrEnum):
    """The scorers that a policy may weigh."""

    POLICY_ORDER = "PolicyOrder"
    PRICE = "Price"
    TIME_TO_READY = "TimeToReady"
    WAIT_TIME = "WaitTime"
    SCARCE_GPU = "ScarceGPU"
    PACKING = "Packing"
    RECENT_FAILURES = "RecentFailures"
    CURRENT_CLUSTER = "CurrentCluster"
    TOPOLOGY = "Topology"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerWeight:
    """A scorer of a policy, and how much it counts beside the others."""

    name: ScorerName
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The score that one scorer gives a cluster."""

    scorer: ScorerName
    weight: int
    # From 0 to BEST.
    value: float
    # What the value was read from, as ``45s`` or ``1.49 $/GPU-h``; empty where nothing is known.
    detail: str = ""


def weighted_mean(scores: Iterable[Score]) -> float:
    """Return the mean of scores by their weights; 0 without any."""
    scores = tuple(scores)
    weights = sum(score.weight for score in scores)
    return sum(score.weight * score.value for score in scores) / weights if weights else 0.0
