"""What an experiment is, and the register of all of them by the name of their bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from reconciler.model.bounds import BoundedInput, InputBound, all_bounds

BESIDE_PASSES = frozenset(BoundedInput) - {BoundedInput.RECORDINGS}
"""Inputs that are read in the daemon, where the ends of others' bursts wait for them if anything does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One input at its bound, and one beyond it."""

    at: Callable[[], object]
    """Reads the input at the bound; an exception fails the experiment."""
    beyond: Callable[[], object]
    """Reads the input beyond the bound, and returns or raises what is said of it. May be called many times."""
    says: str
    """A pattern of what is said."""
    scaled: str = ""
    """The bound that was tried in place of the real one, which takes too long; empty where the real one was."""


Open = Callable[[Path], AbstractContextManager[Experiment]]
EXPERIMENTS: dict[str, Open] = {}
"""By the name of the bound. Each gets an empty directory."""
_NAMES = {id(bound): name for name, bound in all_bounds()}


def experiment(bound: InputBound) -> Callable[[Callable[[Path], Iterator[Experiment]]], Open]:
    """Register a generator that yields the experiment of a bound, and cleans up behind it."""

    def register(prepare: Callable[[Path], Iterator[Experiment]]) -> Open:
        return EXPERIMENTS.setdefault(_NAMES[id(bound)], contextmanager(prepare))

    return register
