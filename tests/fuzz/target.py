"""One reader, and how to make an input for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One reader, and how to make an input for it."""

    name: str
    make: Callable[[Random], Any]
    run: Callable[[Any], object]
    contained: bool = False
    """Whether an exception that a bulkhead contains is good enough: the input is no file that a person writes."""
