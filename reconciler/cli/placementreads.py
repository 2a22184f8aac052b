"""`placements list` and `get`: what was asked for by name, and what demand brought."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias

import click

from reconciler.cli import options, printing
from reconciler.cli.catalogue import Document, ListFilter, all_placements, one_placement
from reconciler.cli.connection import asking
from reconciler.core.yamlio import emit
from reconciler.model.placement import Origin, Phase
from reconciler.model.request import Provisioning
from reconciler.settings import Settings

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
