"""Runs of a policy over scenarios, beside the rules of peers and the optimum."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from reconciler.errors import InvalidInput
from reconciler.lab.controllers import RULES, OverspillController
from reconciler.lab.fleet_files import fleet_files
from reconciler.lab.optimum import optimum
from reconciler.lab.policy_file import TrialPolicy
from reconciler.lab.report import Comparison
from reconciler.lab.scenario import Scenario
from reconciler.lab.scenario_file import read_scenario
from reconciler.lab.simulation import Result, simulate
from reconciler.lab.standard import MADE_UP, TRACES, traffic

Progress = Callable[[str, float], None]
"""Is told what runs, and the part of it that is done."""


def chosen_scenarios(names: Sequence[str], traces: Path | None) -> Iterator[Scenario]:
    """Yield scenarios by name of the standard set or by path of a file; all of the standard set where none is named.

    Without the directory of traces, the whole set is that without them. Raises InvalidInput for an unknown name.
    """
    every = [*(TRACES if traces is not None else ()), *MADE_UP]
    for name in names or every:
        if name in MADE_UP:
            yield MADE_UP[name]()
        elif name in TRACES:
            if traces is None:
                raise InvalidInput(f"scenario {name} needs its log {TRACES[name][0]} (try --traces DIRECTORY)")
            yield traffic(name, traces)
        elif Path(name).is_file():
            yield read_scenario(Path(name))
        else:
            raise InvalidInput(f"no scenario {name!r} (there are: {', '.join([*TRACES, *MADE_UP])}, or a file)")


def compare(
    scenario: Scenario, policies: Iterable[TrialPolicy], *, peers: bool, best: bool, progress: Progress
) -> Comparison:
    """Run policies over one scenario, each under its name."""
    results: list[Result] = []

    def run(name: str, make: Callable[..., object]) -> None:
        report = partial(_tell, progress, f"{scenario.name}: {name}", scenario.length)
        results.append(simulate(scenario, make, report))  # type: ignore[arg-type] # each makes a Controller

    for policy in policies:
        files = fleet_files(scenario, policy.data)
        run(policy.name, partial(OverspillController, files=files, name=policy.name))
    if peers:
        for name, make in RULES.items():
            run(name, make)
    if best:
        progress(f"{scenario.name}: optimum", 0.0)
    return Comparison(
        scenario=scenario.name,
        about=scenario.about,
        length=scenario.length,
        results=tuple(results),
        optimum=optimum(scenario) if best else None,
    )


def _tell(progress: Progress, what: str, length: int, second: int) -> None:
    progress(what, second / length)
