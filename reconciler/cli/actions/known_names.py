"""Names that a command is given and that the fleet must have: a filter by a misspelt one would show nothing."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.errors import InvalidInput
from reconciler.text.spelling import nearest


def refuse_unknown(kind: str, names: Iterable[str], known: Iterable[str], *, among: str = "there is") -> None:
    """Raise InvalidInput for the first name that is not known, with the nearest that is, or with all of them.

    `among` says whose names these are, as in ``workspace llm has``.
    """
    choices = frozenset(known)
    unknown = next((name for name in names if name not in choices), None)
    if unknown is not None:
        hint = nearest(unknown, choices) or "there are none"
        raise InvalidInput(f"looking for {kind} {unknown!r}: {among} none of this name ({hint})")
