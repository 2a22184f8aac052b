"""Short ways to describe kinds of workloads that are like those of Kubernetes itself."""

from __future__ import annotations

from reconciler.model.workloadkind import Count, PodTemplate, WorkloadKind, path

REPLICAS = path("spec.replicas")
SUSPEND = (path("spec.suspend"),)
LABELS = ("metadata", "labels")


def template(
    text: str, *counts: Count | str, instead: str = "", optional: bool = False, completed: bool = False
) -> PodTemplate:
    """Describe a pod template as Kubernetes has them, with metadata beside the spec."""
    way = path(text)
    return PodTemplate(
        spec=(*way, "spec"),
        instead=path(f"{instead}.spec") if instead else (),
        labels=(*way, *LABELS),
        optional=optional,
        completed=completed,
        counts=tuple(Count(path=path(one)) if isinstance(one, str) else one for one in counts),
    )


def plain(group: str, kind: str, versions: tuple[str, ...], checked: str, *, counted: bool = True) -> WorkloadKind:
    """Describe a kind that makes ``spec.replicas`` pods of ``spec.template``."""
    return WorkloadKind(
        group=group,
        kind=kind,
        versions=versions,
        replicas=(REPLICAS,) if counted else (),
        templates=(template("spec.template", *(("spec.replicas",) if counted else ())),),
        counted=counted,
        checked=checked,
    )


def at_a_time(root: str) -> Count:
    """Count the pods of a Job at a time: never more than it has to complete."""
    return Count(path=path(f"{root}.parallelism"), most=path(f"{root}.completions"))
