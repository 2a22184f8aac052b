"""JSON that somebody else wrote: parsed within bounds of bytes, values and depth.

`json.loads` takes 25 times the memory of a text of empty lists, and any depth. Each reader of answers, recordings and
pushed documents names its bounds of `reconciler.model.bounds`.
"""

from __future__ import annotations

import json
import marshal
import math
import re
from typing import NoReturn

from reconciler.model.bounds import JsonBounds
from reconciler.model.workload import Json

_SURROGATE = re.compile("[\ud800-\udfff]")
_WRITTEN_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_MARSHAL_DEPTH = 2000
"""The levels beyond which marshal refuses a value (MAX_MARSHAL_STACK_DEPTH), in a tenth of the time of a walk.

A value is put into as many lists as its own bound lies below that."""
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class UnreadableJson(ValueError):  # noqa: N818 - it names what was met, as the messages that quote it do
    """The text is no JSON, or beyond its bounds; the message is a predicate: "is no JSON: ..."."""


class JsonTooLarge(UnreadableJson):
    """The text is beyond its bounds of bytes or values: a smaller part of it may be within them."""


class JsonTooDeep(UnreadableJson):
    """The text is nested deeper than its bound."""


def parse_json(data: bytes, bounds: JsonBounds) -> Json:
    """Parse a JSON text within bounds; raises UnreadableJson.

    Bytes that are no UTF-8 and halves of surrogate pairs become U+FFFD, so that every string can be written again.
    Values are counted by commas and brackets before anything is built, those within strings included. A whole number of
    more digits than Python reads becomes null, and so does one that is infinite to it, such as 1e400: it costs the
    field that it stands in.
    """
    if len(data) > bounds.size.most:
        raise JsonTooLarge(f"is over {bounds.size}")
    if count_values(data) > bounds.values.most:
        raise JsonTooLarge(f"holds over {bounds.values}")
    try:
        value = _loads(data.decode("utf-8", errors="replace"))
    except RecursionError:
        raise JsonTooDeep(f"is nested over {bounds.depth}") from None
    except ValueError as error:
        raise UnreadableJson(f"is no JSON: {error}") from error
    opened = data.count(b"[") + data.count(b"{")
    if opened > bounds.depth.most and _deeper_than(value, bounds.depth.most, opened):
        raise JsonTooDeep(f"is nested over {bounds.depth}")
    written = _WRITTEN_SURROGATE.search(data) is not None
    return _paired(value) if written and _SURROGATE.search(json.dumps(value, ensure_ascii=False)) else value


def _loads(text: str) -> Json:
    """Parse a text, with null for numbers of more digits than are read."""
    try:
        value: Json = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except json.JSONDecodeError:
        raise
    except ValueError:  # beyond sys.get_int_max_str_digits, or no number
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite, parse_int=_readable_int)
    return value


def _finite(digits: str) -> float | None:
    """Return a number; None for one such as 1e400, which Python reads as infinite."""
    number = float(digits)
    return number if math.isfinite(number) else None


def _readable_int(digits: str) -> int | None:
    try:
        return int(digits)
    except ValueError:
        return None


def count_values(data: bytes) -> int:
    """Count the values of a JSON text, at least: commas and brackets, those within strings included."""
    return 1 + data.count(b",") + data.count(b"[") + data.count(b"{")


def _deeper_than(value: Json, depth: int, opened: int) -> bool:
    """Return whether lists and objects, of which there are at most `opened`, are nested deeper than `depth`."""
    if opened < _MARSHAL_DEPTH:  # the lists around it would take longer than a walk
        return _is_deeper(value, depth)
    wrapped = value
    for _ in range(_MARSHAL_DEPTH - depth):
        wrapped = [wrapped]
    try:
        marshal.dumps(wrapped)
    except ValueError:  # a scalar takes a level of marshal's as well
        return _is_deeper(value, depth)
    return False


def _is_deeper(value: Json, depth: int) -> bool:
    """Walk a value level by level."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(depth):
        if not level:
            return False
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
    return bool(level)


def _paired(value: Json) -> Json:
    """Replace halves of surrogate pairs; the depth of the value is bounded."""
    if isinstance(value, str):
        return _SURROGATE.sub(_REPLACEMENT, value)
    if isinstance(value, list):
        return [_paired(child) for child in value]
    if isinstance(value, dict):
        return {_SURROGATE.sub(_REPLACEMENT, key): _paired(child) for key, child in value.items()}
    return value


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")
