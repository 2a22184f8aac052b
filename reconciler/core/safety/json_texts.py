"""JSON inside of a text, as annotations have it: what clients last applied, what injectors of sidecars add."""

from __future__ import annotations

from reconciler.model.bounds import FILE_DEPTH, FILE_SIZE, FILE_VALUES, JsonBounds
from reconciler.model.workload import Json
from reconciler.text.json_input import JsonTooDeep, JsonTooLarge, UnreadableJson, parse_json

_BOUNDS = JsonBounds(size=FILE_SIZE, values=FILE_VALUES, depth=FILE_DEPTH)
"""A text may hold what the file around it may hold."""


def json_inside(text: str) -> Json:
    """Return the object or the list that a text is in JSON; None for any other text.

    Raises JsonTooLarge and JsonTooDeep, whose messages are predicates.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return parse_json(text.encode("utf-8", errors="replace"), _BOUNDS)
    except (JsonTooLarge, JsonTooDeep):
        raise
    except UnreadableJson:
        return None
