"""CEL selectors of devices: the subset of CEL that DeviceClasses and claims mostly use.

Conditions on the driver, on attributes and on capacity, joined by ``&&``, ``||``, ``!`` and parentheses. Any other CEL
expression is unsupported; its devices count as unavailable. The semantics are those of Kubernetes' DRA: a missing
attribute is an error, and an error in one selector ends the scheduling of the pod.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from reconciler.model.capacity import AttributeValue, DeviceKind
from reconciler.model.units import Quantity, parse_quantity

Selector: TypeAlias = Callable[[DeviceKind], bool | None]
"""Returns whether a device meets an expression; None for the error that CEL would end with."""

_Value: TypeAlias = Callable[[DeviceKind], AttributeValue | None]

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"[^"\\]*"|'[^'\\]*')|(?P<number>-?[0-9]{1,18})|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"""
    r"""|(?P<sign>&&|\|\||==|!=|<=|>=|[<>!().,\[\]]))"""
)
_MAX_LENGTH = 10_240
"""Characters of an expression that the API server accepts."""
_MAX_DEPTH = 20
_ORDER: dict[str, Callable[[int, int], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
}
_TEXT: dict[str, Callable[[str, str], bool]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": str.__contains__,
}
_SIZE = {"isGreaterThan": ">", "isLessThan": "<"}


class _UnsupportedError(Exception):
    """The expression is outside of the supported subset."""


@lru_cache(maxsize=1024)
def parse_selector(expression: str) -> Selector | None:
    """Parse an expression; None if it is outside of the supported subset."""
    try:
        parser = _SelectorParser(expression)
        read = parser.either(0)
        parser.end()
    except _UnsupportedError:
        return None
    return read


def _all(parts: list[Selector]) -> Selector:
    """Join by ``&&``: a false operand outweighs an error."""

    def joined(kind: DeviceKind) -> bool | None:
        values = [part(kind) for part in parts]
        return False if False in values else None if None in values else True

    return joined


def _any(parts: list[Selector]) -> Selector:
    """Join by ``||``: a true operand outweighs an error."""

    def joined(kind: DeviceKind) -> bool | None:
        values = [part(kind) for part in parts]
        return True if True in values else None if None in values else False

    return joined


def _not(part: Selector) -> Selector:
    def denied(kind: DeviceKind) -> bool | None:
        value = part(kind)
        return None if value is None else not value

    return denied


def _equal(value: AttributeValue, other: AttributeValue) -> bool:
    """Compare as CEL does: values of different types are never equal."""
    return type(value) is type(other) and value == other


class _SelectorParser:
    """A recursive descent parser, with a method for each rule of the grammar."""

    def __init__(self, expression: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        self._at = 0
        text = expression.strip()
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or len(text) > _MAX_LENGTH:
                raise _UnsupportedError
            self._tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
            at = match.end()

    def either(self, depth: int) -> Selector:
        """Parse operands of ``||``."""
        if depth > _MAX_DEPTH:
            raise _UnsupportedError
        parts = [self._both(depth)]
        while self._took("||"):
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else _any(parts)

    def end(self) -> None:
        """Raise where tokens are left."""
        if self._at < len(self._tokens):
            raise _UnsupportedError

    def _both(self, depth: int) -> Selector:
        parts = [self._negation(depth)]
        while self._took("&&"):
            parts.append(self._negation(depth))
        return parts[0] if len(parts) == 1 else _all(parts)

    def _negation(self, depth: int) -> Selector:
        if self._took("!"):  # binds tighter than a comparison
            return _not(self._group(depth) if self._peek() == "(" else self._flag(*self._subject()))
        if self._peek() == "(":
            return self._group(depth)
        source, read = self._subject()
        return self._size(read) if source == "capacity" else self._condition(source, read)

    def _group(self, depth: int) -> Selector:
        self._expect("(")
        inner = self.either(depth + 1)
        self._expect(")")
        return inner

    def _subject(self) -> tuple[str, _Value]:
        """Parse ``device.driver``, or an attribute or capacity by domain and name."""
        self._expect("device")
        self._expect(".")
        source = self._name()
        if source == "driver":
            return source, lambda kind: kind.driver
        if source not in {"attributes", "capacity"}:
            raise _UnsupportedError
        self._expect("[")
        domain = self._string()
        self._expect("]")
        if self._took("["):
            key = f"{domain}/{self._string()}"
            self._expect("]")
        else:
            self._expect(".")
            key = f"{domain}/{self._name()}"
        if source == "attributes":
            return source, lambda kind: dict(kind.attributes).get(key)
        return source, lambda kind: dict(kind.capacity).get(key)

    def _flag(self, source: str, read: _Value) -> Selector:
        """Parse a boolean attribute without an operator."""
        if source != "attributes":
            raise _UnsupportedError

        def met(kind: DeviceKind) -> bool | None:
            value = read(kind)
            return value if isinstance(value, bool) else None

        return met

    def _condition(self, source: str, read: _Value) -> Selector:
        """Parse a condition on the driver or on an attribute."""
        if self._took("."):
            test = _TEXT.get(self._name())
            if test is None:
                raise _UnsupportedError
            self._expect("(")
            part = self._string()
            self._expect(")")
            return _test(read, lambda value: test(value, part) if isinstance(value, str) else None)
        if self._took("in"):
            options = self._options()
            return _test(read, lambda value: any(_equal(value, option) for option in options))
        sign = self._peek()
        if sign not in _ORDER:
            return self._flag(source, read)
        self._at += 1
        literal = self._literal()
        if sign == "==":
            return _test(read, lambda value: _equal(value, literal))
        if sign == "!=":
            return _test(read, lambda value: not _equal(value, literal))
        if type(literal) is not int:
            raise _UnsupportedError
        return _test(read, lambda value: _ORDER[sign](value, literal) if type(value) is int else None)

    def _size(self, read: _Value) -> Selector:
        """Parse the comparison of a capacity with a quantity."""
        self._expect(".")
        method = self._name()
        if method not in {"compareTo", *_SIZE}:
            raise _UnsupportedError
        for token in ("(", "quantity", "("):
            self._expect(token)
        try:
            bound = parse_quantity(self._string())
        except ValueError as error:
            raise _UnsupportedError from error
        self._expect(")")
        self._expect(")")
        sign = _SIZE.get(method, "")
        if not sign:
            sign = self._peek()
            self._at += 1
            if sign not in _ORDER or self._literal() != 0:
                raise _UnsupportedError
        return _test(read, lambda value: _ORDER[sign](Quantity(int(value)), bound))

    def _options(self) -> list[AttributeValue]:
        self._expect("[")
        options = [self._literal()]
        while self._took(","):
            options.append(self._literal())
        self._expect("]")
        return options

    def _literal(self) -> AttributeValue:
        group, text = self._next()
        if group == "string":
            return text[1:-1]
        if group == "number":
            return int(text)
        if text in {"true", "false"}:
            return text == "true"
        raise _UnsupportedError

    def _string(self) -> str:
        group, text = self._next()
        if group != "string":
            raise _UnsupportedError
        return text[1:-1]

    def _name(self) -> str:
        group, text = self._next()
        if group != "name":
            raise _UnsupportedError
        return text

    def _next(self) -> tuple[str, str]:
        self._at += 1
        if self._at > len(self._tokens):
            raise _UnsupportedError
        return self._tokens[self._at - 1]

    def _peek(self) -> str:
        group, text = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        return "" if group in {"string", "number"} else text

    def _took(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._at += 1
        return True

    def _expect(self, token: str) -> None:
        if not self._took(token):
            raise _UnsupportedError


def _test(read: _Value, test: Callable[[AttributeValue], bool | None]) -> Selector:
    """Apply a test to a device's value; a missing value is an error."""

    def met(kind: DeviceKind) -> bool | None:
        value = read(kind)
        return None if value is None else test(value)

    return met
