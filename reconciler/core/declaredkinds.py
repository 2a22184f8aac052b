"""The kinds of workloads that the fleet repository declares: WorkloadKinds, and what Kruise is told of."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.describing import template
from reconciler.core.findings import Finding
from reconciler.core.gathered import DeclaredValue, FleetObjects
from reconciler.core.kruise import Whitelist
from reconciler.core.schema.workloadkind import CountFile, PodTemplateFile, WorkloadKindFile
from reconciler.core.workloadkinds import BUILT_IN
from reconciler.errors import Severity
from reconciler.model.workloadkind import Count, Group, Mark, PodTemplate, WorkloadKind, path


def workload_kinds(work: FleetObjects) -> dict[str, WorkloadKind]:
    """Read the kinds that files declare, by ``group/Kind``; what is declared a second time is told where it is.

    A WorkloadKind goes before Kruise's whitelist, and both before what is built in; what they leave out stays as that.
    """
    found: dict[str, WorkloadKind] = {}
    places: dict[str, str] = {}
    for placed in work.named(WorkloadKindFile, "WorkloadKind").values():
        kind = _declared(placed.value)
        where = f"{placed.path}:{placed.declared.line}"
        if kind.name in found:
            _twice(work, placed, kind.name, places[kind.name])
            continue
        found[kind.name], places[kind.name] = _over(kind), where
    for listed in work.all(Whitelist):
        where = f"{listed.path}:{listed.declared.line}"
        for kind in listed.value.kinds:
            if kind.name in found:
                message = f"{kind.name} is declared in {places[kind.name]}, which holds"
                finding = Finding(message=message, hint="leave one of the two out", severity=Severity.WARNING)
                work.tell(listed, finding)
                continue
            found[kind.name], places[kind.name] = _over(kind), where
    return found


def _twice(work: FleetObjects, placed: DeclaredValue[WorkloadKindFile], name: str, where: str) -> None:
    message = f"{name.removeprefix('/')} is already declared in {where}"
    work.reject(placed, Finding(loc=("spec", "kind"), message=message, hint="put both into one WorkloadKind"))


def _over(kind: WorkloadKind) -> WorkloadKind:
    """Put what is declared over what is built in of the same kind."""
    known = BUILT_IN.get(kind.name)
    if known is None:
        return kind
    return replace(
        known,
        versions=tuple(dict.fromkeys((*known.versions, *kind.versions))) if kind.versions else (),
        replicas=kind.replicas or known.replicas,
        templates=kind.templates or known.templates,
        together=kind.together or known.together,
        marks=kind.marks or known.marks,
        checked=kind.checked,
    )


def _declared(file: WorkloadKindFile) -> WorkloadKind:
    """Make the model's value of a WorkloadKind."""
    spec, together = file.spec, file.spec.groups
    return WorkloadKind(
        group=spec.group,
        kind=spec.kind,
        versions=tuple(spec.versions),
        replicas=file.ways,
        templates=tuple(_template(one) for one in spec.pod_templates),
        together=None
        if together is None
        else Group(
            called=together.called,
            counts=tuple(_count(one) for one in together.counts),
            gang=path(together.minimum_path) if together.minimum_path else (),
            label=together.pod_label,
        ),
        marks=tuple(Mark(label=label) for label in spec.pod_labels),
        checked=file.metadata.name,
    )


def _template(file: PodTemplateFile) -> PodTemplate:
    counts = (replace(_count(one), enough=path(one.minimum_path) if one.minimum_path else ()) for one in file.counts)
    return template(file.path, *counts, optional=file.optional)


def _count(file: CountFile) -> Count:
    return Count(path=path(file.path), default=file.default, less=file.less)
