"""The tables of docs/how-to/policies.md, made by ``python -m tests.docs.policy_tables`` from the command above each.

The page itself says what is run. Of the figures that `overspill lab run` prints, its tables have those that choose a
policy.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from reconciler.lab import report
from reconciler.lab.policy_file import read_policy
from reconciler.lab.runs import chosen_scenarios, compare

CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "docs" / "how-to" / "policies.md"
HEADS: Mapping[str, str] = {
    "SCENARIO": "scenario",
    "RULE": "rule",
    "UNMET": "unmet",
    "DOLLARS": "dollars",
    "STARTS": "starts",
    "P99": "P99 to serve",
}
"""The columns of the page by those of the command."""
_TABLE = re.compile(r"^```sh\n(overspill lab run [^\n]*)\n```\n\n((?:\|[^\n]*\n)+)", re.MULTILINE)
_INIT = "overspill"
"""How the command calls the policy of `init`."""


def tables(page: str) -> Mapping[str, Sequence[str]]:
    """Return the lines of each table of the page, by its command."""
    return {command: table.splitlines() for command, table in _TABLE.findall(page)}


def scenarios(command: str) -> Sequence[str]:
    """Return the scenarios that a command runs."""
    words = shlex.split(command)[3:]
    named = {place + 1 for place, word in enumerate(words) if word == "--policy"}
    return [word for place, word in enumerate(words) if place not in named and not word.startswith("--")]


def policies(command: str) -> Sequence[str]:
    """Return the policies that a command runs, by name."""
    words = shlex.split(command)
    return [name for word, name in pairwise(words) if word == "--policy"] or ["init"]


def rows(command: str, chosen: Sequence[str]) -> Iterator[str]:
    """Run what a command says over some of its scenarios, and yield the rows of its table."""
    for scenario in chosen:
        for line in _played(scenario, tuple(policies(command)), peers="--no-peers" not in command):
            yield f"| {' | '.join(line)} |"


def table(command: str) -> Sequence[str]:
    """Run what a command says, and return the lines of its table."""
    return [f"| {' | '.join(HEADS.values())} |", f"|{'---|' * len(HEADS)}", *rows(command, scenarios(command))]


@cache
def _played(name: str, ready_made: tuple[str, ...], *, peers: bool) -> Sequence[Sequence[str]]:
    path = CHECKOUT / name
    (scenario,) = chosen_scenarios([str(path) if path.is_file() else name], None)
    on_trial = [read_policy(_file(policy), policy if policy != "init" else _INIT) for policy in ready_made]
    comparison = compare(scenario, on_trial, peers=peers, best=False, progress=lambda _what, _part: None)
    places = [report.HEADERS.index(head) for head in HEADS]
    return [[_cell(line[place]) for place in places] for line in report.rows(comparison)]


def _file(policy: str) -> Path:
    if policy == "init":
        return CHECKOUT / "repo-layout" / "policies" / "serving.yaml"
    return CHECKOUT / "policies" / f"{policy}.yaml"


def _cell(text: str) -> str:
    return "`init`" if text == _INIT else text or "none"


def main() -> int:
    """Write all tables of the page anew."""
    page = PAGE.read_text()

    def written(found: re.Match[str]) -> str:
        return "\n".join([f"```sh\n{found[1]}\n```", "", *table(found[1]), ""])

    PAGE.write_text(_TABLE.sub(written, page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
