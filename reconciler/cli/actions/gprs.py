"""`gprs`, `wait-time` and `inventory`: GPUs in use, estimates for more, and the nodes that have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from reconciler.app.commands import connected
from reconciler.cli import options, printing
from reconciler.cli.actions import remote
from reconciler.cli.actions.known_names import refuse_unknown
from reconciler.cli.actions.visibility import warn_without_observations
from reconciler.core.explain.gprs import GprView
from reconciler.core.explain.gprs import gpr_views as list_gprs
from reconciler.core.explain.inventory import GpuInventory, InventoryNode
from reconciler.core.explain.inventory import build_inventory as take_inventory
from reconciler.core.explain.wait_time import GpuDemand, WaitEstimate, estimate_waits, write_wait
from reconciler.daemon.reconcile import PassDecision, draft
from reconciler.errors import Bug
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.preview import decision_at
from reconciler.settings import Settings
from reconciler.text.wording import describe_slices


def gprs(settings: Settings, workspace: str | None, state: str | None, form: options.Output) -> None:
    """Print the GPRs of the repository and its clusters."""
    wanted_state = remote.state_of(state)
    decision = _look(settings)
    if workspace is not None:
        _workspace(decision, workspace)
    bugs: list[Bug] = []
    rows = [
        gpr
        for gpr in list_gprs(decision.inputs, decision.plan, bugs.append)
        if workspace in (None, gpr.workspace) and wanted_state in (None, gpr.state)
    ]
    if form == "json":
        printing.json_out(rows)
    else:
        empty = "No GPRs: no workload has GPUs elsewhere, and none waits for any."
        filtered = "No GPRs like that." if state or workspace else empty
        printing.table(remote.GPRS, [_gpr_row(gpr) for gpr in rows], empty=filtered)
    _print_warnings(settings, decision, bugs)


def wait_time(settings: Settings, *, form: options.Output, **wait_options: Unpack[remote.WaitTimeOptions]) -> None:
    """Print an estimate for each cluster of a workspace."""
    decision = _look(settings)
    workspace = _workspace(decision, wait_options["workspace"])
    own = decision.inputs.desired.workspaces[workspace].everywhere
    refuse_unknown("cluster", wait_options["clusters"], own, among=f"workspace {workspace} has")
    demand = GpuDemand(
        workspace=workspace,
        ask=remote.ask_of(wait_options),
        priority=wait_options["priority"],
        clusters=tuple(ClusterName(name) for name in wait_options["clusters"]),
        dedicated=wait_options["dedicated"],
    )
    bugs: list[Bug] = []
    estimates = estimate_waits(demand, decision.inputs, decision.plan, bugs.append)
    if form == "json":
        printing.json_out(estimates)
    else:
        printing.sentence(remote.asked_for(wait_options, demand.urgency(decision.inputs.desired)))
        printing.table(
            remote.WAITS,
            [_wait_row(estimate) for estimate in estimates],
            empty="The workspace has no clusters.",
        )
    _print_warnings(settings, decision, bugs)


def inventory(settings: Settings, workspace: str | None, form: options.Output) -> None:
    """Print the GPU nodes and the placements on their clusters."""
    decision = _look(settings)
    within = None if workspace is None else frozenset({_workspace(decision, workspace)})
    bugs: list[Bug] = []
    stock = take_inventory(decision.inputs, within, bugs.append)
    if form == "json":
        printing.json_out(stock)
    else:
        _inventory_tables(stock)
    _print_warnings(settings, decision, bugs)


def _look(settings: Settings) -> PassDecision:
    with connected(settings) as (world, memory):
        decision, _ = draft(world, decision_at(world, memory, None))
    return decision


def _print_warnings(settings: Settings, decision: PassDecision, bugs: Sequence[Bug]) -> None:
    warn_without_observations(settings)
    printing.problems((*decision.problems, *(bug.problem(bug.item) for bug in bugs)))


def _workspace(decision: PassDecision, workspace: str) -> WorkspaceName:
    refuse_unknown("workspace", (workspace,), decision.inputs.desired.workspaces)
    return WorkspaceName(workspace)


def _gpr_row(gpr: GprView) -> tuple[object, ...]:
    return (
        gpr.id, gpr.workload, gpr.cluster, gpr.state, gpr.left, f"{gpr.priority} {gpr.band}", gpr.gpus or None,
        gpr.nodes or None, gpr.shape, "yes" if gpr.evictable else "no", gpr.reason,
    )  # fmt: skip # a row as it is printed


def _wait_row(estimate: WaitEstimate) -> tuple[object, ...]:
    wait = "unknown" if estimate.wait is None else write_wait(estimate.wait) if estimate.wait else "none"
    return (
        estimate.cluster,
        wait,
        estimate.at if estimate.wait else None,
        len(estimate.ahead),
        "; ".join(estimate.reasons),
    )


def _inventory_tables(stock: GpuInventory) -> None:
    printing.heading("Nodes of workspaces' clusters", first=True)
    empty = "No GPU nodes: none was seen in a cluster of a workspace."
    remote.print_nodes(map(_node_row, stock.managed), empty=empty)
    if stock.unmanaged:
        printing.heading("Nodes of other clusters")
        remote.print_nodes(map(_node_row, stock.unmanaged))
    printing.heading("Placements")
    printing.table(
        remote.ALLOCATIONS,
        [
            (
                row.placement, row.workload, row.cluster, row.gpus, row.replicas, row.bound, remote.age(row.since),
                row.since,
            )
            for row in stock.allocations
        ],
        empty="No placements: nothing is bursting.",
        wide=remote.WIDE,
    )  # fmt: skip # a row as it is printed
    unseen = [cluster for cluster in stock.clusters if cluster.message]
    if unseen:
        printing.heading("Not seen now")
        printing.table(
            ("CLUSTER", "LAST SEEN", "NOTE"),
            [(cluster.cluster, cluster.observed_at, cluster.message) for cluster in unseen],
        )


def _node_row(node: InventoryNode) -> tuple[object, ...]:
    gpus = node.count if node.slices is None else describe_slices(node.count or 0, node.slices, node.share)
    return (
        node.node, node.cluster, gpus, node.free, node.health, node.model, node.memory or None, node.resource,
        node.instance_type, node.region, node.zone,
    )  # fmt: skip # a row as it is printed
