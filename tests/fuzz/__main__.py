"""Fuzz for some CPU time: ``python -m tests.fuzz --cpu-minutes 30 --seed 1``."""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.campaign import campaign


def main() -> int:
    """Print the inputs tried by target, and each finding with an input that leads to it; 1 where there is any."""
    arguments = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    arguments.add_argument("--cpu-minutes", type=float, default=30)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--target", action="append", help="only this one; may be given several times")
    options = arguments.parse_args()
    tried, findings = campaign(options.cpu_minutes * 60, seed=options.seed, only=options.target)
    for name, number in tried.items():
        print(f"{name:12} {number:9,} inputs")
    for finding in findings.values():
        print(f"\n{finding}")
    print(f"\n{sum(tried.values()):,} inputs, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
