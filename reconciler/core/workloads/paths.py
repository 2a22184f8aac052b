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


def at(value: Json, field_path: Path) -> Json:
    """Return what stands at the end of a way without ``*``, None where nothing does."""
    for part in field_path:
        value = _below(value, part)
    return value


def located(value: Json, field_path: Path) -> Loc:
    """Write a way that leads through `value` as a place in it, with the indexes of lists as numbers."""
    loc: list[str | int] = []
    for part in field_path:
        loc.append(int(part) if isinstance(value, list) and _is_index(part) else part)
        value = _below(value, part)
    return tuple(loc)


def items(value: Json, field_path: Path) -> Iterator[Path]:
    """Yield the ways to the items that the ``*`` of a way stands for, as far as that; of one without, the empty way."""
    if EACH not in field_path:
        yield ()
        return
    before = field_path[: field_path.index(EACH)]
    container = at(value, before)
    if isinstance(container, Mapping):
        yield from ((*before, str(key)) for key in container)
    elif isinstance(container, list):
        yield from ((*before, str(index)) for index in range(len(container)))


def within(field_path: Path, item: Path, pattern: Path) -> Path:
    """Have the ``*`` of a way stand for an item that was found by a pattern with the same beginning."""
    size = len(item)
    return (*item, *field_path[size:]) if size and field_path[:size] == pattern[:size] else field_path


def put(value: Json, field_path: Path, new: Json) -> Json:
    """Copy what lies on a way that is there, and have something new stand at its end."""
    if not field_path:
        return new
    if isinstance(value, list):
        return [
            put(item, field_path[1:], new) if index == int(field_path[0]) else item for index, item in enumerate(value)
        ]
    return {key: put(item, field_path[1:], new) if key == field_path[0] else item for key, item in value.items()}


def replicas_at(value: Json, replicas_paths: Iterable[Path]) -> int:
    """Add up the whole numbers at the ends of ways, where a ``*`` adds up its items; the empty way counts nothing.

    Raises ValueError with the way that leads nowhere, or to what is no number of replicas.
    """
    total = 0
    for replicas_path in replicas_paths:
        for item in items(value, replicas_path) if replicas_path != ("",) else ():
            total += _number(value, within(replicas_path, item, replicas_path))
    return total


def _number(value: Json, field_path: Path) -> int:
    number = at(value, field_path)
    if number is None:
        raise ValueError(f"nothing stands at {'.'.join(field_path)}")
    if type(number) is not int or number < 0:
        raise ValueError(f"what stands at {'.'.join(field_path)} is no number of replicas")
    return number


def _below(value: Json, part: str) -> Json:
    if isinstance(value, Mapping):
        return value.get(part)
    if isinstance(value, list) and _is_index(part) and int(part) < len(value):
        return value[int(part)]
    return None


def _is_index(part: str) -> bool:
    return part.isascii() and part.isdecimal() and len(part) <= _DIGITS
