"""A plan as Markdown: the comment of a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import Any

from reconciler.cli import printing
from reconciler.cli.actions.remote import problems_of
from reconciler.errors import Problem, Severity
from reconciler.model.placement import place_name
from reconciler.text.markdown import code, escaped, row, table
from reconciler.text.wording import count

MARKER = "<!-- overspill plan -->"
"""The first line, by which a workflow finds the comment that it keeps up to date."""
_MOST_LINES = 100
"""Rows of a table, or problems."""
_QUESTIONS, _COMMITS, _HELD_BACK, _REFUSED, _PROBLEMS = 2_000, 24_000, 12_000, 6_000, 12_000
"""Most characters of each part; with its headings the whole stays below 60,000. A comment of GitHub holds 65,536."""


def markdown_plan(plan: Mapping[str, Any]) -> str:
    """Return a plan, from its JSON, with its money, what is held back, and the problems of the files."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Mapping[str, Any]) -> Iterator[str]:
    yield MARKER
    yield f"### Overspill plan: {count(len(plan['commits']), 'commit')}, {len(plan['suppressed'])} held back"
    yield ""
    yield from _fitting([f"{escaped(question)}\n" for question in plan["supposed"]], _QUESTIONS, "{}\n")
    yield from _changes(plan["commits"])
    if cost := money(plan["cost"]):
        yield cost
        yield ""
    yield from _held_back(plan["suppressed"])
    yield from _problems(problems_of(plan["problems"]))
    yield f"Of {code((plan['source'] or '')[:12])}, as the clusters were seen at {plan['at']}."


def _changes(commits: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not commits:
        yield "Nothing to change."
        yield ""
        return
    fields = ("action", "workload", "cluster", "replicas", "until", "why")
    rows = [[escaped(printing.cell(commit["row"][field])) for field in fields] for commit in commits]
    yield _table(("", *fields[1:]), rows, _COMMITS)
    yield ""


def _held_back(suppressed: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Fold the replicas that are held back, and the clusters that were refused for them."""
    if suppressed:
        rows = [
            (code(entry["workload"]), entry["reason"], str(entry["replicas"] or ""), escaped(entry["message"]))
            for entry in suppressed
        ]
        yield from _folded("Held back", _table(("workload", "reason", "replicas", "why"), rows, _HELD_BACK))
    refused = [
        (
            code(entry["workload"]), code(place_name(refusal["cluster"], refusal["subset"])), refusal["reason"],
            escaped(refusal["message"]), escaped(refusal["remedy"]),
        )
        for entry in suppressed
        for refusal in entry["refusals"]
    ]  # fmt: skip # a row as it is printed
    if refused:
        headers = ("workload", "cluster", "reason", "why", "what would change it")
        yield from _folded("Refused clusters", _table(headers, refused, _REFUSED))


def _folded(summary: str, text: str) -> Iterator[str]:
    yield f"<details><summary>{summary}</summary>"
    yield ""
    yield text
    yield ""
    yield "</details>"
    yield ""


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]], most: int) -> str:
    """Return a table whose rows have at most the given number of characters."""
    empty = ("",) * (len(headers) - 1)
    return "\n".join([table(headers, []), *_fitting([row(cells) for cells in rows], most, row(("{}", *empty)))])


def _fitting(lines: Sequence[str], most: int, rest: str) -> Iterator[str]:
    """Yield the first lines, as many as fit, and how many more there are, in the form of `rest`."""
    ends = accumulate(len(line) + 1 for line in lines[:_MOST_LINES])
    fitting = sum(1 for _ in takewhile(lambda end: end <= most, ends))
    yield from lines[:fitting]
    if fitting < len(lines):
        yield rest.format(f"and {len(lines) - fitting} more")


def money(cost: Mapping[str, Any]) -> str:
    """Say how many GPUs more or fewer would run elsewhere, and what they cost; nothing where neither changes."""
    number, without_price = cost["gpus"], cost["unpricedGpus"]
    cents = round(cost["dollars"] * 100)
    if not (number or cents or without_price):
        return ""
    gpus = f"**{number:+d} GPUs** elsewhere" if number else ""
    if not cost["priced"]:
        return f"{gpus}; their clusters have no price"
    sign = "-" if cents < 0 else "+" if cents else ""
    dollars = f"{sign}${abs(cents) / 100:.2f} an hour"
    unpriced = f"; {without_price:+d} GPUs without a price" if without_price else ""
    return (f"{gpus}, {dollars}" if gpus else f"**{dollars}** elsewhere") + unpriced


def _problems(problems: Sequence[Problem]) -> Iterator[str]:
    """List the errors and warnings of files and clusters."""
    if not problems:
        return
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    lines = [
        f"- {'error' if problem.severity is Severity.ERROR else 'warning'}: {escaped(str(problem))}"
        for problem in sorted(problems, key=lambda problem: (problem.severity is not Severity.ERROR, problem))
    ]
    summary = f"{count(errors, 'error')}, {count(len(problems) - errors, 'warning')}"
    yield from _folded(summary, "\n".join(_fitting(lines, _PROBLEMS, "- {}")))
