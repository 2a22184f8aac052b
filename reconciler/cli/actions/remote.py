"""What commands print where they ask a daemon: the tables that they print of their own looks, and its JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from reconciler.cli import options, printing
from reconciler.cli.actions.explain import print_explanation
from reconciler.core.capacity.gpu_requests import described
from reconciler.errors import InvalidInput
from reconciler.model.gpr import GprState, GpuAsk, read_state
from reconciler.model.placement import Origin

if TYPE_CHECKING:  # it takes long to import, and most commands ask no daemon
    from reconciler.client import Client, Gpr, Node, WaitTime

GPRS = (
    "GPR", "WORKLOAD", "CLUSTER", "STATE", "PRIORITY", "GPUS", "NODES", "SHAPE", "LEFT", "EVICTABLE", "NOTE",
)  # fmt: skip # a list of words, filled line by line
WAITS = ("CLUSTER", "WAIT", "AT", "AHEAD", "WHY")
NODES = (
    "NODE", "CLUSTER", "GPUS", "FREE", "MODEL", "GB", "RESOURCE", "INSTANCE TYPE", "REGION", "ZONE", "HEALTH",
)  # fmt: skip # a list of words, filled line by line
ALLOCATIONS = ("PLACEMENT", "WORKLOAD", "CLUSTER", "GPUS", "REPLICAS", "BOUND", "SINCE")
UNSEEN = ("CLUSTER", "LAST SEEN", "NOTE")


def gprs(client: Client, *, workspace: str | None, state: str | None, form: options.Output) -> None:
    """List the GPRs that the daemon knows."""
    found = list(client.gprs(workspace=workspace or "", status=state_of(state) or ""))
    if form == "json":
        printing.json_out([one.document for one in found])
    else:
        printing.table(GPRS, [_gpr(one) for one in found], empty="No GPRs that this token may see.")


def state_of(text: str | None) -> GprState | None:
    """Read the state of a GPR under any of EGS's names for it; None is any."""
    state = None if text is None else read_state(text)
    if state is None or isinstance(state, GprState):
        return state
    raise click.UsageError(f"--state: {text!r} is no state (try one of {', '.join(GprState)})")


class WaitTimeOptions(TypedDict):
    """The options of `wait-time`: on which GPUs of whose clusters somebody would wait."""

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
    """Return what is asked for."""
    return GpuAsk(
        gpus=wanted["gpus"],
        nodes=wanted["nodes"],
        memory=wanted["memory"],
        shape=wanted["shape"],
        instance_type=wanted["instance_type"],
    )


def wait_time(client: Client, *, form: options.Output, **wanted: Unpack[WaitTimeOptions]) -> None:
    """Have the daemon estimate when GPUs can be had."""
    asked = {_ASKED.get(name, name): value for name, value in wanted.items() if value}
    found = client.wait_time(asked)
    if form == "json":
        printing.json_out(found)
    else:
        printing.sentence(asked_for(wanted))
        printing.table(WAITS, [_wait(one) for one in found], empty="The workspace has no clusters.")


_ASKED = {
    "workspace": "workspaceName", "gpus": "numberOfGPUs", "nodes": "numberOfGPUNodes", "shape": "gpuShape",
    "memory": "memoryPerGpu", "instance_type": "instanceType", "dedicated": "dedicatedNodes",
}  # fmt: skip # a list of words, filled line by line
"""How the interface names what it calls otherwise."""


def asked_for(wanted: WaitTimeOptions) -> str:
    """Say what wait times are for."""
    return f"{described(ask_of(wanted))}, priority {wanted['priority']}, in {wanted['workspace']}:"


