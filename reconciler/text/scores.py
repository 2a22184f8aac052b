"""Scores of clusters in words."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.score import Score, weighted_mean


def describe_scores(scores: Sequence[Score]) -> str:
    """Describe the score of a cluster and its parts: ``94: Price 100, TimeToReady 88 (1m12s measured)``."""
    return f"{weighted_mean(scores):.0f}: {', '.join(map(_describe_part, scores))}"


def _describe_part(score: Score) -> str:
    weight = f" x{score.weight}" if score.weight != 1 else ""
    detail = f" ({score.detail})" if score.detail else ""
    return f"{score.scorer} {score.value:.0f}{weight}{detail}"
