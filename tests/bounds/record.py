"""The figures that were measured last, and how the table of the docs states them."""

from __future__ import annotations

import json
from pathlib import Path

from reconciler.model.bounds import Unit
from tests.bounds.measure import Cost, Measured, from_document

MEASURED = Path(__file__).parent / "measured.json"


def read() -> dict[str, Measured]:
    """Read what was measured, by the name of the bound."""
    if not MEASURED.exists():
        return {}
    return {name: from_document(each) for name, each in json.loads(MEASURED.read_text()).items()}


def row(measured: Measured, unit: Unit) -> tuple[str, str, str]:
    """Write the cells of a bound: what it cost at the bound, beyond it, and how late another's burst was ended.

    The time of a bound on seconds is that of a clock; of all others it is that of processors, which is the same on a
    busy machine.
    """
    wall = unit is Unit.SECONDS
    at, beyond = (_cost(cost, wall=wall) for cost in (measured.at, measured.beyond))
    tried = f" ({measured.scaled})" if measured.scaled else ""
    return f"{at}{tried}", beyond, "" if measured.late is None else f"{measured.late:.0f} s"


def _cost(cost: Cost, *, wall: bool) -> str:
    return f"{_seconds(cost.seconds if wall else cost.cpu)}, {_megabytes(cost.memory)}"


def _seconds(seconds: float) -> str:
    if seconds < 0.1:
        return "<0.1 s"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def _megabytes(size: float) -> str:
    if size < 1:
        return "<1 MB"
    return f"{float(f'{size:.2g}'):.0f} MB"
