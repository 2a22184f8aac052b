"""Answers of a daemon: the tables that commands print without one as well, and the daemon's own JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from reconciler.adapters.clock import SystemClock
from reconciler.cli import options, printing
from reconciler.cli.actions.explain import print_explanation
from reconciler.cli.actions.known_names import refuse_unknown
from reconciler.core.capacity.gpu_requests import describe_gpus
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.capacity import SliceKind
from reconciler.model.gpr import GprState, GpuAsk, read_state
from reconciler.model.placement import Origin
from reconciler.text.ages import format_age
from reconciler.text.wording import describe_slices

if TYPE_CHECKING:  # it takes long to import, and commands without a daemon do not need it
    from reconciler.client import Client, Gpr, GpuNode, WaitTime

GPRS = (
    "GPR", "WORKLOAD", "CLUSTER", "STATE", "LEFT", "PRIORITY", "GPUS", "NODES", "SHAPE", "EVICTABLE", "NOTE",
)  # fmt: skip # a list of words, filled line by line
WAITS = ("CLUSTER", "WAIT", "AT", "AHEAD", "WHY")
NODES = (
    "NODE", "CLUSTER", "GPUS", "FREE", "HEALTH", "MODEL", "GB", "RESOURCE", "INSTANCE TYPE", "REGION", "ZONE",
)  # fmt: skip # a list of words, filled line by line
_RESOURCE = NODES.index("RESOURCE")
ALLOCATIONS = ("PLACEMENT", "WORKLOAD", "CLUSTER", "GPUS", "REPLICAS", "BOUND", "AGE", "SINCE")
WIDE = ("RESOURCE", "SINCE")
"""Columns that tables show with `-o wide` alone; RESOURCE also where nodes differ in it."""
VISIBLE = "this token may see"
"""Whose names a daemon's are."""
UNSEEN = ("CLUSTER", "LAST SEEN", "NOTE")


def gprs(client: Client, *, workspace: str | None, state: str | None, form: options.Output) -> None:
    """List the GPRs that the daemon knows."""
    answers = list(client.gprs(workspace=workspace or "", status=state_of(state) or ""))
    if form == "json":
        printing.json_out([gpr.document for gpr in answers])
    else:
        printing.table(GPRS, [_gpr(gpr) for gpr in answers], empty="No GPRs that this token may see.")


def state_of(text: str | None) -> GprState | None:
    """Read the state of a GPR under any of EGS's names for it; None stands for any state."""
    state = None if text is None else read_state(text)
    if state is None or isinstance(state, GprState):
        return state
    raise click.UsageError(f"--state: {text!r} is no state (try one of {', '.join(GprState)})")


class WaitTimeOptions(TypedDict):
    """The options of `wait-time`: the GPUs, and the workspace that would wait for them."""

    workspace: str
    gpus: int
    nodes: int
    shape: str
    memory: int
    instance_type: str
    dedicated: bool
    clusters: tuple[str, ...]
    priority: int


def ask_of(wanted: WaitTimeOptions) -> GpuAsk:
    """Return the GPUs that the options describe."""
    return GpuAsk(
        gpus=wanted["gpus"],
        nodes=wanted["nodes"],
        memory=wanted["memory"],
        shape=wanted["shape"],
        instance_type=wanted["instance_type"],
    )


def wait_time(client: Client, *, form: options.Output, **wanted: Unpack[WaitTimeOptions]) -> None:
    """Have the daemon estimate when GPUs can be had."""
    if wanted["clusters"]:
        own = _clusters(client, wanted["workspace"])
        refuse_unknown("cluster", wanted["clusters"], own, among=f"workspace {wanted['workspace']} has")
    fields = {_FIELDS.get(name, name): value for name, value in wanted.items() if value}
    estimates = client.wait_time(fields)
    if form == "json":
        printing.json_out(estimates)
    else:
        printing.sentence(asked_for(wanted, wanted["priority"]))
        printing.table(WAITS, [_wait(estimate) for estimate in estimates], empty="The workspace has no clusters.")


_FIELDS = {
    "workspace": "workspaceName", "gpus": "numberOfGPUs", "nodes": "numberOfGPUNodes", "shape": "gpuShape",
    "memory": "memoryPerGpu", "instance_type": "instanceType", "dedicated": "dedicatedNodes",
}  # fmt: skip # a list of words, filled line by line
"""The fields of the API for options of another name."""


def asked_for(wanted: WaitTimeOptions, priority: int | None) -> str:
    """Return the line above the estimates: the GPUs, the priority where it is known, and the workspace."""
    urgency = "" if priority is None else f", priority {priority}"
    return f"{describe_gpus(ask_of(wanted))}{urgency}, in {wanted['workspace']}:"


def inventory(client: Client, *, workspace: str | None, form: options.Output) -> None:
    """List the GPU nodes that the daemon sees, of all clusters or of those of a workspace."""
    stock = client.inventory()
    within = None if workspace is None else _clusters(client, workspace)
    if form == "json":
        printing.json_out(stock.document if within is None else _narrow(stock.document, within))
        return
    managed = [node for node in stock.managed_nodes if within is None or node.cluster_name in within]
    printing.heading("Nodes of workspaces' clusters", first=True)
    print_nodes(map(_node, managed), empty="No GPU nodes that this token may see.")
    if stock.unmanaged_nodes and within is None:
        printing.heading("Nodes of other clusters")
        print_nodes(map(_node, stock.unmanaged_nodes))
    printing.heading("Placements")
    printing.table(
        ALLOCATIONS,
        [
            (
                row.placement_name, row.workload, row.cluster_name, row.gpus, row.replicas, row.bound_replicas,
                age(row.allocation_time_stamp), row.allocation_time_stamp,
            )
            for row in stock.allocations
            if within is None or row.cluster_name in within
        ],
        empty="No placements: nothing is bursting.",
        wide=WIDE,
    )  # fmt: skip # a row as it is printed
    clusters = (cluster for cluster in stock.clusters if within is None or cluster.cluster_name in within)
    unseen = [cluster for cluster in clusters if cluster.message]
    if unseen:
        printing.heading("Not seen now")
        printing.table(UNSEEN, [(cluster.cluster_name, cluster.observed_at, cluster.message) for cluster in unseen])


