"""Filters and tests of templates whose Jinja form makes much out of little, or text that is not YAML's.

`sandbox` has each of them pay for what it reads and for what it makes; what grows on the way pays here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jinja2 import pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context

from reconciler.core.budget import Budget, bounded, plain
from reconciler.core.remainders import shares

BUDGET = "overspill budget"
"""The variable that holds what the expressions of one spec may still spend."""


def budget_of(context: Context) -> Budget:
    """Return what may still be spent."""
    budget: Budget = context.parent[BUDGET]
    return budget


@pass_context
def text(context: Context, value: Any) -> str:
    """Write a value as it stands in the middle of a text: ``true``, ``3``, JSON for lists and mappings."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(bounded(value))
    return _tojson(context, value)


def _tojson(context: Context, value: Any) -> str:
    return json.dumps(plain(value, budget_of(context)), ensure_ascii=False)


def _join(context: Context, values: Iterable[Any], d: str = "") -> str:
    texts = [text(context, value) for value in values]
    budget_of(context).spend((sum(len(part) for part in texts) + len(str(d)) * len(texts)) >> 6)
    return str(d).join(texts)


def _replace(context: Context, value: Any, old: str, new: str) -> str:
    whole = text(context, value)
    budget_of(context).spend((len(whole) + whole.count(str(old)) * len(str(new))) >> 6)
    return whole.replace(str(old), str(new))


def _round(_: Context, value: float, precision: int = 0) -> float:
    """Round half to even; Jinja's own computes ``10 ** precision`` for any precision."""
    return round(value, max(-15, min(15, int(precision))))


def _shares(context: Context, value: Any, weights: Any) -> list[int]:
    budget_of(context).weigh(weights)
    return shares(value, weights)


def _divisible(value: Any, number: Any) -> bool:
    """Test numbers; Jinja's own test of a text is printf-style formatting, padding and all."""
    if not isinstance(value, int) or not isinstance(number, int):
        raise SecurityError(f"only numbers are even, odd or divisible, here it has {kind(value)}")
    return value % number == 0


def _is_odd(value: Any) -> bool:
    return not _divisible(value, 2)


def _is_even(value: Any) -> bool:
    return _divisible(value, 2)


OWN: Mapping[str, Callable[..., Any]] = {
    "join": _join, "replace": _replace, "round": _round, "shares": _shares, "string": text, "tojson": _tojson,
}  # fmt: skip # a table, a row a line
"""By the names that templates have for them."""

OWN_TESTS: Mapping[str, Callable[..., bool]] = {"divisibleby": _divisible, "even": _is_even, "odd": _is_odd}
"""The tests that Jinja has as well, and does for texts."""


def kind(value: Any) -> str:
    """Say what a value is."""
    names = {str: "a text", list: "a list", dict: "a mapping", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else f"a {type(value).__name__}")
