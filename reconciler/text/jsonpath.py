"""Templates of JSONPath as `kubectl -o jsonpath=` takes them, over plain JSON.

https://kubernetes.io/docs/reference/kubectl/jsonpath/ is the specification; docs/decisions/0025-jsonpath-of-our-own.md
says why no library does. Supported is all that the page lists: text beside braces, quoted text within them, ``range``
and ``end``, ``$`` and ``@``, fields by dot or in brackets, ``..``, ``*``, indexes, slices, unions and filters.
A field that is not there yields nothing, as for `kubectl get`.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Step: TypeAlias = Callable[[Any, Any], Iterator[Any]]
"""A step of a path: yields the values that it leads to from one value, by the document that the path is in."""

_NAME = re.compile(r"(?:\\.|[^\s.\[\]{}()'\",=<>!|&\\])+")
_INDEX = re.compile(r"-?[0-9]+")
_SLICE = re.compile(r"(-?[0-9]*):(-?[0-9]*)(?::(-?[0-9]*))?")
_OPERATORS: Sequence[tuple[str, Callable[[Any, Any], bool]]] = (
    ("==", operator.eq), ("!=", operator.ne), ("<=", operator.le), (">=", operator.ge), ("<", operator.lt),
    (">", operator.gt),
)  # fmt: skip # a list of words, filled line by line
_WORDS = {"true": True, "false": False, "null": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_ITEMS = "items"


class JsonPathError(ValueError):
    """An expression that cannot be read, with its place in the words."""


@dataclass(frozen=True, slots=True)
class _Text:
    text: str


@dataclass(frozen=True, slots=True)
class _Path:
    steps: tuple[Step, ...]
    from_root: bool = False

    def find(self, value: object, document: object) -> list[Any]:
        """Return the values that the path leads to from a value of the document."""
        values: list[Any] = [document if self.from_root else value]
        for step in self.steps:
            values = [result for each in values for result in step(each, document)]
        return values


@dataclass(frozen=True, slots=True)
class _Range:
    path: _Path
    body: tuple[_Node, ...]


_Node: TypeAlias = _Text | _Path | _Range


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A template that has been read."""

    nodes: tuple[_Node, ...]

    def render(self, document: object) -> str:
        """Write the template over a document; several values of one path have a blank between them."""
        return _render(self.nodes, document, document)

    def find(self, document: object) -> list[Any]:
        """Return the values of all paths of the template."""
        return [value for node in self.nodes if isinstance(node, _Path) for value in node.find(document, document)]


def parse_jsonpath(template: str) -> JsonPath:
    """Read a template; an expression without braces is a path. Raises JsonPathError."""
    return JsonPath(_TemplateReader(template if "{" in template else f"{{{template}}}").template())


