"""The containers of a workload: image, command and size, as far as two pod templates can be compared.

An observation carries it for each followed workload, so that it is short: a command is a digest, and requests are one
text. Environment variables are left out: they differ between clusters by design.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import pod_template_sites
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.units import format_quantity, parse_quantity
from reconciler.model.workload import ContainerSummary, DeploySpec, Json, WorkloadRef

_DIGITS = 12


def container_summaries(pod: Json) -> tuple[ContainerSummary, ...]:
    """Summarize the containers of a pod spec, sorted by name; broken ones are left out."""
    containers = pod.get("containers") if isinstance(pod, Mapping) else None
    entries = [entry for entry in containers or () if isinstance(entry, Mapping) and isinstance(entry.get("name"), str)]
    return tuple(sorted(map(_summary, entries), key=lambda summary: summary.name))


def summary_of(name: str, image: str, command: Json, resources: Json) -> ContainerSummary:
    """Summarize one container; `command` is its command and its arguments."""
    return ContainerSummary(
        name=sys.intern(name),
        image=None if has_expression(image) else sys.intern(image),
        command=_digest(command),
        resources=_resources(resources),
    )


def deployed_containers(spec: DeploySpec, ref: WorkloadRef | None, kinds: Kinds) -> tuple[ContainerSummary, ...]:
    """Summarize the containers of the object in a template that is the workload's own; none where it is a chart's.

    An object with several pod templates is left out: its containers go by names of their own in each.
    """
    pods = [
        at(manifest, tuple(map(str, site.loc)))
        for manifest in _manifests(spec)
        if ref is not None and _is_meant(manifest, ref)
        for site in pod_template_sites(manifest, kinds)
        if site.loc
    ]
    return container_summaries(pods[0]) if len(pods) == 1 else ()


def observed_containers(raw: Json, kind: WorkloadKind) -> tuple[ContainerSummary, ...]:
    """Summarize the containers of an object of a kind with one pod template; none for any other."""
    if len(kind.templates) != 1 or not kind.templates[0].spec or "*" in kind.templates[0].spec:
        return ()
    return container_summaries(at(raw, kind.templates[0].spec))


def _manifests(spec: DeploySpec) -> Iterator[Mapping[str, Json]]:
    return (resource.manifest for resource in spec.manifests)


def _is_meant(manifest: Mapping[str, Json], ref: WorkloadRef) -> bool:
    """Return whether an object is of the kind and name that a reference has; a namespace may be an expression."""
    name = at(manifest, ("metadata", "name"))
    return name == ref.name and ref.kind in ("", manifest.get("kind"))


def _summary(entry: Mapping[str, Json]) -> ContainerSummary:
    command = {part: entry[part] for part in ("command", "args") if entry.get(part)}
    return summary_of(entry["name"], str(entry.get("image") or ""), command, entry.get("resources"))


def _digest(command: Json) -> str | None:
    """Digest a command; empty without one, None where an expression says it."""
    if not command:
        return ""
    text = json.dumps(command, sort_keys=True)
    return None if has_expression(text) else hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _resources(resources: Json) -> str | None:
    """Write requests as ``cpu 4, nvidia.com/gpu 8``, limits where nothing is requested.

    None where an expression says them, or what is written there is no amount.
    """
    stated = {} if resources is None else resources
    parts = [stated.get(part) or {} for part in ("limits", "requests")] if isinstance(stated, Mapping) else [stated]
    if not all(isinstance(part, Mapping) for part in parts):
        return None
    amounts = {name: amount for part in parts for name, amount in part.items()}
    if has_expression(json.dumps(amounts, default=str)):
        return None
    try:
        shown = [f"{name} {format_quantity(parse_quantity(str(amount)))}" for name, amount in sorted(amounts.items())]
    except ValueError:
        return None
    return sys.intern(", ".join(shown))
