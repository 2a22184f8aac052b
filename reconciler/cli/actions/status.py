"""`status`: demand, placements and clusters at one moment, by a daemon or by this machine.

Both answers are printed from their JSON, so that they read alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from reconciler.app.commands import connected
from reconciler.cli import options, printing
from reconciler.cli.actions import remote
from reconciler.cli.actions.visibility import warn_without_observations
from reconciler.core.explain.summary import describe_spare
from reconciler.daemon.reconcile import draft
from reconciler.daemon.status import status as status_of
from reconciler.model.placement import place_name
from reconciler.preview import decision_at
from reconciler.settings import Settings
from reconciler.text.ages import format_age
from reconciler.text.to_json import json_value

if TYPE_CHECKING:  # it takes long to import, and commands without a daemon do not need it
    from reconciler.client import Client

StatusDocument: TypeAlias = Mapping[str, Any]
"""A status as ``-o json`` prints it, or a part of one."""


def status(settings: Settings, at: datetime | None, form: options.Output) -> None:
    """Print every workload's demand and every placement."""
    with connected(settings) as (world, memory):
        decision, _ = draft(world, decision_at(world, memory, at))
        fleet = status_of(decision)
    _print(json_value(fleet), form)
    warn_without_observations(settings)
    printing.problems(fleet.problems)


def status_remotely(client: Client, form: options.Output) -> None:
    """Print the status that a daemon tells."""
    document = client.status()
    _print(document, form)
    printing.problems(remote.problems_of(document["problems"]))


def _print(fleet: StatusDocument, form: options.Output) -> None:
    if form == "json":
        printing.json_out(fleet)
    else:
        _tables(fleet)


def _tables(fleet: StatusDocument) -> None:
    now = datetime.fromisoformat(fleet["now"])
    due = f"; the next look is due in {_left(fleet['wakeAt'], now)}" if fleet["wakeAt"] else ""
    printing.sentence(f"At {fleet['now']}{due}.")
    printing.heading("Workloads")
    printing.table(
        ("WORKLOAD", "PRIMARY", "POLICY", "WANTED", "RUNNING", "MISSING", "ELSEWHERE", "NOTE"),
        [
            (
                workload["workload"], workload["primary"], workload["policy"], workload["wanted"], workload["running"],
                workload["deficit"], workload["placed"],
                _note(workload),
            )
            for workload in fleet["workloads"]
        ],
        empty="No workloads: no WorkloadTemplate is in the fleet repository (`overspill init` shows one).",
    )  # fmt: skip # a row as it is printed
    if fleet["requests"]:
        _request_table(fleet["requests"], now)
    printing.heading("Placements")
    printing.table(
        (
            "PLACEMENT", "WORKLOAD", "CLUSTER", "REPLICAS", "BOUND", "PHASE", "ENGINE", "AGE", "LEFT", "FROM", "UNTIL",
            "NOTE",
        ),
        [_placement_row(row, row["placement"], now) for row in fleet["placements"]],
        empty="No placements: nothing is bursting.",
        wide=("FROM", "UNTIL"),
    )  # fmt: skip # a row as it is printed
    if fleet["leaving"]:
        printing.heading("Leaving")
        printing.table(
            ("PLACEMENT", "CLUSTER", "PODS", "AGE", "NOTE"),
            [
                (row["name"], row["cluster"], row["pods"], _age(row["since"], now), row["message"])
                for row in fleet["leaving"]
            ],
            empty="",
        )
    if fleet["budgets"]:
        printing.heading("Budgets")
        printing.table(
            ("BUDGET", "FOR", "SPENT", "OF", "RESETS IN", "RESETS", "NOTE"),
            [
                (
                    budget["owner"], budget["period"], f"{budget['spent']:.2f} $", f"{budget['limit']:.2f} $",
                    _left(budget["endsAt"], now), budget["endsAt"], _budget_note(budget),
                )
                for budget in fleet["budgets"]
            ],
            wide=("RESETS",),
        )  # fmt: skip # a row as it is printed
    printing.heading("Clusters")
    printing.table(
        ("CLUSTER", "REACHED BY", "LAST SEEN", "SEEN AT", "ENGINE", "ENGINE SEEN", "NOTE"),
        [
            (
                cluster["cluster"], cluster["connection"], _age(cluster["observedAt"], now), cluster["observedAt"],
                cluster["engine"], _heard(cluster), cluster["message"],
            )
            for cluster in fleet["clusters"]
        ],
        empty="No clusters: no Cluster is in the fleet repository (`overspill init` shows one).",
        wide=("SEEN AT",),
    )  # fmt: skip # a row as it is printed


def _heard(cluster: StatusDocument) -> str | None:
    """Say whether the engine of a cluster is heard; None of a partition of Slurm, which has none."""
    if cluster["engine"] is None:
        return None
    return "yes" if cluster["reporting"] else "no"


def _age(at: str | None, now: datetime) -> str | None:
    return None if at is None else format_age(now - datetime.fromisoformat(at))


def _left(at: str | None, now: datetime) -> str | None:
    return None if at is None else format_age(datetime.fromisoformat(at) - now)


def _note(workload: StatusDocument) -> str:
    """Return the remark on a workload and what holds its replicas back, each sentence once."""
    message, suppressed = workload["message"], workload["suppressed"]
    held = [f"{entry['reason']}: {entry['message']}" for entry in suppressed]
    known = any(message in entry["message"] for entry in suppressed)
    spare = workload.get("spare")
    notes = [describe_spare(spare)] if spare else []
    return "; ".join([*notes, *([message] if message and not known else []), *held])


def _placement_row(row: StatusDocument, placement: StatusDocument, now: datetime) -> tuple[object, ...]:
    return (
        placement["name"], placement["workload"], place_name(placement["cluster"], placement["subset"]),
        placement["replicas"], row["bound"], row["phase"], row["engine"], _age(placement["createdAt"], now),
        "over" if row["left"] == "0s" else _left(placement["expiresAt"], now), placement["createdAt"],
        placement["expiresAt"], row["message"],
    )  # fmt: skip # a row as it is printed


def _budget_note(budget: StatusDocument) -> str:
    hours, spent, limit = budget["unpricedGpuHours"], budget["spent"], budget["limit"]
    unpriced = f"{hours:.2f} GPU-hours have no price" if hours else ""
    used_up = "used up: nothing new is placed" if spent >= limit else f"{100 * spent / limit:.0f} %"
    return "; ".join(filter(None, (used_up, unpriced)))


def _request_table(requests: Sequence[StatusDocument], now: datetime) -> None:
    printing.heading("Requests")
    printing.table(
        (
            "REQUEST", "FROM", "CLUSTERS", "PLACED", "STATUS", "PHASE", "AGE", "LEFT", "RECEIVED", "UNTIL", "NOTE",
        ),
        [
            (
                request["request"], request["asker"], ", ".join(request["clusters"]) or "any",
                ", ".join(request["placed"]), request["provisioningStatus"], request["phase"],
                _age(request["receivedAt"], now), _left(request["endsAt"], now), request["receivedAt"],
                request["endsAt"], request["message"],
            )
            for request in requests
        ],
        wide=("RECEIVED", "UNTIL"),
    )  # fmt: skip # a row as it is printed
