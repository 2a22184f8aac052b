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
from reconciler.lab.standard import MADE_UP, TRACES, TRACES_AT, log_of, traffic

Progress = Callable[[str, float], None]
"""Is told what runs, and the part of it that is done."""


def left_out(names: Sequence[str], traces: Path | None) -> Sequence[str]:
    """Name the scenarios of the standard set that are left out of a run of all, since their logs are not at hand."""
    return [] if names else [name for name in TRACES if traces is None or log_of(name, traces) is None]


def chosen_scenarios(names: Sequence[str], traces: Path | None) -> Iterator[Scenario]:
    """Yield scenarios by name of the standard set or by path of a file; all of the standard set where none is named.

    The whole set is that without those that are `left_out`. Raises InvalidInput for an unknown name.
    """
    without = left_out(names, traces)
    for name in names or [name for name in (*TRACES, *MADE_UP) if name not in without]:
        if name in MADE_UP:
            yield MADE_UP[name]()
        elif name in TRACES:
            if traces is None:
                file, _ = TRACES[name]
                raise InvalidInput(
                    f"scenario {name} needs its log {file} (try --traces DIRECTORY: it is at {TRACES_AT})"
                )
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
