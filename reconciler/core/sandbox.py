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
from reconciler.core.filters import BUDGET, OWN, OWN_TESTS, budget_of, kind, text
from reconciler.core.findings import shortened
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
})  # fmt: skip # a list of words, filled line by line
"""The filters that a template may use."""

TESTS = frozenset({
    "boolean", "defined", "divisibleby", "even", "false", "float", "integer", "iterable", "mapping", "none", "number",
    "odd", "sequence", "string", "true", "undefined",
})  # fmt: skip # a list of words, filled line by line
"""The tests that a template may use; what compares is written with operators, which pay."""

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


@pass_context
def _turns(context: Context, values: Iterable[Any], cost: int) -> Iterator[Any]:
    """Yield the values of a loop, paying for each turn what the loop's body costs."""
    spend = budget_of(context).spend
    for value in values:
        spend(cost)
        yield value


@pass_context
def _weigh(context: Context, value: Any) -> Any:
    """Pay for a value that is about to be compared or sliced."""
    budget_of(context).weigh(value)
    return value


@pass_context
def _concat(context: Context, parts: list[Any]) -> str:
    """Join the operands of ``~``, paying before the text exists."""
    texts = [text(context, part) for part in parts]
    budget_of(context).spend(sum(len(part) for part in texts) >> 6)
    return "".join(texts)


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja without a loader, with the filters and tests above, where everything pays."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self) -> None:
        # Without the optimizer nothing is computed while compiling, where no budget is at hand.
        super().__init__(undefined=_Missing, optimized=False, keep_trailing_newline=True, finalize=text, cache_size=0)
        self._stock = ImmutableSandboxedEnvironment(undefined=_Missing, cache_size=0)
        self._stock.filters = {name: JINJA_FILTERS[name] for name in FILTERS - {*OWN}}
        self.globals = {}
        self.tests = {name: JINJA_TESTS[name] for name in TESTS}
        self.tests |= OWN_TESTS
        self.filters = {name: self._paid(name) for name in FILTERS}
        self.filters |= {_TURNS: _turns, _WEIGH: _weigh, _CONCAT: _concat}

    def _paid(self, name: str) -> Callable[..., Any]:
        """Make a filter pay for what it reads and for what it makes."""
        own = OWN.get(name)

        @pass_context
        def paid(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
            budget = budget_of(context)
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
            raise SecurityError(f"{operator!r} is for numbers only, here it has {kind(left)} and {kind(right)}")
        made = super().call_binop(context, operator, left, right)
        if not numbers:
            budget_of(context).weigh(made)
        return bounded(made)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call what `dialect` lets through, paying for the object whose method it is and for the result."""
        budget = budget_of(context)
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


ENVIRONMENT = _Environment()


def variables(values: Mapping[str, Any]) -> dict[str, Any]:
    """Make the variables of one spec: its context, ``range``, and a fresh budget."""
    return {"range": _range, **values, BUDGET: Budget()}


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
        return plain(context.vars[_RESULT], values[BUDGET])
    pieces: list[str] = []
    size = 0
    for piece in template.root_render_func(context):
        size += len(piece)
        if size > MAX_OUTPUT:
            raise ExhaustedError(f"the text becomes longer than {MAX_OUTPUT:,} characters")
        pieces.append(piece)
    return "".join(pieces)
