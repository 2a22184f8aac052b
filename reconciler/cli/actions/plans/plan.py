"""`plan`: the commits that `run` would make, by a daemon or by this machine: as a table, a patch, Markdown or JSON.

Both answers are printed from their JSON, so that they read alike.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from reconciler.app.commands import connected
from reconciler.cli import options, printing
from reconciler.cli.actions.plans.markdown import markdown_plan
from reconciler.cli.actions.remote import problems_of
from reconciler.cli.actions.visibility import (
    note_new_branch,
    warn_of_old_observations,
    warn_without_observations,
)
from reconciler.cli.commands.plan import PlanForm
from reconciler.cli.exit_codes import REFUSED, WOULD_CHANGE
from reconciler.core.commits.write import RenderedPlan
from reconciler.core.observe.supposition import ClusterDown, Supposition
from reconciler.daemon.answers.patch import files_before, patch
from reconciler.daemon.answers.plan_report import report_plan
from reconciler.daemon.reconcile import Memory, PassDecision, World, draft
from reconciler.errors import InvalidInput
from reconciler.model.placement import place_name
from reconciler.preview import decision_at, suppose_world
from reconciler.settings import Settings
from reconciler.text.to_json import json_value
from reconciler.text.wording import count

if TYPE_CHECKING:  # it takes long to import, and commands without a daemon do not need it
    from reconciler.client import Client

PlanDocument: TypeAlias = Mapping[str, Any]
"""A plan as ``-o json`` prints it, or a part of one."""


def plan(
    settings: Settings,
    at: datetime | None,
    what_if: Sequence[Supposition],
    *,
    as_diff: bool,
    detailed_exitcode: bool,
    form: PlanForm,
) -> None:
    """Print the commits that `run` would make, and the replicas that are held back."""
    supposed: tuple[str, ...] = ()
    with connected(settings) as (world, memory):
        if what_if:
            world, memory, supposed = supposed_world(world, memory, what_if)  # noqa: PLW2901 - the world from here on
        decision, rendered = draft(world, decision_at(world, memory, at))
        note_new_branch(settings, decision.tips.output, world.repository, begun=False)
        files = files_before(world.repository, decision.tips.output, rendered.commits) if as_diff else {}
    report = report_plan(decision, rendered)
    document = {"supposed": [*supposed], **json_value(report)}
    _print(document, patch(rendered.commits, files) if as_diff else None, form)
    warn_without_observations(settings)
    if not any(isinstance(supposition, ClusterDown) for supposition in what_if):
        warn_of_old_observations(settings, rendered.suppressed)
    _exit(document, refused=printing.problems(report.problems), detailed_exitcode=detailed_exitcode)


def supposed_world(
    world: World, memory: Memory, suppositions: Sequence[Supposition]
) -> tuple[World, Memory, tuple[str, ...]]:
    """Suppose the world to be another; where that is refused, print why clusters were not seen, if any was not."""
    try:
        return suppose_world(world, memory, suppositions)
    except InvalidInput:
        printing.problems(world.clusters.observe().problems)
        raise


def plan_remotely(
    client: Client,
    *,
    what_if: Sequence[Supposition],
    branch: str,
    as_diff: bool,
    detailed_exitcode: bool,
    form: PlanForm,
) -> None:
    """Print the plan that a daemon makes, of its own files or of those of another branch."""
    questions = tuple(supposition.text for supposition in what_if)
    answer = dict(client.plan(what_if=questions, source_branch=branch, diff=as_diff))
    text = answer.pop("patch", None)
    # A patch with bytes that are not UTF-8 comes as {"base64": ...}.
    data = base64.b64decode(text["base64"]) if isinstance(text, Mapping) else text and str(text).encode()
    _print(answer, data if as_diff else None, form)
    refused = printing.problems(problems_of(answer["problems"]))
    _exit(answer, refused=refused, detailed_exitcode=detailed_exitcode)


def _print(document: PlanDocument, patch_text: bytes | None, form: PlanForm) -> None:
    if form == "json":
        printing.json_out(document)
    elif form == "markdown":
        printing.document(markdown_plan(document))
    else:
        for question in document["supposed"]:
            printing.sentence(question)
        if document["supposed"]:
            printing.write()
        if patch_text is None:
            _tables(document, "Nothing to change.")
        else:
            printing.document(patch_text)


def _exit(document: PlanDocument, *, refused: bool, detailed_exitcode: bool) -> None:
    if refused:
        raise click.exceptions.Exit(REFUSED)
    if detailed_exitcode and document["commits"]:
        raise click.exceptions.Exit(WOULD_CHANGE)


def print_plan(
    decision: PassDecision, rendered: RenderedPlan, form: options.Output, *, empty: str = "Nothing to change."
) -> None:
    """Print the commits of a plan and the replicas that are held back, as tables or as JSON."""
    print_plan_document(plan_document(decision, rendered), form, empty=empty)


def print_plan_document(document: PlanDocument, form: options.Output, *, empty: str) -> None:
    """Print a plan from its JSON."""
    if form == "json":
        printing.json_out(document)
    else:
        _tables(document, empty)


def plan_document(decision: PassDecision, rendered: RenderedPlan) -> dict[str, Any]:
    """Return a plan as JSON, and print the tracebacks of bugs in its notes, which no other problem tells of."""
    report = report_plan(decision, rendered)
    known = {*decision.problems, *rendered.problems}
    printing.bugs(problem for problem in report.problems if problem not in known)
    document: dict[str, Any] = json_value(report)
    return document


def print_suppressed(suppressed: Sequence[PlanDocument]) -> None:
    """Print the replicas that are held back with the reasons, and the clusters that were refused."""
    if not suppressed:
        return
    printing.heading("Held back")
    rows = [
        (entry["workload"], entry["reason"], entry["replicas"] or None, entry["until"], entry["message"])
        for entry in suppressed
    ]
    printing.table(("WORKLOAD", "REASON", "REPLICAS", "UNTIL", "WHY"), rows)
    refusals = [(entry["workload"], refusal) for entry in suppressed for refusal in entry["refusals"]]
    if refusals:
        printing.heading("Refused clusters")
        printing.table(
            ("WORKLOAD", "CLUSTER", "REASON", "WHY", "WHAT WOULD CHANGE IT"),
            [
                (
                    workload, place_name(refusal["cluster"], refusal["subset"]), refusal["reason"], refusal["message"],
                    refusal["remedy"],
                )
                for workload, refusal in refusals
            ],
        )  # fmt: skip # a row as it is printed


def _tables(document: PlanDocument, empty: str) -> None:
    commits, suppressed = document["commits"], document["suppressed"]
    headers = ("ACTION", "WORKLOAD", "PLACEMENT", "CLUSTER", "REPLICAS", "UNTIL", "WHY")
    fields = tuple(header.lower() for header in headers)
    printing.table(headers, [[commit["row"][field] for field in fields] for commit in commits], empty=empty)
    _subsets(commits)
    print_suppressed(suppressed)
    counts = [count(len(commits), "commit"), f"{len(suppressed)} held back"]
    if document["wakeAt"] is not None:
        counts.append(f"the next look is due at {document['wakeAt']}")
    printing.write()
    printing.sentence(f"At {document['at']}: {', '.join(counts)}.")
    if any(_names_placement(commit["change"]) for commit in commits):
        printing.sentence(
            "The digits of a new placement's name come from the time of the pass: a later one has others."
        )


def _names_placement(change: PlanDocument | None) -> bool:
    if change is None:
        return False
    moved = change["action"] == "Move" and change["before"]["name"] != change["after"]["name"]
    return bool(change["action"] == "Place" or moved)


def _subsets(commits: Sequence[PlanDocument]) -> None:
    """Print the changes of subsets to the pods of placements that are written."""
    rows = [
        (commit["row"]["workload"], commit["row"]["placement"], commit["row"]["cluster"], note)
        for commit in commits
        for note in commit["notes"]
    ]
    if rows:
        printing.heading("Pods of subsets")
        printing.table(("WORKLOAD", "PLACEMENT", "CLUSTER", "WHAT IS CHANGED"), list(dict.fromkeys(rows)))
