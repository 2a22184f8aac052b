"""JSON inside of a text, as annotations have it: what clients last applied, what injectors of sidecars add."""

from __future__ import annotations

import json

from reconciler.model.workload import Json

_LONGEST = 1 << 20
"""Characters of a text that is read as JSON."""


def json_inside(text: str) -> Json:
    """Return the object or the list that a text is in JSON; None for any other text.

    Raises RecursionError for JSON that is nested too deeply.
    """
    if text.lstrip()[:1] not in ("{", "[") or len(text) > _LONGEST:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
