"""Quantities and durations as Kubernetes and EGS write them, in exact integers.

A quantity is counted in nano units, the smallest of Kubernetes' grammar, so that sums never round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache
from typing import NewType

Quantity = NewType("Quantity", int)
"""An amount of a resource in nano units: 1 GPU is 10**9."""

ONE = Quantity(10**9)

_SUFFIXES = {
    "n": 1, "u": 10**3, "m": 10**6, "": 10**9,
    "k": 10**12, "M": 10**15, "G": 10**18, "T": 10**21, "P": 10**24, "E": 10**27,
    "Ki": 10**9 * 2**10, "Mi": 10**9 * 2**20, "Gi": 10**9 * 2**30,
    "Ti": 10**9 * 2**40, "Pi": 10**9 * 2**50, "Ei": 10**9 * 2**60,
}  # fmt: skip # a table, a row a line
_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40}))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,3}))?"
)
_MAX_EXPONENT = 30
_MAX_LENGTH = 100
"""Characters of a duration, and of a text for which the meant one is looked for."""
_DIGITS = re.compile("[0-9]{1,9}")
_BINARY = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")
_DECIMAL = ("E", "P", "T", "G", "M", "k")


def parse_quantity(text: str) -> Quantity:
    """Read a Kubernetes quantity such as ``4``, ``500m``, ``8Gi`` or ``1e3``, rounded up to a whole nano unit.

    Raises ValueError for what Kubernetes refuses ('1 Gi', '5K', '') and for a negative amount.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity")
    number, suffix, exponent = match.groups()
    if exponent is not None and abs(int(exponent)) > _MAX_EXPONENT:
        raise ValueError(f"{text!r} is out of range")
    if number.startswith("-") and number.strip("-0."):
        raise ValueError(f"{text!r} is negative")
    whole, _, fraction = number.lstrip("+-").partition(".")
    power = int(exponent or 0) - len(fraction)
    amount = int(whole + fraction) * _SUFFIXES[suffix or ""] * 10 ** max(0, power)
    return Quantity(-(-amount // 10 ** max(0, -power)))


_MEANT_QUANTITY = re.compile(r"([0-9]{1,40}(?:\.[0-9]{1,9})?)\s*+(?:(m)|([kmgtpe])?(i)?(b(?:ytes?)?)?)", re.IGNORECASE)
_NUMBER_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def quantity_hint(text: str) -> str:
    """Return the hint for a text that is no quantity: ``try 16G`` for ``16GB``, else examples of the grammar."""
    meant = _meant_quantity(text.strip())
    return f"try {meant}" if meant else "try 1, 500m or 8Gi"


def _meant_quantity(text: str) -> str:
    """Return the quantity that ``16 GB``, ``8gib`` or ``two`` means; empty where none is to be seen."""
    if text.lower() in _NUMBER_WORDS:
        return str(_NUMBER_WORDS.index(text.lower()) + 1)
    words = _MEANT_QUANTITY.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if words is None:
        return ""
    number, small, prefix, binary, _ = words.groups()
    if small:  # Kubernetes writes "M" for millions and "m" for thousandths
        return f"{number}{small}"
    prefix = (prefix or "").upper()
    if binary:
        return f"{number}{prefix}i" if prefix else ""
    return f"{number}{'k' if prefix == 'K' else prefix}"


def format_quantity(quantity: int) -> str:
    """Write an amount of a `Quantity` in the shortest exact form that Kubernetes reads: ``4``, ``500m``, ``8Gi``."""
    if quantity % ONE:
        for suffix in ("m", "u"):
            unit = _SUFFIXES[suffix]
            if quantity % unit == 0:
                return f"{quantity // unit}{suffix}"
        return f"{quantity}n"
    for suffixes in (_BINARY, _DECIMAL):
        for suffix in suffixes:
            unit = _SUFFIXES[suffix]
            if quantity >= unit and quantity % unit == 0:
                return f"{quantity // unit}{suffix}"
    return str(quantity // ONE)


_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?[dhms])+")
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([dhms])")
_MEANT_PART = re.compile(
    r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*+(w|weeks?|d|days?|h|hours?|hrs?|m|min(?:ute)?s?|s|sec(?:ond)?s?)(?![a-z])"
    r"(?:\s*+,|\s++and(?![a-z]))?\s*+",
    re.IGNORECASE,
)
_ISO_8601 = re.compile(r"P(?:[0-9.]{1,20}[WD]){0,2}(?:T(?:[0-9.]{1,20}[HMS]){1,3})?", re.IGNORECASE)
"""A duration of ISO 8601 without years and months, as ``PT4H``."""
MAX_DURATION = timedelta(days=3650)


def parse_duration(text: str) -> timedelta:
    """Read a positive duration such as ``10m``, ``1h30m`` or ``2d``.

    Go's grammar with ``d`` for 24 hours, without units below a second (docs/reference/egs.md, R9). Raises ValueError
    for anything else, for zero, and for more than ten years.
    """
    if _DURATION.fullmatch(text) is None or len(text) > _MAX_LENGTH:
        raise ValueError(f"{text!r} is not a duration{_suggest(text)}")
    seconds = sum(Decimal(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if seconds <= 0:
        raise ValueError(f"{text!r} is not longer than nothing")
    if seconds > MAX_DURATION.total_seconds():
        raise ValueError(f"{text!r} is longer than ten years")
    return timedelta(microseconds=int(seconds * 1_000_000))


def bounded_seconds(number: int) -> timedelta:
    """Return seconds that others wrote as a duration from zero to `MAX_DURATION`.

    Kubernetes takes 64 bits of seconds, which neither a duration nor a moment that it leads to can hold.
    """
    return timedelta(seconds=min(max(0, number), int(MAX_DURATION.total_seconds())))


def meant_duration(text: str) -> str:
    """Return the duration that ``4 hours``, ``1h 30 min``, ``PT4H`` or ``90`` means; empty where none is to be seen."""
    text = text.strip()
    if len(text) > _MAX_LENGTH:
        return ""
    if _DIGITS.fullmatch(text):
        return f"{text}s"
    if _ISO_8601.fullmatch(text):
        text = re.sub("[PT]", " ", text.upper()).strip()
    meant, end = "", 0
    while end < len(text):
        part = _MEANT_PART.match(text, end)
        if part is None:
            return ""
        number, unit, end = part[1], part[2][0].lower(), part.end()
        if unit == "w":
            number, unit = f"{Decimal(number) * 7:f}", "d"
        meant += number + unit
    return meant if _DURATION.fullmatch(meant) else ""


def _suggest(text: str) -> str:
    """Suggest a correction, or an example of the grammar."""
    meant = meant_duration(text)
    return f" (try '{meant}')" if meant else " (try '10m' or '1h30m')"


@lru_cache(maxsize=1024)
def format_duration(duration: timedelta) -> str:
    """Write a duration in whole units, largest first: ``1d2h``, ``10m``, ``45s``; part seconds are dropped."""
    rest = max(0, int(duration.total_seconds()))
    parts = []
    for unit, seconds in _UNITS.items():
        count, rest = divmod(rest, seconds)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Amounts by resource name, as in ``resources.requests``. A resource that is not named is zero."""

    amounts: Mapping[str, Quantity] = field(default_factory=dict)

    @property
    def extended(self) -> bool:
        """Return whether any resource is an extended one, as GPUs are: only their names have a domain."""
        return any("/" in name for name, amount in self.amounts.items() if amount)

    def minus(self, other: Resources, times: int = 1) -> Resources:
        """Subtract `other` so many times; negative amounts become zero, since free capacity is never negative."""
        left = dict(self.amounts)
        for name, amount in other.amounts.items():
            left[name] = Quantity(max(0, left.get(name, 0) - amount * times))
        return Resources(amounts=left)

    def holds(self, requests: Resources) -> int:
        """Count how many times `requests` fits in these amounts together; a request for nothing fits without end.

        Without end is answered with 2**31, more replicas than Kubernetes can count.
        """
        most: int | None = None
        for name, amount in requests.amounts.items():
            if amount:
                count = self.amounts.get(name, 0) // amount
                if not count:
                    return 0
                most = count if most is None or count < most else most
        return 2**31 if most is None else most

    def times(self, count: int) -> Resources:
        """Multiply every amount."""
        return Resources(amounts={name: Quantity(amount * count) for name, amount in self.amounts.items()})


def total(parts: Iterable[Resources]) -> Resources:
    """Add up amounts, resource by resource."""
    sums: dict[str, Quantity] = {}
    for part in parts:
        for name, amount in part.amounts.items():
            sums[name] = Quantity(sums.get(name, 0) + amount)
    return Resources(amounts=sums)
