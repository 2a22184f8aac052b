"""The dialect of expressions in a template, checked on the syntax tree before any of them runs.

Called when a file is loaded (`render.check_expressions`) and before a text is compiled. The dialect is Jinja's
expressions with ``if`` and ``for``; no ``set``, macro, include or import, only the tests of `sandbox`, the filters of
`work`, and calls of ``range`` and of the methods of `work`.
Names and the attributes of names are known, so that a misspelt one is reported with its nearest neighbour.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from jinja2 import TemplateSyntaxError, nodes

from reconciler.core.expressions.sandbox import ENVIRONMENT, MAX_INTEGER, MAX_TEMPLATE, TESTS
from reconciler.core.expressions.work import FILTERS, METHODS
from reconciler.model.bounds import FILE_EXPRESSIONS
from reconciler.text.findings import shortened
from reconciler.text.spelling import nearest

Shape: TypeAlias = "Mapping[str, Shape] | str | None"
"""The type of a name: its attributes, a description ("a text"), or None for an unknown type."""

CONTEXT: Mapping[str, Shape] = {
    "replicas": "a number",
    "cluster": {"name": "a text", "labels": None},
    "placement": {
        "name": "a text",
        "namespace": "a text",
        "subset": "a text",
        "expiresAt": "a text",
        "createdAt": "a text",
    },
    "workspace": {"name": "a text", "primaryCluster": "a text"},
    "template": {"name": "a text", "namespace": "a text"},
}
"""Names that an expression may use. Times are RFC 3339 in UTC."""

_WORKLOAD: Mapping[str, Shape] = {"namespace": "a text", "name": "a text", "template": "a text", "workspace": "a text"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpressionSite:
    """A place of expressions: its name in messages, and the names that they may use."""

    word: str
    names: Mapping[str, Shape]


TEMPLATE = ExpressionSite(word="template", names=CONTEXT)
QUERY = ExpressionSite(word="query", names=_WORKLOAD)
"""A Prometheus query, with the workload object on the primary, its template and its workspace."""

_BEFORE_ATTRIBUTE = {"join": 1, "max": 1, "min": 1, "sort": 2, "sum": 0, "unique": 1}
"""Arguments of a filter before ``attribute``, which may be given by position."""

MAX_DEPTH = 60
"""Nesting of one expression's syntax tree; the compiler recurses."""

MAX_NODES = 4_000
"""Nodes of one text's syntax tree; compiling takes about 20 microseconds for each."""

MAX_BLOCKS = 6
"""Nesting of ``if`` and ``for``; Python itself stops at 20."""

_LOOP = frozenset(
    {"depth", "first", "index", "index0", "last", "length", "nextitem", "previtem", "revindex", "revindex0"}
)

_PLAIN = (
    nodes.Output, nodes.Slice, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg,
    nodes.Pos, nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Concat, nodes.List,
    nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Keyword, nodes.If, nodes.Template, nodes.TemplateData,
)  # fmt: skip # a list of words, filled line by line
"""Nodes that are allowed if their child nodes are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A construct that an expression may not use."""

    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionReading:
    """Analysis of one text: the context's names that it reads, and its faults."""

    names: frozenset[str] = frozenset()
    faults: tuple[Fault, ...] = ()


def has_expression(text: str) -> bool:
    """Return whether a text contains an expression."""
    return "{" in text and ("{{" in text or "{%" in text or "{#" in text)


class _TokenAllowance:
    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = FILE_EXPRESSIONS.most


_ALLOWANCE: ContextVar[_TokenAllowance | None] = ContextVar("tokens of the expressions of a file", default=None)


@contextmanager
def bounded_expressions() -> Iterator[None]:
    """Let all objects that are checked in a block, as those of one file, share one bound on their expressions."""
    token = _ALLOWANCE.set(_TokenAllowance())
    try:
        yield
    finally:
        _ALLOWANCE.reset(token)


def too_many_tokens(texts: Iterable[str]) -> bool:
    """Count the tokens of texts before any of them is parsed, and return whether there are too many.

    Outside of `bounded_expressions` the texts have a bound to themselves.
    """
    allowance = _ALLOWANCE.get() or _TokenAllowance()
    for text in texts:
        with suppress(TemplateSyntaxError):  # which parsing meets as well, and says where
            for _ in ENVIRONMENT.lex(text):
                allowance.left -= 1
                if allowance.left < 0:
                    return True
    return False


