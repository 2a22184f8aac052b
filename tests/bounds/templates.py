"""Templates of a workspace at the bounds of one pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reconciler.core.expressions.work import MAX_WORK
from reconciler.core.fleet.read_file import parse_file
from reconciler.model.bounds import FILE_EXPRESSIONS, TEMPLATE_ROUNDS, TEMPLATE_WORK
from reconciler.model.plan import Reason
from tests.bounds.experiment import Experiment, experiment
from tests.daemon.test_failing_templates import FAILS, LONG, fleet, reasons, template


def _pass(number: int, note: str, gpus: int) -> str:
    """Run one pass over a number of workloads and a neighbour, and say what was placed, and whether all were tried."""
    passes = fleet(number, note)
    passes.free = {"worker-2": gpus}
    tried = "not all" if Reason.UNTRIED in reasons(passes.run_once(), "llm") else "all"
    return f"{len(passes.placements())} placed, {tried} tried"


@experiment(TEMPLATE_WORK)
def _(_place: Path) -> Iterator[Experiment]:
    number = TEMPLATE_WORK.most // MAX_WORK

    def at() -> None:
        assert _pass(number, LONG, 4 * number + 4) == f"{number + 1} placed, all tried"

    yield Experiment(at=at, beyond=lambda: _pass(3 * number, LONG, 12 * number + 4), says="placed, not all tried")


@experiment(TEMPLATE_ROUNDS)
def _(_place: Path) -> Iterator[Experiment]:
    def at() -> None:
        assert _pass(TEMPLATE_ROUNDS.most - 1, FAILS, 4) == "1 placed, all tried"

    yield Experiment(at=at, beyond=lambda: _pass(4 * TEMPLATE_ROUNDS.most, FAILS, 4), says="1 placed, not all tried")


@experiment(FILE_EXPRESSIONS)
def _(_place: Path) -> Iterator[Experiment]:
    def read(tokens: int) -> str:
        """Read a file with a number of tokens in the expressions of its objects, and say what is wrong with it."""
        text = "{{1}}" * 1_666
        file = "---\n".join(template(f"a{index}", note=f"{index}{text}") for index in range(tokens // 5_000))
        return "; ".join(problem.message for problem in parse_file(file.encode()).problems)

    def at() -> None:
        assert read(FILE_EXPRESSIONS.most - 5_000) == ""

    yield Experiment(at=at, beyond=lambda: read(5 * FILE_EXPRESSIONS.most), says=f"have over {FILE_EXPRESSIONS}")
