"""The syntax of labels and of taints, as Kubernetes has it."""

from __future__ import annotations

import re

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_KEY = re.compile(rf"({_DOMAIN}/)?{_NAME}")
_LONGEST_KEY = 253 + 1 + 63
"""Characters of a domain, a slash and a name; matching longer texts would take too long."""
_VALUE = re.compile(rf"({_NAME})?")


def is_label_key(text: str) -> bool:
    """Return whether a text can be the name of a label or the key of a taint."""
    return len(text) <= _LONGEST_KEY and _KEY.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    """Return whether a text can be the value of a label or of a taint; the empty one can."""
    return _VALUE.fullmatch(text) is not None
