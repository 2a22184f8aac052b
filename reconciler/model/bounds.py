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

CLUSTER_PAGE_SIZE = InputBound(
    input=BoundedInput.CLUSTERS,
    of="one answer, such as a page of a list",
    most=8 << 20,
    unit=Unit.BYTES,
    beyond="is asked for in smaller pages; one object beyond it leaves its cluster unseen, and told",
)
CLUSTER_PAGE_VALUES = InputBound(
    input=BoundedInput.CLUSTERS,
    of="one answer, such as a page of a list",
    most=500_000,
    unit=Unit.VALUES,
    beyond="is asked for in smaller pages, as above",
)
CLUSTER_EVENT_SIZE = InputBound(
    input=BoundedInput.CLUSTERS,
    of="one event of a watch",
    most=4 << 20,
    unit=Unit.BYTES,
    beyond="ends the watch; its resource is listed again, after a back-off, and told",
)
CLUSTER_EVENT_VALUES = InputBound(
    input=BoundedInput.CLUSTERS,
    of="one event of a watch",
    most=250_000,
    unit=Unit.VALUES,
    beyond="ends the watch, as above",
)
CLUSTER_DEPTH = InputBound(
    input=BoundedInput.CLUSTERS,
    of="the nesting of an answer or event",
    most=2_000,
    unit=Unit.LEVELS,
    beyond="leaves its cluster unseen, and told; an object that is too deep for its reader is left out alone",
)
CLUSTER_OBJECTS = InputBound(
    input=BoundedInput.CLUSTERS,
    of="the objects of one resource of a cluster",
    most=250_000,
    unit=Unit.OBJECTS,
    beyond="leaves the cluster unseen, and told",
)
CLUSTER_BYTES_IN_FLIGHT = InputBound(
    input=BoundedInput.CLUSTERS,
    of="the answers of all clusters that are being read at one moment",
    most=64 << 20,
    unit=Unit.BYTES,
    beyond="cuts the largest of them off, which is asked for again after a back-off",
)
CLUSTER_WORK = InputBound(
    input=BoundedInput.CLUSTERS,
    of="the reading of one cluster's answers at once; later ones share two fifths of a core with those of others",
    most=30,
    unit=Unit.SECONDS,
    beyond="is read more slowly",
)
CLUSTER_NAME = InputBound(
    input=BoundedInput.CLUSTERS,
    of="the name of an object",
    most=253,
    unit=Unit.CHARACTERS,
    beyond="leaves that object out, and told",
)
CLUSTER_LABELS = InputBound(
    input=BoundedInput.CLUSTERS,
    of="the labels of an object",
    most=64 << 10,
    unit=Unit.CHARACTERS,
    beyond="leaves that object out, and told",
)
CLUSTER_REASON = InputBound(
    input=BoundedInput.CLUSTERS,
    of="a text of a cluster that is repeated to people, such as the reason of an error",
    most=300,
    unit=Unit.CHARACTERS,
    beyond="is cut",
)
CLUSTER_LOGIN_SIZE = InputBound(
    input=BoundedInput.CLUSTERS,
    of="the output of a login plugin",
    most=1 << 20,
    unit=Unit.BYTES,
    beyond="ends the plugin; the cluster is unseen, and told",
)

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
