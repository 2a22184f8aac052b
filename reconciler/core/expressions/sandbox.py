"""Runs one expression of a template: no expression takes long, takes much memory, or reaches Python.

Jinja's own sandbox keeps expressions away from Python's internals but lets them work without end: nested loops of 10**8
turns ran for seconds, ``'a' * 10**9`` took a gigabyte (measured with Jinja 3.1.6). Python cannot be interrupted
cheaply, so every construct that multiplies work pays for it first, out of one `Budget` for the whole spec:

* each turn of a loop, nested or not, costs a unit for each node of the loop's body; ``range`` refuses what no
  budget could pay;
* each filter, comparison, concatenation, slice, key and call pays for its work, as `work` bounds it, and for the size
  of its result, so the budget bounds memory too;
* ``**``, multiplying texts and lists, and integers over 64 bits are refused outright, and so is the call of anything
  but ``range`` and the methods of `work`, whatever name it was reached by.

The budget is the only thing of a rendering that changes. Filters and tests whose Jinja form returns much more than it
reads are replaced. The syntax is checked before, by `dialect`.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from types import BuiltinMethodType
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateRuntimeError, Undefined, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS as JINJA_TESTS
from jinja2.visitor import NodeTransformer

from reconciler.core.expressions.work import (
    FILTERS,
    MAX_WORK,
    METHODS,
    OF_TEXTS,
    EvaluationBudget,
    ExhaustedError,
    copied,
    not_a_value,
    searched,
)
from reconciler.model.workload import Json
from reconciler.text.findings import shortened
from reconciler.text.spelling import nearest

MAX_INTEGER = 2**63
"""Kubernetes counts in 64 bits."""


def bounded_integer(value: Any) -> Any:
    """Return a value; raise SecurityError for an integer that exceeds 64 bits."""
    if isinstance(value, int) and not -MAX_INTEGER <= value < MAX_INTEGER:
        raise SecurityError("a number does not fit in 64 bits")
    return value


def to_json_value(value: Any, budget: EvaluationBudget) -> Json:
    """Convert the result of an expression to a value of a YAML document, paying for its size.

    Raises TemplateRuntimeError for any other value, such as a method that was not called.
    """
    budget.weigh(value)
    return _plain(value)


def _plain(value: Any) -> Json:
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return bounded_integer(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TemplateRuntimeError("the number is infinite")
        return value
    if isinstance(value, list | tuple | range):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, StrictUndefined):
        str(value)  # raises, and says which name is missing
    raise TemplateRuntimeError(not_a_value(value))


def shares(total: int, weights: Sequence[int]) -> list[int]:
    """Divide a total in proportion to weights, equally where all are 0; each share is off by less than one.

    The remainder of rounding down goes, one each, to the largest fractions; of equal ones to the earlier. Raises
    ValueError unless all arguments are whole numbers of at least 0, since templates may pass anything.
    """
    if not isinstance(weights, list | tuple) or not weights or not all(map(_counts, (total, *weights))):
        raise ValueError("shares divides a number by a list of numbers, none below 0: replicas | shares([4, 1])")
    parts = weights if any(weights) else [1] * len(weights)
    whole = sum(parts)
    made = [total * part // whole for part in parts]
    by_remainder = sorted(range(len(parts)), key=lambda place: -(total * parts[place] % whole))
    for place in by_remainder[: total - sum(made)]:
        made[place] += 1
    return made


def _counts(value: Any) -> bool:
    return type(value) is int and value >= 0


BUDGET = "overspill budget"
"""The variable with the remaining budget of a spec."""


def budget_of(context: Context) -> EvaluationBudget:
    """Return the remaining budget."""
    budget: EvaluationBudget = context.parent[BUDGET]
    return budget


@pass_context
def to_text(context: Context, value: Any) -> str:
    """Write a value as in the middle of a text: ``true``, ``3``, JSON for lists and mappings."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(bounded_integer(value))
    return _tojson(context, value)


def _tojson(context: Context, value: Any) -> str:
    return json.dumps(to_json_value(value, budget_of(context)), ensure_ascii=False)


def _join(context: Context, values: Iterable[Any], d: str = "") -> str:
    texts = [to_text(context, value) for value in values]
    between = to_text(context, d)
    budget_of(context).copy(sum(len(part) for part in texts) + len(between) * len(texts))
    return between.join(texts)


