"""`explain`: the explanation of one workload, by a daemon or by this machine.

Both answers are printed from their JSON, so that they read alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any, TypeAlias

from reconciler.app.commands import connected
from reconciler.cli import options, printing
from reconciler.cli.actions.visibility import warn_of_old_observations, warn_without_observations
from reconciler.core.explain.request import explain_request
from reconciler.core.explain.workload import explain as explain_workload
from reconciler.daemon.reconcile import draft
from reconciler.errors import InvalidInput
from reconciler.model.capacity import GpuSlices, SliceKind
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.ledger import Ledger
from reconciler.model.placement import RestraintKind, place_name
from reconciler.model.plan import Reason, ReasonTraits
from reconciler.model.score import Score, ScorerName
from reconciler.model.units import Resources, parse_quantity
from reconciler.preview import decision_at
from reconciler.settings import Settings
from reconciler.text.scores import describe_scores
from reconciler.text.spelling import closest, nearest
from reconciler.text.to_json import json_value
from reconciler.text.wording import free_amounts

_LEAVE_ROOM = frozenset(reason.value for reason in Reason if reason.has(ReasonTraits.LEAVES_ROOM))

ExplanationDocument: TypeAlias = Mapping[str, Any]
"""An explanation as ``-o json`` prints it, or a part of one."""


def explain(settings: Settings, workload: str, at: datetime | None, *, by_name: bool, form: options.Output) -> None:
    """Explain one workload or request; `by_name` is for the request where a template has the same name."""
    with connected(settings) as (world, memory):
        decision, _ = draft(world, decision_at(world, memory, at))
    records = decision.inputs.requests
    templates = (template for template in decision.inputs.desired.templates if not template.request)
    workloads = (*templates, *records)
    _refuse_placement(workload, workloads, decision.inputs.ledger)
    name = _workload(workload, workloads, by_name=by_name)
    explanation = (
        explain_request(records[name], decision.inputs, decision.plan)
        if name in records
        else explain_workload(name, decision.inputs, decision.plan)
    )
    if form == "json":
        printing.json_out(explanation)
    else:
        print_explanation(json_value(explanation))
    warn_without_observations(settings)
    warn_of_old_observations(settings, explanation.suppressed)
    printing.problems(decision.problems)


def _refuse_placement(text: str, workloads: tuple[WorkloadId, ...], ledger: Ledger) -> None:
    """Raise InvalidInput naming the workload of a placement; a workload of that name comes first."""
    if any(text in (workload.name, str(workload)) for workload in workloads):
        return
    for placement in ledger.placements.values():
        if placement.is_called(text):
            raise InvalidInput(f"{text} is a placement; name its workload: {placement.workload}")


def _workload(text: str, workloads: tuple[WorkloadId, ...], *, by_name: bool) -> WorkloadId:
    """Read the name of a workload; the explanation says whether it exists.

    A template comes before a request of the same name, unless the request is asked for.
    """
    workloads = tuple(workload for workload in workloads if workload.request) if by_name else workloads
    workspace, slash, name = text.partition("/")
    if slash:
        template = WorkloadId(WorkspaceName(workspace), TemplateName(name))
        request = template._replace(request=True)
        return request if by_name or (request in workloads and template not in workloads) else template
    matches = [workload for workload in workloads if workload.name == text]
    if len(matches) > 1 and len({workload.workspace for workload in matches}) == 1:
        return min(matches)
    if len(matches) == 1:
        return matches[0]
    if matches:
        hint = f"there are {', '.join(map(str, sorted(matches)))}"
    else:
        near = closest(text, {workload.name for workload in workloads})
        hint = f"try {near!r}" if near else nearest(text, map(str, workloads)) or "there are none"
    raise InvalidInput(f"explaining {text!r}: name the workload as <workspace>/<template> ({hint})")


def print_explanation(explanation: ExplanationDocument) -> None:
    """Print an explanation: one sentence, then the details and a table of clusters."""
    if explanation.get("summary"):
        printing.sentence(explanation["summary"])
        printing.write()
    _head(explanation)
    for placement in explanation["placements"]:
        place = place_name(placement["cluster"], placement["subset"])
        directory = f"clusters/{placement['cluster']}/{placement['name']}"
        printing.sentence(f"  {placement['name']}: {placement['replicas']} on {place} until {placement['expiresAt']}")
        if ailment := explanation["ailing"].get(directory):
            message = f": {ailment['message']}" if ailment["message"] else ""
            printing.sentence(f"    {ailment['state']}, not healthy since {ailment['since']}{message}")
        for note in explanation.get("notes", {}).get(directory, ()):
            printing.sentence(f"    {note}")
    for restraint in explanation["restraints"]:
        place = place_name(restraint["cluster"], restraint["subset"]) if restraint["cluster"] else "every cluster"
        if restraint["kind"] == RestraintKind.TURN:
            printing.sentence(
                f"  waits beside others of its priority since {restraint['until']}: {restraint['reason']}"
            )
            continue
        printing.sentence(f"  held back on {place} until {restraint['until']}: {restraint['reason']}")
    printing.heading("Clusters")
    printing.table(
        ("RANK", "CLUSTER", "FITS", "PLACED", "LIMIT", "FREE", "$/GPU-h", "VERDICT", "WHAT WOULD CHANGE IT"),
        [_row(assessment, placeable=not _held_back(explanation)) for assessment in explanation["assessments"]],
        empty=f"No cluster was looked at: {_why_no_cluster(explanation)}.",
    )
    scored = [assessment for assessment in explanation["assessments"] if assessment.get("scores")]
    if scored:
        printing.heading("Scores")
    for assessment in scored:
        scores = describe_scores([_score(score) for score in assessment["scores"]])
        printing.sentence(f"{place_name(assessment['cluster'], assessment['subset'])} {scores}")
    printing.heading("Conclusion")
    for sentence in explanation["conclusion"]:
        printing.sentence(sentence)


def _why_no_cluster(explanation: ExplanationDocument) -> str:
    """Say why no cluster was assessed."""
    demand = explanation["demand"]
    is_unseen = demand is not None and "wanted" not in demand
    return "the primary is unseen" if is_unseen else "nothing says what one replica needs"


def _score(score: ExplanationDocument) -> Score:
    return Score(
        scorer=ScorerName(score["scorer"]), weight=score["weight"], value=score["value"], detail=score["detail"]
    )


def _head(explanation: ExplanationDocument) -> None:
    """Print the workload with its demand, or the request with its state."""
    request = explanation["request"]
    if request is not None:
        state = f"{request['provisioning']}, {request['phase']}, from {request['record']['asker']}"
        printing.sentence(f"Request {explanation['workload']}: {state}")
        return
    policy = f"policy {explanation['policy']}" if explanation["policy"] else "no policy"
    printing.sentence(f"{explanation['workload']}: primary {explanation['primary']}, {policy}")
    if explanation["distribution"]:
        printing.sentence(f"Distribution: {explanation['distribution']}")
    printing.sentence(_demand(explanation["demand"]))


def _demand(demand: ExplanationDocument | None) -> str:
    if demand is None:
        return "Demand: unknown."
    if "wanted" not in demand:
        return f"Demand: unseen. {demand['message']}."
    waiting = demand["waiting"]
    pods = [
        f"{entry['replicas']} since {entry['since']}" + (f", {entry['cause']}" if entry["cause"] else "")
        for entry in waiting
        if not entry["signal"]
    ]
    causes = [f"unschedulable: {', '.join(pods)}"] if pods else []
    causes += [
        f"{entry['signal']} {entry['cause']}: {entry['replicas']} since {entry['since']}"
        for entry in waiting
        if entry["signal"]
    ]
    needed = sum(entry["replicas"] for entry in waiting if not entry.get("spare"))
    beforehand = demand["deficit"] - needed  # by headroom or a forecast, as the lines above count it
    replicas = f"{demand['wanted']} wanted, {demand['running']} running, {needed} missing"
    replicas += f", {beforehand} wanted beforehand" if beforehand > 0 else ""
    return f"Demand: {replicas}" + (f" ({'; '.join(causes)})" if causes else "")


def _held_back(explanation: ExplanationDocument) -> bool:
    """Return whether a reason apart from the clusters keeps replicas from being placed."""
    return any(suppressed["reason"] not in _LEAVE_ROOM for suppressed in explanation["suppressed"])


def _slices(assessment: ExplanationDocument) -> GpuSlices | None:
    sliced = assessment.get("slices")
    if not sliced:
        return None
    share = Fraction(sliced["share"])
    return GpuSlices(kind=SliceKind(sliced["kind"]), share=share, mixed=sliced.get("mixed", False))


def _row(assessment: ExplanationDocument, *, placeable: bool) -> tuple[object, ...]:
    refusal = assessment["refusal"]
    capacity = assessment.get("start") or ("can take it" if placeable else "has room")
    verdict = f"{refusal['reason']}: {refusal['message']}" if refusal else capacity
    amounts = Resources(amounts={name: parse_quantity(amount) for name, amount in assessment["free"].items()})
    free = ", ".join(free_amounts(amounts, _slices(assessment)))
    return (
        assessment["rank"], place_name(assessment["cluster"], assessment["subset"]), assessment["fits"],
        assessment["placed"], assessment["limit"], free, assessment["pricePerGpuHour"], verdict,
        refusal["remedy"] if refusal else None,
    )  # fmt: skip # a row as it is printed
