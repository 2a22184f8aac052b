"""The forms of rules that no schema states, each on the fields of one definition of Kubernetes.

A rule holds wherever its definition stands: in a Pod, in the template of a Deployment, in that of a custom kind. Values
of a wrong type are left to `values`, and texts with an expression pass until they are rendered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from reconciler.core.expressions.dialect import has_expression
from reconciler.model.kubernetes.object_schema import Schema
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, Loc, shortened

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_PART = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""A part of a subdomain. API servers bound the whole of it alone."""
_DNS_SUBDOMAIN = re.compile(rf"{_PART}(\.{_PART})*")
_MAX_SUBDOMAIN = 253
_PORT_NAME = re.compile(r"(?=.{1,15}$)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
MAX_PORT = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleJudgement:
    """How strictly rules are applied."""

    # Whether expressions have been rendered already, so that braces are only braces.
    rendered: bool
    # Whether a controller completes the pod, so that nothing is required of it.
    partial: bool
    # Volumes that the controller adds, such as those of claim templates; None where an expression names one.
    claims: frozenset[str] | None = frozenset()

    def is_open(self, value: Json) -> bool:
        """Return whether an expression decides a value."""
        return not self.rendered and isinstance(value, str) and has_expression(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An object of some definition, and where it stands."""

    value: Mapping[str, Json]
    schema: Schema
    loc: Loc
    judgement: RuleJudgement

    def get(self, name: str) -> Json:
        """Return a field as it is written; None for an expression."""
        value = self.value.get(name)
        return None if self.judgement.is_open(value) else value

    def text(self, name: str) -> str | None:
        """Return a text; None for what is no text, and for an expression."""
        value = self.get(name)
        return value if isinstance(value, str) else None

    def number(self, name: str) -> int | None:
        """Return a whole number; None for anything else."""
        value = self.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def states(self, name: str) -> bool:
        """Return whether a field is stated, be it by an expression."""
        return self.value.get(name) is not None

    def is_open(self, *names: str) -> bool:
        """Return whether an expression decides one of these fields, or an item of one."""
        values = (self.value.get(name) for name in names)
        return any(map(self.judgement.is_open, (item for value in values for item in _items(value))))

    def texts(self, name: str) -> Iterator[tuple[str, Loc]]:
        """Yield the texts of a list, each with its place."""
        items = self.value.get(name)
        for index, item in enumerate(items) if isinstance(items, list) else ():
            if isinstance(item, str) and not self.judgement.is_open(item):
                yield item, (*self.loc, name, index)

    def object(self, name: str) -> Place | None:
        """Return the object in a field; None where there is none."""
        value = self.value.get(name)
        return self._below(value, self.schema.fields.get(name), (name,)) if isinstance(value, Mapping) else None

    def objects(self, *names: str) -> Iterator[Place]:
        """Yield the objects of lists, in their order."""
        for name in names:
            items, schema = self.value.get(name), self.schema.fields.get(name)
            below = schema.values if schema is not None else None
            for index, item in enumerate(items) if isinstance(items, list) else ():
                if isinstance(item, Mapping):
                    yield self._below(item, below, (name, index))

    def has_strangers(self) -> bool:
        """Return whether a field is misspelt: that is told once, and what is missing may be what it was to be."""
        return not self.value.keys() <= self.schema.fields.keys()

    def finding(self, message: str, hint: str = "", *below: str | int) -> Finding:
        """Make a finding about this object, or about a field of it."""
        return Finding(loc=(*self.loc, *below), message=message, hint=hint)

    def _below(self, value: Mapping[str, Json], schema: Schema | None, path: Loc) -> Place:
        return Place(
            value=value, schema=schema or Schema(type="object"), loc=(*self.loc, *path), judgement=self.judgement
        )


def _items(value: Json) -> Iterable[Json]:
    return value if isinstance(value, list | Mapping) else (value,)


Rule: TypeAlias = Callable[[Place], Iterator[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Syntax:
    """The syntax of a text."""

    takes: Callable[[str], bool]
    what: str
    """What a text of another syntax cannot be, after "cannot be"."""
    hint: str


def is_subdomain(text: str) -> bool:
    """Return whether a text may name an object: a DNS subdomain of at most 253 characters (RFC 1123)."""
    return len(text) <= _MAX_SUBDOMAIN and _DNS_SUBDOMAIN.fullmatch(text) is not None


DNS_LABEL = Syntax(
    takes=lambda text: _DNS_LABEL.fullmatch(text) is not None,
    what="a name here",
    hint="a-z, 0-9 and dashes, at most 63 characters",
)
OBJECT_NAME = Syntax(
    takes=is_subdomain, what="the name of an object", hint="a-z, 0-9, dashes and dots, at most 253 characters"
)
PORT_NAME = Syntax(
    takes=lambda text: not text or _PORT_NAME.fullmatch(text) is not None,
    what="the name of a port",
    hint="a-z, 0-9 and single dashes, with a letter, at most 15 characters",
)


def at_least(least: int, *names: str) -> Rule:
    """Keep whole numbers from being below one."""

    def check(place: Place) -> Iterator[Finding]:
        for name in names:
            number = place.number(name)
            if number is not None and number < least:
                yield place.finding(f"{number} is less than {least}", f"try {least}", name)

    return check


def within(least: int, most: int, name: str, what: str) -> Rule:
    """Keep a whole number between two others."""

    def check(place: Place) -> Iterator[Finding]:
        number = place.number(name)
        if number is not None and not least <= number <= most:
            yield place.finding(f"{number} is no {what}", f"{least} to {most}", name)

    return check


def filled(*names: str) -> Rule:
    """Require texts that are not empty. What the schema requires it tells itself."""

    def check(place: Place) -> Iterator[Finding]:
        for name in names:
            if place.value.get(name) == "":
                yield place.finding("it must not be empty", "", name)
            elif (
                not place.states(name)
                and name not in place.schema.required
                and not place.judgement.partial
                and not place.has_strangers()
            ):
                yield place.finding(f"{name} is required")

    return check


def like(syntax: Syntax, *names: str) -> Rule:
    """Require texts of one syntax."""

    def check(place: Place) -> Iterator[Finding]:
        for name in names:
            text = place.text(name)
            if text is not None and text and not syntax.takes(text):
                yield place.finding(f"{shortened(text)!r} cannot be {syntax.what}", syntax.hint, name)

    return check


def all_like(syntax: Syntax, *names: str) -> Rule:
    """Require lists of texts of one syntax."""

    def check(place: Place) -> Iterator[Finding]:
        for name in names:
            for text, loc in place.texts(name):
                if not syntax.takes(text):
                    message = f"{shortened(text)!r} cannot be {syntax.what}"
                    yield Finding(loc=loc, message=message, hint=syntax.hint)

    return check


def words(name: str, *allowed: str) -> Rule:
    """Require a text that is one of several, of which the schema does not tell."""

    def check(place: Place) -> Iterator[Finding]:
        text = place.text(name)
        if text and text not in allowed:
            yield place.finding(f"{shortened(text)!r} is not one of {', '.join(allowed)}", "", name)

    return check


def unique(key: str, *lists: str) -> Rule:
    """Require objects of lists to differ in a text."""

    def check(place: Place) -> Iterator[Finding]:
        seen = set[str]()
        for item in place.objects(*lists):
            text = item.text(key)
            if text in seen:
                yield item.finding(f"{text!r} is there twice", "give it another name", key)
            elif text:
                seen.add(text)

    return check


def one_of(*, required: bool, names: Sequence[str] = ()) -> Rule:
    """Allow one of several objects, and require one where it is `required`; without names, of all in the definition."""

    def check(place: Place) -> Iterator[Finding]:
        fields = names or [name for name, schema in place.schema.fields.items() if schema.type == "object"]
        stated = [name for name in fields if place.states(name)]
        given = [name for name in stated if not place.judgement.is_open(place.value[name])]
        if len(given) > 1:
            message = f"{' and '.join(given)} exclude each other"
            yield place.finding(message, "leave all but one of them out", given[-1])
        elif required and not place.judgement.partial and not stated and not place.has_strangers():
            yield place.finding(f"one of {', '.join(fields)} is required")

    return check


def below(*names: str) -> Rule:
    """Keep paths in their directory."""

    def check(place: Place) -> Iterator[Finding]:
        for name in names:
            path = place.text(name)
            if path is not None and (path.startswith("/") or ".." in path.split("/")):
                yield place.finding(f"{shortened(path)!r} leads out of its directory", "try one without / and ..", name)

    return check


def port(name: str) -> Rule:
    """Require a port by its number or its name."""

    def check(place: Place) -> Iterator[Finding]:
        number, text = place.number(name), place.text(name)
        if number is not None and not 1 <= number <= MAX_PORT:
            yield place.finding(f"{number} is no port", f"1 to {MAX_PORT}", name)
        elif text is not None and not (text and PORT_NAME.takes(text)):
            yield place.finding(f"{shortened(text)!r} cannot be {PORT_NAME.what}", PORT_NAME.hint, name)

    return check


def check_rules(
    rules: Mapping[str, Sequence[Rule]], value: Json, schema: Schema, loc: Loc, judgement: RuleJudgement
) -> Iterator[Finding]:
    """Apply the rules, which are listed by the names of definitions, to a value and to all that is in it."""
    if isinstance(value, list):
        if schema.values is not None:
            for index, item in enumerate(value):
                yield from check_rules(rules, item, schema.values, (*loc, index), judgement)
    elif isinstance(value, Mapping):
        if schema.name in rules:
            place = Place(value=value, schema=schema, loc=loc, judgement=judgement)
            for rule in rules[schema.name]:
                yield from rule(place)
        for name, item in value.items():
            if isinstance(item, list | Mapping):
                inside = schema.fields.get(name, schema.values)
                if inside is not None and inside.type:
                    yield from check_rules(rules, item, inside, (*loc, name), judgement)
