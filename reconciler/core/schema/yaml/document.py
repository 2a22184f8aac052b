"""A parsed document, and the lines of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import yaml

from reconciler.core.schema.yaml.events import YamlEvent, events, line_of
from reconciler.errors import Problem
from reconciler.model.workload import Json
from reconciler.text.findings import Loc


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document of a file."""

    value: Json
    # The line of its first node.
    start: int
    path: str = ""
    # Scalars that are text here and another type to other readers of YAML.
    warnings: tuple[Problem, ...] = ()
    # The document's own part of the file, and the lines before it.
    data: bytes = field(default=b"", repr=False, compare=False)
    above: int = field(default=0, repr=False, compare=False)
    _lines: dict[Loc, int] = field(default_factory=dict, repr=False, compare=False)

    def line(self, loc: Loc) -> int:
        """Return the line of the node at `loc`, or of its nearest ancestor that exists.

        A mapping's value has the line of its key. The file is parsed again for its first line lookup: most files have
        no problem, so that their positions are never needed. Only answers are cached, since positions outweigh a file.
        """
        if loc and loc not in self._lines:
            lines = _positions(self.data)
            nearest = next((loc[:length] for length in range(len(loc), 0, -1) if loc[:length] in lines), None)
            self._lines[loc] = self.start if nearest is None else self.above + lines[nearest]
        return self._lines.get(loc, self.start)


@lru_cache(maxsize=2)
def _positions(data: bytes) -> Mapping[Loc, int]:
    """Return the line of every node of a document that has parsed before.

    The last two documents are cached: the problems of a file are reported together.
    """
    next_event = events(data)
    lines: dict[Loc, int] = {}
    try:
        while not isinstance(event := next_event(), yaml.StreamEndEvent):
            if isinstance(event, yaml.NodeEvent):
                _place(next_event, event, (), lines)
    except yaml.YAMLError:  # JSON that YAML reads differently, such as an escaped pair of surrogates
        return {}
    return lines


def _place(next_event: Callable[[], YamlEvent], event: YamlEvent, loc: Loc, lines: dict[Loc, int]) -> None:
    """Record the lines of a node's children. The recursion is bounded by the depth limit of files."""
    if isinstance(event, yaml.MappingStartEvent):
        while not isinstance(key := next_event(), yaml.MappingEndEvent):
            child = (*loc, str(key.value))
            lines[child] = line_of(key)
            _place(next_event, next_event(), child, lines)
    elif isinstance(event, yaml.SequenceStartEvent):
        number = 0
        while not isinstance(item := next_event(), yaml.SequenceEndEvent):
            lines[*loc, number] = line_of(item)
            _place(next_event, item, (*loc, number), lines)
            number += 1