@lru_cache(maxsize=4096)
def read_expression(text: str, place: ExpressionSite = TEMPLATE) -> ExpressionReading:
    """Parse a text with expressions; return the names that it reads and its faults."""
    if len(text) > MAX_TEMPLATE:
        return ExpressionReading(
            faults=(Fault(message=f"the text has an expression and over {MAX_TEMPLATE:,} characters"),)
        )
    try:
        tree = ENVIRONMENT.parse(text)
    except TemplateSyntaxError as error:
        where = f" in line {error.lineno} of the text" if "\n" in text else ""
        hint = "write {% raw %}...{% endraw %} round braces that are meant for somebody else"
        return ExpressionReading(
            faults=(Fault(message=f"the expression is broken{where}: {error.message}", hint=hint),)
        )
    except RecursionError:
        return ExpressionReading(faults=(_DEEP,))
    except ValueError:  # Python refuses to read a number of thousands of digits
        return ExpressionReading(faults=(_LARGE,))
    walk = _Walk(place)
    walk.visit(tree, frozenset(), 0, 0)
    return ExpressionReading(names=frozenset(walk.names), faults=tuple(dict.fromkeys(walk.faults)))


_DEEP = Fault(message="the expression is nested too deeply")
_LONG = Fault(message="the text has too many expressions, or too long ones")
_LARGE = Fault(message="a number does not fit in 64 bits")
_ENDLESS = Fault(message="a number is too large to be one", hint="write a number below 1e308")


