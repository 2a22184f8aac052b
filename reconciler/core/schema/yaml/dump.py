"""The YAML emitter: block style, and no plain scalar that any YAML reader could take for another type.

PyYAML writes ``1e3``, ``0o17``, ``y`` and a short commit id such as ``25921e05`` unquoted, and Go's readers then see
numbers and booleans (yaml/pyyaml#860, #886).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from reconciler.core.schema.yaml.limits import MAX_NODES
from reconciler.errors import InvalidInput
from reconciler.model.workload import Json

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_TYPED_SOMEWHERE = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_ESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
_LONGEST_SIMPLE_KEY = 120
"""Beyond 1,024 bytes readers no longer look for the ``:`` of a key; PyYAML stops writing such keys at 128."""

_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_DEEP = b"\n" + b" " * 50
"""An indent that only deep documents have: two spaces stand for two levels at most, where no list is in a list."""

_SHORT = 60
"""Characters of a text that other documents are likely to share; digests and shapes are longer and unique."""

_BASIC_PLANE = 4
"""Hexadecimal digits of a character that UTF-16 holds in one unit."""


def emit(value: Json) -> str:
    """Write one document, keys in the order of their mapping, ending in a newline.

    Raises InvalidInput for values that YAML cannot hold: infinities, lone surrogates, values that are no Json.
    """
    out: list[str] = []
    if isinstance(value, Mapping) and value:
        _mapping(value, 0, out)
    elif isinstance(value, (list, tuple)) and value:
        _sequence(value, 0, out)
    else:
        out.append(_quote(value) if isinstance(value, str) else _leaf(value))
        out.append("\n")
    return "".join(out)


def reads_back(data: bytes) -> bool:
    """Return whether the output of `emit` certainly reads back as its input, without a look at each value.

    True if all of it is plain or quoted, and it cannot exceed the depth, the size or the 64-bit numbers of a reader.
    Other output has to be read by `parse`.
    """
    return (
        data.isascii()
        and b"\\" not in data.replace(b'\\"', b"")
        and len(data) <= MAX_NODES
        and b"- - " not in data
        and _DEEP not in data
        and _LONG_NUMBER.search(data) is None
    )


def _mapping(value: Mapping[str, Json], depth: int, out: list[str]) -> None:
    """Write the entries of a mapping; the caller has already indented the first line."""
    before, indent = "", "  " * depth
    for key, child in value.items():
        head = _key(key) or f"? {_line(key)}\n{indent}:"
        if isinstance(child, str):
            out.append(f"{before}{head} {_text(child, depth + 1)}\n")
        elif isinstance(child, (dict, Mapping)) and child:
            out.append(f"{before}{head}\n{indent}  ")
            _mapping(child, depth + 1, out)
        elif isinstance(child, (list, tuple)) and child:
            out.append(f"{before}{head}\n{indent}")
            _sequence(child, depth, out)
        else:
            out.append(f"{before}{head} {_leaf(child)}\n")
        before = indent


@lru_cache(maxsize=4096)
def _key(text: str) -> str:
    """Write a key with its colon; empty for one that is too long to stand before a colon."""
    line = _line(text)
    return f"{line}:" if len(line) <= _LONGEST_SIMPLE_KEY else ""


@lru_cache(maxsize=4096)
def _line(text: str) -> str:
    """Write a key or a text on one line; cached, since the documents of a process share most of theirs."""
    return text if _is_plain(text) else _quote(text)


def _sequence(value: list[Json] | tuple[Json, ...], depth: int, out: list[str]) -> None:
    """Write the items of a sequence, its dashes at `depth`; the caller has already indented the first line."""
    indent = ""
    for child in value:
        out.append(f"{indent}- ")
        indent = "  " * depth
        if isinstance(child, str):
            out.append(f"{_text(child, depth + 1)}\n")
        elif isinstance(child, (dict, Mapping)) and child:
            _mapping(child, depth + 1, out)
        elif isinstance(child, (list, tuple)) and child:
            _sequence(child, depth + 1, out)
        else:
            out.append(f"{_leaf(child)}\n")


def _leaf(value: Json) -> str:
    """Write a scalar that is no text, or an empty collection."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, (list, tuple)):
        return "[]"
    raise InvalidInput(f"writing YAML: {type(value).__name__} is no value of a YAML document")


def _number(value: float) -> str:
    """Write a float so that every reader takes it for one: PyYAML needs a point before an exponent."""
    if value != value or value in (float("inf"), -float("inf")):  # noqa: PLR0124 -- NaN is what differs from itself
        raise InvalidInput(f"writing YAML: {value} is no number that YAML and JSON share")
    text = repr(value)
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}.0e{exponent}" if mark and "." not in mantissa else text


def _is_plain(text: str) -> bool:
    """Return whether a text needs no quotes."""
    return _PLAIN.fullmatch(text) is not None and text.lower() not in _TYPED_SOMEWHERE


def _text(text: str, depth: int) -> str:
    """Write a text: plain if possible, several printable lines as a block at `depth`, otherwise in quotes."""
    if "\n" not in text:
        return _line(text) if len(text) <= _SHORT else _line.__wrapped__(text)
    if text[0] in " \n" or text.endswith("\n\n"):
        return _quote(text)
    body = text.removesuffix("\n")
    lines = body.split("\n")
    if not all(line.isprintable() for line in lines):
        return _quote(text)
    indent = "  " * depth
    header = "|" if text.endswith("\n") else "|-"
    return "\n".join([header, *(indent + line if line else "" for line in lines)])


def _quote(text: str) -> str:
    """Write a text in double quotes on one line, escaping every character that readers treat differently."""
    if text.isprintable():
        if '"' not in text and "\\" not in text:
            return f'"{text}"'
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return '"' + "".join(_escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    """Escape one character of a quoted text where it needs it."""
    if char in _ESCAPED:
        return _ESCAPED[char]
    if char.isprintable():
        return char
    try:
        code = char.encode("utf-16-be").hex()
    except UnicodeEncodeError:
        raise InvalidInput(f"writing YAML: U+{ord(char):04X} is half a character") from None
    return f"\\u{code}" if len(code) == _BASIC_PLANE else f"\\U{ord(char):08x}"
