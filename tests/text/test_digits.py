"""A number is written in ASCII digits: nothing else that Python takes for one is one here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _constants as sre
from re import _parser as parser
from typing import Any

import pytest

from reconciler.core.signals.prometheus import answer_value
from reconciler.errors import InvalidInput
from reconciler.model.units import parse_duration, parse_quantity
from reconciler.text.digits import is_digits, whole_number
from tests.text.test_linear_patterns import ROOT, found_patterns

FOREIGN = ("٣", "\uff11", "१२", "1_000", " 7 ", "+7", "²", "", "9" * 5_000)
"""Texts that are no number, though `int`, `str.isdigit` or `str.isdecimal` take some of them for one."""

TAKE_OUT = {
    "reconciler/adapters/git/remote_errors.py": "what hosts say, of which names and progress are taken out",
    "reconciler/text/redaction.py": "what looks like a secret, in any script",
    "reconciler/text/references.py": "what a host might read as a reference",
    "reconciler/text/targets.py": "what a chat might read as markup",
}
"""Modules whose patterns read no number, but take out of a text more than is meant, and why."""


@pytest.mark.parametrize("text", FOREIGN)
def test_a_whole_number_is_written_in_a_bounded_number_of_ascii_digits(text: str) -> None:
    assert whole_number(text) is None
    assert is_digits(text) is (text == FOREIGN[-1])


def test_a_whole_number_may_begin_with_zeros() -> None:
    assert [whole_number(text) for text in ("0", "007", "9" * 18)] == [0, 7, 10**18 - 1]
    assert whole_number("1234", digits=3) is None


@pytest.mark.parametrize("digit", ["٣", "\uff11", "१"])
def test_digits_of_other_scripts_are_no_quantity_duration_or_sample(digit: str) -> None:
    for read, text in ((parse_quantity, digit), (parse_quantity, f"1e{digit}"), (parse_duration, f"{digit}h")):
        with pytest.raises(ValueError, match="is not a"):
            read(text)
    for number in (digit, "1_000", " 7 ", "infinity", "nan"):
        with pytest.raises(InvalidInput, match="not Prometheus's"):
            answer_value({"status": "success", "data": {"resultType": "scalar", "result": [0, number]}})


def _takes_other_digits(nodes: Any) -> bool:
    return any(node == (sre.CATEGORY, sre.CATEGORY_DIGIT) for node in _nodes(nodes))


def _nodes(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list, parser.SubPattern)):
        yield value
        for item in value:
            yield from _nodes(item)


def test_no_pattern_that_reads_a_number_takes_digits_of_other_scripts() -> None:
    places = {
        place
        for (written, flags), (place, _) in found_patterns()[0].items()
        if isinstance(written, str)
        and not flags & re.ASCII
        and _takes_other_digits(parser.parse(written, flags))
        and re.split(": |:", place)[0] not in TAKE_OUT
    }
    assert places == set(), "write [0-9], or let the pattern have re.ASCII"


@pytest.mark.parametrize(
    ("written", "flags", "takes"), [(r"a(?:b|\d{2})", 0, True), (r"[x\d]", 0, True), (r"[0-9]+", 0, False)]
)
def test_a_class_of_all_digits_is_found_anywhere_in_a_pattern(written: str, flags: int, takes: bool) -> None:
    assert _takes_other_digits(parser.parse(written, flags)) is takes


def test_texts_are_asked_for_their_digits_by_one_module_alone() -> None:
    asks = re.compile(r"\.(?:isdigit|isdecimal|isnumeric)\b")
    modules = {
        str(path.relative_to(ROOT)) for path in (ROOT / "reconciler").rglob("*.py") if asks.search(path.read_text())
    }
    assert modules == {
        "reconciler/text/digits.py",
        "reconciler/text/redaction.py",  # what looks like a secret, in any script
        "reconciler/adapters/git/local.py",  # bytes, which have ASCII digits alone
    }
