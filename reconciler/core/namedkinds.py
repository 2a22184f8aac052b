"""The kind that ``overspill.dev/workload`` names, beside the kinds that are known."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.draft import WORKLOAD
from reconciler.core.fieldpath import at
from reconciler.core.findings import Finding, shortened
from reconciler.core.grouped import has_chart
from reconciler.core.kinds import group_kind
from reconciler.core.schema.complaints import nearest
from reconciler.core.workloadkinds import BUILT_IN, Kinds
from reconciler.errors import Severity
from reconciler.model.workload import DeploySpec, WorkloadRef

_LONGEST = 100
"""Characters of a kind that is compared."""


def unknown_kind(ref: WorkloadRef, spec: DeploySpec, declared: Kinds) -> Finding | None:
    """Warn of a kind that nobody knows; what the template itself deploys is no slip of the pen.

    It is a warning alone: an object of any kind that owns pods is found by its name.
    """
    known = {(kind.kind, kind.group) for kind in (*BUILT_IN.values(), *declared.values())}
    made = {(one.manifest.get("kind"), group_kind(one.manifest).partition("/")[0]) for one in spec.manifests}
    if not ref.kind or any(kind == ref.kind and ref.group in ("", group) for kind, group in {*known, *made}):
        return None
    # Somebody may write the kind's plural, or another group.
    names = {kind for kind, _ in known}
    groups = {f"{kind}.{group}" for kind, group in known if kind == ref.kind}
    likely = nearest(ref.full_kind[:_LONGEST], groups) or nearest(ref.kind[:_LONGEST], names)
    tried = f"try '{likely}/{shortened(ref.namespace)}/{shortened(ref.name)}'; " if likely else ""
    return Finding(
        loc=("metadata", "annotations", WORKLOAD),
        message=f"nobody knows a kind {shortened(ref.full_kind)!r}",
        hint=f"{tried}known are {', '.join(sorted(names))}; a WorkloadKind adds one",
        severity=Severity.WARNING,
    )


def told_apart(ref: WorkloadRef | None, spec: DeploySpec, declared: Kinds) -> WorkloadRef | None:
    """Say of which API group the object is, where several have its kind and the template's own manifests tell.

    An object of its name tells; without a chart, which may make anything, so do all of its kind if they are of one.
    """
    if ref is None or ref.group or not ref.kind:
        return ref
    if len({kind.group for kind in (*BUILT_IN.values(), *declared.values()) if kind.kind == ref.kind}) <= 1:
        return ref
    made = [one.manifest for one in spec.manifests if one.manifest.get("kind") == ref.kind]
    named = [one for one in made if at(one, ("metadata", "name")) == ref.name]
    groups = {group_kind(one).partition("/")[0] for one in named or (() if has_chart(spec) else made)}
    return replace(ref, group=groups.pop()) if len(groups) == 1 else ref
