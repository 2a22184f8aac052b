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
    CONNECTIONS = "connections"
    REQUESTS = "requests"
    PIECES = "pieces"
    PASSES = "passes"
    TOKENS = "tokens"
    """Words, numbers and signs of expressions, and the texts between them."""
    STEPS = "steps"
    """Of expressions, about a microsecond each."""
    ROUNDS = "rounds"


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
FILE_EXPRESSIONS = InputBound(
    input=BoundedInput.FILES,
    of="the expressions of a file, equal ones of an object counted once",
    most=100_000,
    unit=Unit.TOKENS,
    beyond="is broken, and told",
)
TEMPLATE_WORK = InputBound(
    input=BoundedInput.FILES,
    of="the expressions of a workspace's templates that one pass evaluates for its commit",
    most=2_000_000,
    unit=Unit.STEPS,
    beyond="waits for one of the next passes; ends do not",
)
SUBSET_WORK = InputBound(
    input=BoundedInput.FILES,
    of="the pods of a workspace's subsets that one pass renders in advance",
    most=2_000_000,
    unit=Unit.STEPS,
    beyond="counts as an earlier pass rendered it, else waits for the next passes",
)
TEMPLATE_ROUNDS = InputBound(
    input=BoundedInput.FILES,
    of="the times that one pass is decided again for templates of a workspace that fail",
    most=10,
    unit=Unit.ROUNDS,
    beyond="leaves what is new there to the next passes, and told",
)
SOURCE_HISTORY = InputBound(
    input=BoundedInput.FILES,
    of="the history of a branch that is read for what stood in a file, for a deletion, or for a commit",
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
    most=500,
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
CLUSTER_MEMORY = InputBound(
    input=BoundedInput.CLUSTERS,
    of="what is kept of a cluster, and of its engine, measured after each 32 MiB",
    most=256 << 20,
    unit=Unit.BYTES,
    beyond="leaves the cluster unseen, and told; the resource is listed again",
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
    of="the reading of one cluster's answers at once; then those of all share two fifths of a core",
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

CHART_SECONDS = InputBound(
    input=BoundedInput.CHARTS,
    of="the rendering of one chart, its download included",
    most=30,
    unit=Unit.SECONDS,
    beyond="ends; the chart is tried again later and later, and only its placement waits",
)
CHART_MEMORY = InputBound(
    input=BoundedInput.CHARTS,
    of="the memory of the helm that renders one chart; less where three eighths of the container's limit are less",
    most=512 << 20,
    unit=Unit.BYTES,
    beyond="ends, and the placement says so",
)
CHART_FILE = InputBound(
    input=BoundedInput.CHARTS,
    of="a file that helm downloads or unpacks",
    most=128 << 20,
    unit=Unit.BYTES,
    beyond="ends, and the placement says so",
)
CHART_CACHE = InputBound(
    input=BoundedInput.CHARTS,
    of="the charts and indexes that helm keeps on disk for one workspace",
    most=256 << 20,
    unit=Unit.BYTES,
    beyond="are removed after the rendering, and downloaded again",
)
CHART_OUTPUT = InputBound(
    input=BoundedInput.CHARTS,
    of="the manifests of one chart, and their texts with aliases expanded",
    most=16 << 20,
    unit=Unit.BYTES,
    beyond="are refused, and the placement says so",
)
CHART_VALUES = InputBound(
    input=BoundedInput.CHARTS,
    of="the manifests of one chart, aliases expanded",
    most=200_000,
    unit=Unit.VALUES,
    beyond="are refused, and the placement says so",
)
CHART_DEPTH = InputBound(
    input=BoundedInput.CHARTS,
    of="the nesting of a manifest",
    most=100,
    unit=Unit.LEVELS,
    beyond="is refused, and the placement says so",
)
CHART_OBJECTS = InputBound(
    input=BoundedInput.CHARTS,
    of="the manifests of one chart",
    most=2_000,
    unit=Unit.OBJECTS,
    beyond="are refused, and the placement says so",
)
CHART_PROCESSES = InputBound(
    input=BoundedInput.CHARTS,
    of="helm at work, one for a workspace; fewer where three eighths of the container's limit hold fewer: one in 1 GiB",
    most=4,
    unit=Unit.PROCESSES,
    beyond="waits for its turn",
)
CHARTS_WAITING = InputBound(
    input=BoundedInput.CHARTS,
    of="the charts of one workspace that wait for helm",
    most=200,
    unit=Unit.OBJECTS,
    beyond="are asked for again by the next pass",
)
CHARTS_KEPT = InputBound(
    input=BoundedInput.CHARTS,
    of="the rendered manifests that are kept in memory",
    most=32 << 20,
    unit=Unit.BYTES,
    beyond="are dropped, those of the workspace that has most of them first, and rendered again",
)
CHARTS_AWAITED = InputBound(
    input=BoundedInput.CHARTS,
    of="the wait of one command for all of its charts; a pass of the daemon never waits",
    most=120,
    unit=Unit.SECONDS,
    beyond="go unrendered, and the command says so",
)

# Source repositories

SOURCE_SECONDS = InputBound(
    input=BoundedInput.SOURCES,
    of="one look at a repository: its fetch, however it is answered",
    most=120,
    unit=Unit.SECONDS,
    beyond="ends; it is asked again later and later, and its templates say so",
)
SOURCE_SIZE = InputBound(
    input=BoundedInput.SOURCES,
    of="what one fetch of a repository brings",
    most=512 << 20,
    unit=Unit.BYTES,
    beyond="is cut off, and the templates of the repository say so",
)
SOURCE_OUTPUT = InputBound(
    input=BoundedInput.SOURCES,
    of="what git prints of one exchange with a repository",
    most=4 << 20,
    unit=Unit.BYTES,
    beyond="ends the exchange as a failed one",
)
SOURCE_THREADS = InputBound(
    input=BoundedInput.SOURCES,
    of="repositories that are looked at together",
    most=8,
    unit=Unit.THREADS,
    beyond="waits for its turn",
)

# The remote of the fleet repository

REMOTE_STANDSTILL = InputBound(
    input=BoundedInput.REMOTE,
    of="a fetch that brings no object, whatever progress the remote tells",
    most=600,
    unit=Unit.SECONDS,
    beyond="ends; the pass is tried again after a back-off",
)
SIGNATURE_SECONDS = InputBound(
    input=BoundedInput.REMOTE,
    of="a look at the signature of a commit of the source branch: one of OpenPGP may unpack without an end",
    most=10,
    unit=Unit.SECONDS,
    beyond="ends; the commit does not come in force",
)
REMOTE_SECONDS = InputBound(
    input=BoundedInput.REMOTE,
    of="one fetch or push in all: a first clone of 40 GB at 3 MB/s ends within it",
    most=14_400,
    unit=Unit.SECONDS,
    beyond="ends; the pass is tried again after a back-off",
)
REMOTE_OUTPUT = InputBound(
    input=BoundedInput.REMOTE,
    of="what git prints of one exchange: refs, progress and messages",
    most=32 << 20,
    unit=Unit.BYTES,
    beyond="ends the exchange as a failed one",
)
COMMITS_READ_BACK = InputBound(
    input=BoundedInput.REMOTE,
    of="the history in which a known commit is searched for",
    most=50_000,
    unit=Unit.OBJECTS,
    beyond="is not read, and the branch counts as lost where the mirror held that commit",
)
APPLIED_COMMITS = InputBound(
    input=BoundedInput.REMOTE,
    of="the commits that engines report as applied, looked for in one pass",
    most=100,
    unit=Unit.OBJECTS,
    beyond="are looked for in the next pass",
)

# Answers over HTTP

HTTP_HEAD = InputBound(
    input=BoundedInput.HTTP,
    of="status lines and headers of one answer, those of informational answers and of proxies among them",
    most=128 << 10,
    unit=Unit.BYTES,
    beyond="ends the exchange, as no answer",
)
HTTP_PIECES = InputBound(
    input=BoundedInput.HTTP,
    of="the pieces of under 64 bytes that one body is sent in",
    most=16_384,
    unit=Unit.PIECES,
    beyond="ends the exchange, as no answer",
)
HTTP_EXCHANGE = InputBound(
    input=BoundedInput.HTTP,
    of="one exchange of the daemon: name, connection, proxy, TLS, request, and the whole answer",
    most=10,
    unit=Unit.SECONDS,
    beyond="ends, and counts as no answer",
)
HTTP_ANSWER_SIZE = InputBound(
    input=BoundedInput.HTTP,
    of="an answer in JSON",
    most=64 << 20,
    unit=Unit.BYTES,
    beyond="is not read; most readers have a smaller limit of their own",
)
HTTP_ANSWER_VALUES = InputBound(
    input=BoundedInput.HTTP,
    of="an answer in JSON",
    most=2_000_000,
    unit=Unit.VALUES,
    beyond="is taken for no answer of its service",
)
HTTP_ANSWER_DEPTH = InputBound(
    input=BoundedInput.HTTP,
    of="the nesting of an answer in JSON",
    most=64,
    unit=Unit.LEVELS,
    beyond="is taken for no answer of its service",
)
# Notifications

NOTIFICATIONS_OF_WORKSPACE = InputBound(
    input=BoundedInput.NOTIFICATIONS,
    of="the Notifications of one workspace",
    most=20,
    unit=Unit.OBJECTS,
    beyond="are not in force, and named in check",
)
NOTIFICATION_WORKERS = InputBound(
    input=BoundedInput.NOTIFICATIONS,
    of="the receivers that are told at one moment",
    most=16,
    unit=Unit.THREADS,
    beyond="wait for a thread",
)
NOTIFICATION_WORKERS_OF_OWNER = InputBound(
    input=BoundedInput.NOTIFICATIONS,
    of="the receivers of one workspace, or of the fleet, that are told at one moment",
    most=2,
    unit=Unit.THREADS,
    beyond="wait for a thread of their own workspace; those that fail come last",
)
NOTIFICATION_BACKLOG = InputBound(
    input=BoundedInput.NOTIFICATIONS,
    of="the commits that wait in memory for one receiver",
    most=1000,
    unit=Unit.OBJECTS,
    beyond="are read from git once those before them are told",
)
NOTIFICATION_LIVE = InputBound(
    input=BoundedInput.NOTIFICATIONS,
    of="the events without a commit that wait for one receiver",
    most=100,
    unit=Unit.OBJECTS,
    beyond="are lost, the oldest first",
)
MESSAGE_TIME = InputBound(
    input=BoundedInput.NOTIFICATIONS,
    of="the delivery of one message by Apprise",
    most=30,
    unit=Unit.SECONDS,
    beyond="is ended, and tried again as any that is not taken",
)
MESSAGE_MEMORY = InputBound(
    input=BoundedInput.NOTIFICATIONS,
    of="a process of Apprise that delivers messages, with what a receiver answers",
    most=128 << 20,
    unit=Unit.BYTES,
    beyond="ends, and the message is tried again as any that is not taken",
)
MESSAGE_PROCESSES = InputBound(
    input=BoundedInput.NOTIFICATIONS,
    of="these processes; fewer where a quarter of the container's limit holds fewer: two in 1 GiB",
    most=16,
    unit=Unit.PROCESSES,
    beyond="waits for its turn",
)

# Requests to the API

API_BODY = InputBound(
    input=BoundedInput.REQUESTS,
    of="the body of a request",
    most=1 << 20,
    unit=Unit.BYTES,
    beyond="is answered with 413",
)
API_BODY_SECONDS = InputBound(
    input=BoundedInput.REQUESTS,
    of="the time in which a body comes, however it is sent",
    most=10,
    unit=Unit.SECONDS,
    beyond="is answered with 408, and its connection closed",
)
API_BODIES_OF_CALLER = InputBound(
    input=BoundedInput.REQUESTS,
    of="the bodies of one caller that are on their way; on a route without a login, those of all callers",
    most=32,
    unit=Unit.REQUESTS,
    beyond="is answered with 429, and its connection closed",
)
API_HEADER_SECONDS = InputBound(
    input=BoundedInput.REQUESTS,
    of="the time in which the header of a request comes, and a handshake",
    most=10,
    unit=Unit.SECONDS,
    beyond="has its connection closed",
)
API_CONNECTIONS = InputBound(
    input=BoundedInput.REQUESTS,
    of="open connections",
    most=256,
    unit=Unit.CONNECTIONS,
    beyond="takes the place of the oldest one without a request",
)
API_REQUESTS = InputBound(
    input=BoundedInput.REQUESTS,
    of="requests that are being answered",
    most=200,
    unit=Unit.REQUESTS,
    beyond="is answered with 503, unless it asks for /healthz or /readyz",
)

# Recordings and files of the lab

RECORDING_FILE = InputBound(
    input=BoundedInput.RECORDINGS,
    of="a packed file of a recording",
    most=256 << 20,
    unit=Unit.BYTES,
    beyond="is not read, and told",
)
RECORDING_LINE = InputBound(
    input=BoundedInput.RECORDINGS,
    of="one unpacked line of a recording",
    most=128 << 20,
    unit=Unit.BYTES,
    beyond="is damage: the passes before it are read",
)
RECORDING_VALUES = InputBound(
    input=BoundedInput.RECORDINGS,
    of="one pass of a recording, its differences applied",
    most=3_000_000,
    unit=Unit.VALUES,
    beyond="is damage: the passes before it are read",
)
RECORDING_DEPTH = InputBound(
    input=BoundedInput.RECORDINGS,
    of="the nesting of one pass of a recording",
    most=100,
    unit=Unit.LEVELS,
    beyond="is damage: the passes before it are read",
)
RECORDING_PASSES = InputBound(
    input=BoundedInput.RECORDINGS,
    of="one file of a recording",
    most=20_000,
    unit=Unit.PASSES,
    beyond="are left out, and told",
)
REQUEST_LOG = InputBound(
    input=BoundedInput.RECORDINGS,
    of="the time between the first and the last request of a log",
    most=31 * 86_400,
    unit=Unit.SECONDS,
    beyond="is refused",
)

# Demand

ASKED_REPLICAS = InputBound(
    input=BoundedInput.DEMAND,
    of="the replicas that a signal of any kind, or the pods of a workload, ask for",
    most=100_000,
    unit=Unit.REPLICAS,
    beyond="counts as the bound: no more than every cluster has",
)


def all_bounds() -> tuple[tuple[str, InputBound], ...]:
    """Return all bounds with their names, in the order of the table."""
    named = [(name, value) for name, value in globals().items() if isinstance(value, InputBound)]
    order = list(BoundedInput)
    return tuple(sorted(named, key=lambda item: order.index(item[1].input)))
