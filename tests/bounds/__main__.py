"""Runs the experiments of all bounds, or of those named: ``python -m tests.bounds [NAME ...]``."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from reconciler.model.bounds import all_bounds
from tests.bounds import catalogue
from tests.bounds.experiment import EXPERIMENTS
from tests.bounds.measure import ExperimentError, measure
from tests.bounds.record import MEASURED, read, row


def main(names: list[str]) -> int:
    """Print a line for each bound; return 1 where one did not hold."""
    assert catalogue.MODULES
    kept, failed = read(), 0
    for name, bound in all_bounds():
        if name not in EXPERIMENTS or (names and name not in names):
            continue
        try:
            measured = measure(name, bound)
        except ExperimentError as error:
            failed += 1
            sys.stdout.write(f"FAILED {error}\n")
            continue
        kept[name] = measured
        cells = " | ".join(row(measured, bound.unit))
        sys.stdout.write(f"{name}: {cells} | {measured.said[:160]}\n")
        sys.stdout.flush()
    known = [name for name, _ in all_bounds()]
    document = {name: asdict(kept[name]) for name in known if name in kept}
    MEASURED.write_text(json.dumps(document, indent=1) + "\n")
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
