"""`lab run`: policies in scenarios, with progress on the error stream."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import options, printing
from reconciler.cli.package_files import layout, ready_made_policies
from reconciler.errors import InvalidInput
from reconciler.lab import report
from reconciler.lab.page import page
from reconciler.lab.picture import draw_alone
from reconciler.lab.policy_file import TrialPolicy, read_policy
from reconciler.lab.runs import chosen_scenarios, compare, left_out
from reconciler.lab.scenario import Scenario
from reconciler.lab.standard import MADE_UP, TRACES, TRACES_AT
from reconciler.lab.sweep import in_order, on_ray, on_this_machine, read_varied, summaries, summary_row, tasks
from reconciler.text.wording import join_names

if TYPE_CHECKING:
    from reconciler.cli.commands.lab import LabForm

_NEEDS = ("highspy", "numpy")
_DEFAULT = "init"


def list_scenarios() -> None:
    """Print the names of the standard set."""
    rows = [(name, make().about) for name, make in MADE_UP.items()]
    rows += [(name, f"an hour of production traffic ({file})") for name, (file, _) in TRACES.items()]
    printing.table(("SCENARIO", "DEMAND"), rows)
    printing.note(f"The logs of {join_names(TRACES)} are at {TRACES_AT} (--traces DIR).")


def run(
    scenarios: Sequence[str],
    policies: Sequence[str],
    traces: Path | None,
    *,
    peers: bool,
    best: bool,
    form: LabForm,
    html: Path | None,
    pictures: Path | None,
) -> None:
    """Run policies in scenarios, and print a row for each."""
    if best and any(find_spec(name) is None for name in _NEEDS):
        printing.note(
            "The optimum is left out: it needs packages that are not installed (pip install 'overspill[lab]')."
        )
        best = False
    on_trial = [_policy(name) for name in policies or (_DEFAULT,)]
    chosen = _chosen(scenarios, traces)
    for policy, scenario in product(on_trial, chosen):
        policy.check(scenario)
    comparisons = [compare(scenario, on_trial, peers=peers, best=best, progress=_show_progress) for scenario in chosen]
    _show_progress("", 1.0)
    if html is not None:
        _write(html, page(comparisons), "--html")
    if pictures is not None:
        _write_pictures(pictures, comparisons)
    if form == "json":
        printing.json_out([report.to_json(comparison) for comparison in comparisons])
    elif form == "markdown":
        printing.document(f"{report.markdown(comparisons)}\n")
    else:
        rows = [row for comparison in comparisons for row in report.rows(comparison)]
        printing.table(report.HEADERS, rows, empty="No scenario.")


def sweep(
    scenarios: Sequence[str],
    vary: Sequence[str],
    policy: str,
    traces: Path | None,
    *,
    workers: int | None,
    address: str | None,
    form: options.Output,
) -> None:
    """Run all combinations of the varied fields, and print a row for each."""
    varied = read_varied(vary)
    chosen = _chosen(scenarios, traces)
    todo = tasks(chosen, _policy(policy), varied)
    number = workers or os.cpu_count() or 1
    results = in_order(
        on_ray(todo, address) if address is not None else on_this_machine(todo, min(number, len(todo))),
        lambda done: _show_progress(f"{done} of {len(todo)} runs", done / len(todo)),
    )
    _show_progress("", 1.0)
    figures = summaries(todo, results)
    if form == "json":
        printing.json_out([asdict(figure) for figure in figures])
        return
    headers = (*varied, "UNMET", "GPU-H", "DOLLARS", "STARTS", "COMMITS", "JAIN", "WORST")
    printing.table(headers, [summary_row(figure) for figure in figures])


def _chosen(scenarios: Sequence[str], traces: Path | None) -> tuple[Scenario, ...]:
    """Choose the scenarios of a run, and note those that are left out."""
    if without := left_out(scenarios, traces):
        printing.note(f"Left out: {join_names(without)}, whose logs are at {TRACES_AT} (--traces DIR).")
    return tuple(chosen_scenarios(scenarios, traces))


def _write_pictures(directory: Path, comparisons: Sequence[report.Comparison]) -> None:
    """Write a picture of each run, named after its scenario and its rule."""
    for comparison in comparisons:
        for result in comparison.results:
            name = re.sub(r"[^\w.]+", "-", f"{comparison.scenario} {result.controller}")
            drawn = draw_alone(result, comparison.length, comparison.about)
            _write(directory / f"{name}.svg", drawn, "--pictures")


def _write(path: Path, text: str, option: str) -> None:
    """Write a file, and its directory. Raises InvalidInput where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"writing {path}: {error.strerror} (try another {option})") from error


def _policy(name: str) -> TrialPolicy:
    """Read a policy by path, or by name of a ready-made one. Raises InvalidInput with its file and lines."""
    if name == _DEFAULT:
        return read_policy(layout() / "policies" / "serving.yaml", "overspill", shown=name)
    path = Path(name)
    if path.is_file():
        return read_policy(path, path.stem)
    ready_made = ready_made_policies() / f"{name}.yaml"
    if ready_made.is_file():
        return read_policy(ready_made, name, shown=name)
    names = ", ".join(sorted(file.stem for file in ready_made_policies().glob("*.yaml")))
    raise InvalidInput(f"no policy {name!r} (there are: {_DEFAULT}, {names}, or a file)")


def _show_progress(what: str, part: float) -> None:
    """Show what runs on a terminal's error stream, in one line that is written over."""
    if sys.stderr.isatty():
        line = f"{what}: {part:4.0%}" if what else ""
        printing.write_over(line)