class _Walk:
    """Walks one syntax tree and collects names and faults. `visit` returns the type of a node's value."""

    def __init__(self, place: ExpressionSite) -> None:
        self.place = place
        self.names: set[str] = set()
        self.faults: list[Fault] = []
        self.nodes = 0

    def fault(self, message: str, hint: str = "") -> None:
        self.faults.append(Fault(message=message, hint=hint))

    def visit(self, node: nodes.Node, local: frozenset[str], depth: int, blocks: int) -> Shape:
        self.nodes += 1
        if depth > MAX_DEPTH or blocks > MAX_BLOCKS or self.nodes > MAX_NODES:
            self.faults.append(_LONG if self.nodes > MAX_NODES else _DEEP)
            return None
        if isinstance(node, nodes.Name):
            return self.name(node, local)
        if isinstance(node, nodes.Const):
            return self.constant(node)
        if isinstance(node, nodes.Getattr | nodes.Getitem):
            return self.attribute(node, local, depth, blocks)
        if isinstance(node, nodes.For):
            return self.loop(node, local, depth, blocks)
        if isinstance(node, nodes.Call):
            return self.call(node, local, depth, blocks)
        if self.allowed(node):
            inner = blocks + isinstance(node, nodes.If)
            for child in node.iter_child_nodes():
                self.visit(child, local, depth + 1, inner)
        return None

    def allowed(self, node: nodes.Node) -> bool:
        """Return whether a kind of node is allowed in a template."""
        if isinstance(node, nodes.Filter):
            self.known("filter", node.name, FILTERS)
            self.arguments(node)
        elif isinstance(node, nodes.Test):
            self.known("test", node.name, TESTS)
            self.arguments(node)
        elif isinstance(node, nodes.Pow):
            self.fault("'**' is not available in templates", "write the product out")
        elif not isinstance(node, _PLAIN):
            word = type(node).__name__
            self.fault(f"{_STATEMENTS.get(word, word)} is not available in templates", "use {{ }}, if and for")
            return False
        return True

    def constant(self, node: nodes.Const) -> Shape:
        if isinstance(node.value, int) and not -MAX_INTEGER <= node.value < MAX_INTEGER:
            self.faults.append(_LARGE)
        if isinstance(node.value, float) and not math.isfinite(node.value):
            self.faults.append(_ENDLESS)
        return "a text" if isinstance(node.value, str) else None

    def name(self, node: nodes.Name, local: frozenset[str]) -> Shape:
        if node.ctx != "load" or node.name in local:
            return None
        defined = self.place.names
        if node.name in defined:
            self.names.add(node.name)
            return defined[node.name]
        self.fault(f"no {self.place.word} knows the name {shortened(node.name)!r}", nearest(node.name, defined))
        return None

    def attribute(
        self,
        node: nodes.Getattr | nodes.Getitem,
        local: frozenset[str],
        depth: int,
        blocks: int,
        *,
        called: bool = False,
    ) -> Shape:
        """Look up an attribute; a called one may also be a method."""
        if isinstance(node, nodes.Getattr):
            key: object = node.attr
        else:
            key = node.arg.value if isinstance(node.arg, nodes.Const) else None
            self.visit(node.arg, local, depth + 1, blocks)
        owner = self.visit(node.node, local, depth + 1, blocks)
        if not isinstance(key, str):
            return None
        if called and key in METHODS:
            return None
        if key.startswith("_"):
            self.fault(f"{shortened(key)!r} is private", "use the documented names only")
        elif isinstance(node.node, nodes.Name) and node.node.name == "loop" and "loop" in local:
            self.known("attribute of loop", key, _LOOP)
        elif isinstance(owner, Mapping):
            if key in owner:
                return owner[key]
            self.fault(f"{_source_of(node.node)} has no {shortened(key)!r}", nearest(key, owner))
        elif isinstance(owner, str):
            self.fault(f"{_source_of(node.node)} is {owner} and has no {shortened(key)!r}")
        return None

    def loop(self, node: nodes.For, local: frozenset[str], depth: int, blocks: int) -> Shape:
        if node.recursive:
            self.fault("a recursive loop is not available in templates", "use {{ }}, if and for")
        self.visit(node.iter, local, depth + 1, blocks)
        inner = local | {name.name for name in node.target.find_all(nodes.Name)} | {"loop"}
        if isinstance(node.target, nodes.Name):
            inner |= {node.target.name}
        for part in (*([node.test] if node.test is not None else []), *node.body):
            self.visit(part, inner, depth + 1, blocks + 1)
        for part in node.else_:
            self.visit(part, local, depth + 1, blocks + 1)
        return None

    def call(self, node: nodes.Call, local: frozenset[str], depth: int, blocks: int) -> Shape:
        callee = node.node
        if isinstance(callee, nodes.Getattr) and callee.attr in METHODS:
            self.attribute(callee, local, depth, blocks, called=True)
        elif not (isinstance(callee, nodes.Name) and callee.name == "range" and "range" not in local):
            what = callee.attr if isinstance(callee, nodes.Getattr) else getattr(callee, "name", "this")
            self.fault(
                f"{shortened(what)!r} cannot be called in templates",
                f"there are range and {', '.join(sorted(METHODS))}",
            )
        self.arguments(node)
        for argument in (*node.args, *node.kwargs):
            self.visit(argument, local, depth + 1, blocks)
        return None

    def arguments(self, node: nodes.Call | nodes.Filter | nodes.Test) -> None:
        """Refuse unpacked and repeated arguments, and ``attribute``, a path into each item."""
        for key, times in Counter(str(getattr(argument, "key", "")) for argument in node.kwargs).items():
            if times > 1:
                self.fault(f"the argument {shortened(key)!r} is given {times} times", "give it once")
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            self.fault("'*' and '**' arguments are not available in templates", "write the arguments out")
        if isinstance(node, nodes.Filter) and (
            any(argument.key == "attribute" for argument in node.kwargs)
            or len(node.args) > _BEFORE_ATTRIBUTE.get(node.name, len(node.args))
        ):
            self.fault(f"the attribute argument of {node.name!r} is not available in templates", "use a for loop")

    def known(self, what: str, name: str, names: Collection[str]) -> None:
        if name not in names:
            self.fault(f"there is no {what} {shortened(name)!r} in templates", nearest(name, names))


_STATEMENTS = {
    "Assign": "{% set %}", "AssignBlock": "{% set %}", "With": "{% with %}", "Macro": "{% macro %}",
    "CallBlock": "{% call %}", "FilterBlock": "{% filter %}", "Include": "{% include %}", "Import": "{% import %}",
    "FromImport": "{% from %}", "Extends": "{% extends %}", "Block": "{% block %}",
    "ScopedEvalContextModifier": "{% autoescape %}",
}  # fmt: skip # a list of words, filled line by line


def _source_of(node: nodes.Node) -> str:
    """Return the source of a node, as far as it is a name."""
    if isinstance(node, nodes.Name):
        return node.name
    if isinstance(node, nodes.Getattr):
        return f"{_source_of(node.node)}.{node.attr}"
    return repr(shortened(node.value)) if isinstance(node, nodes.Const) and isinstance(node.value, str) else "this"
