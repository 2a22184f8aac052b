"""The work of each operation of an expression, paid for by the sizes of its inputs before it runs.

`METHODS` and `FILTERS` are all that templates may call: an operation without a row is not offered. A row bounds the
work from above, whatever the inputs are, by what CPython 3.11 takes for the worst of them. Every operation pays for its
subject and its arguments, and then

* for each character and item, where it makes an object of each or runs Python code for it;
* for each pair of characters, where one text is looked for in another: ``strip`` compares each with each, and so does
  ``find`` for texts of nearly equal lengths (36,000 in 36,000 characters took 2.3 s in one call, which holds the
  interpreter, so that no other thread runs);
* for each pair of items, where lists are added up.

A unit is a microsecond at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from jinja2 import TemplateRuntimeError, Undefined

MAX_WORK = 100_000
"""Units that the expressions of one spec may spend together: a tenth of a second at most."""

SHORT_WORK = MAX_WORK // 10
"""Units for what is evaluated of all workloads, placed or not: the queries about one, and its numbers of replicas."""

_TEXT = 6
_PAIRS = 8
"""Characters that are copied for a unit, and pairs that are compared for one, as powers of two."""


class ExhaustedError(TemplateRuntimeError):
    """The expressions of a spec have spent their budget."""


class EvaluationBudget:
    """Units that the expressions of one spec may still spend. It is the only mutable object of a rendering."""

    __slots__ = ("_units", "compiled", "left")

    def __init__(self, units: int = MAX_WORK) -> None:
        self._units = self.left = units
        self.compiled = 0
        """Steps that compiling took, which are none of the units."""

    @property
    def spent(self) -> int:
        """Units that were paid, those of the operation that was refused included at most."""
        return self._units - max(self.left, 0)

    def spend(self, units: int) -> None:
        """Pay, or raise ExhaustedError."""
        self.left -= units
        if self.left < 0:
            raise ExhaustedError(f"the expressions do too much work (more than {self._units:,} steps)")

    def copy(self, characters: int) -> None:
        """Pay for characters that are copied into a text."""
        self.spend(characters >> _TEXT)

    def weigh(self, value: Any) -> None:
        """Pay for a value and everything in it, as often as it occurs. Raises TemplateRuntimeError for other types."""
        pending = [value]
        while pending:
            part = pending.pop()
            if isinstance(part, str):
                self.spend(1 + (len(part) >> _TEXT))
                continue
            self.spend(1)
            if isinstance(part, list | tuple):
                pending.extend(part)
            elif isinstance(part, dict):
                pending.extend(part)
                pending.extend(part.values())
            elif isinstance(part, range):
                self.spend(len(part))
            elif not (part is None or isinstance(part, int | float | Undefined)):
                raise TemplateRuntimeError(not_a_value(part))

    def pay(self, work: Work, subject: Any, arguments: Iterable[Any] = ()) -> None:
        """Pay for one operation, its subject and its arguments, or raise ExhaustedError."""
        inputs = tuple(arguments)
        for value in (subject, *inputs):
            self.weigh(value)
        self.spend(work(subject, inputs))


Work: TypeAlias = Callable[[Any, tuple[Any, ...]], int]
"""The units of an operation with a subject and arguments, beside their weights."""


def not_a_value(value: Any) -> str:
    """Say that an object of Python is no value of an expression."""
    return f"an expression gives a {type(value).__name__}, which is no value (a call without its ()?)"


def copied(subject: Any, arguments: tuple[Any, ...]) -> int:
    """Bound work that their weights pay for: C code that reads its inputs once."""
    del subject, arguments
    return 0


def walked(subject: Any, arguments: tuple[Any, ...] = ()) -> int:
    """Bound work on each character or item by itself."""
    del arguments
    return len(subject) if isinstance(subject, str | list | tuple | dict | range) else 0


def searched(subject: Any, arguments: tuple[Any, ...]) -> int:
    """Bound the search of a text for the longest of others."""
    lengths = [len(text) for text in arguments if isinstance(text, str)]
    return len(subject) * max(lengths, default=0) >> _PAIRS if isinstance(subject, str) else 0


def divided(subject: Any, arguments: tuple[Any, ...]) -> int:
    """Bound the search of a text, and an object for each part of it."""
    return walked(subject) + searched(subject, arguments)


def sorted_items(subject: Any, arguments: tuple[Any, ...]) -> int:
    """Bound the comparisons of a sort, n times log n; each reads items whose weights are paid once."""
    del arguments
    number = walked(subject)
    size = number + sum(len(item) >> _TEXT for item in subject if isinstance(item, str)) if number else 0
    return number + (size * number.bit_length() >> 3)


def added(subject: Any, arguments: tuple[Any, ...]) -> int:
    """Bound a sum, which copies all earlier items of lists for each further list."""
    if not isinstance(subject, list | tuple):
        return walked(subject)
    lengths = sum(len(item) for item in (*subject, *arguments) if isinstance(item, list | tuple))
    return len(subject) + (len(subject) * lengths >> _PAIRS)


METHODS: Mapping[str, Work] = {
    "capitalize": copied, "count": searched, "endswith": copied, "find": searched, "get": copied, "isdigit": copied,
    "items": walked, "keys": walked, "lower": copied, "lstrip": searched, "removeprefix": copied,
    "removesuffix": copied, "rsplit": divided, "rstrip": searched, "split": divided, "startswith": copied,
    "strip": searched, "title": copied, "upper": copied, "values": walked,
}  # fmt: skip # a table, filled line by line
"""Methods that may be called: the result of each is at most as large as what it reads."""

FILTERS: Mapping[str, Work] = {
    "abs": copied, "capitalize": copied, "count": copied, "d": copied, "default": copied, "dictsort": sorted_items,
    "first": copied, "float": copied, "int": copied, "items": walked, "join": walked, "last": copied, "length": copied,
    "list": walked, "lower": copied, "max": walked, "min": walked, "replace": searched, "reverse": walked,
    "round": copied, "shares": walked, "sort": sorted_items, "string": copied, "sum": added, "title": walked,
    "tojson": copied, "trim": searched, "truncate": copied, "unique": walked, "upper": copied, "urlencode": walked,
}  # fmt: skip # a table, filled line by line
"""The filters that a template may use."""

OF_TEXTS = frozenset({"capitalize", "lower", "replace", "title", "trim", "truncate", "upper"})
"""Filters that read any other value as its text."""
