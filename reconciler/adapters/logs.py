"""The log: one readable line an event on a terminal, or one JSON object a line for a collector."""

from __future__ import annotations

import io
import json
import logging
import re
from collections import deque
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, Literal, TextIO, cast

import structlog

from reconciler.adapters.clock import SystemClock
from reconciler.model.events.event import Event, Push
from reconciler.model.events.event_kind import EventKind
from reconciler.text.redaction import redacted
from reconciler.text.targets import TextTarget, escape
from reconciler.text.timestamps import format_time
from reconciler.text.wording import count

log = structlog.get_logger("overspill")

LogFormat = Literal["text", "json"]

_URL_USER = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]{0,20}://)[^/\s@'\"]+@")
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_TOKEN = re.compile(
    r"\b(ovs_)[A-Za-z0-9_-]{8,}|(?<![A-Za-z0-9_-])(eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"
)
_SECRET_KEY = re.compile(r"password|passwd|secret|token|authorization|credential", re.IGNORECASE)
_COLOURS = {"warning": "\033[33m", "error": "\033[31m", "critical": "\033[31m"}
_IDS = frozenset({"pass", "request"})
"""Keys for collectors, which lines for people go without."""
_LONGEST = 4000
"""Characters of a value that is kept, as of a traceback."""
_DIM, _PLAIN = "\033[2m", "\033[0m"


def redact(text: str) -> str:
    """Remove users and passwords from URLs, credentials from Authorization headers, and tokens from any text.

    Our own patterns are generous; then come the known forms of credentials.
    """
    return redacted(_TOKEN.sub(r"\1\2***", _BEARER.sub(r"\1 ***", _URL_USER.sub(r"\1***@", text))))


class LogRing:
    """Keeps the last lines of the log as JSON, redacted. Safe to use from several threads."""

    def __init__(self, most: int = 2000) -> None:
        """Keep so many lines."""
        self._lines: deque[str] = deque(maxlen=most)
        self._clock = SystemClock()

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines, the oldest first."""
        return tuple(self._lines.copy())

    def __call__(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Keep an event, and pass it on as it is."""
        values = {key: value if isinstance(value, int | float) else str(value) for key, value in event.items()}
        texts = {key: value[:_LONGEST] if isinstance(value, str) else value for key, value in values.items()}
        self._lines.append(json.dumps({**texts, "timestamp": format_time(self._clock.now())}, ensure_ascii=False))
        return event


def configure(
    form: LogFormat,
    stream: TextIO,
    *,
    colour: bool = False,
    level: int = logging.INFO,
    ring: LogRing | None = None,
) -> None:
    """Send every log of this process to `stream`, including those of libraries (warnings and worse).

    Text carries the local time of day, JSON the full time in UTC and the ids of the pass and of the call. Call it once,
    at the start. `ring` keeps the last lines.
    """
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    render: list[structlog.typing.Processor]
    kept = [] if ring is None else [ring]
    if form == "json":
        render = [
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _redact,
            *kept,
            structlog.processors.JSONRenderer(),
        ]
    else:
        line = _LogLine(colour=colour)
        render = [structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False), _redact, *kept, line]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,  # the ids of the pass and of the call
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            *render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", _FaultTolerantStream(stream))),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=logging.WARNING, handlers=[_LibraryHandler()], force=True)


class _FaultTolerantStream(io.TextIOBase):
    """Ignores errors of a stream: a full disk must not end a daemon that has bursts to revert."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write; only a broken pipe raises."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            raise
        except OSError:
            return 0

    def flush(self) -> None:
        """Flush; only a broken pipe raises."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError:
            return


class _LibraryHandler(logging.Handler):
    """Passes records of the standard library's logging on to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log the record as an event with the name of its logger."""
        exc_info = record.exc_info if record.exc_info and record.exc_info[0] else None
        structlog.get_logger().log(record.levelno, record.getMessage(), logger=record.name, exc_info=exc_info)


def _redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Redact the texts of an event, and every value with the name of a secret; none orders a terminal about."""
    return {key: _redacted_value(key, value) for key, value in event.items()}


def _redacted_value(key: str, value: Any) -> Any:
    """Redact one value, or those in a collection."""
    if _SECRET_KEY.search(key) and isinstance(value, str):
        return "***"
    if isinstance(value, str):
        return escape(redact(value), TextTarget.TERMINAL)
    if isinstance(value, Mapping):
        return {escape(str(name), TextTarget.LOG): _redacted_value(str(name), inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted_value("", inner) for inner in value]
    return value


class _LogLine:
    """Renders an event as ``hh:mm:ss text key=value``; `line`, where an event has it, is the text."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    def __call__(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
        """Put one event on one line, and a traceback below it, indented: no line of it passes for an event."""
        at, level = event.pop("timestamp", ""), event.pop("level", "info")
        name, traceback = str(event.pop("event", "")), str(event.pop("exception", ""))
        text = escape(str(event.pop("line", name)), TextTarget.LOG)
        mark = "" if level in ("info", "debug") else f"{level}: "
        pairs = " ".join(f"{key}={_quote(value)}" for key, value in event.items() if key not in _IDS)
        painted = ((str(at), _DIM), (mark + text, _COLOURS.get(level, "")), (pairs, _DIM))
        line = " ".join(self._paint(part, tint) for part, tint in painted if part)
        return "\n  ".join([line, *escape(traceback, TextTarget.TERMINAL).split("\n")]) if traceback else line

    def _paint(self, text: str, colour: str) -> str:
        return f"{colour}{text}{_PLAIN}" if self._colour and colour else text


def _quote(value: object) -> str:
    """Quote a value that holds spaces or quotes."""
    text = escape(str(value), TextTarget.LOG)
    return repr(text) if not text or " " in text or "=" in text else text


class EventLog:
    """Logs a line for each push of a pass and one for each of its events (a `ports.EventSink`)."""

    def publish(self, events: Sequence[Event], pushes: Sequence[Push]) -> None:
        """Log the moved branches, then the events that they carry."""
        for push in pushes:
            line = f"pushed {count(push.commits, 'commit')} to {push.branch}"
            log.info("pushed", line=line, tip=push.new[:12], took=f"{push.took.total_seconds():.3f}s")
        for event in events:
            match event.kind:
                case EventKind.HELD_BACK:
                    log.info("held back", line=event.line, reason=str(event.held_by))
                case EventKind.NO_LONGER_HELD_BACK:
                    log.info("no longer held back", line=event.line)
                case _:
                    log.info("committed", line=event.line)
