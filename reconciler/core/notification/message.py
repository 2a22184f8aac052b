"""Notices as one message for people: a chat, a mail, a pager."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.model.events.event import Notice
from reconciler.model.events.notification import Importance
from reconciler.model.ids import CommitId
from reconciler.text.targets import TextTarget, escape
from reconciler.text.timestamps import format_time
from reconciler.text.wording import count, join_names

MOST_LINES = 20
"""Events that one message lists; the log has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of several events, in their order."""

    title: str
    body: str
    importance: Importance


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertain:
    """Events that were on their way when a daemon was killed: nobody knows whether they have arrived."""

    events: int
    after: CommitId | None
    until: CommitId


def write_message(fleet: str, notices: Sequence[Notice], uncertain: Uncertain | None = None) -> Message:
    """Write a message of at least one notice, or of uncertain events alone.

    Uncertain events are not repeated, since that would tell them twice; the message says how to look them up.
    """
    lines = [line for notice in notices[:MOST_LINES] for line in _lines(notice, alone=len(notices) == 1)]
    if len(notices) > MOST_LINES:
        rest = notices[MOST_LINES:]
        lines.append(f"… and {len(rest)} more, up to {_short(rest[-1].event.commit) or 'now'} on the output branch")
    if uncertain is not None:
        section = f"{_short(uncertain.after)}.." if uncertain.after else ""
        lines.append(
            f"{count(uncertain.events, 'earlier event')} may not have arrived, since Overspill was stopped on the way:"
            f" git log --first-parent {section}{_short(uncertain.until)}"
        )
    return Message(
        title=_title(fleet, notices),
        body="\n".join(lines),
        importance=max((notice.importance for notice in notices), key=lambda one: one.rank, default=Importance.WARNING),
    )


def _title(fleet: str, notices: Sequence[Notice]) -> str:
    who = f"Overspill {escape(fleet, TextTarget.CHAT)}".strip()
    if len(notices) == 1:
        workload = escape(str(notices[0].event.workload or ""), TextTarget.CHAT)
        return f"{who}: {notices[0].event.kind} {workload}".rstrip()
    if not notices:
        return f"{who}: events may be missing"
    workloads = sorted(
        {escape(str(notice.event.workload), TextTarget.CHAT) for notice in notices if notice.event.workload}
    )
    named = join_names(workloads[:3]) + (" and others" if len(workloads) > 3 else "")  # noqa: PLR2004 - a title is short
    return f"{who}: {count(len(notices), 'event')}{f' of {named}' if named else ''}"


def _lines(notice: Notice, *, alone: bool) -> list[str]:
    """Tell of an event in one line, and with its reasons where it is alone."""
    event = notice.event
    commit = f" [{_short(event.commit)}]" if event.commit else ""
    line, *reasons = (escape(text, TextTarget.CHAT) for text in (event.line, *(event.reasons if alone else ())))
    return [f"{format_time(event.at)} {line}{commit}", *reasons]


def _short(commit: CommitId | None) -> str:
    return "" if commit is None else commit[:12]
