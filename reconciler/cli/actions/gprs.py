"""`gprs`, `wait-time` and `inventory`: who has which GPUs, when there will be some, and what there is."""

from __future__ import annotations

from typing import Unpack

from reconciler import app
from reconciler.ahead import look_ahead
from reconciler.cli import options, printing
from reconciler.cli.actions import remote
from reconciler.cli.actions.plan import problems_of
from reconciler.cli.actions.visibility import warn_without_observations
from reconciler.core.explain.gprs import GprView
from reconciler.core.explain.gprs import gprs as listed_gprs
from reconciler.core.explain.inventory import GpuInventory, GpuNode
from reconciler.core.explain.inventory import inventory as taken_stock
from reconciler.core.explain.wait_time import GpuDemand, WaitEstimate, spelt, waits
from reconciler.daemon.reconcile import View, draft
from reconciler.errors import InvalidInput
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.settings import Settings


def gprs(settings: Settings, workspace: str | None, state: str | None, form: options.Output) -> None:
    """Print the GPRs of the repository and its clusters."""
    wanted = remote.state_of(state)
    view = _look(settings)
    if workspace is not None:
        _known(view, workspace)
    found = [
        one
        for one in listed_gprs(view, view.plan)
        if workspace in (None, one.workspace) and wanted in (None, one.state)
    ]
    if form == "json":
        printing.json_out(found)
    else:
        empty = "No GPRs: no workload has GPUs elsewhere, and none waits for any."
        narrowed = "No GPRs like that." if state or workspace else empty
        printing.table(remote.GPRS, [_gpr_row(one) for one in found], empty=narrowed)
    _tell(settings, view)


def wait_time(settings: Settings, *, form: options.Output, **wanted: Unpack[remote.WaitTimeOptions]) -> None:
    """Print an estimate for each cluster of a workspace."""
    view = _look(settings)
    asking = GpuDemand(
        workspace=_known(view, wanted["workspace"]),
        ask=remote.ask_of(wanted),
        priority=wanted["priority"],
        clusters=tuple(ClusterName(name) for name in wanted["clusters"]),
        dedicated=wanted["dedicated"],
    )
    found = waits(asking, view, view.plan)
    if form == "json":
        printing.json_out(found)
    else:
        printing.sentence(remote.asked_for(wanted))
        printing.table(
            remote.WAITS,
            [_wait_row(one) for one in found],
            empty="The workspace has no clusters.",
        )
    _tell(settings, view)


def inventory(settings: Settings, workspace: str | None, form: options.Output) -> None:
    """Print the GPU nodes and the placements on their clusters."""
    view = _look(settings)
    within = None if workspace is None else frozenset({_known(view, workspace)})
    found = taken_stock(view, within)
    if form == "json":
        printing.json_out(found)
    else:
        _inventory_tables(found)
    _tell(settings, view)


def _look(settings: Settings) -> View:
    with app.connected(settings) as (world, memory):
        view, _ = draft(world, look_ahead(world, memory, None))
    return view


def _tell(settings: Settings, view: View) -> None:
    warn_without_observations(settings)
    printing.problems(problems_of(view))


def _known(view: View, workspace: str) -> WorkspaceName:
    name = WorkspaceName(workspace)
    if name not in view.desired.workspaces:
        there = ", ".join(sorted(view.desired.workspaces)) or "none"
        raise InvalidInput(f"looking for workspace {workspace!r}: there is none of this name (there are: {there})")
    return name


def _gpr_row(one: GprView) -> tuple[object, ...]:
    return (
        one.id, one.workload, one.cluster, one.state, f"{one.priority} {one.band}", one.gpus or None, one.nodes or None,
        one.shape, one.left, "yes" if one.evictable else "no", one.reason,
    )  # fmt: skip # a row as it is printed


def _wait_row(one: WaitEstimate) -> tuple[object, ...]:
    wait = "unknown" if one.wait is None else spelt(one.wait) if one.wait else "none"
    return one.cluster, wait, one.at if one.wait else None, len(one.ahead), "; ".join(one.reasons)


def _inventory_tables(found: GpuInventory) -> None:
    headers = remote.NODES
    printing.heading("Nodes of workspaces' clusters", first=True)
    empty = "No GPU nodes: none was seen in a cluster of a workspace."
    printing.table(headers, [_node_row(one) for one in found.managed], empty=empty)
    if found.unmanaged:
        printing.heading("Nodes of other clusters")
        printing.table(headers, [_node_row(one) for one in found.unmanaged])
    printing.heading("Placements")
    printing.table(
        remote.ALLOCATIONS,
        [
            (one.placement, one.workload, one.cluster, one.gpus, one.replicas, one.bound, one.since)
            for one in found.allocations
        ],
        empty="No placements: nothing is bursting.",
    )
    unseen = [one for one in found.clusters if one.message]
    if unseen:
        printing.heading("Not seen now")
        printing.table(
            ("CLUSTER", "LAST SEEN", "NOTE"), [(one.cluster, one.observed_at, one.message) for one in unseen]
        )


def _node_row(one: GpuNode) -> tuple[object, ...]:
    return (
        one.node, one.cluster, one.count, one.free, one.model, one.memory or None, one.resource, one.instance_type,
        one.region, one.zone, one.health,
    )  # fmt: skip # a row as it is printed