def _replace(context: Context, whole: str, old: str, new: str) -> str:
    budget_of(context).copy(len(whole) + whole.count(old) * len(new))
    return whole.replace(old, new)


def _round(_: Context, value: float, precision: int = 0) -> float:
    """Round half to even; Jinja's own computes ``10 ** precision`` for any precision."""
    return round(value, max(-15, min(15, int(precision))))


def _shares(context: Context, value: Any, weights: Any) -> list[int]:
    budget_of(context).weigh(weights)
    return shares(value, weights)


def _divisible(value: Any, number: Any) -> bool:
    """Test numbers; Jinja's own test of a text is printf-style formatting, padding and all."""
    if not isinstance(value, int) or not isinstance(number, int):
        raise SecurityError(f"only numbers are even, odd or divisible, here it has {type_name(value)}")
    return value % number == 0


def _is_odd(value: Any) -> bool:
    return not _divisible(value, 2)


def _is_even(value: Any) -> bool:
    return _divisible(value, 2)


OWN_FILTERS: Mapping[str, Callable[..., Any]] = {
    "join": _join, "replace": _replace, "round": _round, "shares": _shares, "string": to_text, "tojson": _tojson,
}  # fmt: skip # a table, a row a line
"""Filters by their names in templates."""

OWN_TESTS: Mapping[str, Callable[..., bool]] = {"divisibleby": _divisible, "even": _is_even, "odd": _is_odd}
"""Tests that replace Jinja's, which also take texts."""


def type_name(value: Any) -> str:
    """Return the name of a value's type in messages."""
    names = {str: "a text", list: "a list", dict: "a mapping", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else f"a {type(value).__name__}")


MAX_TEMPLATE = 65_536
"""Characters of one text with an expression."""

MAX_OUTPUT = 262_144
"""Characters of one rendered text."""

TESTS = frozenset({
    "boolean", "defined", "divisibleby", "even", "false", "float", "integer", "iterable", "mapping", "none", "number",
    "odd", "sequence", "string", "true", "undefined",
})  # fmt: skip # a list of words, filled line by line
"""Tests that a template may use, none of which reads more than the type or one number of its value."""

_TURNS = "overspill turns"
_WEIGH = "overspill weigh"
_CONCAT = "overspill concat"
_COMPARE = "overspill compare"
_RESULT = "result"


_MOST_COMPARED, _LONGEST = 64, 40
"""Keys that a missing one is compared with, and characters of each: every expression of a spec may miss one."""


