"""Warnings about clusters that cannot be seen, with a way out."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.app import NO_OBSERVATIONS
from reconciler.cli import printing
from reconciler.model.plan import Reason, Suppressed
from reconciler.settings import Settings


def warn_without_observations(settings: Settings) -> None:
    """Warn where the settings name neither observations nor clusters to watch."""
    if not (settings.observations or settings.kubeconfig or settings.in_cluster):
        printing.warn(NO_OBSERVATIONS)


def warn_of_old_observations(settings: Settings, suppressed: Iterable[Suppressed]) -> None:
    """Warn where observations come from files alone, and these are too old for a primary or do not mention it."""
    files = settings.observations and not (settings.kubeconfig or settings.in_cluster)
    if files and any(refusal.reason is Reason.PRIMARY_UNSEEN for refusal in suppressed):
        printing.warn(
            f"{settings.observations}: a primary counts as unseen (write the observations anew: the Fleet's"
            " observationMaxAge says how old they may be)"
        )
