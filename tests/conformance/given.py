"""The input of a case as a mapping that knows what has been read of it: an adapter that drops a field fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Given(dict[str, Any]):
    """A mapping, and those below it, that keeps note of the keys that were asked for."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        super().__init__({key: given(value) for key, value in content.items()})
        self._read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self._read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._read.add(key)
        return super().get(key, default)

    def pop(self, key: str, *default: Any) -> Any:
        self._read.add(key)
        return super().get(key, *default) if default else super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._read.add(str(key))
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        self._read.update(super().keys())
        return super().__iter__()

    def keys(self) -> Any:
        self._read.update(super().keys())
        return super().keys()

    def values(self) -> Any:
        self._read.update(super().keys())
        return super().values()

    def items(self) -> Any:
        self._read.update(super().keys())
        return super().items()

    def unread(self, path: str = "input") -> list[str]:
        """Name the fields with a value that nobody has asked for; indexes of lists are left out."""
        names = []
        for key, value in super().items():
            if key not in self._read:
                names += [] if value in (None, [], {}) else [f"{path}.{key}"]
            else:
                names += _unread(value, f"{path}.{key}")
        return names


def given(value: Any) -> Any:
    if isinstance(value, dict):
        return Given(value)
    return [given(item) for item in value] if isinstance(value, list) else value


def _unread(value: Any, path: str) -> list[str]:
    if isinstance(value, Given):
        return value.unread(path)
    if isinstance(value, list):
        return [name for item in value for name in _unread(item, f"{path}[]")]
    return []


def plain(value: Any) -> Any:
    """Return a value as plain mappings and lists, with all of it read."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value
