"""Errors that a daemon answers with."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from reconciler.errors import InvalidInput, Problem
from reconciler.http_client import json_object_in

_MOST_WORDS = 2000
_WAYS_OUT = {
    HTTPStatus.UNAUTHORIZED: "set OVERSPILL_TOKEN_FILE or OVERSPILL_TOKEN to a token that this server knows",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "try splitting it",
}


class Refused(InvalidInput):
    """The daemon refused a call; a retry changes nothing. `problems` are those of fields of the body."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        key: str = "",
        reason: str = "",
        hint: str = "",
        problems: tuple[Problem, ...] = (),
    ) -> None:
        super().__init__(f"{message} ({hint})" if hint else message, problems=problems)
        self.status = status
        """The HTTP status."""
        self.key = key
        """EGS's errorKey (``InvalidUpdate``, ``DeletionRestricted``), or empty."""
        self.reason = reason
        """The reason in the error envelope (``BranchLost``), or empty."""
        self.hint = hint
        """The way out, which is part of the text as well."""
        self.unheard = False
        """Whether an earlier try got no answer, so that the daemon may have carried it out."""


def refusal(status: int, body: bytes, *, asked: str, nameless: bool = False) -> Refused:
    """Convert an error answer. `asked` is the method and the address, for an answer without a message.

    `nameless` marks a call without a token: the daemon's hint names a header, which our callers do not write.
    """
    answer = json_object_in(body)
    error = answer.get("error")
    inner: Mapping[str, Any] = error if isinstance(error, Mapping) else {}
    message = _words(inner.get("message")) or _words(answer.get("message"))
    if not message:
        hint = "is this the address of Overspill?"
        return Refused(f"{asked} is answered {status}, not as Overspill does", status=status, hint=hint)
    return Refused(
        message,
        status=status,
        key=_words(inner.get("errorKey")),
        reason=_words(inner.get("reason")),
        hint=(not nameless and _words(inner.get("hint"))) or _way_out(status),
        problems=tuple(_problem(entry) for entry in _mappings(inner.get("problems"))),
    )


def _problem(fields: Mapping[str, Any]) -> Problem:
    line = fields.get("line")
    return Problem(
        path=_words(fields.get("path")),
        line=line if isinstance(line, int) else 0,
        field=_words(fields.get("field")),
        message=_words(fields.get("message")),
        hint=_words(fields.get("hint")),
    )


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _words(value: object) -> str:
    return value[:_MOST_WORDS] if isinstance(value, str) else ""


def _way_out(status: int) -> str:
    try:
        return _WAYS_OUT.get(HTTPStatus(status), "")
    except ValueError:
        return ""
