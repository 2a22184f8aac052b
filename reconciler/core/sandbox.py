"""Runs one expression of a template: nothing it can say takes long, takes much memory, or reaches Python.

Jinja's own sandbox keeps expressions away from Python's internals but lets them work without end: nested loops of 10**8
turns ran for seconds, ``'a' * 10**9`` took a gigabyte (reference/libraries.md, section 3). Python cannot be interrupted
cheaply, so every construct that multiplies work pays for it first, out of one `Budget` for the whole spec:

* each turn of a loop, nested or not, costs a unit for each node of what is in the loop; ``range`` refuses what no
  budget could pay;
* each filter, comparison, concatenation, slice and call pays for the size of what it reads and of what it makes;
* a text costs a unit for each 64 characters, so the budget bounds memory too;
* ``**``, multiplying texts and lists, and integers over 64 bits are refused outright.

What may be written at all is decided before, on the syntax tree (`dialect`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS as JINJA_TESTS

from reconciler.core.budget import MAX_WORK, Budget, ExhaustedError, bounded, plain
from reconciler.core.findings import shortened
from reconciler.core.remainders import shares
from reconciler.core.spelling import nearest
from reconciler.model.workload import Json

MAX_TEMPLATE = 65_536
"""Characters of one text that holds an expression."""

MAX_OUTPUT = 262_144
"""Characters that one text may become."""

FILTERS = frozenset({
    "abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "int", "items", "join", "last",
    "length", "list", "lower", "max", "min", "replace", "reverse", "round", "shares", "sort", "string", "sum", "title",
    "tojson", "trim", "truncate", "unique", "upper", "urlencode",
})  # fmt: skip
"""The filters that a template may use."""

TESTS = frozenset({
    "boolean", "defined", "divisibleby", "even", "false", "float", "integer", "iterable", "mapping", "none", "number",
    "odd", "sequence", "string", "true", "undefined",
})  # fmt: skip
"""The tests that a template may use; what compares is written with operators, which pay."""

_BUDGET = "overspill budget"
_TURNS = "overspill turns"
_WEIGH = "overspill weigh"
_CONCAT = "overspill concat"
_RESULT = "result"


class _Missing(StrictUndefined):
    """A name that turned out not to be there; any use of it but ``default`` is an error that says what is there."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        if self._undefined_hint:
            return self._undefined_hint
        name = shortened(str(self._undefined_name))
        if isinstance(self._undefined_obj, dict):
            hint = nearest(name, (str(key) for key in self._undefined_obj))
            return f"there is no {name!r} here: {hint or 'it is empty'}"
        return f"there is no {name!r} in a {type(self._undefined_obj).__name__}"


def _budget(context: Context) -> Budget:
    budget: Budget = context.parent[_BUDGET]
    return budget


@pass_context
def _turns(context: Context, values: Iterable[Any], cost: int) -> Iterator[Any]:
    """Yield the values of a loop, paying for each turn what the loop's body costs."""
    spend = _budget(context).spend
    for value in values:
        spend(cost)
        yield value


@pass_context
def _weigh(context: Context, value: Any) -> Any:
    """Pay for a value that is about to be compared or sliced."""
    _budget(context).weigh(value)
    return value


@pass_context
def _concat(context: Context, parts: list[Any]) -> str:
    """Join the operands of ``~``, paying before the text exists."""
    texts = [text(context, part) for part in parts]
    _budget(context).spend(sum(len(part) for part in texts) >> 6)
    return "".join(texts)


@pass_context
def text(context: Context, value: Any) -> str:
    """Write a value as it stands in the middle of a text: ``true``, ``3``, JSON for lists and mappings."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(bounded(value))
    return _tojson(context, value)


def _tojson(context: Context, value: Any) -> str:
    return json.dumps(plain(value, _budget(context)), ensure_ascii=False)


def _join(context: Context, values: Iterable[Any], d: str = "") -> str:
    texts = [text(context, value) for value in values]
    _budget(context).spend((sum(len(part) for part in texts) + len(str(d)) * len(texts)) >> 6)
    return str(d).join(texts)


def _replace(context: Context, value: Any, old: str, new: str) -> str:
    whole = text(context, value)
    _budget(context).spend((len(whole) + whole.count(str(old)) * len(str(new))) >> 6)
    return whole.replace(str(old), str(new))


def _round(_: Context, value: float, precision: int = 0) -> float:
    """Round half to even; Jinja's own computes ``10 ** precision`` for any precision."""
    return round(value, max(-15, min(15, int(precision))))


def _shares(context: Context, value: Any, weights: Any) -> list[int]:
    _budget(context).weigh(weights)
    return shares(value, weights)


def _divisible(value: Any, number: Any) -> bool:
    """Test numbers; Jinja's own test of a text is printf-style formatting, padding and all."""
    if not isinstance(value, int) or not isinstance(number, int):
        raise SecurityError(f"only numbers are even, odd or divisible, here it has {_kind(value)}")
    return value % number == 0


def _is_odd(value: Any) -> bool:
    return not _divisible(value, 2)


def _is_even(value: Any) -> bool:
    return _divisible(value, 2)


