"""The kind that ``overspill.dev/workload`` names, beside the kinds that are known."""

from __future__ import annotations

from reconciler.core.draft import WORKLOAD
from reconciler.core.findings import Finding, shortened
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
    known = {kind.kind for kind in (*BUILT_IN.values(), *declared.values())}
    if ref.kind in known or ref.kind in ("", *(one.manifest.get("kind") for one in spec.manifests)):
        return None
    # Somebody may write the API group behind the kind, as kubectl takes it.
    likely = nearest(ref.kind[:_LONGEST].partition(".")[0], known)
    tried = f"try '{likely}/{shortened(ref.namespace)}/{shortened(ref.name)}'; " if likely else ""
    return Finding(
        loc=("metadata", "annotations", WORKLOAD),
        message=f"nobody knows a kind {shortened(ref.kind)!r}",
        hint=f"{tried}known are {', '.join(sorted(known))}; a WorkloadKind adds one",
        severity=Severity.WARNING,
    )
