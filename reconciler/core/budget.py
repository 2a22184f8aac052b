"""What the expressions of one spec may spend, and what they may give.

A budget is the only thing of a rendering that changes: `sandbox` has every construct that multiplies work pay from it.
"""

from __future__ import annotations

import math
from typing import Any

from jinja2 import StrictUndefined, TemplateRuntimeError
from jinja2.exceptions import SecurityError

from reconciler.model.workload import Json

MAX_WORK = 100_000
"""Units that the expressions of one spec may spend together, well under a tenth of a second."""

MAX_INTEGER = 2**63
"""Kubernetes counts in 64 bits."""


class ExhaustedError(TemplateRuntimeError):
    """The expressions of a spec have spent their budget."""


class Budget:
    """What the expressions of one spec may still spend. It is the only thing here that changes."""

    __slots__ = ("left",)

    def __init__(self, units: int = MAX_WORK) -> None:
        self.left = units

    def spend(self, units: int) -> None:
        """Pay, or raise ExhaustedError."""
        self.left -= units
        if self.left < 0:
            raise ExhaustedError(f"the expressions do too much work (more than {MAX_WORK:,} steps)")

    def weigh(self, value: Any) -> None:
        """Pay for a value and everything in it, so often as it is in it."""
        if isinstance(value, str):
            self.spend(1 + (len(value) >> 6))
            return
        pending = [value]
        while pending:
            part = pending.pop()
            if isinstance(part, str):
                self.spend(1 + (len(part) >> 6))
                continue
            self.spend(1)
            if isinstance(part, list | tuple):
                pending.extend(part)
            elif isinstance(part, dict):
                pending.extend(part.values())
            elif isinstance(part, range):
                self.spend(len(part))


def bounded(value: Any) -> Any:
    """Return a value that fits; raise SecurityError for an integer that does not."""
    if isinstance(value, int) and not -MAX_INTEGER <= value < MAX_INTEGER:
        raise SecurityError("a number does not fit in 64 bits")
    return value


def plain(value: Any, budget: Budget) -> Json:
    """Turn what an expression gave into a value of a YAML document, paying for its size.

    Raises TemplateRuntimeError for what is none, such as a method that was not called.
    """
    budget.weigh(value)
    return _plain(value)


def _plain(value: Any) -> Json:
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return bounded(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TemplateRuntimeError("the number is infinite")
        return value
    if isinstance(value, list | tuple | range):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, StrictUndefined):
        str(value)  # raises, and says which name is missing
    raise TemplateRuntimeError(
        f"an expression gives a {type(value).__name__}, which is no value (a call without its ()?)"
    )
