"""How much more CPU the command line takes than Python with click alone, for what has to answer at once."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNS = 9
PROGRAM = "import sys; sys.argv[0] = 'overspill'; from reconciler.cli import main; main()"


def _cpu_seconds(code: str, *arguments: str, env: Mapping[str, str] | None = None) -> float:
    """Measure one process with its children, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start_over_click(fleet: Path, cache: Path) -> dict[str, float]:
    """Compare the version, the overview and the completion of workloads with ``import click``, run by run in turn."""
    completion = {
        "COMP_WORDS": "overspill explain ",
        "COMP_CWORD": "2",
        "_OVERSPILL_COMPLETE": "bash_complete",
        "OVERSPILL_REPO": str(fleet),
        "OVERSPILL_CACHE_DIR": str(cache),
    }
    floors: list[float] = []
    figures: dict[str, list[float]] = {"version": [], "help": [], "completion": []}
    for _ in range(RUNS):
        floors.append(_cpu_seconds("import click"))
        figures["version"].append(_cpu_seconds(PROGRAM, "--version"))
        figures["help"].append(_cpu_seconds(PROGRAM, "--help"))
        figures["completion"].append(_cpu_seconds(PROGRAM, env=completion))
    floor = statistics.median(floors)
    medians = {name: statistics.median(seconds) for name, seconds in figures.items()}
    shown = ", ".join(f"{name} {seconds * 1e3:.0f} ms" for name, seconds in medians.items())
    print(f"# CPU to start: {shown}; click alone {floor * 1e3:.0f} ms", file=sys.stderr)
    return {name: seconds / floor for name, seconds in medians.items()}
