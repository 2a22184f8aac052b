"""Expressions that would take for ever, or all memory: each dies at once, with a reason."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from reconciler.core.expressions import render
from reconciler.errors import InvalidInput
from tests.builders.deploy_specs import chart, rendered, spec
from tests.builders.memory import peak_memory

LONG = "x" * 20_000
END = "{% endfor %}"


def growing(operator: str) -> str:
    """Nested loops whose variables are each six times as long as the one before, from 20 kB on."""
    loops = [f"{{% for {y} in [{f' {operator} '.join(x * 6)}] %}}" for x, y in pairwise("abcdefgh")]
    return f"{{% for a in ['{LONG}'] %}}" + "".join(loops[:5]) + "{{ f | length }}" + END * 6


BOMBS = {
    "a loop of 10^9 turns": ("{% for i in range(1000000000) %}x{% endfor %}", "more than 100,000 steps"),
    "a loop over a range far away": ("{% for i in range(10, 99999999999, 3) %}{% endfor %}", "more than 100,000 steps"),
    "nested loops": (
        "{% for i in range(90000) %}{% for j in range(90000) %}" + END * 2,
        "too much work",
    ),
    "loops inside a range that can be paid once": (
        "{% for i in range(99) %}{{ range(99999) | list | length }}{% endfor %}",
        "too much work",
    ),
    "a text times a number": ("{{ 'a' * 1000000000 }}", "'*' is for numbers only"),
    "a list times a number": ("{{ [1] * 1000000000 }}", "'*' is for numbers only"),
    "printf-style padding": ("{{ '%900000000d' % 1 }}", "'%' is for numbers only"),
    "padding in a test": ("{{ '%900000000d' is odd }}", "only numbers are even, odd or divisible"),
    "padding in another test": ("{{ '%900000000d' is divisibleby(7) }}", "only numbers are even, odd or divisible"),
    "a power": ("{{ 10 ** 10 ** 10 }}", "'**' is not available"),
    "a product over 64 bits": ("{{ 4000000000 * 4000000000 * replicas }}", "does not fit in 64 bits"),
    "a literal over 64 bits": ("{{ " + "9" * 400 + " }}", "does not fit in 64 bits"),
    "a literal that Python does not read": ("{{ " + "9" * 5000 + " }}", "does not fit in 64 bits"),
    "replacing by more and more": (
        f"{{{{ 'aaaaaaaaaa' | replace('a', '{LONG}') | replace('x', '{LONG}') }}}}",
        "too much work",
    ),
    "joining with a long text": (f"{{{{ range(90000) | join('{LONG}') }}}}", "too much work"),
    "joining operands": (growing("~"), "too much work"),
    "adding operands": (growing("+"), "too much work"),
    "a list that holds itself many times over": (
        (
            "{% for a in [range(1000) | list] %}{% for b in [[a, a, a, a, a, a]] %}{% for c in [[b, b, b, b, b, b]] %}"
            "{% for d in [[c, c, c, c, c, c]] %}{{ d | tojson }}" + END * 4
        ),
        "too much work",
    ),
    "comparing what is long": (
        (
            "{% for a in [range(9000) | list] %}{% for b in [range(9000) | list] %}{% for i in range(9000) %}"
            "{{ a == b }}" + END * 3
        ),
        "too much work",
    ),
    "searching what is long": (
        "{% for a in [range(9000) | list] %}{% for i in range(9000) %}{{ 'x' in a }}" + END * 2,
        "too much work",
    ),
    "methods of a long text": (
        f"{{% for a in ['{LONG}'] %}}{{% for i in range(9000) %}}{{{{ a.upper() | length }}}}" + END * 2,
        "too much work",
    ),
    "much work in each turn": (
        "{% for i in range(99000) %}{% if [" + "1-1," * 900 + "] and 0 %}{% endif %}" + END,
        "too much work",
    ),
    "much work in the test of a loop": (
        "{% for i in range(99000) if [" + "1-1," * 900 + "] and 0 %}" + END,
        "too much work",
    ),
    "slices of a long list": (
        "{% for a in [range(25000) | list] %}{% for i in range(40000) %}{% if ["
        + "a[1:]," * 300
        + "] and 0 %}{% endif %}"
        + END * 2,
        "too much work",
    ),
    "slices of a long text": (
        f"{{% for a in ['{LONG}'] %}}{{{{ [" + "a[1:]," * 400 + "] | length }}" + END,
        "too much work",
    ),
    "a long path into every item": (
        "{{ '" + "a" * 12_000 + "' | list | max(attribute='" + ".".join("0" * 12_000) + "') }}",
        "the attribute argument of 'max' is not available",
    ),
    "a path that is not called attribute": (
        "{{ [1] | sort(false, false, '0.0') }}",
        "the attribute argument of 'sort'",
    ),
    "a path in arguments that are unpacked": ("{{ [1] | max(**{'attribute': '0'}) }}", "arguments are not available"),
    "printing too much": (
        "{% for i in range(9000) %}" + "x" * 99 + "{{ placement.name }}{% endfor %}",
        "longer than 262,144",
    ),
    "parentheses without end": ("{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}", "nested too deeply"),
    "lists without end": ("{{ " + "[" * 90 + "1" + "]" * 90 + " }}", "nested too deeply"),
    "negations without end": ("{{ " + "not " * 12_000 + "1 }}", "nested too deeply"),
    "sums without end": ("{{ " + "+".join("1" * 4_000) + " }}", "nested too deeply"),
    "blocks without end": ("{% if 1 %}" * 30 + "{% endif %}" * 30, "nested too deeply"),
    "a recursive loop": ("{% for a in [1] recursive %}{{ loop([a]) }}{% endfor %}", "recursive loop is not available"),
    "expressions without end": ("{{ 1 }}" * 5_000, "too many expressions"),
    "a list without end": ("{{ [" + "1," * 5_000 + "] }}", "too many expressions"),
    "a text too long to be a template": ("{{ 1 }}" + "x" * 70_000, "over 65,536 characters"),
}


@pytest.mark.parametrize(("text", "message"), BOMBS.values(), ids=BOMBS)
@pytest.mark.exhaustive(one_in=4)
def test_a_bomb_dies_at_once_and_says_why(text, message):
    peak, started = peak_memory(), time.process_time()
    with pytest.raises(InvalidInput) as caught:
        rendered(text)
    took = time.process_time() - started
    assert message in str(caught.value)
    assert took < 10  # of CPU; it would take hours: a tenth of a second is usual
    assert peak() < 40 * 2**20


def test_a_spec_with_megabytes_of_expressions_is_refused_before_they_are_parsed():
    started = time.process_time()
    deployed = spec(chart(values={"it": [f"{{{{ {number} }}}} {LONG}" for number in range(50)]}))
    (finding,) = render.check_expressions(deployed)
    assert time.process_time() - started < 10
    assert finding.message == "the texts that have expressions hold over 131,072 characters"


def test_a_spec_of_thousands_of_different_expressions_is_refused_before_they_are_compiled():
    deployed = spec(chart(values={"it": [f"{{{{ {number} }}}}" for number in range(5_000)]}))
    assert [finding.message for finding in render.check_expressions(deployed)] == [
        "over 1,000 different texts have expressions"
    ]
    assert render.check_expressions(spec(chart(values={"it": ["{{ replicas }}"] * 5_000}))) == ()


def test_all_expressions_of_a_spec_share_one_budget():
    leaf = "{% for i in range(30000) %}{% endfor %}"
    assert rendered([leaf] * 3) == [""] * 3
    with pytest.raises(InvalidInput, match="too much work"):
        rendered([leaf] * 4)


def test_the_budget_is_new_for_each_rendering():
    leaf = "{% for i in range(60000) %}{% endfor %}"
    assert [rendered(leaf) for _ in range(3)] == ["", "", ""]


def test_rounding_to_any_number_of_digits_is_harmless():
    assert rendered("{{ 2.25 | round(1000000000) }}") == 2.25


def test_checking_a_bomb_costs_no_more_than_rendering_it():
    started = time.process_time()
    for text, _ in BOMBS.values():
        render.check_expressions(spec(chart(values={"it": text})))
    assert time.process_time() - started < 10