_OWN: Mapping[str, Callable[..., Any]] = {
    "join": _join, "replace": _replace, "round": _round, "shares": _shares, "string": text, "tojson": _tojson,
}  # fmt: skip
"""Filters whose Jinja form makes much out of little, or text that is not YAML's."""


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja without a loader, with the filters and tests above, where everything pays."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self) -> None:
        # Without the optimizer nothing is computed while compiling, where no budget is at hand.
        super().__init__(undefined=_Missing, optimized=False, keep_trailing_newline=True, finalize=text, cache_size=0)
        self._stock = ImmutableSandboxedEnvironment(undefined=_Missing, cache_size=0)
        self._stock.filters = {name: JINJA_FILTERS[name] for name in FILTERS - {*_OWN}}
        self.globals = {}
        self.tests = {name: JINJA_TESTS[name] for name in TESTS}
        self.tests |= {"divisibleby": _divisible, "even": _is_even, "odd": _is_odd}
        self.filters = {name: self._paid(name) for name in FILTERS}
        self.filters |= {_TURNS: _turns, _WEIGH: _weigh, _CONCAT: _concat}

    def _paid(self, name: str) -> Callable[..., Any]:
        """Make a filter pay for what it reads and for what it makes."""
        own = _OWN.get(name)

        @pass_context
        def paid(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
            budget = _budget(context)
            budget.weigh(value)
            if own is not None:
                made = own(context, value, *args, **kwargs)
            else:
                made = self._stock.call_filter(name, value, args, kwargs, context=context)
            if isinstance(made, Iterator):
                made = list(made)
            budget.weigh(made)
            return bounded(made)

        return paid

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute with numbers; add texts or lists, paying for the sum."""
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if operator == "**" or not (numbers or (operator == "+" and isinstance(left, str | list))):
            if isinstance(left, StrictUndefined) or isinstance(right, StrictUndefined):
                return super().call_binop(context, operator, left, right)  # raises, and says which name is missing
            raise SecurityError(f"{operator!r} is for numbers only, here it has {_kind(left)} and {_kind(right)}")
        made = super().call_binop(context, operator, left, right)
        if not numbers:
            _budget(context).weigh(made)
        return bounded(made)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call what `dialect` lets through, paying for the object whose method it is and for the result."""
        budget = _budget(context)
        budget.weigh(getattr(obj, "__self__", None))
        made = super().call(context, obj, *args, **kwargs)
        if not isinstance(made, str | range | Mapping) and isinstance(made, Iterable):
            made = list(made)
        if not isinstance(made, range):
            budget.weigh(made)
        return made


def _range(start: int, stop: int | None = None, step: int = 1) -> range:
    """Return Python's range where its turns can be paid at all."""
    turns = range(start) if stop is None else range(start, stop, step)
    if turns and (turns[-1] - turns[0]) // turns.step >= MAX_WORK:
        raise ExhaustedError(f"range(...) would take more than {MAX_WORK:,} steps")
    return turns


def _kind(value: Any) -> str:
    names = {str: "a text", list: "a list", dict: "a mapping", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else f"a {type(value).__name__}")


ENVIRONMENT = _Environment()


def variables(values: Mapping[str, Any]) -> dict[str, Any]:
    """Make the variables of one spec: its context, ``range``, and a fresh budget."""
    return {"range": _range, **values, _BUDGET: Budget()}


def _meter(tree: nodes.Template) -> None:
    """Put the paying filters where Jinja has no hook: loops, comparisons, slices and ``~``."""
    for node in list(tree.find_all((nodes.For, nodes.Compare, nodes.Concat, nodes.Getitem))):
        if isinstance(node, nodes.For):
            node.iter = _filter(_TURNS, node.iter, nodes.Const(_size(node), lineno=node.lineno))
        elif isinstance(node, nodes.Getitem):
            if isinstance(node.arg, nodes.Slice):
                node.node = _filter(_WEIGH, node.node)
        elif isinstance(node, nodes.Compare):
            node.expr = _filter(_WEIGH, node.expr)
            for operand in node.ops:
                operand.expr = _filter(_WEIGH, operand.expr)
        elif isinstance(node, nodes.Concat):
            node.nodes = [_filter(_CONCAT, nodes.List(node.nodes, lineno=node.lineno))]


def _size(loop: nodes.For) -> int:
    """Count what one turn of a loop may run through, the turn itself included; loops in it pay for theirs again."""
    parts = [*loop.body, *([] if loop.test is None else [loop.test])]
    return 1 + sum(1 + sum(1 for _ in part.find_all(nodes.Node)) for part in parts)


def _filter(name: str, node: nodes.Node, *arguments: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(arguments), [], None, None, lineno=node.lineno)


def single(tree: nodes.Template) -> nodes.Expr | None:
    """Return the expression of a text that is nothing but one expression, or None."""
    if len(tree.body) == 1 and isinstance(output := tree.body[0], nodes.Output) and len(output.nodes) == 1:
        only = output.nodes[0]
        return None if isinstance(only, nodes.TemplateData) else only
    return None


@lru_cache(maxsize=1024)
def compiled(source: str) -> tuple[Template, bool]:
    """Compile a text that `dialect` has found sound; tell whether it is one expression and keeps its type."""
    tree = ENVIRONMENT.parse(source)
    only = single(tree)
    if only is not None:
        tree.body = [nodes.Assign(nodes.Name(_RESULT, "store", lineno=1), only, lineno=1)]
    _meter(tree)
    tree.set_environment(ENVIRONMENT)
    return Template.from_code(ENVIRONMENT, ENVIRONMENT.compile(tree), {}), only is not None


def run(source: str, values: dict[str, Any]) -> Json:
    """Evaluate a text with the variables of its spec. Raises what Jinja and Python raise; `templates` words it."""
    template, typed = compiled(source)
    context = template.new_context(values, shared=True)
    if typed:
        for _ in template.root_render_func(context):
            pass
        return plain(context.vars[_RESULT], values[_BUDGET])
    pieces: list[str] = []
    size = 0
    for piece in template.root_render_func(context):
        size += len(piece)
        if size > MAX_OUTPUT:
            raise ExhaustedError(f"the text becomes longer than {MAX_OUTPUT:,} characters")
        pieces.append(piece)
    return "".join(pieces)
