"""Bounds on what one input may cost: bytes, objects, levels, seconds, threads.

Each input that somebody else writes has its bounds here, so that no tenant, cluster, host or file costs another one
anything. The code that reads the input enforces them; docs/reference/bounds.md is the same table for operators, and a
test holds that each bound is enforced and tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class BoundedInput(StrEnum):
    """Whose input a bound is on, as a heading of the table."""

    FILES = "Files of the fleet repository"
    CLUSTERS = "API servers of clusters"
    CHARTS = "Helm charts and their repositories"
    SOURCES = "Source repositories"
    REMOTE = "The remote of the fleet repository"
    HTTP = "Answers over HTTP"
    NOTIFICATIONS = "Notifications"
    REQUESTS = "Requests to the API"
    RECORDINGS = "Recordings and files of the lab"
    DEMAND = "Demand"


class Unit(StrEnum):
    """The unit of a bound."""

    BYTES = "bytes"
    CHARACTERS = "characters"
    VALUES = "values"
    """Scalars, lists and objects of a JSON or YAML document."""
    LEVELS = "levels"
    OBJECTS = "objects"
    SECONDS = "seconds"
    THREADS = "threads"
    PROCESSES = "processes"
    REPLICAS = "replicas"
    COMMITS = "commits"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputBound:
    """The most that one input may cost, and what becomes of an input beyond it."""

    input: BoundedInput
    of: str
    """What is measured, as a noun phrase: "one page of a list"."""
    most: int
    unit: Unit
    beyond: str
    """What happens beyond the bound, as a sentence without its subject: "is refused, and named in check"."""

    def __str__(self) -> str:
        """Return the bound as people write it, such as 64 MiB or 20 seconds."""
        if self.unit is Unit.BYTES:
            for shift, name in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
                if self.most >> shift and self.most % (1 << shift) == 0:
                    return f"{self.most >> shift} {name}"
        return f"{self.most:,} {self.unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonBounds:
    """The bounds of one JSON document."""

    size: InputBound
    """Bytes of its text."""
    values: InputBound
    """Values in it, each of which takes 60 to 250 bytes once it is parsed."""
    depth: InputBound


# Files

FILE_SIZE = InputBound(
    input=BoundedInput.FILES, of="a file", most=1 << 20, unit=Unit.BYTES, beyond="is not read, and told with its path"
)
FILE_DEPTH = InputBound(
    input=BoundedInput.FILES, of="the nesting of a document", most=64, unit=Unit.LEVELS, beyond="is broken, and told"
)
FILE_VALUES = InputBound(
    input=BoundedInput.FILES, of="the documents of a file", most=100_000, unit=Unit.VALUES, beyond="is broken, and told"
)
SOURCE_HISTORY = InputBound(
    input=BoundedInput.FILES,
    of="the history of the source branch that is read for what stood in a file, and for a deletion",
    most=10_000,
    unit=Unit.COMMITS,
    beyond="is not read further back",
)

# API servers of clusters

# Helm charts and their repositories

# Source repositories

# The remote of the fleet repository

# Answers over HTTP

# Notifications

# Requests to the API

# Recordings and files of the lab

# Demand


def all_bounds() -> tuple[tuple[str, InputBound], ...]:
    """Return all bounds with their names, in the order of the table."""
    named = [(name, value) for name, value in globals().items() if isinstance(value, InputBound)]
    order = list(BoundedInput)
    return tuple(sorted(named, key=lambda item: order.index(item[1].input)))
