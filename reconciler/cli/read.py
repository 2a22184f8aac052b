"""`status` and `explain`: what stands, and why."""

from __future__ import annotations

from datetime import datetime

import click

from reconciler import app
from reconciler.cli import options, printing
from reconciler.cli.plan import problems_of
from reconciler.core.demand import Blind
from reconciler.core.explain import Assessment, Explanation
from reconciler.core.explain import explain as explained
from reconciler.core.times import format_time
from reconciler.core.wording import amounts
from reconciler.daemon.reconcile import draft
from reconciler.daemon.status import Status
from reconciler.daemon.status import status as summed_up
from reconciler.errors import InvalidInput
from reconciler.model.demand import Demand
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.plan import Reason
from reconciler.settings import Settings


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
        view, _ = draft(world, app.look_ahead(world, memory, at))
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
@click.argument("workload")
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS")
@options.at
@options.output
def explain(settings: Settings, workload: str, at: datetime | None, form: options.Output) -> None:
    """Explain one workload: filter, fit and score of each cluster.

    It ends with what would have to change. WORKLOAD is <workspace>/<template>; the template's name alone will do where
    only one has it.
    """
    with app.connected(settings) as (world, memory):
        view, _ = draft(world, app.look_ahead(world, memory, at))
    told = explained(_workload(workload, tuple(view.desired.templates)), view, view.plan)
    if form == "json":
        printing.json_out(told)
    else:
        _explanation(told)
    printing.blind(settings)
    printing.problems(problems_of(view))


def _workload(text: str, known: tuple[WorkloadId, ...]) -> WorkloadId:
    """Read a workload's name as a person gives it; that it exists is for the explanation to say."""
    workspace, slash, name = text.partition("/")
    if slash:
        return WorkloadId(WorkspaceName(workspace), TemplateName(name))
    named = [one for one in known if one.name == text]
    if len(named) == 1:
        return named[0]
    there = ", ".join(str(one) for one in sorted(named or known)) or "none"
    raise InvalidInput(f"explaining {text!r}: name the workload as <workspace>/<template> (there are: {there})")


def _status_tables(found: Status) -> None:
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
    )  # fmt: skip
    printing.heading("Placements")
    printing.table(
        ("PLACEMENT", "WORKLOAD", "CLUSTER", "REPLICAS", "BOUND", "PHASE", "ENGINE", "UNTIL", "LEFT", "NOTE"),
        [
            (
                one.placement.name, one.placement.workload, one.placement.cluster, one.placement.replicas, one.bound,
                one.phase, one.engine, one.placement.expires_at, one.left or "over", one.message,
            )
            for one in found.placements
        ],
        empty="No placements: nothing is bursting.",
    )  # fmt: skip
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
    )  # fmt: skip


def _explanation(told: Explanation) -> None:
    policy = f"policy {told.policy}" if told.policy else "no policy"
    printing.sentence(f"{told.workload}: primary {told.primary}, {policy}")
    printing.sentence(_demand(told.demand))
    for one in told.placements:
        printing.sentence(f"  {one.name}: {one.replicas} on {one.cluster} until {format_time(one.expires_at)}")
        if ailment := told.ailing.get(one.path):
            words = f": {ailment.message}" if ailment.message else ""
            printing.sentence(f"    {ailment.state}, not healthy since {format_time(ailment.since)}{words}")
    for restraint in told.restraints:
        where = restraint.cluster or "every cluster"
        printing.sentence(f"  held back on {where} until {format_time(restraint.until)}: {restraint.reason}")
    printing.heading("Clusters")
    printing.table(
        ("RANK", "CLUSTER", "FITS", "PLACED", "LIMIT", "FREE", "$/GPU-h", "VERDICT", "WHAT WOULD CHANGE IT"),
        [_assessment_row(one, taken=not _held_back(told)) for one in told.assessments],
        empty="No cluster was looked at: nothing says what one replica needs.",
    )
    printing.heading("Conclusion")
    for sentence in told.conclusion:
        printing.sentence(sentence)


def _demand(demand: Demand | Blind | None) -> str:
    match demand:
        case None:
            return "Demand: unknown."
        case Blind(message=message):
            return f"Demand: unseen. {message}."
        case Demand(wanted=wanted, running=running, deficit=deficit, waiting=waiting):
            pods = [f"{one.replicas} since {format_time(one.since)}" for one in waiting if not one.signal]
            told = [f"unschedulable: {', '.join(pods)}"] if pods else []
            told += [
                f"{one.signal} {one.cause}: {one.replicas} since {format_time(one.since)}"
                for one in waiting
                if one.signal
            ]
            return f"Demand: {wanted} wanted, {running} running, {deficit} missing" + (
                f" ({'; '.join(told)})" if told else ""
            )


def _held_back(told: Explanation) -> bool:
    """Tell whether something that is no cluster's doing keeps replicas from being placed."""
    no_matter = (Reason.NOTHING_FITS, Reason.SCALE_DOWN_WINDOW, Reason.SIGNAL_UNHEARD)
    return any(one.reason not in no_matter for one in told.suppressed)


def _assessment_row(one: Assessment, *, taken: bool) -> tuple[object, ...]:
    room = "can take it" if taken else "has room"
    verdict = f"{one.refusal.reason}: {one.refusal.message}" if one.refusal else room
    return (
        one.rank, one.cluster, one.fits, one.placed, one.limit, ", ".join(amounts(one.free)),
        one.price_per_gpu_hour, verdict, one.refusal.remedy if one.refusal else None,
    )  # fmt: skip
