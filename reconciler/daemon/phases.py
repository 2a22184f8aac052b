"""The phases of a pass, which metrics measure."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import TypeAlias


class PassPhase(StrEnum):
    """A phase of a pass, in their order."""

    FETCH = "fetch"
    READ = "read"
    """Both branches, and the views of all clusters."""
    DECIDE = "decide"
    WRITE = "write"
    """Commits, on this machine."""
    PUSH = "push"


Measure: TypeAlias = Callable[[PassPhase], AbstractContextManager[None]]
"""Measures the phase of a pass that its block is."""


def unmeasured(_phase: PassPhase) -> AbstractContextManager[None]:
    """Measure nothing."""
    return nullcontext()
