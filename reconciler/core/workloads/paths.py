"""Paths in an object: values, items of lists, and sums of replicas.

Kruise reads the replicas paths of its whitelist and of a WorkloadSpread so (docs/background/upstream/workloadspread.md,
"Replicas and the whitelist"): parts separated by dots, and a number for an item of a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.model.kubernetes.workload_kind import EACH, Path
from reconciler.model.workload import Json
from reconciler.text.digits import whole_number
from reconciler.text.findings import Loc

_DIGITS = 9
"""Of an index, more than any list needs; Python refuses to parse thousands."""


def at(value: Json, field_path: Path) -> Json:
    """Return the value at a path without ``*``; None where the path does not exist."""
    for part in field_path:
        value = _below(value, part)
    return value


def located(value: Json, field_path: Path) -> Loc:
    """Convert a path that leads through `value` into a place in it, with indexes of lists as numbers."""
    loc: list[str | int] = []
    for part in field_path:
        loc.append(int(part) if isinstance(value, list) and _is_index(part) else part)
        value = _below(value, part)
    return tuple(loc)


def items(value: Json, field_path: Path) -> Iterator[Path]:
    """Yield the path of each item that the ``*`` of a path stands for; the empty path for a path without one."""
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
    """Replace the ``*`` of a path by an item that was found by a pattern with the same beginning."""
    size = len(item)
    return (*item, *field_path[size:]) if size and field_path[:size] == pattern[:size] else field_path


def put(value: Json, field_path: Path, new: Json) -> Json:
    """Return a copy with a new value at a path, of which only the last part may be missing."""
    if not field_path:
        return new
    part, rest = field_path[0], field_path[1:]
    if isinstance(value, list):
        return [put(item, rest, new) if index == int(part) else item for index, item in enumerate(value)]
    if part not in value:
        return {**value, part: new}
    return {key: put(item, rest, new) if key == part else item for key, item in value.items()}


def replicas_at(value: Json, replicas_paths: Iterable[Path]) -> int:
    """Sum the whole numbers at paths, and of all items for a ``*``; the empty path counts nothing.

    Raises ValueError with the path that leads nowhere, or to a value that is no number of replicas.
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
    return whole_number(part, _DIGITS) is not None
