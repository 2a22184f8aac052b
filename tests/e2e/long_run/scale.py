"""How much is played: by flags, by variables of the environment, else what issue and documentation name."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The size of a run."""

    nodes: int = 3000
    """Nodes of all three clusters together, a third each."""
    pods: int = 20_000
    """Pods of others, spread evenly over all nodes."""
    bursts: int = 500
    """Times that demand rises beyond what home holds."""
    minutes: float = 60.0
    """Time in which demand rises and falls; starting and settling come on top."""
    late: float = 60.0
    """Seconds beyond window and faults from which a revert is late."""
    seed: int = 1
    """Decides everything that is left to chance."""

    @property
    def seconds(self) -> float:
        """The time in which demand rises and falls."""
        return self.minutes * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the command line asks for."""

    scale: Scale
    json: Path | None
    """Where the figures go as JSON; None for nowhere."""


_HELP = {
    "nodes": "nodes of all three clusters together",
    "pods": "pods of others on them",
    "bursts": "times that demand rises beyond what home holds",
    "minutes": "time in which demand rises and falls",
    "late": "seconds beyond window and faults from which a revert is late",
    "seed": "decides what is left to chance",
}


def read_order(arguments: Sequence[str], environment: Mapping[str, str]) -> Order:
    """Read the command line; a variable named as the flag, in capitals, holds where that is not given."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.long_run", description=__doc__)
    usual = Scale()
    for field in fields(Scale):
        of = type(getattr(usual, field.name))
        given = environment.get(field.name.upper(), "")
        default = given or str(getattr(usual, field.name))
        parser.add_argument(f"--{field.name}", type=of, default=default, help=f"{_HELP[field.name]} ({default})")
    parser.add_argument("--json", type=Path, help="write the figures to this file as JSON, too")
    told = parser.parse_args(arguments)
    values = {field.name: getattr(told, field.name) for field in fields(Scale)}
    if values["nodes"] < 3 or values["bursts"] < 1 or values["minutes"] <= 0 or values["pods"] < 0:
        parser.error("there have to be three nodes, a burst and some time at least")
    return Order(scale=Scale(**values), json=told.json)
