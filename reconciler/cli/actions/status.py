"""`status`: demand, placements and clusters at one moment."""

from __future__ import annotations

from datetime import datetime

from reconciler import app
from reconciler.cli import options, printing
from reconciler.cli.actions.visibility import warn_without_observations
from reconciler.daemon.reconcile import draft
from reconciler.daemon.status import FleetStatus, RequestStatus, WorkloadStatus
from reconciler.daemon.status import status as status_of
from reconciler.model.budget import BudgetState
from reconciler.preview import decision_at
from reconciler.settings import Settings
from reconciler.text.ages import format_age
from reconciler.text.timestamps import format_time


def status(settings: Settings, at: datetime | None, form: options.Output) -> None:
    """Print every workload's demand and every placement."""
    with app.connected(settings) as (world, memory):
        decision, _ = draft(world, decision_at(world, memory, at))
        fleet = status_of(decision)
    if form == "json":
        printing.json_out(fleet)
    else:
        _tables(fleet)
    warn_without_observations(settings)
    printing.problems(fleet.problems)


def _tables(fleet: FleetStatus) -> None:
    now = fleet.now
    due = f"; the next look is due in {format_age(fleet.wake_at - now)}" if fleet.wake_at else ""
    printing.sentence(f"At {format_time(now)}{due}.")
    printing.heading("Workloads")
    printing.table(
        ("WORKLOAD", "PRIMARY", "POLICY", "WANTED", "RUNNING", "MISSING", "ELSEWHERE", "NOTE"),
        [
            (
                workload.workload, workload.primary, workload.policy, workload.wanted, workload.running,
                workload.deficit, workload.placed,
                _note(workload),
            )
            for workload in fleet.workloads
        ],
        empty="No workloads: no WorkloadTemplate is in the fleet repository (`overspill init` shows one).",
    )  # fmt: skip # a row as it is printed
    if fleet.requests:
        _request_table(fleet.requests, now)
    printing.heading("Placements")
    printing.table(
        (
            "PLACEMENT", "WORKLOAD", "CLUSTER", "REPLICAS", "BOUND", "PHASE", "ENGINE", "AGE", "LEFT", "FROM", "UNTIL",
            "NOTE",
        ),
        [
            (
                row.placement.name, row.placement.workload, row.placement.where, row.placement.replicas, row.bound,
                row.phase, row.engine, _age(row.placement.created_at, now),
                format_age(row.left) if row.left else "over", row.placement.created_at, row.placement.expires_at,
                row.message,
            )
            for row in fleet.placements
        ],
        empty="No placements: nothing is bursting.",
        wide=("FROM", "UNTIL"),
    )  # fmt: skip # a row as it is printed
    if fleet.leaving:
        printing.heading("Leaving")
        printing.table(
            ("PLACEMENT", "CLUSTER", "PODS", "NOTE"),
            [(placement.name, placement.cluster, placement.pods, placement.message) for placement in fleet.leaving],
            empty="",
        )
    if fleet.budgets:
        printing.heading("Budgets")
        printing.table(
            ("BUDGET", "FOR", "SPENT", "OF", "ANEW IN", "ANEW", "NOTE"),
            [
                (
                    budget.owner, budget.period, f"{budget.spent:.2f} $", f"{budget.limit:.2f} $",
                    format_age(budget.ends_at - now), budget.ends_at, _budget_note(budget),
                )
                for budget in fleet.budgets
            ],
            wide=("ANEW",),
        )  # fmt: skip # a row as it is printed
    printing.heading("Clusters")
    printing.table(
        ("CLUSTER", "REACHED BY", "LAST SEEN", "SEEN AT", "ENGINE", "ENGINE SEEN", "NOTE"),
        [
            (
                cluster.cluster, cluster.connection, _age(cluster.observed_at, now), cluster.observed_at,
                cluster.engine, "yes" if cluster.reporting else "no", cluster.message,
            )
            for cluster in fleet.clusters
        ],
        empty="No clusters: no Cluster is in the fleet repository (`overspill init` shows one).",
        wide=("SEEN AT",),
    )  # fmt: skip # a row as it is printed


def _age(at: datetime | None, now: datetime) -> str | None:
    return None if at is None else format_age(now - at)


def _note(workload: WorkloadStatus) -> str:
    """Return the remark on a workload and what holds its replicas back, each sentence once."""
    held = [f"{entry.reason}: {entry.message}" for entry in workload.suppressed]
    known = any(workload.message in entry.message for entry in workload.suppressed)
    return "; ".join(held if known or not workload.message else [workload.message, *held])


def _budget_note(budget: BudgetState) -> str:
    unpriced = f"{budget.unpriced_gpu_hours:.2f} GPU-hours have no price" if budget.unpriced_gpu_hours else ""
    held = "used up: nothing new is placed" if budget.is_used_up else ""
    return "; ".join(filter(None, (held or f"{100 * budget.spent / budget.limit:.0f} %", unpriced)))


def _request_table(requests: tuple[RequestStatus, ...], now: datetime) -> None:
    printing.heading("Requests")
    printing.table(
        (
            "REQUEST", "FROM", "CLUSTERS", "PLACED", "STATUS", "PHASE", "AGE", "LEFT", "RECEIVED", "UNTIL", "NOTE",
        ),
        [
            (
                request.request, request.asker, ", ".join(request.clusters) or "any", ", ".join(request.placed),
                request.provisioning_status, request.phase, _age(request.received_at, now),
                format_age(request.ends_at - now) if request.ends_at else None, request.received_at, request.ends_at,
                request.message,
            )
            for request in requests
        ],
        wide=("RECEIVED", "UNTIL"),
    )  # fmt: skip # a row as it is printed
