"""`placements`: requests by name, and the bursts that demand brought.

`list_remotely` and `get_remotely` ask a daemon, `list_here` and `get_here` read the repository. `create`, `update` and
`delete` have a daemon commit in the name of the caller.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from reconciler.cli import options, printing
from reconciler.cli.actions import remote
from reconciler.cli.actions.bodies import RequestedPlacement, read_bodies
from reconciler.cli.actions.catalogue import Document, ListFilter, all_placements, one_placement
from reconciler.cli.actions.known_names import refuse_unknown
from reconciler.cli.actions.visibility import warn_without_observations
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.units import format_duration
from reconciler.settings import Settings
from reconciler.text.wording import join_names

if TYPE_CHECKING:  # it takes long to import, and commands without a daemon do not need it
    from reconciler.client import Client, Receipt, Refused

T = TypeVar("T")

_HEADERS = ("PLACEMENT", "WORKSPACE", "ORIGIN", "CLUSTERS", "GPUS", "PHASE", "FOR", "AGE", "SINCE", "NOTE")
_CONDITION = {
    "CONDITION": "type", "STATUS": "status", "SINCE": "lastTransitionTime", "REASON": "reason", "NOTE": "message",
}  # fmt: skip # a row as it is printed
"""The columns of a condition, and the fields that fill them."""


# 1. Reading: `list` and `get`.


def list_remotely(client: Client, *, form: options.Output, **filters: str | None) -> None:
    """Print the placements that a daemon lists."""
    placements = tuple(client.placements(**{name: value or "" for name, value in filters.items()}))
    cluster = filters.get("cluster")
    if cluster and not placements:
        refuse_unknown("cluster", (cluster,), remote.clusters_of(client), among=remote.VISIBLE)
    _print_list([placement.document for placement in placements], form)


def list_here(
    settings: Settings,
    *,
    workspace: str,
    cluster: str,
    status: str | None,
    phase: str | None,
    origin: str | None,
    form: options.Output,
) -> None:
    """Print requests and bursts of the repository."""
    filters = ListFilter(
        workspace=workspace, cluster=cluster, status=status or "", phase=phase or "", origin=origin or ""
    )
    _print_list(all_placements(settings, filters), form)
    warn_without_observations(settings)


def get_remotely(client: Client, *, name: str, workspace: str, form: options.Output) -> None:
    """Print one placement of a daemon."""
    _print(client.placement(name, workspace=workspace).document, form)


def get_here(settings: Settings, *, name: str, workspace: str, form: options.Output) -> None:
    """Print one placement of the repository."""
    _print(one_placement(settings, name, workspace), form)
    warn_without_observations(settings)


def _print_list(documents: list[Document], form: options.Output) -> None:
    if form == "json":
        printing.json_out(documents)
    else:
        printing.table(_HEADERS, map(_row, documents), empty="No placements.", wide=("SINCE",))


def _print(document: Document, form: options.Output) -> None:
    if form == "json":
        printing.json_out(document)
    else:
        _tables(document)


def _row(document: Document) -> tuple[object, ...]:
    state = document.get("status") or {}
    return (
        document.get("name"), document.get("workspaceName"), document.get("origin"),
        ", ".join(map(str, document.get("clusters") or ())), state.get("provisioningStatus"), state.get("phase"),
        document.get("burstDuration"), remote.age(document.get("createdAt")), document.get("createdAt"),
        state.get("message"),
    )  # fmt: skip # a row as it is printed


def _tables(document: Document) -> None:
    """Print one placement, its steps and its conditions."""
    printing.table(_HEADERS, [_row(document)], wide=("SINCE",))
    printing.heading("Steps")
    steps = [(step.get("name"), step.get("type")) for step in _objects(document.get("steps"))]
    printing.table(("STEP", "TYPE"), steps, empty="No steps: it only reserves GPUs.")
    conditions = _objects((document.get("status") or {}).get("conditions"))
    if conditions:
        printing.heading("Conditions")
        rows = [tuple(condition.get(field) for field in _CONDITION.values()) for condition in conditions]
        printing.table(tuple(_CONDITION), rows)


def _objects(value: object) -> list[Document]:
    """Return the objects of a list; nothing for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


# 2. Writing: `create`, `update` and `delete`.


class _Words(NamedTuple):
    """The words that are printed for a commit."""

    done: str
    """The past participle of the change, such as "changed"."""
    following: str
    """The next step, printed once for all placements."""


