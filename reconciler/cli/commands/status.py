"""`status` and `explain`: what stands, and why."""

from __future__ import annotations

from datetime import datetime

import click

from reconciler import app
from reconciler.ahead import look_ahead
from reconciler.cli import explanation, options, printing, remote
from reconciler.cli.commands.plan import problems_of
from reconciler.cli.connection import asking
from reconciler.core.explain.request import explain_request
from reconciler.core.explain.workload import explain as explained
from reconciler.daemon.reconcile import draft
from reconciler.daemon.status import FleetStatus, RequestStatus
from reconciler.daemon.status import status as summed_up
from reconciler.errors import InvalidInput
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.settings import Settings
from reconciler.text.timestamps import format_time
from reconciler.text.to_json import plainly


@options.examples(
    "overspill status --observations observations/",
    "overspill status -o json | jq '.placements[].placement.cluster'",
)
@click.command()
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS")
@options.at
@options.output
def status(settings: Settings, at: datetime | None, form: options.Output) -> None:
    """Show every workload's demand and every placement."""
    with app.connected(settings) as (world, memory):
        view, _ = draft(world, look_ahead(world, memory, at))
        found = summed_up(view)
    if form == "json":
        printing.json_out(found)
    else:
        _status_tables(found)
    printing.blind(settings)
    printing.problems(found.problems)


@options.examples(
    "overspill explain llm/vllm --observations observations/",
    "overspill explain vllm --at +1h",
    "overspill explain llm/vllm -o json | jq '.assessments[] | select(.refusal)'",
)
@click.command()
@asking(remote.explain)
@click.argument("workload")
@click.option("--request", "by_name", is_flag=True, help="Explain the request of this name, not the template.")
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS")
@options.at
@options.output
def explain(settings: Settings, workload: str, at: datetime | None, *, by_name: bool, form: options.Output) -> None:
    """Explain one workload: filter, fit and score of each cluster.

    It ends with what would have to change. WORKLOAD is <workspace>/<template> or <workspace>/<request>; the name alone
    will do where only one has it.
    """
    with app.connected(settings) as (world, memory):
        view, _ = draft(world, look_ahead(world, memory, at))
    records = view.enrolment.records if view.enrolment is not None else {}
    named = _workload(
        workload, (*(one for one in view.desired.templates if not one.request), *records), by_name=by_name
    )
    told = explain_request(records[named], view, view.plan) if named in records else explained(named, view, view.plan)
    if form == "json":
        printing.json_out(told)
    else:
        explanation.tell(plainly(told))
    printing.blind(settings)
    printing.stale(settings, told.suppressed)
    printing.problems(problems_of(view))


def _workload(text: str, known: tuple[WorkloadId, ...], *, by_name: bool) -> WorkloadId:
    """Read a workload's name as a person gives it; that it exists is for the explanation to say.

    A template comes before a request of the same name, unless it is the request that is asked for.
    """
    known = tuple(one for one in known if one.request) if by_name else known
    workspace, slash, name = text.partition("/")
    if slash:
        template = WorkloadId(WorkspaceName(workspace), TemplateName(name))
        request = template._replace(request=True)
        return request if by_name or (request in known and template not in known) else template
    named = [one for one in known if one.name == text]
    if len(named) > 1 and len({one.workspace for one in named}) == 1:
        return min(named)
    if len(named) == 1:
        return named[0]
    there = ", ".join(str(one) for one in sorted(named or known)) or "none"
    raise InvalidInput(f"explaining {text!r}: name the workload as <workspace>/<template> (there are: {there})")


def _status_tables(found: FleetStatus) -> None:
    due = f"; the next look is due at {format_time(found.wake_at)}" if found.wake_at else ""
    printing.sentence(f"At {format_time(found.now)}{due}.")
    printing.heading("Workloads")
    printing.table(
        ("WORKLOAD", "PRIMARY", "POLICY", "WANTED", "RUNNING", "MISSING", "ELSEWHERE", "NOTE"),
        [
            (
                one.workload, one.primary, one.policy, one.wanted, one.running, one.deficit, one.placed,
                one.message or "; ".join(f"{held.reason}: {held.message}" for held in one.suppressed),
            )
            for one in found.workloads
        ],
        empty="No workloads: no WorkloadTemplate is in the fleet repository (`overspill init` shows one).",
    )  # fmt: skip # a row as it is printed
    if found.requests:
        _request_table(found.requests)
    printing.heading("Placements")
    printing.table(
        ("PLACEMENT", "WORKLOAD", "CLUSTER", "REPLICAS", "BOUND", "PHASE", "ENGINE", "UNTIL", "LEFT", "NOTE"),
        [
            (
                one.placement.name, one.placement.workload, one.placement.where, one.placement.replicas, one.bound,
                one.phase, one.engine, one.placement.expires_at, one.left or "over", one.message,
            )
            for one in found.placements
        ],
        empty="No placements: nothing is bursting.",
    )  # fmt: skip # a row as it is printed
    if found.leaving:
        printing.heading("Leaving")
        printing.table(
            ("PLACEMENT", "CLUSTER", "PODS", "NOTE"),
            [(one.name, one.cluster, one.pods, one.message) for one in found.leaving],
            empty="",
        )
    printing.heading("Clusters")
    printing.table(
        ("CLUSTER", "REACHED BY", "LAST SEEN", "ENGINE", "ENGINE SEEN", "NOTE"),
        [
            (
                one.cluster, one.connection, one.observed_at, one.engine, "yes" if one.reporting else "no", one.message,
            )
            for one in found.clusters
        ],
        empty="No clusters: no Cluster is in the fleet repository (`overspill init` shows one).",
    )  # fmt: skip # a row as it is printed


def _request_table(requests: tuple[RequestStatus, ...]) -> None:
    printing.heading("Requests")
    printing.table(
        ("REQUEST", "FROM", "CLUSTERS", "PLACED", "STATUS", "PHASE", "RECEIVED", "UNTIL", "NOTE"),
        [
            (
                one.request, one.asker, ", ".join(one.clusters) or "any", ", ".join(one.placed),
                one.provisioning_status, one.phase, one.received_at, one.ends_at, one.message,
            )
            for one in requests
        ],
    )  # fmt: skip # a row as it is printed