class _Missing(StrictUndefined):
    """An undefined name; any use of it but ``default`` is an error that lists the defined ones."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        if self._undefined_hint:
            return self._undefined_hint
        name = shortened(str(self._undefined_name))
        if isinstance(self._undefined_obj, dict):
            hint = nearest(name, [shortened(str(key), _LONGEST) for key in islice(self._undefined_obj, _MOST_COMPARED)])
            return f"there is no {name!r} here: {hint or 'it is empty'}"
        return f"there is no {name!r} in a {type(self._undefined_obj).__name__}"


@pass_context
def _turns(context: Context, values: Iterable[Any], cost: int) -> Iterator[Any]:
    """Yield the values of a loop, paying the cost of its body for each turn."""
    spend = budget_of(context).spend
    for value in values:
        spend(cost)
        yield value


@pass_context
def _weigh(context: Context, value: Any) -> Any:
    """Pay for a value before it is sliced, hashed or printed as what is missing."""
    budget_of(context).weigh(value)
    return value


@pass_context
def _concat(context: Context, parts: list[Any]) -> str:
    """Join the operands of ``~``, paying before the text exists."""
    texts = [to_text(context, part) for part in parts]
    budget_of(context).copy(sum(len(part) for part in texts))
    return "".join(texts)


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "lteq": operator.le, "gt": operator.gt,
    "gteq": operator.ge, "in": lambda left, right: left in right, "notin": lambda left, right: left not in right,
}  # fmt: skip # a table, filled line by line


@pass_context
def _compare(context: Context, left: Any, *others: Any) -> bool:
    """Compare a value with the next, that with the one after it and so on: names of operators and operands in turn."""
    pairs = iter(others)
    for name, right in zip(pairs, pairs, strict=True):
        budget_of(context).pay(searched if name in ("in", "notin") else copied, right, (left,))
        if not _COMPARISONS[name](left, right):
            return False
        left = right
    return True


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja without a loader, with the filters and tests above, where every operation pays."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self) -> None:
        # Without the optimizer nothing is computed while compiling, where no budget is at hand.
        super().__init__(
            undefined=_Missing, optimized=False, keep_trailing_newline=True, finalize=to_text, cache_size=0
        )
        self._stock = ImmutableSandboxedEnvironment(undefined=_Missing, cache_size=0)
        self._stock.filters = {name: JINJA_FILTERS[name] for name in FILTERS.keys() - OWN_FILTERS.keys()}
        self.globals = {}
        self.tests = {name: JINJA_TESTS[name] for name in TESTS}
        self.tests |= OWN_TESTS
        self.filters = {name: self._paid(name) for name in FILTERS}
        self.filters |= {_TURNS: _turns, _WEIGH: _weigh, _CONCAT: _concat, _COMPARE: _compare}

    def _paid(self, name: str) -> Callable[..., Any]:
        """Wrap a filter to pay for its work and its output."""
        own = OWN_FILTERS.get(name)

        @pass_context
        def paid(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
            budget = budget_of(context)
            if name in OF_TEXTS:
                value = to_text(context, value)
            if name == "replace":
                args = tuple(to_text(context, text) for text in args)
                kwargs = {key: to_text(context, text) for key, text in kwargs.items()}
            budget.pay(FILTERS[name], value, (*args, *kwargs.values()))
            if own is not None:
                made = own(context, value, *args, **kwargs)
            else:
                made = self._stock.call_filter(name, value, args, kwargs, context=context)
            if isinstance(made, Iterator):
                made = list(made)
            budget.weigh(made)
            return bounded_integer(made)

        return paid

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute with numbers; concatenate texts or lists, paying for the sum."""
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if operator == "**" or not (numbers or (operator == "+" and isinstance(left, str | list))):
            if isinstance(left, StrictUndefined) or isinstance(right, StrictUndefined):
                return super().call_binop(context, operator, left, right)  # raises, and says which name is missing
            raise SecurityError(
                f"{operator!r} is for numbers only, here it has {type_name(left)} and {type_name(right)}"
            )
        if not numbers:
            budget_of(context).pay(copied, left, (right,))
        return bounded_integer(super().call_binop(context, operator, left, right))

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call ``range`` or a method that `work` knows, paying for its work and for the result.

        `dialect` sees names alone, and a method may hide behind a key of that name: ``{'get': a.format}.get(1)``.
        """
        budget = budget_of(context)
        subject = getattr(obj, "__self__", None)
        inputs = (*args, *kwargs.values())
        if isinstance(obj, BuiltinMethodType) and isinstance(subject, str | list | tuple | dict | range):
            if obj.__name__ not in METHODS:
                raise SecurityError(f"{obj.__name__!r} cannot be called in templates")
            budget.pay(METHODS[obj.__name__], subject, inputs)
        elif obj is _range or isinstance(obj, Undefined):  # the call of what is undefined says which name is missing
            budget.pay(copied, None, inputs)
        else:
            raise SecurityError(f"{type_name(obj)} cannot be called in templates")
        made = super().call(context, obj, *args, **kwargs)
        if not isinstance(made, str | range | Mapping) and isinstance(made, Iterable):
            made = list(made)
        if not isinstance(made, range):
            budget.weigh(made)
        return made


def _range(start: int, stop: int | None = None, step: int = 1) -> range:
    """Return a range whose turns the budget can pay for."""
    turns = range(start) if stop is None else range(start, stop, step)
    if turns and (turns[-1] - turns[0]) // turns.step >= MAX_WORK:
        raise ExhaustedError(f"range(...) would take more than {MAX_WORK:,} steps")
    return turns


ENVIRONMENT = _Environment()


def spec_variables(values: Mapping[str, Any], budget: EvaluationBudget | None = None) -> dict[str, Any]:
    """Return the variables of one spec: its context, ``range``, and its budget, a fresh one where none is given."""
    return {"range": _range, **values, BUDGET: budget or EvaluationBudget()}


class _Meter(NodeTransformer):
    """Inserts paying filters where Jinja has no hook: loops, comparisons, slices, keys and ``~``."""

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> nodes.Node:
        """Return the node that pays in place of one, with the nodes below it done."""
        turn = _size(node) if isinstance(node, nodes.For) else 0
        self.generic_visit(node, *args, **kwargs)
        if isinstance(node, nodes.For):
            node.iter = _filter(_TURNS, node.iter, nodes.Const(turn, lineno=node.lineno))
        elif isinstance(node, nodes.Compare):
            pairs = ((nodes.Const(operand.op, lineno=node.lineno), operand.expr) for operand in node.ops)
            return _filter(_COMPARE, node.expr, *chain.from_iterable(pairs))
        elif isinstance(node, nodes.Concat):
            return _filter(_CONCAT, nodes.List(node.nodes, lineno=node.lineno))
        elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice):
            node.node = _filter(_WEIGH, node.node)
        elif isinstance(node, nodes.Getitem):
            node.arg = _weighed(node.arg)
        elif isinstance(node, nodes.Pair):
            node.key = _weighed(node.key)
        return node


def _weighed(key: nodes.Expr) -> nodes.Expr:
    """Let a key pay that is not written out."""
    return key if isinstance(key, nodes.Const) else _filter(_WEIGH, key)


def _size(loop: nodes.For) -> int:
    """Count the nodes of one turn of a loop, itself included; inner loops pay for theirs again."""
    parts = [*loop.body, *([] if loop.test is None else [loop.test])]
    return 1 + sum(1 + sum(1 for _ in part.find_all(nodes.Node)) for part in parts)


def _filter(name: str, node: nodes.Node, *arguments: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(arguments), [], None, None, lineno=node.lineno)


def sole_expression(tree: nodes.Template) -> nodes.Expr | None:
    """Return the expression of a text that is nothing but one expression; else None."""
    if len(tree.body) == 1 and isinstance(output := tree.body[0], nodes.Output) and len(output.nodes) == 1:
        only = output.nodes[0]
        return None if isinstance(only, nodes.TemplateData) else only
    return None


TEXT_STEPS, NODE_STEPS = 600, 30
"""Microseconds that compiling takes for each text, and for each node of it."""


@dataclass(slots=True, kw_only=True)
class CompiledText:
    """A text whose expressions are compiled, and kept for the next evaluation as long as there is room."""

    template: Template
    typed: bool
    """Whether it is one expression and keeps its type."""
    unpaid: int
    """The steps that compiling took, until the first evaluation has paid for them."""


@lru_cache(maxsize=1024)
def compile_text(source: str) -> CompiledText:
    """Compile a text that `dialect` accepts."""
    tree = ENVIRONMENT.parse(source)
    only = sole_expression(tree)
    steps = TEXT_STEPS + NODE_STEPS * sum(1 for _ in tree.find_all(nodes.Node))
    if only is not None:
        tree.body = [nodes.Assign(nodes.Name(_RESULT, "store", lineno=1), only, lineno=1)]
    _Meter().visit(tree)
    tree.set_environment(ENVIRONMENT)
    template = Template.from_code(ENVIRONMENT, ENVIRONMENT.compile(tree), {})
    return CompiledText(template=template, typed=only is not None, unpaid=steps)


def evaluate(source: str, values: Mapping[str, Any]) -> Json:
    """Evaluate a text with the variables of its spec. Raises errors of Jinja and Python; `render` words them."""
    compiled = compile_text(source)
    template = compiled.template
    budget: EvaluationBudget = values[BUDGET]
    budget.compiled, compiled.unpaid = budget.compiled + compiled.unpaid, 0
    context = template.new_context(dict(values), shared=True)
    if compiled.typed:
        for _ in template.root_render_func(context):
            pass
        return to_json_value(context.vars[_RESULT], budget)
    pieces: list[str] = []
    size = 0
    for piece in template.root_render_func(context):
        budget.copy(len(piece))
        size += len(piece)
        if size > MAX_OUTPUT:
            raise ExhaustedError(f"the text becomes longer than {MAX_OUTPUT:,} characters")
        pieces.append(piece)
    return "".join(pieces)
