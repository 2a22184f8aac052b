"""The bodies of the calls that revert and extend placements, and that answer proposals."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from reconciler.core.schema.strict_model import Duration, Strict, refusal
from reconciler.text.timestamps import NO_SUCH_YEAR, UTC_PATTERN, is_plausible, parse_time

_MOST = 100


def _moment(value: object) -> datetime:
    """Read a moment in UTC, to the second."""
    if not isinstance(value, str):
        raise refusal("is not a time", "try '2026-11-20T10:15:00Z'")
    try:
        at = parse_time(value)
    except ValueError as error:
        raise refusal("is not a time", "try '2026-11-20T10:15:00Z'") from error
    if not is_plausible(at):
        raise refusal(NO_SUCH_YEAR)
    return at


_Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema({"type": "string", "pattern": UTC_PATTERN, "format": "date-time"}),
]
_Placement = Annotated[str, Field(min_length=1, max_length=200)]


class RevertBody(Strict):
    """The body of ``POST /api/v1/revert``."""

    placements: list[_Placement] = Field(
        min_length=1,
        max_length=_MOST,
        description="The placements: each a name, an id or a directory of the output branch.",
    )
    reason: str = Field("", max_length=1000, description="The reason, for the commit message.")
    everywhere: bool = Field(False, description="That the workload is held back on every cluster.")
    dry_run: bool = Field(False, description="Answer with the commits that would be made, and commit nothing.")


class ExtendBody(Strict):
    """The body of ``POST /api/v1/extend``."""

    placement: _Placement = Field(description="The placement: a name, an id or a directory of the output branch.")
    by: Duration | None = Field(None, description="How much later it ends.")
    until: _Moment | None = Field(None, description="Its new end, in the place of `by`.")
    reason: str = Field("", max_length=1000, description="The reason, for the commit message.")
    dry_run: bool = Field(False, description="Answer with the commits that would be made, and commit nothing.")

    @model_validator(mode="after")
    def _one_end(self) -> ExtendBody:
        """Refuse a body with both ends, or with none."""
        if (self.by is None) == (self.until is None):
            raise refusal("has not exactly one of by and until", "try by: 30m")
        return self


class RulingBody(Strict):
    """The body of ``POST /api/v1/approve`` and ``POST /api/v1/reject``."""

    workload: _Placement = Field(description="The workload whose burst is proposed: `llm/vllm`, or its name alone.")
    reason: str = Field("", max_length=1000, description="The reason, for the commit message.")
    dry_run: bool = Field(False, description="Answer with the commits that would be made, and commit nothing.")
