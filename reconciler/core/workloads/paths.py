"""Ways through an object: what stands at the end of one, and the number of replicas that is read there.

Kruise reads the replicas paths of its whitelist and of a WorkloadSpread so (docs/reference/workloadspread.md, "Replicas
and the whitelist"): parts apart by dots, and a number for an item of a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.model.workload import Json
from reconciler.model.workload_kind import EACH, Path
from reconciler.text.findings import Loc

_DIGITS = 9
"""Of an index, more than any list has items; Python itself refuses to read thousands."""


def at(value: Json, way: Path) -> Json:
    """Return what stands at the end of a way without ``*``, None where nothing does."""
    for part in way:
        value = _below(value, part)
    return value


def located(value: Json, way: Path) -> Loc:
    """Write a way that leads through `value` as a place in it, with the indexes of lists as numbers."""
    loc: list[str | int] = []
    for part in way:
        loc.append(int(part) if isinstance(value, list) and _is_index(part) else part)
        value = _below(value, part)
    return tuple(loc)


def items(value: Json, way: Path) -> Iterator[Path]:
    """Yield the ways to the items that the ``*`` of a way stands for, as far as that; of one without, the empty way."""
    if EACH not in way:
        yield ()
        return
    before = way[: way.index(EACH)]
    found = at(value, before)
    if isinstance(found, Mapping):
        yield from ((*before, str(key)) for key in found)
    elif isinstance(found, list):
        yield from ((*before, str(index)) for index in range(len(found)))


def within(way: Path, item: Path, pattern: Path) -> Path:
    """Have the ``*`` of a way stand for an item that was found by a pattern with the same beginning."""
    size = len(item)
    return (*item, *way[size:]) if size and way[:size] == pattern[:size] else way


def put(value: Json, way: Path, new: Json) -> Json:
    """Copy what lies on a way that is there, and have something new stand at its end."""
    if not way:
        return new
    if isinstance(value, list):
        return [put(item, way[1:], new) if index == int(way[0]) else item for index, item in enumerate(value)]
    return {key: put(item, way[1:], new) if key == way[0] else item for key, item in value.items()}


def replicas_at(value: Json, ways: Iterable[Path]) -> int:
    """Add up the whole numbers at the ends of ways, where a ``*`` adds up its items; the empty way counts nothing.

    Raises ValueError with the way that leads nowhere, or to what is no number of replicas.
    """
    total = 0
    for way in ways:
        for item in items(value, way) if way != ("",) else ():
            total += _number(value, within(way, item, way))
    return total


def _number(value: Json, way: Path) -> int:
    found = at(value, way)
    if found is None:
        raise ValueError(f"nothing stands at {'.'.join(way)}")
    if type(found) is not int or found < 0:
        raise ValueError(f"what stands at {'.'.join(way)} is no number of replicas")
    return found


def _below(value: Json, part: str) -> Json:
    if isinstance(value, Mapping):
        return value.get(part)
    if isinstance(value, list) and _is_index(part) and int(part) < len(value):
        return value[int(part)]
    return None


def _is_index(part: str) -> bool:
    return part.isascii() and part.isdecimal() and len(part) <= _DIGITS