def explain(client: Client, workload: str, *, by_name: bool, form: options.Output) -> None:
    """Have the daemon explain a workload; where a template and a request have one name, it is the request."""
    explanation = client.explain(_workload(client, workload, by_name=by_name))
    if form == "json":
        printing.json_out(explanation)
    else:
        print_explanation(explanation)


def _workload(client: Client, text: str, *, by_name: bool) -> str:
    """Return ``workspace/name`` for a name with its workspace, or alone where only one workspace has it."""
    if "/" in text:
        return text
    templates = [] if by_name else [entry for entry in client.templates() if entry.get("name") == text]
    workspaces = {str(template.get("workspaceName")) for template in templates}
    requests = client.placements(origin=Origin.REQUEST)
    workspaces |= {request.workspace_name for request in requests if request.name == text}
    if len(workspaces) == 1:
        return f"{workspaces.pop()}/{text}"
    names = ", ".join(f"{workspace}/{text}" for workspace in sorted(workspaces)) or "none of that name"
    raise InvalidInput(f"explaining {text!r}: name the workload as <workspace>/<name> (there is: {names})")


def print_nodes(rows: Iterable[tuple[object, ...]], *, empty: str = "") -> None:
    """Print the rows of GPU nodes; what pods request there is shown where the nodes differ in it."""
    rows = list(rows)
    alike = len({row[_RESOURCE] for row in rows}) <= 1
    printing.table(NODES, rows, empty=empty, wide=WIDE if alike else ())


def age(at: datetime | str | None) -> str | None:
    """Write how long ago a moment of an answer is."""
    since = moment(at) if isinstance(at, str) else at
    return None if since is None else format_age(SystemClock().now() - since)


def moment(text: str | None) -> datetime | None:
    """Read a moment of an answer's JSON."""
    return None if text is None else datetime.fromisoformat(text)


def problems_of(documents: Iterable[Mapping[str, Any]]) -> list[Problem]:
    """Read the problems of a daemon's answer. Tracebacks of its bugs are in its own log."""
    return [
        Problem(
            path=document["path"],
            line=document["line"],
            field=document["field"],
            message=document["message"],
            hint=document["hint"],
            severity=Severity(document["severity"]),
        )
        for document in documents
    ]


def _clusters(client: Client, workspace: str) -> frozenset[str]:
    """Name the clusters of a workspace. Raises InvalidInput where the token sees no such workspace."""
    workspaces = _clusters_by_workspace(client)
    refuse_unknown("workspace", (workspace,), workspaces, among=VISIBLE)
    return workspaces[workspace]


def clusters_of(client: Client) -> frozenset[str]:
    """Name the clusters of all workspaces that a token may see."""
    return frozenset(name for clusters in _clusters_by_workspace(client).values() for name in clusters)


def _clusters_by_workspace(client: Client) -> Mapping[str, frozenset[str]]:
    """Name the clusters of each workspace that a token may see, its primary among them."""
    return {
        str(entry.get("name")): frozenset(map(str, (*(entry.get("clusters") or ()), entry.get("primaryCluster"))))
        for entry in client.workspaces()
    }


def _narrow(document: object, within: frozenset[str]) -> object:
    """Leave the rows of other clusters out of an inventory."""
    if not isinstance(document, dict):
        return document
    kept = {name: [row for row in rows if row.get("clusterName") in within] for name, rows in document.items()}
    return {**kept, "unmanagedNodes": []}


def _gpr(gpr: Gpr) -> tuple[object, ...]:
    state = gpr.status
    return (
        gpr.gpr_id, f"{gpr.workspace_name}/{gpr.gpr_name}", gpr.cluster_name, state.provisioning_status,
        state.remaining_duration, f"{gpr.priority} {gpr.priority_band}", gpr.gpus or None, gpr.nodes or None,
        gpr.gpu_shape, "yes" if gpr.enable_eviction else "no", state.message,
    )  # fmt: skip # a row as it is printed


def _wait(estimate: WaitTime) -> tuple[object, ...]:
    wait = estimate.estimated_wait_time
    now = wait is not None and not wait.strip("0hms")
    return (
        estimate.cluster_name, "unknown" if wait is None else "none" if now else wait,
        None if now else estimate.estimated_start_time, len(estimate.ahead),
        "; ".join(estimate.reasons),
    )  # fmt: skip # a row as it is printed


def _node(node: GpuNode) -> tuple[object, ...]:
    kind = SliceKind(node.slice_kind) if node.slice_kind else None
    gpus = node.gpu_count if kind is None else describe_slices(node.gpu_count or 0, kind, Fraction(node.gpu_share))
    return (
        node.gpu_node_name, node.cluster_name, gpus, node.available_gpus, node.node_health,
        node.gpu_model_name, node.memory or None, node.resource_name, node.instance_type, node.region, node.zone,
    )  # fmt: skip # a row as it is printed