_WAITING = "`overspill placements get NAME` tells when it has its GPUs, and what it waits for."
_CREATED = _Words("asked for", _WAITING)
_CHANGED = _Words("changed", _WAITING)
_ENDED = _Words(
    "ended", "What they deployed goes when its engine has seen the commit, unless their policy is to retain it."
)


def create(client: Client, *, files: tuple[str, ...], workspace: str, form: options.Output) -> None:
    """Create the placements of some files, each in a commit of its own."""
    if not files:
        raise click.UsageError("name a file with -f")

    def carry_out(placement: RequestedPlacement) -> Receipt:
        return client.create({**({"workspaceName": workspace} if workspace else {}), **placement.body})

    _carry_out_each(carry_out, read_bodies(files), RequestedPlacement.problems, _CREATED, form)


def update(
    client: Client,
    *,
    name: str,
    file: str | None,
    burst_duration: timedelta | None,
    deletion_policy: str | None,
    workspace: str,
    form: options.Output,
) -> None:
    """Change the fields of one placement that are set by a file or an option; an option overrides the file."""
    flags = {"burstDuration": format_duration(burst_duration)} if burst_duration else {}
    flags |= {"deletionPolicy": deletion_policy} if deletion_policy else {}
    if not flags and file is None:
        raise click.UsageError("say what to change: -f FILE, --burst-duration or --deletion-policy")
    placement = _placement_of(file, name) if file is not None else None
    fields = dict(placement.body) if placement else {}
    workspace = workspace or str(fields.get("workspaceName") or "")
    for identity in ("workspaceName", "name"):
        fields.pop(identity, None)

    def carry_out(_name: str) -> Receipt:
        return client.update(name, {**fields, **flags}, workspace=workspace)

    def problems(_name: str, refused: Refused) -> tuple[Problem, ...]:
        return placement.problems(refused) if placement else _problems(name, refused)

    _carry_out_each(carry_out, [name], problems, _CHANGED, form)


def delete(client: Client, *, names: tuple[str, ...], yes: bool, workspace: str, form: options.Output) -> None:
    """End placements, after a question where a person is at a terminal."""
    if not yes and sys.stdin.isatty():
        click.confirm(f"End {join_names(names)}?", abort=True, err=True)
    _carry_out_each(
        lambda name: client.delete(name, workspace=workspace), dict.fromkeys(names), _problems, _ENDED, form
    )


def _carry_out_each(
    carry_out: Callable[[T], Receipt],
    subjects: Iterable[T],
    problems: Callable[[T, Refused], tuple[Problem, ...]],
    words: _Words,
    form: options.Output,
) -> None:
    """Carry out the writes one after the other, print each receipt, and exit with 1 if a write was refused."""
    from reconciler.client import Refused  # noqa: PLC0415 - only --server needs it, and httpx is slow to import

    receipts: list[Receipt] = []
    failed = False
    try:
        for subject in subjects:
            try:
                receipt = carry_out(subject)
            except Refused as error:
                failed |= printing.problems(problems(subject, error))
                continue
            receipts.append(receipt)
            if form == "table":
                printing.say(_line(receipt, words.done))
            printing.problems(_warnings(receipt))
    finally:  # the receipts are printed, whatever becomes of the other writes
        if form == "json":
            printing.json_out(receipts)
        elif receipts:
            printing.say(words.following)
    if failed:
        raise click.exceptions.Exit(1)


def _warnings(receipt: Receipt) -> tuple[Problem, ...]:
    return tuple(Problem(path=receipt.name, message=text, severity=Severity.WARNING) for text in receipt.warnings)


def _line(receipt: Receipt, done: str) -> str:
    name = "/".join(filter(None, (receipt.workspace_name, receipt.name)))
    if not receipt.commit:
        return f"{name}: {receipt.message}."
    return f"{name}: {done}, in commit {receipt.commit[:12]}."


def _placement_of(file: str, name: str) -> RequestedPlacement:
    """Read the single placement of a file. Raises InvalidInput where it has several or another name."""
    placements = read_bodies((file,))
    if len(placements) > 1:
        raise InvalidInput(f"{file} holds {len(placements)} placements (try a file with the fields of {name} alone)")
    (placement,) = placements
    if placement.name not in ("", name):
        raise InvalidInput(
            f"{file} is about {placement.name}, and a placement keeps its name (try update {placement.name})"
        )
    return placement


def _problems(name: str, refused: Refused) -> tuple[Problem, ...]:
    """Name the placement in the problems that a daemon found with an option, or with the placement as a whole."""
    problems = tuple(replace(problem, path=name, line=0) for problem in refused.problems)
    return problems or (Problem(path=name, message=str(refused)),)
