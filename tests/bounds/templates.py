"""Templates of a workspace at the bounds of one pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reconciler.core.expressions.work import MAX_WORK
from reconciler.core.fleet.read_file import parse_file
from reconciler.model.bounds import FILE_EXPRESSIONS, SUBSET_WORK, TEMPLATE_ROUNDS, TEMPLATE_WORK
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


_SPREAD = """\
apiVersion: apps.kruise.io/v1alpha1
kind: WorkloadSpread
metadata: {name: NAME, namespace: demo}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}
  subsets:
    - name: all
      patch: {spec: {containers: [{name: server, resources: {limits: {nvidia.com/gpu: 7}}}]}}
"""


_ONE_GPU = ":1.0, resources: {limits: {nvidia.com/gpu: 1}}}"
"""The end of a container that asks for what those on the primary do."""


def _advance(number: int) -> str:
    """Run one pass over subsets whose pods need seven GPUs, and say for how many workloads it counts as many."""
    passes = fleet(number, LONG)
    passes.repository.person(
        "source",
        {
            **{f"{name}-spread.yaml": _SPREAD.replace("NAME", name) for name in passes.names[:number]},
            **{f"{name}.yaml": template(name, note=LONG).replace(":1.0}", _ONE_GPU) for name in passes.names[:number]},
        },
    )
    passes.free = {"worker-2": 0}
    suppressed = [entry for entry in passes.run_once().rendered.suppressed if entry.workload.workspace == "llm"]
    assert len(suppressed) == number
    patched = [entry for entry in suppressed if any("7 GPUs" in refusal.message for refusal in entry.refusals)]
    return f"{len(patched)} of {number} patched"


@experiment(SUBSET_WORK)
def _(_place: Path) -> Iterator[Experiment]:
    number = SUBSET_WORK.most // MAX_WORK

    def at() -> None:
        assert _advance(number) == f"{number} of {number} patched"

    yield Experiment(at=at, beyond=lambda: _advance(3 * number), says=rf"^2\d of {3 * number} patched")


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
