"""`gprs`, `wait-time` and `inventory`: who has which GPUs, when there will be some, and what there is."""

from __future__ import annotations

from typing import Unpack

import click

from reconciler import app
from reconciler.ahead import look_ahead
from reconciler.cli import options, printing, remote
from reconciler.cli.commands.plan import problems_of
from reconciler.cli.connection import asking
from reconciler.core.explain.gprs import GprView
from reconciler.core.explain.gprs import gprs as listed_gprs
from reconciler.core.explain.inventory import GpuInventory, GpuNode
from reconciler.core.explain.inventory import inventory as taken_stock
from reconciler.core.explain.wait_time import GpuDemand, WaitEstimate, spelt, waits
from reconciler.daemon.reconcile import View, draft
from reconciler.errors import InvalidInput
from reconciler.model.gpr import DEFAULT_PRIORITY, PRIORITIES
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.settings import Settings

_FIRST, _LAST = PRIORITIES[0], PRIORITIES[-1]


@options.examples(
    "overspill gprs --observations observations/",
    "overspill gprs --workspace llm --state queued",
    "overspill gprs -o json | jq '.[] | select(.evictable)'",
)
@click.command()
@asking(remote.gprs)
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS")
@click.option("--workspace", help="Show those of one workspace.")
@click.option("--state", help="Show those in one state, as Queued or Successful; EGS's other names for it will do.")
@options.output
def gprs(settings: Settings, workspace: str | None, state: str | None, form: options.Output) -> None:
    """List GPRs: who has which GPUs, and who waits for some."""
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


@options.examples(
    "overspill wait-time --workspace llm --gpus 8 --nodes 2",
    "overspill wait-time --workspace llm --gpus 1 --shape NVIDIA-H100-80GB-HBM3 --priority 250",
    "overspill wait-time --workspace llm --gpus 1 --memory 40 -o json",
)
@click.command("wait-time")
@asking(remote.wait_time)
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS")
@click.option("--workspace", required=True, help="Whose clusters are looked at.")
@click.option("--gpus", type=click.IntRange(min=1), required=True, help="GPUs on each node.")
@click.option("--nodes", type=click.IntRange(min=1), default=1, show_default=True, help="Different nodes.")
@click.option("--shape", default="", help="The GPU model, as NVIDIA-H100-80GB-HBM3; any if left out.")
@click.option("--memory", type=click.IntRange(min=0), default=0, help="GB that one GPU has at least.")
@click.option("--instance-type", default="", help="The machine type of the nodes; any if left out.")
@click.option("--dedicated", is_flag=True, help="Whole nodes, even for fewer GPUs than they have.")
@click.option("--cluster", "clusters", multiple=True, help="Look at this cluster only; may be given several times.")
@click.option(
    "--priority",
    type=click.IntRange(_FIRST, _LAST),
    default=DEFAULT_PRIORITY,
    show_default=True,
    help="Higher goes first.",
)
@options.output
def wait_time(settings: Settings, *, form: options.Output, **wanted: Unpack[remote.WaitTimeOptions]) -> None:
    """Estimate when GPUs can be had on each cluster.

    It says what that depends on: what ends when, what an autoscaler may add, and who is ahead.
    """
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


@options.examples(
    "overspill inventory --observations observations/",
    "overspill inventory --workspace llm",
    "overspill inventory -o json | jq '[.managed[].free] | add'",
)
@click.command()
@asking(remote.inventory)
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS")
@click.option("--workspace", help="Show the clusters of one workspace.")
@options.output
def inventory(settings: Settings, workspace: str | None, form: options.Output) -> None:
    """List the GPU nodes: what each has and what is free."""
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
    printing.blind(settings)
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
