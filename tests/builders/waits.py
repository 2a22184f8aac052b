"""What a scheduler's message means for demand."""

from __future__ import annotations

from reconciler.core.observe.kubernetes.words.scheduler import scheduling_wait


def lack_of_room(message: str) -> str | None:
    """Return what a pod lacks by a scheduler's message; None where no room would help."""
    wait = scheduling_wait(message)
    return wait.cause if wait.reason.lacks_room else None
