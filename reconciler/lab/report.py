"""The figures of runs beside each other, as rows of a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from reconciler.lab.accounts import HOUR
from reconciler.lab.optimum import Optimum
from reconciler.lab.simulation import Result
from reconciler.model.workload import Json
from reconciler.text.markdown import escaped, table

HEADERS = (
    "SCENARIO", "RULE", "UNMET", "GPU-H", "DOLLARS", "STARTS", "COMMITS", "MOVES", "P50", "P99", "JAIN", "LOST TO",
)  # fmt: skip # the header of a table
OPTIMUM = "optimum"
_MOST_CAUSES = 3
_LEAST_SHARE = 0.0005


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The runs of one scenario, and the optimum where it was worked out."""

    scenario: str
    about: str
    length: int
    """Seconds of each run."""
    results: tuple[Result, ...]
    optimum: Optimum | None


def rows(comparison: Comparison) -> Iterable[Sequence[str]]:
    """Yield a row for each run; hours and dollars are told as multiples of the optimum's where there is one."""
    best = comparison.optimum
    for result in comparison.results:
        yield (
            comparison.scenario,
            result.controller,
            _percent(result.unmet),
            _amount(result.gpu_hours, best.gpu_hours if best else 0.0, "h"),
            _amount(result.money, best.money if best else 0.0, "$"),
            str(result.starts),
            str(result.commits),
            str(result.moves),
            _seconds(result.time_to_serve_p50),
            _seconds(result.time_to_serve_p99),
            f"{result.fairness:.3f}",
            causes(result),
        )
    if best is not None:
        gpu_hours, money = f"{best.gpu_hours:.1f} h", f"{best.money:.2f} $"
        yield (comparison.scenario, OPTIMUM, _percent(best.unmet), gpu_hours, money, f"{best.starts:.0f}", *[""] * 6)


def causes(result: Result) -> str:
    """Name the greatest causes of what was not served, each with its part of what was missing."""
    greatest = [(cause, share) for cause, share in result.lost.items() if share >= _LEAST_SHARE][:_MOST_CAUSES]
    return ", ".join(f"{cause} {_percent(share)}" for cause, share in greatest)


def to_json(comparison: Comparison) -> Json:
    """Write all figures of a scenario, without the samples of plots."""
    best = comparison.optimum
    return {
        "scenario": comparison.scenario,
        "about": comparison.about,
        "results": [
            {
                _camel(field.name): _plain(getattr(result, field.name))
                for field in fields(result)
                if field.name not in ("samples", "history")
            }
            for result in comparison.results
        ],
        "optimum": None
        if best is None
        else {_camel(field.name): _plain(getattr(best, field.name)) for field in fields(best)},
    }


def markdown(comparisons: Iterable[Comparison]) -> str:
    """Write the table in Markdown, for a pull request."""
    return table(HEADERS, [list(map(escaped, row)) for comparison in comparisons for row in rows(comparison)])


def _plain(value: object) -> Json:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return value


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _amount(value: float, best: float, unit: str) -> str:
    return f"{value:.1f} {unit} (x{value / best:.2f})" if best > 0 else f"{value:.1f} {unit}"


def _seconds(value: int | None) -> str:
    if value is None:
        return ""
    return f"{value}s" if value < HOUR else f"{value / HOUR:.1f}h"
