"""Parser events become values, and their faults problems with lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from math import isinf
from typing import Any, NamedTuple

import yaml

from reconciler.core.schema.yaml.document import Document
from reconciler.core.schema.yaml.events import YamlEvent, events, line_of
from reconciler.core.schema.yaml.json_fast_path import NotPlainError, read_integer, read_json
from reconciler.core.schema.yaml.limits import MAX_DEPTH, MAX_NODES, MAX_PROBLEMS
from reconciler.core.schema.yaml.syntax_errors import encoding_problem, key_hint, syntax_problem
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.workload import Json
from reconciler.text.findings import shortened

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_CONSTANTS: dict[str, Json] = {"": None, "null": None, "true": True, "false": False}
_MAYBE_TYPED = frozenset("-0123456789tfn")
_LOOKALIKES = {
    **dict.fromkeys(("True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), "true"),
    **dict.fromkeys(("False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), "false"),
    **dict.fromkeys(("~", "Null", "NULL"), "null"),
}


def parse(data: bytes, path: str) -> tuple[Document, ...]:
    """Read all documents of a file; empty documents are left out.

    Raises InvalidInput with every problem that could be found.
    """
    problem = encoding_problem(data, path)
    if problem is not None:
        raise InvalidInput(problems=(problem,))
    text = data.lstrip()
    if text[:1] in (b"{", b"["):
        try:
            value = read_json(text)
        except NotPlainError:
            pass  # the reader below knows lines
        else:
            start = 1 + data.count(b"\n", 0, len(data) - len(text))
            return (Document(value=value, start=start, path=path, data=data),)
    reader = _Reader(data, path)
    documents = reader.read()
    if reader.problems:
        raise InvalidInput(problems=tuple(reader.problems))
    return documents


class _Span(NamedTuple):
    """The span of a document in its file: characters from and to, and lines above."""

    begin: int
    above: int
    end: int


class _Reader:
    """Builds values from parser events in one loop, so that depth costs no stack, and collects the problems."""

    def __init__(self, data: bytes, path: str) -> None:
        """Take a file whose encoding has been checked."""
        self._data = data
        self._path = path
        self.problems: list[Problem] = []
        self._warnings: list[Problem] = []

    def read(self) -> tuple[Document, ...]:
        """Read to the end, or to the first syntax error, which becomes the last problem."""
        documents: list[Document] = []
        spans: list[_Span] = []
        try:
            for value, start, span in self._values():
                if value is not None:
                    warnings = tuple(self._warnings)
                    document = Document(value=value, start=start, path=self._path, warnings=warnings, data=self._data)
                    documents.append(document)
                    spans.append(span)
                self._warnings.clear()
        except yaml.YAMLError as error:
            self.problems.append(syntax_problem(error, self._data, self._path))
        except _TooLargeError as error:
            self.problems.append(Problem(path=self._path, line=error.line, message=str(error), hint=error.hint))
        if len(documents) == 1 or self.problems:
            return tuple(documents)
        # Each document keeps its own part only, so that a line lookup reads no other.
        text = self._data.decode()
        return tuple(
            replace(document, data=text[span.begin : span.end].encode(), above=span.above)
            for document, span in zip(documents, spans, strict=True)
        )

    def _values(self) -> Iterator[tuple[Json, int, _Span]]:  # noqa: C901, PLR0912, PLR0915 -- one loop: a call an event would double its time
        """Yield each document's value, first line and span.

        `container` is the innermost open list or dict, `key` the pending key of a dict (None: a key comes next).
        """
        next_event = events(self._data)
        scalar_event, scalar_end = yaml.ScalarEvent, (yaml.MappingEndEvent, yaml.SequenceEndEvent)
        mapping_start, sequence_start = yaml.MappingStartEvent, yaml.SequenceStartEvent
        constants, maybe_typed, lookalikes = _CONSTANTS, _MAYBE_TYPED, _LOOKALIKES
        stack: list[tuple[Json, str | None]] = []
        container: Json = None
        key: str | None = None
        root: Json = None
        start = 0
        nodes = 0
        begin: Any = None
        while True:
            event = next_event()
            kind = type(event)
            if kind is scalar_event:
                nodes += 1
                if event.anchor is not None or event.tag is not None:
                    self._refuse_properties(event)
                value = event.value
                if type(container) is dict and key is None:
                    key = value
                    if value in container:
                        self._refuse(event, f"key {shortened(value)!r} stands here twice", "try removing one")
                    elif value == "<<" and not event.style:
                        self._refuse(event, "merge keys are not read", "try writing the keys out")
                    elif not event.style and value in lookalikes:
                        self._warn(event, value)
                    continue
                if not event.style:
                    if value[:1] in maybe_typed or not value:
                        value = constants[value] if value in constants else self._number(event)
                    elif value in lookalikes:
                        self._warn(event, value)
            elif kind is mapping_start or kind is sequence_start:
                nodes += 1
                if event.anchor is not None or event.tag is not None:
                    self._refuse_properties(event)
                if type(container) is dict and key is None:
                    line = line_of(event)
                    raise _TooLargeError("a key must be text", line, key_hint(self._data, line))
                if len(stack) >= MAX_DEPTH:
                    raise _TooLargeError(f"is nested deeper than {MAX_DEPTH} levels", line_of(event))
                stack.append((container, key))
                if nodes > MAX_NODES:
                    raise _too_many(event)
                if len(stack) == 1:
                    start = line_of(event)
                container, key = ({} if kind is mapping_start else []), None
                continue
            elif kind in scalar_end:
                value = container
                container, key = stack.pop()
            elif kind is yaml.AliasEvent:
                self._refuse(event, f"alias *{shortened(event.anchor)} is not read", "try writing the value out")
                value = None
                if type(container) is dict and key is None:
                    key = f"*{event.anchor}"
                    continue
            elif kind is yaml.DocumentEndEvent:
                yield root, start, _Span(begin.index, begin.line, event.end_mark.index)
                root, start = None, 0
                continue
            elif kind is yaml.DocumentStartEvent:
                begin = event.start_mark
                continue
            elif kind is yaml.StreamEndEvent:
                return
            else:
                continue
            if type(container) is dict:
                container[key] = value
                key = None
            elif container is None:
                root = value
                start = start or line_of(event)
            else:
                container.append(value)
            if nodes > MAX_NODES:
                raise _too_many(event)

    def _number(self, event: YamlEvent) -> Json:
        """Read a plain scalar as JSON would, or as text if it is no JSON number."""
        text: str = event.value
        match = _NUMBER.fullmatch(text)
        if match is None:
            if text in _LOOKALIKES:
                self._warn(event, text)
            return text
        if match[1] or match[2]:
            number = float(text)
            if not isinf(number):
                return number
        elif (count := read_integer(text)) is not None:
            return count
        self._refuse(event, f"{shortened(text)} is more than a number can hold", "try quoting it")
        return None

    def _refuse_properties(self, event: YamlEvent) -> None:
        """Report an anchor or a tag."""
        if event.anchor is not None:
            self._refuse(event, f"anchor &{shortened(event.anchor)} is not read", "try writing the value out")
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self._refuse(event, f"tag {shortened(tag)} is not read", "try removing it; quote what should be text")

    def _refuse(self, event: YamlEvent, message: str, hint: str) -> None:
        """Report a problem at an event's line and continue."""
        line = line_of(event)
        self.problems.append(Problem(path=self._path, line=line, message=message, hint=hint))
        if len(self.problems) >= MAX_PROBLEMS:
            raise _TooLargeError(f"has more than {MAX_PROBLEMS} problems; the rest is not read", line)

    def _warn(self, event: YamlEvent, text: str) -> None:
        """Record a plain scalar that YAML 1.1 readers (kubectl, Helm) take for a boolean or null."""
        meant = _LOOKALIKES[text]
        if len(self._warnings) < MAX_PROBLEMS:
            self._warnings.append(
                Problem(
                    path=self._path,
                    line=line_of(event),
                    message=f"{text} is read as text; other tools read it as {meant}",
                    hint=f"try {meant}, or '{text}' in quotes",
                    severity=Severity.WARNING,
                )
            )


class _TooLargeError(Exception):
    """Reading of a file stops at a limit."""

    def __init__(self, message: str, line: int, hint: str = "") -> None:
        """Take the parts of the problem."""
        super().__init__(message)
        self.line = line
        self.hint = hint


def _too_many(event: YamlEvent) -> _TooLargeError:
    """Refuse a file of too many values."""
    return _TooLargeError(f"holds more than {MAX_NODES:,} values", line_of(event), "try splitting it")
