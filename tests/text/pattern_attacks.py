"""Hostile inputs of a regular expression, made of its own parse tree, and the CPU time that it takes on them.

A search is quadratic where each of many starts scans the rest of the text and fails, and exponential where a loop can
divide its text in several ways. Both need a loop, so that each loop of a pattern gives attacks: texts that reach it
again and again, texts that stay in it, and ends that make it fail.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from re import _constants as sre
from re import _parser as parser
from typing import Any

SEARCHES = frozenset({"search", "finditer", "findall", "sub", "subn", "split"})
"""Methods that begin at each character; the others begin at the first one alone."""
_ALPHABET = [chr(code) for code in range(9, 127) if chr(code).isprintable() or chr(code) in "\t\n\r"]
_LOOPS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_MANY = 60
"""Repetitions from which on a loop is attacked."""
_CATEGORIES = {
    sre.CATEGORY_DIGIT: str.isdigit,
    sre.CATEGORY_NOT_DIGIT: lambda char: not char.isdigit(),
    sre.CATEGORY_SPACE: str.isspace,
    sre.CATEGORY_NOT_SPACE: lambda char: not char.isspace(),
    sre.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
    sre.CATEGORY_NOT_WORD: lambda char: not (char.isalnum() or char == "_"),
}
_SHORT, _GROWTH = 400, 4
_FLOOR = 0.0015
"""Seconds below which nothing is measured: a quadratic search of the longer text takes several milliseconds."""
_STEPS, _MOST_OF_SHORT = (16, 24, 32, 64, 128), 0.1
"""Lengths that show an exponential match before it would take for ever."""
_RATIO = 9.0
"""Linear work grows fourfold, quadratic work sixteenfold."""
_PER_CHARACTER = 6e-6
"""Seconds for a character that a bounded, but too long, look ahead would exceed: a file of 1 MiB takes six seconds."""


def attacks(pattern: re.Pattern[Any]) -> Iterator[str]:
    """Yield units of text; each is repeated to attack a loop of the pattern, behind its start."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = parser.parse(source, pattern.flags & ~re.DEBUG)
    seen: set[tuple[str, str]] = set()
    for before, body in _loops(list(tree), []):
        accepted = _accepted(body)
        for preferred in (accepted, frozenset(_ALPHABET)):
            start = _sample(before, preferred)
            for pump in (_sample(list(body), preferred), *_pumps(accepted)[:3]):
                for unit in ((start, pump), ("", start + pump), ("", start)):
                    if unit[1] and unit not in seen:
                        seen.add(unit)
                        yield "\0".join(unit)


def too_slow(pattern: re.Pattern[Any], methods: frozenset[str], unit: str) -> str:
    """Return how much time an attack costs if that grows faster than the text; otherwise an empty text.

    `methods` are those by which the pattern is used: what is matched from the start alone may not be searched for.
    """
    start, pump = unit.split("\0")
    for end in ("\x01", ""):
        for length in _STEPS:
            if _seconds(pattern, methods, start + pump * (length // len(pump) + 1) + end) > _MOST_OF_SHORT:
                return f"{start!r} + {pump!r} * n + {end!r}: over {_MOST_OF_SHORT} s for {length} characters"
        short_text, long_text = (
            start + pump * (length // len(pump) + 1) + end for length in (_SHORT, _SHORT * _GROWTH)
        )
        if _seconds(pattern, methods, long_text) < _FLOOR:
            continue
        # A second look and a third: another process may have had the caches of the processor.
        short = min(_seconds(pattern, methods, short_text) for _ in range(3))
        long = min(_seconds(pattern, methods, long_text) for _ in range(3))
        if long >= _FLOOR and (long > short * _RATIO or long > _PER_CHARACTER * len(long_text)):
            return f"{start!r} + {pump!r} * n + {end!r}: {short * 1e3:.1f} ms, and {long * 1e3:.1f} ms for 4n"
    return ""


def _seconds(pattern: re.Pattern[Any], methods: frozenset[str], text: str) -> float:
    given: Any = text if isinstance(pattern.pattern, str) else text.encode("latin-1")
    began = time.process_time()
    if methods & SEARCHES:
        for _ in pattern.finditer(given):
            pass
    else:
        pattern.match(given)
        pattern.fullmatch(given)
    return time.process_time() - began


def _loops(nodes: Sequence[Any], before: list[Any]) -> Iterator[tuple[list[Any], Sequence[Any]]]:
    """Yield each long loop with the nodes that lead to it."""
    for index, node in enumerate(nodes):
        reached = [*before, *nodes[:index]]
        operator, value = node
        if operator in _LOOPS:
            _, most, body = value
            if most >= _MANY:
                yield reached, list(body)
            yield from _loops(list(body), reached)
        else:
            for branch in _branches(operator, value):
                yield from _loops(branch, reached)


def _branches(operator: Any, value: Any) -> list[list[Any]]:
    if operator is sre.BRANCH:
        return [list(branch) for branch in value[1]]
    if operator is sre.SUBPATTERN:
        return [list(value[3])]
    if operator is sre.ATOMIC_GROUP:
        return [list(value)]
    if operator in (sre.ASSERT, sre.ASSERT_NOT):
        return [list(value[1])]
    return []


def _accepted(nodes: Sequence[Any]) -> frozenset[str]:
    """Return the characters that a node of a loop can take."""
    taken: set[str] = set()
    for operator, value in nodes:
        if operator in _LOOPS:
            taken |= _accepted(list(value[2]))
        elif operator in (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY):
            taken |= {char for char in _ALPHABET if _takes(operator, value, char)}
        elif operator not in (sre.ASSERT, sre.ASSERT_NOT):
            for branch in _branches(operator, value):
                taken |= _accepted(branch)
    return frozenset(taken)


def _takes(operator: Any, value: Any, char: str) -> bool:
    if operator is sre.ANY:
        return char != "\n"
    if operator is sre.LITERAL:
        return char == chr(value)
    if operator is sre.NOT_LITERAL:
        return char != chr(value)
    negated = any(kind is sre.NEGATE for kind, _ in value)
    inside = any(
        (kind is sre.LITERAL and ord(char) == what)
        or (kind is sre.RANGE and what[0] <= ord(char) <= what[1])
        or (kind is sre.CATEGORY and _CATEGORIES.get(what, lambda _: False)(char))
        for kind, what in value
    )
    return inside is not negated


def _sample(nodes: Sequence[Any], preferred: frozenset[str]) -> str:
    """Return a short text that nodes match, of preferred characters where there is a choice."""
    text = ""
    for operator, value in nodes:
        if operator in (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY):
            choice = [char for char in _ALPHABET if _takes(operator, value, char)]
            text += next((char for char in choice if char in preferred), choice[0] if choice else "")
        elif operator in _LOOPS:
            least, _, body = value
            text += _sample(list(body), preferred) * min(least, 300)
        elif operator is sre.ASSERT and value[0] > 0:
            text += ""
        elif operator not in (sre.ASSERT, sre.ASSERT_NOT):
            options = [_sample(branch, preferred) for branch in _branches(operator, value)]
            if options:
                text += max(options, key=lambda option: sum(char in preferred for char in option) - len(option) * 0.5)
    return text


def _pumps(accepted: frozenset[str]) -> list[str]:
    """Return characters of different kinds that a loop takes."""
    kinds = ("a", " ", "-", "1", "\n", "A", ".", "/", ":", "{", "\\", "$")
    return [char for char in kinds if char in accepted]
