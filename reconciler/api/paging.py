"""Lists in pages: how many entries, and where the page before ended."""

from __future__ import annotations

import base64
import binascii
from http import HTTPStatus

from reconciler.api.refusal import HttpError
from reconciler.core.explain.catalogue import Key

LIMIT = 100
MOST = 500
_PARTS = 3
_OFFSET = "after"
_MOST_DIGITS = 9


def name_token(key: Key) -> str:
    """Write where a page ended; it stays good when entries before it come or go."""
    return base64.urlsafe_b64encode("/".join(key).encode()).decode().rstrip("=")


def offset_token(number: int) -> str:
    """Write how many entries have been shown, of a list whose order is not by name."""
    return name_token((_OFFSET, str(number), ""))


def read_offset(text: str) -> int:
    """Read how many entries have been shown, none for no text; raises Refusal for what no page ended with."""
    if not text:
        return 0
    word, digits, _ = read_key(text)
    if word != _OFFSET or not (digits.isascii() and digits.isdigit()) or len(digits) > _MOST_DIGITS:
        raise _invalid_token()
    return int(digits)


def read_key(text: str) -> Key:
    """Read where the page before ended; raises Refusal for what no page ended with."""
    try:
        parts = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode().split("/")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        parts = []
    if len(parts) != _PARTS:
        raise _invalid_token()
    return parts[0], parts[1], parts[2]


def _invalid_token() -> HttpError:
    return HttpError(
        HTTPStatus.BAD_REQUEST,
        "continue is not what a page ended with",
        hint="pass metadata.continue of the page before as it is, or leave it out to begin anew",
    )
