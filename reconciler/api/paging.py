"""Pages of lists: their size, and the continue token of the next one."""

from __future__ import annotations

import base64
import binascii
from http import HTTPStatus

from reconciler.api.refusal import HttpError
from reconciler.core.explain.catalogue import Key
from reconciler.text.digits import whole_number

LIMIT = 100
MOST = 500
_PARTS = 3
_OFFSET = "after"
_MOST_DIGITS = 9


def name_token(key: Key) -> str:
    """Encode the key of a page's last entry; it stays valid while earlier entries come and go."""
    return base64.urlsafe_b64encode("/".join(key).encode()).decode().rstrip("=")


def offset_token(number: int) -> str:
    """Encode how many entries were listed, for lists that are not ordered by name."""
    return name_token((_OFFSET, str(number), ""))


def read_offset(text: str) -> int:
    """Decode an offset token, 0 for none; raises HttpError for a token that no page ends with."""
    if not text:
        return 0
    word, digits, _ = read_key(text)
    offset = whole_number(digits, _MOST_DIGITS)
    if word != _OFFSET or offset is None:
        raise _invalid_token()
    return offset


def read_key(text: str) -> Key:
    """Decode a name token; raises HttpError for a token that no page ends with."""
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
        hint="pass metadata.continue of the page before as it is, or leave it out to begin from the start",
    )
