"""How a strategic merge patch puts the items of a list in order, and finds those that are the same.

Items are objects that a field `key` tells apart or, with an empty key, scalars. As in apimachinery of Kubernetes
1.36.3, those of the patch are in the patch's order and the others in that of the list as it was; one of the list comes
before one of the patch where it stood before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.core.findings import Loc, dotted, shortened
from reconciler.core.podfields import PodField
from reconciler.model.workload import Json

MARK = "$patch"
Token = tuple[type, Json]


class Unmergeable(ValueError):  # noqa: N818 -- it says what a patch is
    """A patch that cannot be applied: `loc` is where in it, and `message` completes "field: ...".

    The way out is to mend the patch, unless there is a `hint`.
    """

    def __init__(self, loc: Loc, message: str, hint: str = "") -> None:
        """Say it as ``field: message``."""
        super().__init__(f"{dotted(loc)}: {message}" if loc else message)
        self.loc = loc
        self.message = message
        self.hint = hint


def one_type(loc: Loc, *lists: Sequence[Json]) -> type:
    """Return the type that all items of some lists are of; raises Unmergeable where they differ, or there are none."""
    types = {_type(item) for items in lists for item in items}
    if len(types) != 1 or types & {type(None), list}:
        raise Unmergeable(loc, "its items are to be all objects, or all scalars of one type")
    return types.pop()


def token(item: Json, key: str, loc: Loc) -> Token:
    """Return what an item is known by. 80 and "80" are not the same."""
    if key and not isinstance(item, Mapping):
        raise Unmergeable(loc, "is no object")
    if key and key not in item:
        raise Unmergeable(loc, f"has no {key}, by which the list is merged")
    value = item[key] if key else item
    if isinstance(value, (Mapping, list)):
        raise Unmergeable((*loc, key) if key else loc, "is no scalar")
    return type(value), value


def without_directed(old: Sequence[Json], new: Sequence[Json], key: str, loc: Loc) -> tuple[list[Json], list[Json]]:
    """Carry out the directives among the items of a patch; return what is left of the list and of the patch.

    Where one of them replaces the list, the patch's items are the list, and none is left to merge.
    """
    gone: set[Token] = set()
    replaced, left = False, []
    for index, item in enumerate(new):
        if MARK not in item:
            left.append(item)
        elif item[MARK] == "delete":
            gone.add(token(item, key, (*loc, index)))
        elif item[MARK] == "replace":
            replaced = True
        else:
            message = f"{shortened(str(item[MARK]))!r} is neither replace nor delete"
            raise Unmergeable((*loc, index, MARK), message)
    if replaced:
        return left, []
    return [item for item in old if not gone or key not in item or token(item, key, loc) not in gone], left


def left_behind(old: Sequence[Json], new: Sequence[Json], field: PodField, loc: Loc) -> list[Json]:
    """Return the list that an order given for it is compared with after items were deleted and others added.

    Kubernetes compares with the storage of the original list, where items move up into the places of deleted ones,
    and new ones take the places that become free.
    """
    stored, used = [*old], len(old)
    if not field.key:
        return stored
    for item in new:
        known = token(item, field.key, loc) if item.get(MARK) == "delete" else None
        for at in range(used - 1, -1, -1) if known else ():
            if token(stored[at], field.key, loc) == known:
                stored[at : used - 1] = stored[at + 1 : used]
                used -= 1
    if not any(item.get(MARK) == "replace" for item in new):
        there = {token(item, field.key, loc) for item in stored[:used]}
        added = [item for item in new if MARK not in item and token(item, field.key, loc) not in there]
        stored[used:] = [*added, *stored[used + len(added) :]][: len(old) - used]
    return stored


def distinct(items: Sequence[Json]) -> list[Json]:
    """Drop scalars that have been there before."""
    return [value for _, value in dict.fromkeys(token(item, "", ()) for item in items)]


def check_order(new: Sequence[Json], order: Sequence[Json], key: str, loc: Loc) -> None:
    """Raise Unmergeable unless the items of a patch stand in an order in which all of them are."""
    if not new or not order:
        return
    rest = [item for item in new if not (key and isinstance(item, Mapping) and item.get(MARK) == "delete")]
    at = 0
    for one in order:
        while at < len(rest) and isinstance(rest[at], Mapping) and MARK in rest[at]:
            at += 1
        if at < len(rest) and token(one, key, loc) == token(rest[at], key, loc):
            at += 1
    if at < len(rest):
        raise Unmergeable(loc, "does not list the items of the patch in their order")


def arranged(items: Sequence[Json], order: Sequence[Json], server: Sequence[Json], key: str, loc: Loc) -> list[Json]:
    """Put items in order: those that are in `order` in that, the others as in `server`, and so they are interleaved."""
    first, second = _ranks(order, key, loc), _ranks(server, key, loc)
    known = [(token(item, key, loc), item) for item in items]
    ours = _sorted([one for one in known if one[0] in first], first)
    others = _sorted([one for one in known if one[0] not in first], second)
    made: list[Json] = []
    while ours and others:
        left, right = second.get(others[0][0]), second.get(ours[0][0])
        before = left is not None and right is not None and left < right
        made.append((others if before else ours).pop(0)[1])
    return [*made, *(item for _, item in (*ours, *others))]


def _ranks(order: Sequence[Json], key: str, loc: Loc) -> dict[Token, int]:
    found: dict[Token, int] = {}
    for index, item in enumerate(order):
        found.setdefault(token(item, key, (*loc, index)), index)
    return found


def _sorted(items: list[tuple[Token, Json]], ranks: Mapping[Token, int]) -> list[tuple[Token, Json]]:
    """Sort by insertion, an item without a rank going before all that are there: so Kubernetes' comparison has it."""
    made: list[tuple[Token, Json]] = []
    for item in items:
        at, rank = len(made), ranks.get(item[0])
        while at and _before(rank, ranks.get(made[at - 1][0])):
            at -= 1
        made.insert(at, item)
    return made


def _before(left: int | None, right: int | None) -> bool:
    return left is None or right is None or left < right


def _type(value: Json) -> type:
    return dict if isinstance(value, Mapping) else type(value)
