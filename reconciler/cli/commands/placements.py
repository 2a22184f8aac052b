"""`placements`: what people ask for by name, and what demand brings.

`placements list` and `get`: what was asked for by name, and what demand brought.

`placements create`, `update` and `delete`: what a daemon commits in the name of whoever asks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar

import click

from reconciler.cli import options, printing
from reconciler.cli.bodies import RequestedPlacement, read_bodies
from reconciler.cli.catalogue import Document, ListFilter, all_placements, one_placement
from reconciler.cli.connection import asking, served
from reconciler.core.schema.yaml import emit
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.placement import Origin, Phase
from reconciler.model.request import Provisioning
from reconciler.model.units import format_duration
from reconciler.model.workload import DeletionPolicy
from reconciler.settings import Settings
from reconciler.text.wording import listed

if TYPE_CHECKING:  # it takes long to import, and most commands ask no daemon
    from reconciler.client import Client

Form: TypeAlias = Literal["table", "yaml", "json"]

WORKSPACE = click.option("--workspace", metavar="NAME", default="", help="The workspace, where several have that name.")

_HEADERS = ("PLACEMENT", "WORKSPACE", "ORIGIN", "CLUSTERS", "GPUS", "PHASE", "FOR", "SINCE", "NOTE")
_CONDITION = {
    "CONDITION": "type", "STATUS": "status", "SINCE": "lastTransitionTime", "REASON": "reason", "NOTE": "message",
}  # fmt: skip # a row as it is printed


def one_of(values: Iterable[str]) -> click.Choice[str]:
    """Make an option of some words, in capitals or not."""
    return click.Choice([str(value) for value in values], case_sensitive=False)


def _listed(client: Client, *, form: options.Output, **narrowed: str | None) -> None:
    """List the placements that a daemon knows."""
    found = client.placements(**{name: value or "" for name, value in narrowed.items()})
    _tell_all([item.document for item in found], form)


def _got(client: Client, *, name: str, workspace: str, form: Form) -> None:
    """Show a placement that a daemon knows."""
    _tell_one(client.placement(name, workspace=workspace).document, form)


@options.examples(
    "overspill placements list --server https://overspill.example.com",
    "overspill placements list --workspace llm --status Queued",
    "overspill placements list -o json | jq '.[] | select(.origin == \"burst\").name'",
)
@click.command("list")
@asking(_listed)
@click.option("--workspace", metavar="NAME", default="", help="Only those of this workspace.")
@click.option("--cluster", metavar="NAME", default="", help="Only those that are on this cluster or name it.")
@click.option("--status", type=one_of(Provisioning), default=None, help="Only those whose GPUs are so.")
@click.option("--phase", type=one_of(Phase), default=None, help="Only those whose workload is so.")
@click.option("--origin", type=one_of(Origin), default=None, help="Only what was asked for, or what demand brought.")
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS")
@options.output
def list_(
    settings: Settings,
    *,
    workspace: str,
    cluster: str,
    status: str | None,
    phase: str | None,
    origin: str | None,
    form: options.Output,
) -> None:
    """List requests and bursts, as a daemon tells them or as the repository has them."""
    wanted = ListFilter(
        workspace=workspace, cluster=cluster, status=status or "", phase=phase or "", origin=origin or ""
    )
    _tell_all(all_placements(settings, wanted), form)
    printing.blind(settings)


@options.examples(
    "overspill placements get bookinfo --server https://overspill.example.com",
    "overspill placements get bookinfo -o yaml > bookinfo.yaml",
)
@click.command()
@asking(_got)
@click.argument("name")
@WORKSPACE
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS")
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["table", "yaml", "json"]),
    default="table",
    help="How to print the answer. What yaml and json print, `create -f` takes.",
)
def get(settings: Settings, *, name: str, workspace: str, form: Form) -> None:
    """Show one placement: what was asked for, and how it is."""
    _tell_one(one_placement(settings, name, workspace), form)
    printing.blind(settings)


def _tell_all(documents: list[Document], form: options.Output) -> None:
    if form == "json":
        printing.json_out(documents)
    else:
        printing.table(_HEADERS, map(_row, documents), empty="No placements.")


def _tell_one(document: Document, form: Form) -> None:
    if form == "json":
        printing.json_out(document)
    elif form == "yaml":
        click.echo(emit(document), nl=False)
    else:
        _tables(document)


def _row(document: Document) -> tuple[object, ...]:
    state = document.get("status") or {}
    return (
        document.get("name"), document.get("workspaceName"), document.get("origin"),
        ", ".join(map(str, document.get("clusters") or ())), state.get("provisioningStatus"), state.get("phase"),
        document.get("burstDuration"), document.get("createdAt"), state.get("message"),
    )  # fmt: skip # a row as it is printed


def _tables(document: Document) -> None:
    printing.table(_HEADERS, [_row(document)])
    printing.heading("Steps")
    steps = [(one.get("name"), one.get("type")) for one in _several(document.get("steps"))]
    printing.table(("STEP", "TYPE"), steps, empty="No steps: it only reserves GPUs.")
    conditions = _several((document.get("status") or {}).get("conditions"))
    if conditions:
        printing.heading("Conditions")
        told = [tuple(one.get(name) for name in _CONDITION.values()) for one in conditions]
        printing.table(tuple(_CONDITION), told)


def _several(value: object) -> list[Document]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


if TYPE_CHECKING:  # it takes long to import, and most commands ask no daemon
    from reconciler.client import Client, Receipt, Refused

T = TypeVar("T")

_WAITING = "`overspill placements get NAME` tells when it has its GPUs, and what it waits for."
_LEAVING = "What they deployed goes when its engine has seen the commit, unless their deletionPolicy is Retain."
_PULL = "Without a daemon, a pull request does it: "
_MADE = f"{_PULL}add the file to the fleet repository, anywhere."
_CHANGED = f"{_PULL}change its file in the fleet repository, or `overspill extend`."
_ENDED = f"{_PULL}remove its file from the fleet repository, or `overspill revert`."
_FILES = click.option(
    "-f", "--filename", "files", metavar="FILE", multiple=True, help="A file with placements; - is standard input."
)


@options.examples(
    "overspill placements create -f bookinfo.yaml --server https://overspill.example.com",
    "kubectl get workloadplacements -o yaml | overspill placements create -f - --workspace llm",
)
@click.command()
@_FILES
@click.option("--workspace", metavar="NAME", default="", help="The workspace of those that name none.")
@served(otherwise=_MADE)
@options.output
def create(client: Client, *, files: tuple[str, ...], workspace: str, form: options.Output) -> None:
    """Ask for placements.

    A file may hold several, as EGS's WorkloadPlacement of any group or as bodies of its REST interface, in YAML or
    JSON. They are asked for one by one, and one that is refused keeps none of the others. It returns when the commits
    are pushed.
    """
    if not files:
        raise click.UsageError("name a file with -f")

    def carry_out(one: RequestedPlacement) -> Receipt:
        return client.create({**({"workspaceName": workspace} if workspace else {}), **one.body})

    _each(carry_out, read_bodies(files), RequestedPlacement.problems, _Words("asked for", _WAITING), form)


@options.examples(
    "overspill placements update bookinfo --burst-duration 30m --deletion-policy Retain",
    "overspill placements update bookinfo -f bookinfo.yaml --server https://overspill.example.com",
)
@click.command()
@click.argument("name")
@click.option("-f", "--filename", "file", metavar="FILE", help="A file with the fields to change; - is standard input.")
@click.option("--burst-duration", type=options.DURATION, metavar="DURATION", help="How long it lives: 30m.")
@click.option("--deletion-policy", type=one_of(DeletionPolicy), help="What becomes of its objects in the end.")
@WORKSPACE
@served(otherwise=_CHANGED)
@options.output
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
    """Change a placement.

    While it waits for GPUs everything may change but its name and workspace; once it has them, only the two that have
    an option of their own; what has ended, nothing. A duration counts from when it was placed.
    """
    given = {"burstDuration": format_duration(burst_duration)} if burst_duration else {}
    given |= {"deletionPolicy": deletion_policy} if deletion_policy else {}
    if not given and file is None:
        raise click.UsageError("say what to change: -f FILE, --burst-duration or --deletion-policy")
    asked = _one(file, name) if file is not None else None
    changes = dict(asked.body) if asked else {}
    told = str(changes.pop("workspaceName", "") or "")
    changes.pop("name", None)

    def carry_out(_name: str) -> Receipt:
        return client.update(name, {**changes, **given}, workspace=workspace or told)

    def problems(_name: str, refused: Refused) -> tuple[Problem, ...]:
        return asked.problems(refused) if asked else _problems(name, refused)

    _each(carry_out, [name], problems, _Words("changed", _WAITING), form)


@options.examples(
    "overspill placements delete bookinfo --server https://overspill.example.com",
    "overspill placements delete bookinfo ratings --workspace llm --yes",
)
@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask on a terminal.")
@WORKSPACE
@served(otherwise=_ENDED)
@options.output
def delete(client: Client, *, names: tuple[str, ...], yes: bool, workspace: str, form: options.Output) -> None:
    """End placements: requests are forgotten, and what they or bursts have put into git is reverted."""
    if not yes and sys.stdin.isatty():
        click.confirm(f"End {listed(names)}?", abort=True, err=True)
    _each(
        lambda name: client.delete(name, workspace=workspace),
        dict.fromkeys(names),
        _problems,
        _Words(
            "ended", "What they deployed goes when its engine has seen the commit, unless their policy is to retain it."
        ),
        form,
    )


class _Words(NamedTuple):
    """What has been done to a placement, and what comes next."""

    done: str
    following: str


def _each(
    carry_out: Callable[[T], Receipt],
    several: Iterable[T],
    problems: Callable[[T, Refused], tuple[Problem, ...]],
    words: _Words,
    form: options.Output,
) -> None:
    """Carry out one after the other, tell what came of each, and exit with 1 if one was refused."""
    from reconciler.client import Refused  # noqa: PLC0415 - only --server needs it, and httpx is slow to import

    receipts: list[Receipt] = []
    wrong = False
    try:
        for one in several:
            try:
                receipt = carry_out(one)
            except Refused as error:
                wrong |= printing.problems(problems(one, error))
                continue
            receipts.append(receipt)
            if form == "table":
                printing.say(_line(receipt, words.done))
            printing.problems(_warnings(receipt))
    finally:  # what has been done is told, whatever becomes of the rest
        if form == "json":
            printing.json_out(receipts)
        elif receipts:
            printing.say(words.following)
    if wrong:
        raise click.exceptions.Exit(1)


def _warnings(receipt: Receipt) -> tuple[Problem, ...]:
    return tuple(Problem(path=receipt.name, message=one, severity=Severity.WARNING) for one in receipt.warnings)


def _line(receipt: Receipt, done: str) -> str:
    name = "/".join(filter(None, (receipt.workspace_name, receipt.name)))
    if not receipt.commit:
        return f"{name}: {receipt.message}."
    return f"{name}: {done}, in commit {receipt.commit[:12]}."


def _one(file: str, name: str) -> RequestedPlacement:
    """Read the one placement that a file is about."""
    several = read_bodies((file,))
    if len(several) > 1:
        raise InvalidInput(f"{file} holds {len(several)} placements (try a file with the fields of {name} alone)")
    (asked,) = several
    if asked.name not in ("", name):
        raise InvalidInput(f"{file} is about {asked.name}, and a placement keeps its name (try update {asked.name})")
    return asked


def _problems(name: str, refused: Refused) -> tuple[Problem, ...]:
    """Place what a daemon found wrong with an option, or with a placement as a whole."""
    told = tuple(replace(problem, path=name, line=0) for problem in refused.problems)
    return told or (Problem(path=name, message=str(refused)),)


@options.examples(
    "export OVERSPILL_SERVER=https://overspill.example.com OVERSPILL_TOKEN_FILE=~/.overspill-token",
    "overspill placements create -f bookinfo.yaml",
    "overspill placements list --status Queued",
)
@click.group()
def placements() -> None:
    """Ask for placements by name, and see what became of them.

    They are EGS's workload placements. A running daemon is asked (--server), which commits in the name of whoever the
    token in OVERSPILL_TOKEN or OVERSPILL_TOKEN_FILE belongs to.
    """


for _command in (
    create, list_, get, update, delete,
):  # fmt: skip # a list of words, filled line by line
    placements.add_command(_command)