def inventory(client: Client, *, workspace: str | None, form: options.Output) -> None:
    """List the GPU nodes that the daemon sees, of all clusters or of those of a workspace."""
    found = client.inventory()
    within = None if workspace is None else _clusters(client, workspace)
    if form == "json":
        printing.json_out(found.document if within is None else _narrowed(found.document, within))
        return
    managed = [one for one in found.managed_nodes if within is None or one.cluster_name in within]
    printing.heading("Nodes of workspaces' clusters", first=True)
    printing.table(NODES, map(_node, managed), empty="No GPU nodes that this token may see.")
    if found.unmanaged_nodes and within is None:
        printing.heading("Nodes of other clusters")
        printing.table(NODES, map(_node, found.unmanaged_nodes))
    printing.heading("Placements")
    printing.table(
        ALLOCATIONS,
        [
            (
                one.placement_name, one.workload, one.cluster_name, one.gpus, one.replicas, one.bound_replicas,
                one.allocation_time_stamp,
            )
            for one in found.allocations
            if within is None or one.cluster_name in within
        ],
        empty="No placements: nothing is bursting.",
    )  # fmt: skip # a row as it is printed
    unseen = [one for one in found.clusters if one.message and (within is None or one.cluster_name in within)]
    if unseen:
        printing.heading("Not seen now")
        printing.table(UNSEEN, [(one.cluster_name, one.observed_at, one.message) for one in unseen])


def explain(client: Client, workload: str, *, by_name: bool, form: options.Output) -> None:
    """Have the daemon explain a workload; where a template and a request have one name, it is the request."""
    told = client.explain(_workload(client, workload, by_name=by_name))
    if form == "json":
        printing.json_out(told)
    else:
        print_explanation(told)


def _workload(client: Client, text: str, *, by_name: bool) -> str:
    """Read a workload's name as a person gives it: with its workspace, or alone where only one has it."""
    if "/" in text:
        return text
    known = {str(one.get("workspaceName")) for one in client.templates() if one.get("name") == text and not by_name}
    known |= {one.workspace_name for one in client.placements(origin=Origin.REQUEST) if one.name == text}
    if len(known) == 1:
        return f"{known.pop()}/{text}"
    there = ", ".join(f"{one}/{text}" for one in sorted(known)) or "none of that name"
    raise InvalidInput(f"explaining {text!r}: name the workload as <workspace>/<name> (there is: {there})")


def _clusters(client: Client, workspace: str) -> frozenset[str]:
    """Name the clusters of a workspace."""
    known = {str(one.get("name")): one for one in client.workspaces()}
    if workspace not in known:
        there = ", ".join(sorted(known)) or "none"
        raise InvalidInput(f"looking for workspace {workspace!r}: this token may see none of this name ({there})")
    return frozenset(map(str, known[workspace].get("clusters") or ()))


def _narrowed(document: object, within: frozenset[str]) -> object:
    """Leave out of an inventory what is about other clusters."""
    if not isinstance(document, dict):
        return document
    kept = {name: [one for one in rows if one.get("clusterName") in within] for name, rows in document.items()}
    return {**kept, "unmanagedNodes": []}


def _gpr(one: Gpr) -> tuple[object, ...]:
    state = one.status
    return (
        one.gpr_id, f"{one.workspace_name}/{one.gpr_name}", one.cluster_name, state.provisioning_status,
        f"{one.priority} {one.priority_band}", one.gpus or None, one.nodes or None, one.gpu_shape,
        state.remaining_duration, "yes" if one.enable_eviction else "no", state.message,
    )  # fmt: skip # a row as it is printed


def _wait(one: WaitTime) -> tuple[object, ...]:
    wait = one.estimated_wait_time
    now = wait is not None and not wait.strip("0hms")
    return (
        one.cluster_name, "unknown" if wait is None else "none" if now else wait,
        None if now else one.estimated_start_time, len(one.ahead),
        "; ".join(one.reasons),
    )  # fmt: skip # a row as it is printed


def _node(one: Node) -> tuple[object, ...]:
    return (
        one.gpu_node_name, one.cluster_name, one.gpu_count, one.available_gpus, one.gpu_model_name, one.memory or None,
        one.resource_name, one.instance_type, one.region, one.zone, one.node_health,
    )  # fmt: skip # a row as it is printed
