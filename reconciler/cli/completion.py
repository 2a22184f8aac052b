"""Names for the completion of a shell: workloads, requests, placements, clusters and workspaces.

They come from the newest state of the fleet repository on this disk. Nothing here uses the network, writes, raises or
imports much: a person waits at the prompt. Files are scanned for names and not parsed; a file of unusual form, such as
a whole object in flow style, only offers no names.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from reconciler.environment import PREFIX, cache_directory
from reconciler.text.file_names import ENDINGS

if TYPE_CHECKING:
    from reconciler.adapters.git.local import LocalBranches

Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]

_TEMPLATE, _REQUESTS = "WorkloadTemplate", ("WorkloadPlacement", "GPUProvisioningRequest")
_CLUSTER, _WORKSPACE = "Cluster", "Workspace"

_GROUP = re.compile(r"(?:overspill\.dev|(?:[A-Za-z0-9_-]+\.)*kubeslice\.io)/[A-Za-z0-9_]+")
_OWN_GROUP = "overspill.dev/"
_DOCUMENT = re.compile(r"^---(?:[ \t].*)?\r?$", re.MULTILINE)
_VALUE = r"""["']?[ \t]*:[ \t]*["']?([\w./-]+)["']?[ \t\r]*(?:#.*)?$"""
_BLOCK = r"""^["']?{name}["']?[ \t]*:[ \t]*(?:(\{{.*\}})[ \t\r]*|(?:#.*)?)\n((?:[ \t]+\S.*\n|[ \t]*(?:#.*)?\r?\n)*)"""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_PLACEMENT = re.compile(r"-[0-9a-f]{8}$")
"""The end of each placement's name (core.ledger.lifecycle); directories of engines have none."""


@dataclass(frozen=True, slots=True)
class _Object:
    """The names of one object of the source branch."""

    kind: str
    name: str
    workspace: str
    """The workspace in its spec; empty where the spec names none."""


def _completer(names: Callable[[click.Context], Iterable[str]]) -> Completer:
    """Make a completer of names; unreadable names are not offered."""

    @functools.wraps(names)
    def complete(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        try:
            return sorted({name for name in names(ctx) if name.startswith(incomplete)})
        except Exception:  # noqa: BLE001 - an error message would break the command line being typed
            return []

    return complete


@_completer
def workloads(ctx: click.Context) -> Iterator[str]:
    """Complete templates as ``workspace/name``."""
    return _of_workspaces(ctx, _TEMPLATE)


@_completer
def workloads_and_requests(ctx: click.Context) -> Iterator[str]:
    """Complete templates and requests as ``workspace/name``."""
    return _of_workspaces(ctx, _TEMPLATE, *_REQUESTS)


@_completer
def workloads_and_placements(ctx: click.Context) -> Iterator[str]:
    """Complete templates and requests as ``workspace/name``, and placements by name."""
    yield from _of_workspaces(ctx, _TEMPLATE, *_REQUESTS)
    yield from _placements(ctx)


@_completer
def placements(ctx: click.Context) -> Iterator[str]:
    """Complete the names of placements on the output branch that the command line does not have yet."""
    values = [value for value in ctx.params.values() if isinstance(value, tuple)]
    return (name for name in _placements(ctx) if not any(name in value for value in values))


@_completer
def requests(ctx: click.Context) -> Iterator[str]:
    """Complete requests by name."""
    return (request.name for request in _objects(ctx, *_REQUESTS))


@_completer
def requests_and_bursts(ctx: click.Context) -> Iterator[str]:
    """Complete requests and placements by name."""
    yield from (request.name for request in _objects(ctx, *_REQUESTS))
    yield from _placements(ctx)


@_completer
def clusters(ctx: click.Context) -> Iterator[str]:
    """Complete the fleet's clusters."""
    return (cluster.name for cluster in _objects(ctx, _CLUSTER))


@_completer
def notifications(ctx: click.Context) -> Iterator[str]:
    """Complete the receivers of the fleet."""
    return (notification.name for notification in _objects(ctx, "Notification"))


@_completer
def workspaces(ctx: click.Context) -> Iterator[str]:
    """Complete the fleet's workspaces."""
    return (workspace.name for workspace in _objects(ctx, _WORKSPACE))


def _of_workspaces(ctx: click.Context, *kinds: str) -> Iterator[str]:
    """Name objects with their workspace, or with the only one of the fleet where they name none."""
    objects = [*_objects(ctx, *kinds, _WORKSPACE)]
    names = {entry.name for entry in objects if entry.kind == _WORKSPACE}
    default = names.pop() if len(names) == 1 else ""
    for entry in objects:
        if entry.kind != _WORKSPACE:
            workspace = entry.workspace or default
            yield f"{workspace}/{entry.name}" if workspace else entry.name


def _placements(ctx: click.Context) -> Iterator[str]:
    """Name the placements of the output branch: ``clusters/CLUSTER/PLACEMENT``, beside directories of engines."""
    branches = _branches(ctx)
    if branches is not None:
        paths = branches.directories(branches.directories(["clusters"]))
        yield from (name for name in (path.rpartition("/")[2] for path in paths) if _PLACEMENT.search(name))


def _objects(ctx: click.Context, *kinds: str) -> Iterator[_Object]:
    """Read the objects of some kinds from the source branch."""
    branches = _branches(ctx)
    if branches is None:
        return
    pattern = f"""["']?kind["']?[[:space:]]*:[[:space:]]*["']?({"|".join(kinds)})"""
    for data in branches.files(pattern, ENDINGS):
        yield from (entry for entry in _scan(data.decode("utf-8", "replace")) if entry.kind in kinds)


def _branches(ctx: click.Context) -> LocalBranches | None:
    """Find the branches that the command line names, or else the environment."""
    from reconciler.adapters.git.local import local_branches

    def setting(name: str, default: str) -> str:
        return str(ctx.params.get(name.lower()) or os.environ.get(f"{PREFIX}{name}") or default)

    cache = os.environ.get(f"{PREFIX}CACHE_DIR")
    return local_branches(
        setting("REPO", ""),
        cache=Path(cache).expanduser() if cache else cache_directory(os.environ),
        source_branch=setting("SOURCE_BRANCH", "main"),
        output_branch=setting("OUTPUT_BRANCH", "placements"),
        directory=Path(),
    )


def _scan(text: str) -> Iterator[_Object]:
    """Find the objects of Overspill and EGS in a file: YAML in block style, or JSON."""
    if text.lstrip().startswith("{"):
        try:
            fields = _json_fields(text)
        except (ValueError, AttributeError):  # no JSON, or no object where one should be
            return
        yield from _object(*fields)
        return
    for document in _DOCUMENT.split(text):
        yield from _object(
            _top(document, "apiVersion"),
            _top(document, "kind"),
            _inner(document, "metadata", "name"),
            _inner(document, "spec", "workspaceName"),
        )


def _object(version: str, kind: str, name: str, workspace: str) -> Iterator[_Object]:
    """Make an object of its fields, unless it is another project's or has no name that a shell could complete."""
    own = version.startswith(_OWN_GROUP) or (kind not in (_CLUSTER, _WORKSPACE) and _GROUP.fullmatch(version))
    if own and _NAME.fullmatch(name):
        yield _Object(kind, name, workspace)


def _json_fields(text: str) -> tuple[str, str, str, str]:
    import json

    value = json.loads(text)
    metadata, spec = value.get("metadata") or {}, value.get("spec") or {}
    fields = (value.get("apiVersion"), value.get("kind"), metadata.get("name"), spec.get("workspaceName"))
    version, kind, name, workspace = (str(field or "") for field in fields)
    return version, kind, name, workspace


def _top(document: str, name: str) -> str:
    """Return the value of a field that stands at the beginning of a line."""
    match = re.search(rf"""^["']?{name}{_VALUE}""", document, re.MULTILINE)
    return match[1] if match else ""


def _inner(document: str, parent: str, name: str) -> str:
    """Return the value of a field of a top-level mapping, in block style or in braces on one line."""
    block = re.search(_BLOCK.format(name=parent), f"{document}\n", re.MULTILINE)
    if block is None:
        return ""
    if block[1]:
        flat = re.sub(r"\{[^{}]*\}", "", block[1][1:-1])  # an inner mapping may have a field of the same name
        match = re.search(rf"""(?:^|,)[ \t]*["']?{name}["']?[ \t]*:[ \t]*["']?([\w.-]+)""", flat)
        return match[1] if match else ""
    indent = re.search(r"^([ \t]+)[^\s#]", block[2], re.MULTILINE)
    match = re.search(rf"""^{indent[1]}["']?{name}{_VALUE}""", block[2], re.MULTILINE) if indent else None
    return match[1] if match else ""
