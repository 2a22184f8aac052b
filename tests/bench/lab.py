"""The standard set of the lab with the policy that `init` writes: ``python -m tests.bench.lab [DIRECTORY]``.

The directory has the public request logs; without it the two scenarios of real traffic are left out, and said so. Each
line is a figure and its bound, as those of the other benches. Scenarios run side by side on the cores of the machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from reconciler.cli.package_files import layout
from reconciler.lab.controllers import OverspillController
from reconciler.lab.fleet_files import fleet_files
from reconciler.lab.optimum import Optimum, optimum
from reconciler.lab.scenario import Scenario
from reconciler.lab.simulation import Result, simulate
from reconciler.lab.standard import MADE_UP, TRACES, traffic

UNMET = {
    "azure-conv": 15.0,
    "azure-code": 15.0,
    "plateau": 0.6,
    "ramp": 1.0,
    "diurnal": 1.5,
    "flap": 12.0,
    "outage-seen": 8.0,
    "outage-unseen": 8.0,
    "owners": 3.0,
    "scarce-model": 2.0,
}
"""The most that may be unserved, in percent of what is missing."""
MONEY = 1.4
"""Times the money of the optimum, where a run is longer than six hours."""
LONG = 6 * 3600
STARTS = 2.0
"""Times the starts of the optimum."""
FAIRNESS, LONGEST = 0.97, 30
"""Of fifty workloads: Jain's index at least, and the minutes that any may be without a replica."""


def run(scenario: Scenario) -> tuple[Result, Optimum]:
    """Run one scenario with the policy of `init`."""
    policy = (layout() / "policies" / "serving.yaml").read_bytes()
    files = fleet_files(scenario, policy)
    return simulate(scenario, lambda world: OverspillController(world, files)), optimum(scenario)


def figures(scenario: Scenario, result: Result, best: Optimum) -> Iterator[tuple[str, float, float]]:
    """Yield each figure of a run with the most that it may be."""
    name = scenario.name
    if name in UNMET:
        yield f"unmet_percent_{name}", 100 * result.unmet, UNMET[name]
    if scenario.length > LONG:
        yield f"money_over_optimum_{name}", result.money / best.money, MONEY
    if name in UNMET:
        yield f"starts_over_optimum_{name}", result.starts / max(best.starts, 1.0), STARTS
    if name == "crowd":
        yield "unfairness_crowd", 1 - result.fairness, 1 - FAIRNESS
        yield "longest_minutes_with_nothing_crowd", result.longest_unserved / 60, LONGEST
    if name == "cold-and-warm":
        cold, warm = (
            sum(sample.gpus.get(cluster.name, 0) for sample in result.samples) for cluster in scenario.clusters
        )
        yield "cold_over_warm", cold / max(warm, 1), 1.0


def main(arguments: list[str]) -> int:
    """Print all figures, and say which bounds were missed."""
    scenarios = [make() for make in MADE_UP.values()]
    if arguments:
        scenarios += [traffic(name, Path(arguments[0])) for name in TRACES]
    else:
        print(f"# without {', '.join(TRACES)}: TRACES=DIRECTORY has their logs", file=sys.stderr)
    missed = 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for scenario, (result, best) in zip(scenarios, pool.map(run, scenarios), strict=True):
            for name, value, bound in figures(scenario, result, best):
                print(f"{name} {value:.2f} {bound:.2f}{' MISSED' if value > bound else ''}", flush=True)
                missed += value > bound
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
