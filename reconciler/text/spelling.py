"""The hint for an unknown name: the nearest known name, or the list of known ones.

Comparing two names takes microseconds. A file may have a hundred thousand wrong ones, each to be compared with all
names of the fleet, and a hundred problems of it are shown. So all suggestions of a block share an allowance
(`bounded_suggestions`); once it is spent, problems have no suggestion. No decision may depend on a suggestion:
`closest` is for decisions and has no allowance, so that whoever decides bounds the names that are compared.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice

MAX_LISTED = 12
"""Names that a hint lists; further ones are counted."""

MAX_LENGTH = 100
"""Characters of a name that are compared."""

MAX_COMPARISONS = 20_000
"""Names that the suggestions of a block compare; each hundred pairs of characters of two names count as one more."""


class _Allowance:
    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_COMPARISONS


_ALLOWANCE: ContextVar[_Allowance | None] = ContextVar("allowance of suggestions", default=None)


@contextmanager
def bounded_suggestions() -> Iterator[None]:
    """Let all suggestions that are made in a block share one allowance, that of the outermost block."""
    token = _ALLOWANCE.set(_ALLOWANCE.get() or _Allowance())
    try:
        yield
    finally:
        _ALLOWANCE.reset(token)


def closest(name: str, candidates: Iterable[str], *, cutoff: float = 0.6, any_case: bool = False) -> str:
    """Return the known name that is spelt most like it; empty where none has `cutoff` of its letters in common."""
    known = {(text.lower() if any_case else text): text for text in sorted(candidates)}
    wanted = (name.lower() if any_case else name)[:MAX_LENGTH]
    close = difflib.get_close_matches(wanted, known, n=1, cutoff=cutoff)
    return known[close[0]] if close else ""


def suggested(name: str, candidates: Iterable[str]) -> str:
    """Return the known name that is spelt most like it, whatever its case; empty where none is, or nothing is left."""
    return closest(name, _afforded(name, candidates), any_case=True)


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Suggest a replacement for `name`: ``try 'replicas'``, else ``there are a, b``.

    The hint is empty without candidates, and once the allowance of the block is spent.
    """
    names = _afforded(name, candidates)
    if not names:
        return ""
    close = closest(name, names)
    if close:
        return f"try {close!r}"
    return "there are " + listed(names)


def listed(names: Collection[str]) -> str:
    """List names for a hint; those beyond `MAX_LISTED` are counted."""
    some = ", ".join(islice(names, MAX_LISTED))
    return some + (f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else "")


def _afforded(name: str, candidates: Iterable[str]) -> Collection[str]:
    """Return the candidates in order, having paid for their comparison with a name; none once nothing is left."""
    allowance = _ALLOWANCE.get()
    if allowance is None:
        return sorted(candidates)
    if allowance.left <= 0:
        return ()
    names = sorted(candidates)
    allowance.left -= len(names) + len(name[:MAX_LENGTH]) * sum(map(len, names)) // 100
    return names
