"""The form of an action: its fields, and what was filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Given = Mapping[str, str]
"""What was filled in, by the names of the fields."""
_MOST_REASON = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a form."""

    name: str
    label: str
    value: str = ""
    hint: str = ""
    kind: str = "text"
    """`text`, `check`, `choice` or `hidden`."""
    choices: tuple[tuple[str, str], ...] = ()
    """The values of a choice, and their words."""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The form of an action on one thing."""

    about: str
    """A placement or a workload; empty for something new."""
    fields: tuple[Field, ...]


def read_reason(given: Given) -> str:
    """Return the reason that was filled in, as long as a commit message may have it."""
    return given.get("reason", "").strip()[:_MOST_REASON]


def reason_field(given: Given) -> Field:
    """Ask for the reason of an order."""
    return Field(name="reason", label="Reason", value=read_reason(given), hint="for the commit message; may stay empty")


def hidden(name: str, value: str) -> Field:
    """Make a field that carries what a page was made for to the order."""
    return Field(name=name, label="", value=value, kind="hidden")
