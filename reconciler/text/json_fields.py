"""Objects of JSON that somebody else wrote, read field by field: each is what it should be, or says why it is not.

An answer of a host, of Slurm or of an issuer may have any shape. A reader that takes fields by `JsonObject` meets
`UnreadableField` and no other error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.model.workload import Json
from reconciler.text.findings import shortened

_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}


class UnreadableField(ValueError):  # noqa: N818 - it names what was met, as the messages that quote it do
    """A field is not what it should be; the message says which, and what it is."""


@dataclass(frozen=True, slots=True)
class JsonObject:
    """An object, with the path that leads to it."""

    fields: Mapping[str, Json]
    path: str = ""

    def object(self, name: str) -> JsonObject:
        """Return an object; an empty one where it is missing or null."""
        value = self.fields.get(name)
        if value is not None and not isinstance(value, Mapping):
            raise self._wrong(name, "an object")
        return JsonObject(value or {}, self._place(name))

    def text(self, name: str) -> str:
        """Return a text; an empty one where it is missing or null."""
        value = self.fields.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value or ""

    def required_text(self, name: str) -> str:
        """Return a text that is not empty."""
        text = self.text(name)
        if not text:
            raise UnreadableField(f"{self._place(name)} is missing")
        return text

    def number(self, name: str, *, most: int = 1 << 63) -> int:
        """Return a whole number from zero."""
        value = self.fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(name, "a whole number")
        if not 0 <= value <= most:
            raise UnreadableField(f"{self._place(name)} is not between 0 and {most}")
        return value

    def _place(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _wrong(self, name: str, wanted: str) -> UnreadableField:
        value = self.fields.get(name)
        met = "missing" if value is None else _KINDS.get(type(value), "something else")
        return UnreadableField(shortened(f"{self._place(name)} is {met}, not {wanted}", 200))
