"""A number divided in proportion, by largest remainder: the method of Hamilton."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def shares(total: int, weights: Sequence[int]) -> list[int]:
    """Divide a total in proportion to weights, where all are 0 equally: each share is less than one off.

    What rounding down leaves goes, one each, to the largest remainders; of equal ones to the earlier. Raises ValueError
    for what is no whole number of at least 0, or no list of such, since templates may say anything.
    """
    if not isinstance(weights, list | tuple) or not weights or not all(map(_counts, (total, *weights))):
        raise ValueError("shares divides a number by a list of numbers, none below 0: replicas | shares([4, 1])")
    parts = weights if any(weights) else [1] * len(weights)
    whole = sum(parts)
    made = [total * part // whole for part in parts]
    by_remainder = sorted(range(len(parts)), key=lambda place: -(total * parts[place] % whole))
    for place in by_remainder[: total - sum(made)]:
        made[place] += 1
    return made


def _counts(value: Any) -> bool:
    return type(value) is int and value >= 0
