"""The event parser: libyaml's, or PyYAML's own where PyYAML was built without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import yaml

YamlEvent: TypeAlias = Any
"""An event of PyYAML. Which attributes it has depends on its class, which the loops here look at by identity."""

try:
    from yaml.cyaml import CParser as _Parser  # type: ignore[attr-defined] # the stubs leave it out
except ImportError:  # the same events, ten times slower

    class _Parser(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser):  # type: ignore[no-redef] # one or the other
        """The pure parser under the C parser's name."""

        def __init__(self, stream: bytes) -> None:
            """Set up the three layers that PyYAML's own loaders are mixed from."""
            yaml.reader.Reader.__init__(self, stream)
            yaml.scanner.Scanner.__init__(self)
            yaml.parser.Parser.__init__(self)


def events(data: bytes) -> Callable[[], YamlEvent]:
    """Return a function that gives the next event of a file at each call; it raises yaml.YAMLError."""
    next_event: Callable[[], YamlEvent] = _Parser(data).get_event
    return next_event


def line_of(event: YamlEvent) -> int:
    """Return the line on which an event begins, from 1."""
    line: int = event.start_mark.line
    return line + 1