def _render(nodes: Sequence[_Node], value: object, document: object) -> str:
    parts: list[str] = []
    for node in nodes:
        match node:
            case _Text(text):
                parts.append(text)
            case _Path():
                parts.append(" ".join(map(_written, node.find(value, document))))
            case _Range(path, body):
                parts += [_render(body, each, document) for each in path.find(value, document)]
    return "".join(parts)


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class _TemplateReader:
    """Reads a template from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def template(self) -> tuple[_Node, ...]:
        """Read everything."""
        nodes, end = self._nodes(within=False)
        if end:
            raise self._error("'end' has no 'range'")
        return nodes

    def _nodes(self, *, within: bool) -> tuple[tuple[_Node, ...], bool]:
        """Read nodes up to the end of the text, or to the ``end`` of a range."""
        nodes: list[_Node] = []
        while self._at < len(self._text):
            opening = self._text.find("{", self._at)
            literal = self._text[self._at : opening if opening >= 0 else None]
            if literal:
                nodes.append(_Text(literal))
                self._at += len(literal)
                continue
            self._at += 1
            if self._braces(nodes):
                return tuple(nodes), True
        if within:
            raise self._error("'range' has no 'end'")
        return tuple(nodes), False

    def _braces(self, nodes: list[_Node]) -> bool:
        """Read what stands in a pair of braces; return whether it is ``end``."""
        while True:
            self._blanks()
            if self._take("}"):
                return False
            if not self._peek():
                self._need("}")
            if self._word("end"):
                self._blanks()
                self._need("}")
                return True
            if self._word("range"):
                self._blanks()
                path = self._path()
                self._blanks()
                self._need("}")
                nodes.append(_Range(path, self._nodes(within=True)[0]))
                return False
            nodes.append(_Text(self._quoted()) if self._peek() in ("'", '"') else self._path())

    def _path(self) -> _Path:
        """Read a path: its root, then its steps."""
        begin, steps = self._at, list[Step]()
        root = self._take("$")
        if not root:
            self._take("@")
        while True:
            if self._take(".."):
                steps += [_descendants, *([] if self._peek() == "[" else [self._named()])]
            elif self._take("."):
                if self._peek() not in ("[", "}", "", " "):
                    steps.append(self._named())
            elif self._take("["):
                steps.append(self._bracket())
            elif self._at == begin and _NAME.match(self._text, self._at):
                steps.append(self._named())  # kubectl's relaxed form: a name without its dot
            else:
                break
        if self._at == begin:
            raise self._error("a path is expected here")
        return _Path(tuple(steps), from_root=root)

    def _named(self) -> Step:
        if self._take("*"):
            return _children
        match = _NAME.match(self._text, self._at)
        if match is None:
            raise self._error("the name of a field is expected here")
        self._at = match.end()
        return _field(re.sub(r"\\(.)", r"\1", match[0]))

    def _bracket(self) -> Step:
        """Read what stands in brackets: ``*``, a filter, or a union of names, indexes and slices."""
        self._blanks()
        if self._take("?"):
            self._need("(")
            step = self._filter()
            self._need(")")
        else:
            steps = [self._element()]
            self._blanks()
            while self._take(","):
                self._blanks()
                steps.append(self._element())
                self._blanks()
            step = steps[0] if len(steps) == 1 else _union(tuple(steps))
        self._blanks()
        self._need("]")
        return step

    def _element(self) -> Step:
        if self._take("*"):
            return _children
        if self._peek() in ("'", '"'):
            text = self._quoted()
            return _dotted(text)
        if match := _SLICE.match(self._text, self._at):
            self._at = match.end()
            begin, end, by = (int(part) if part else None for part in match.groups())
            if by == 0:
                raise self._error("the step of a slice is not 0")
            return _slice(slice(begin, end, by))
        if match := _INDEX.match(self._text, self._at):
            self._at = match.end()
            return _index(int(match[0]))
        return self._named()

    def _filter(self) -> Step:
        self._blanks()
        left = self._operand()
        self._blanks()
        for sign, compare in _OPERATORS:
            if self._take(sign):
                self._blanks()
                right = self._operand()
                self._blanks()
                return _comparison(left, compare, right)
        if self._peek() != ")":
            raise self._error("a comparison or ')' is expected here")
        return _existence(left)

    def _operand(self) -> _Path | _Constant:
        """Read a path from the element or the document, or a constant."""
        if self._peek() in ("'", '"'):
            return _Constant(self._quoted())
        if self._peek() in ("@", "$", "."):
            return self._path()
        match = re.compile(r"[-+A-Za-z0-9_.]+").match(self._text, self._at)
        if match is None:
            raise self._error("a path, a text or a number is expected here")
        try:
            value = _WORDS[match[0]] if match[0] in _WORDS else json.loads(match[0])
        except ValueError:
            raise self._error(f"{match[0]!r} is no path, text or number (try {match[0]!r} in quotes, or @.)") from None
        self._at = match.end()
        return _Constant(value)

    def _quoted(self) -> str:
        quote, self._at = self._text[self._at], self._at + 1
        begin, text = self._at, ""
        while (char := self._peek()) != quote:
            if not char:
                self._at = begin - 1
                raise self._error("this quote is never closed")
            self._at += 1
            if char == "\\" and self._peek():
                char = _ESCAPES.get(self._peek(), self._peek())
                self._at += 1
            text += char
        self._at += 1
        return text

    def _word(self, word: str) -> bool:
        """Take a word that stands by itself."""
        rest = self._text[self._at + len(word) : self._at + len(word) + 1]
        return (rest in ("", " ", "}", "\t", "\n")) and self._take(word)

    def _blanks(self) -> None:
        while self._peek().isspace():
            self._at += 1

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, text: str) -> bool:
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _need(self, text: str) -> None:
        if not self._take(text):
            raise self._error(f"{text!r} is expected here")

    def _error(self, message: str) -> JsonPathError:
        rest = self._text[self._at : self._at + 20]
        return JsonPathError(f"{message}: {f'before {rest!r}' if rest else 'at the end'} of {self._text!r}")


@dataclass(frozen=True, slots=True)
class _Constant:
    value: object

    def find(self, _value: object, _document: object) -> list[Any]:
        """Return the value."""
        return [self.value]


def _children(value: Any, _document: Any) -> Iterator[Any]:
    match value:
        case Mapping():
            yield from value.values()
        case list():
            yield from value


def _descendants(value: Any, document: Any) -> Iterator[Any]:
    """Yield a value and all below it, parents first."""
    yield value
    for child in _children(value, document):
        yield from _descendants(child, document)


def _field(name: str) -> Step:
    def step(value: Any, document: Any) -> Iterator[Any]:
        if isinstance(value, Mapping) and name in value:
            yield value[name]
        elif name == _ITEMS and value is document and isinstance(value, list):
            yield value  # kubectl has its lists in `items`, and ours are arrays

    return step


def _dotted(text: str) -> Step:
    """Follow a quoted name: a field of just that name, or fields with dots between, as kubectl has them in unions."""

    def step(value: Any, document: Any) -> Iterator[Any]:
        names = [text] if isinstance(value, Mapping) and text in value else text.split(".")
        yield from _Path(tuple(map(_field, names))).find(value, document)

    return step


def _index(number: int) -> Step:
    def step(value: Any, _document: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= number < len(value):
            yield value[number]

    return step


def _slice(part: slice) -> Step:
    def step(value: Any, _document: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[part]

    return step


def _union(steps: tuple[Step, ...]) -> Step:
    def step(value: Any, document: Any) -> Iterator[Any]:
        for each in steps:
            yield from each(value, document)

    return step


def _existence(path: _Path | _Constant) -> Step:
    def step(value: Any, document: Any) -> Iterator[Any]:
        yield from (each for each in _children(value, document) if path.find(each, document))

    return step


def _comparison(left: _Path | _Constant, compare: Callable[[Any, Any], bool], right: _Path | _Constant) -> Step:
    """Keep the elements for which the first value on the left compares so with the first on the right."""

    def holds(element: Any, document: Any) -> bool:
        ours, theirs = left.find(element, document)[:1], right.find(element, document)[:1]
        try:
            return bool(ours and theirs) and compare(ours[0], theirs[0])
        except TypeError:  # a text and a number are in no order
            return False

    def step(value: Any, document: Any) -> Iterator[Any]:
        yield from (each for each in _children(value, document) if holds(each, document))

    return step
