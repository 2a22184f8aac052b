"""Whatever a checker or the tests are told to pass over has its reason beside it, for whoever asks why."""

import re
from functools import cache
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PRAGMA = re.compile(r"# *(?:noqa|type: ignore|fmt: (?:skip|off)|pragma:|nosec|pylint:|pyright:)")
"""Where a checker, the formatter or the coverage of Python code is told to look away."""
REASONED = re.compile(
    r"# *(?:noqa: [A-Z]+[0-9]+(?:, [A-Z]+[0-9]+)*|type: ignore\[[a-z-]+(?:, [a-z-]+)*\]|fmt: skip) +(?:--?|#) *\S+ \S+"
)
"""What is passed over is named, and at least two words say why."""
ELSEWHERE = re.compile(r"(?:--?|#) *(?:as (?:said )?(?:above|below|there)|see (?:above|below))$")
SKIP = re.compile(r"pytest\.(?:skip\(|mark\.(?:skip|skipif)\(|importorskip\()")
SKIPPED = re.compile(r"pytest\.(?:skip\([^)]|mark\.skipif\(.*reason=)")
XFAIL = re.compile(r"pytest\.mark\.xfail\b")
XFAILED = re.compile(r"pytest\.mark\.xfail\(\s*strict=True,(?:\s*raises=\w+,)?\s*reason=[^,)]{2,}")
"""What the product does wrong is named, and whoever mends it has to take the mark off."""


@cache
def lines() -> list[tuple[str, str]]:
    """List the lines of all modules that may hold a comment or a skip, with their places."""
    return [
        (f"{path.relative_to(CHECKOUT)}:{number}", line)
        for part in ("reconciler", "tests")
        for path in sorted((CHECKOUT / part).rglob("*.py"))
        if path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if "#" in line or "pytest" in line
    ]


def test_what_is_passed_over_says_why_where_it_stands() -> None:
    pragmas = [(place, line) for place, line in lines() if PRAGMA.search(line)]
    assert pragmas
    assert [place for place, line in pragmas if not REASONED.search(line) or ELSEWHERE.search(line)] == []


def test_what_is_skipped_says_what_is_missing() -> None:
    skips = [(place, line) for place, line in lines() if SKIP.search(line)]
    assert skips
    assert [place for place, line in skips if not SKIPPED.search(line)] == []


def test_what_is_expected_to_fail_says_what_the_product_does_wrong() -> None:
    modules = [path for path in sorted((CHECKOUT / "tests").rglob("*.py")) if path != Path(__file__)]
    marks = [
        (path, text, match.start()) for path in modules for text in [path.read_text()] for match in XFAIL.finditer(text)
    ]
    assert [str(path) for path, text, at in marks if not XFAILED.match(text, at)] == []


def test_no_test_silences_a_type_checker_that_never_reads_it() -> None:
    assert [place for place, line in lines() if place.startswith("tests/") and "# type: ignore" in line] == []


@pytest.mark.parametrize(
    "line",
    [
        "x = 1  # noqa",
        "x = 1  # noqa: S101",
        "x = 1  # type: ignore - no code here",
        "x = 1  # noqa: S101 - why",
        "]  # fmt: skip",
    ],
)
def test_a_reason_is_more_than_a_word(line: str) -> None:
    assert PRAGMA.search(line)
    assert not REASONED.search(line)
