"""Values of any type of the model, made up by their type hints."""

from __future__ import annotations

import random
import types
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from fractions import Fraction
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

from reconciler.model.action import TRAITS, Action
from reconciler.model.ids import CommitId
from reconciler.model.plan import Change
from reconciler.model.units import Quantity

_LETTERS = "abcxyz019/~-. \u00e9"
_DEEPEST = 10


class RandomValues:
    """Values that follow from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def of(self, annotation: Any, depth: int = 0) -> Any:
        """Make a value of a type."""
        if annotation is Any:
            return self._random.choice([None, True, 7, "text", ["a", 1], {"key": {"deep": ["x"]}}])
        if annotation is Fraction:
            return Fraction(self._random.choice([1, 2]), self._random.choice([1, 4, 7]))
        if annotation is Quantity:
            return Quantity(self._random.choice([0, 1, 10**6, 500 * 10**6, 8 * 10**9, 2**33 * 10**9]))
        if annotation is CommitId:
            return f"{self._random.getrandbits(160):040x}"
        if isinstance(annotation, NewType):
            return self.of(annotation.__supertype__, depth)
        origin, parts = get_origin(annotation), get_args(annotation)
        if origin in (Union, types.UnionType):
            return self.of(self._random.choice(parts), depth)
        if origin is tuple and parts[-1] is not ...:
            return tuple(self.of(part, depth) for part in parts)
        if origin is tuple:
            return tuple(self.of(parts[0], depth + 1) for _ in range(self._size(depth)))
        if origin is not None and issubclass(origin, AbstractSet):
            return frozenset(self.of(parts[0], depth + 1) for _ in range(self._size(depth)))
        if origin is not None and issubclass(origin, Mapping):
            return {self.of(parts[0]): self.of(parts[1], depth + 1) for _ in range(self._size(depth))}
        return self._plain(annotation, depth)

    def changed(self, value: Any, annotation: Any) -> Any:
        """Return a value of a type with a few of its parts made anew."""
        origin, parts = get_origin(annotation), get_args(annotation)
        if annotation is Change:
            hints = _hints_of_changes(value.action)
            name = self._random.choice([name for name in hints if getattr(value, name) is not None])
            return replace(value, **{name: self.changed(getattr(value, name), hints[name])})
        if is_dataclass(annotation) and isinstance(annotation, type):
            hints = get_type_hints(annotation)
            names = self._random.sample([field.name for field in fields(annotation)], k=1)
            return replace(value, **{name: self.changed(getattr(value, name), hints[name]) for name in names})
        if origin is tuple and parts[-1] is ... and value:
            items = list(value)
            place = self._random.randrange(len(items))
            match self._random.randrange(3):
                case 0:
                    del items[place]
                case 1:
                    items.insert(place, self.of(parts[0], 2))
                case _:
                    items[place] = self.changed(items[place], parts[0])
            return tuple(items)
        if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping) and value:
            key = self._random.choice(list(value))
            rest = {name: item for name, item in value.items() if name != key}
            if self._random.random() < 0.5:
                return rest | {self.of(parts[0]): self.of(parts[1], 2)}
            return {**value, key: self.changed(value[key], parts[1])}
        return self.of(annotation)

    def _plain(self, annotation: Any, depth: int) -> Any:
        if annotation is Change:
            action = self._random.choice(list(TRAITS))
            return Change(
                action=action, **{name: self.of(hint, depth + 1) for name, hint in _hints_of_changes(action).items()}
            )
        if is_dataclass(annotation) or hasattr(annotation, "_fields"):
            hints = get_type_hints(annotation)
            names = (
                [each.name for each in fields(annotation) if each.init]
                if is_dataclass(annotation)
                else annotation._fields
            )
            return annotation(**{name: self.of(hints[name], depth + 1) for name in names})
        if annotation is types.NoneType:
            return None
        if issubclass(annotation, Enum):
            return self._random.choice(list(annotation))
        if annotation is datetime:
            return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=self._random.randrange(10**13))
        if annotation is timedelta:
            return timedelta(microseconds=self._random.choice([1, 10**6, 36 * 10**8, 10**12 + 5]))
        if annotation is bool:
            return self._random.random() < 0.5
        if annotation is int:
            return self._random.randrange(-5, 10**6)
        if annotation is float:
            return self._random.choice([0.0, 1.5, 2.99])
        if annotation is bytes:
            return b"bytes"
        return "".join(self._random.choice(_LETTERS) for _ in range(self._random.randrange(6)))

    def _size(self, depth: int) -> int:
        return self._random.choice((0, 0, 1, 2)) if depth < _DEEPEST else 0


def _hints_of_changes(action: Action) -> dict[str, Any]:
    """Return the types of the fields that changes of an action have; what they must have is not None."""
    hints, traits = get_type_hints(Change), TRAITS[action]
    needed = {name: _not_none(hints[name]) for name in traits.required.values()}
    return {**needed, **{name: hints[name] for name in traits.optional.values()}}


def _not_none(annotation: Any) -> Any:
    parts = [part for part in get_args(annotation) if part is not types.NoneType]
    return Union[*parts] if get_origin(annotation) is types.UnionType else annotation
