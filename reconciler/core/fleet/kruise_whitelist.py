"""Kruise's whitelist of custom workloads: a ConfigMap with the path of the replicas of each kind.

Its form is that of docs/background/upstream/workloadspread.md, "Replicas and the whitelist". Like Kruise's own reader,
this one refuses a comma after the last entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.core.schema.workloadkind import fault
from reconciler.model.kubernetes.workload_kind import WorkloadKind, path
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, Loc, shortened

CONFIGURATION = "kruise-configuration"
KEY = "WorkloadSpread_Watch_Custom_Workload_WhiteList"
_LOC: Loc = ("data", KEY)
_NAME = re.compile(r"[A-Za-z0-9.-]{0,253}")
"""A group, a version or a kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whitelist:
    """The kinds of the whitelist, in its order."""

    kinds: tuple[WorkloadKind, ...]


def is_whitelist(value: Mapping[str, Json]) -> bool:
    """Return whether an object is Kruise's ConfigMap and holds a whitelist."""
    metadata, data = value.get("metadata"), value.get("data")
    return (
        (value.get("apiVersion"), value.get("kind")) == ("v1", "ConfigMap")
        and isinstance(metadata, Mapping)
        and metadata.get("name") == CONFIGURATION
        and isinstance(data, Mapping)
        and KEY in data
    )


def whitelist(value: Mapping[str, Json]) -> tuple[Whitelist | None, tuple[Finding, ...]]:
    """Read the whitelist of a ConfigMap; None if any entry is broken, since Kruise ignores such a list too."""
    text = value["data"][KEY]
    try:
        stated = json.loads(text) if isinstance(text, str) else None
    except ValueError as error:
        return None, (_wrong(f"is no JSON: {error}", "try a reader of JSON; a comma may not stand after a last entry"),)
    except RecursionError:
        return None, (_wrong("is nested too deeply", 'try {"workloads": []}'),)
    entries = stated.get("workloads") if isinstance(stated, dict) else None
    if not isinstance(entries, list):
        return None, (_wrong("has no list of workloads", 'try {"workloads": []}'),)
    results = [_entry(number, entry) for number, entry in enumerate(entries)]
    problems = tuple(finding for finding in results if isinstance(finding, Finding))
    kinds = tuple(finding for finding in results if isinstance(finding, WorkloadKind))
    return (None, problems) if problems else (Whitelist(kinds=tuple(_merge(kinds))), ())


def _entry(number: int, entry: Json) -> WorkloadKind | Finding:
    where = f"workloads[{number}]"
    if not isinstance(entry, dict):
        return _wrong(f"{where} is no object", 'try {"Group": "…", "Version": "…", "Kind": "…", "replicasPath": "…"}')
    # Go's JSON decoder, which Kruise uses, matches the names of fields in any case.
    stated = {str(name).lower(): value for name, value in entry.items()}
    fields = {name: stated.get(name.lower(), "") for name in ("Group", "Version", "Kind", "replicasPath")}
    for name, text in fields.items():
        if not isinstance(text, str):
            return _wrong(f"{where}.{name}: {shortened(str(text))} is no text", "quote it")
        if name != "replicasPath" and not _NAME.fullmatch(text):
            return _wrong(f"{where}.{name}: {shortened(text)!r} is no name", "try letters, digits, '-' and '.'")
    if not fields["Kind"]:
        return _wrong(f"{where}.Kind is required", "name the kind as objects do")
    field_path = fields["replicasPath"]
    message, hint = fault(field_path) if field_path else ("", "")
    if message:
        return _wrong(f"{where}.replicasPath: {message}", hint)
    return WorkloadKind(
        group=fields["Group"],
        kind=fields["Kind"],
        versions=(fields["Version"],) if fields["Version"] else (),
        replicas=(path(field_path),) if field_path else (),
        checked=CONFIGURATION,
    )


def _merge(kinds: Iterable[WorkloadKind]) -> Iterator[WorkloadKind]:
    """Merge the versions of each kind; versions with another path than the first are left out."""
    by_name: dict[str, list[WorkloadKind]] = {}
    for kind in kinds:
        by_name.setdefault(kind.name, []).append(kind)
    for first, *others in by_name.values():
        merged = [first, *(kind for kind in others if kind.replicas == first.replicas)]
        versions = dict.fromkeys(version for kind in merged for version in kind.versions)
        yield replace(first, versions=tuple(versions) if all(kind.versions for kind in merged) else ())


def _wrong(message: str, hint: str) -> Finding:
    return Finding(loc=_LOC, message=message, hint=hint)
