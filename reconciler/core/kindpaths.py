"""Paths of WorkloadKinds that lead nowhere in the objects of that kind which templates deploy.

Where nothing stands, a number of replicas counts as one and pods as unknown: what a slip of the pen does quietly.
Nobody has the CustomResourceDefinition at hand, so this is no more than a warning, and only where no object has
anything there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.core.dialect import has_expression
from reconciler.core.fieldpath import at, items, within
from reconciler.core.findings import Finding, Loc
from reconciler.core.gathered import FleetObjects
from reconciler.core.kinds import group_kind
from reconciler.core.schema.workloadkind import WorkloadKindFile
from reconciler.core.spelling import nearest
from reconciler.errors import Severity
from reconciler.model.workload import Json, WorkloadTemplate
from reconciler.model.workloadkind import EACH, Path, path


def tell_astray(work: FleetObjects, templates: Iterable[WorkloadTemplate]) -> None:
    """Warn of paths that lead nowhere in any object, each at its field, with the name that was probably meant."""
    objects: dict[str, list[Mapping[str, Json]]] = {}
    for template in templates:
        for one in template.spec.manifests:
            objects.setdefault(group_kind(one.manifest), []).append(one.manifest)
    for placed in work.all(WorkloadKindFile):
        spec = placed.value.spec
        made = objects.get(f"{spec.group}/{spec.kind}", [])
        for loc, way, needed in _paths(placed.value):
            finding = _astray(made, loc, way, spec.kind, needed=needed)
            if finding is not None:
                work.tell(placed, finding)


def _paths(file: WorkloadKindFile) -> Iterator[tuple[Loc, Path, bool]]:
    """Yield the paths of a kind, where each stands, and whether objects have to have something there."""
    for index, text in enumerate(file.spec.replicas_paths):
        yield ("spec", "replicasPaths", index), path(text), False
    for index, template in enumerate(file.spec.pod_templates):
        loc: Loc = ("spec", "podTemplates", index)
        yield (*loc, "path"), path(template.path), not template.optional
        for number, one in enumerate(template.counts):
            yield (*loc, "counts", number, "path"), path(one.path), False


def _astray(made: list[Mapping[str, Json]], loc: Loc, way: Path, kind: str, *, needed: bool) -> Finding | None:
    if not made or any(_leads(one, way) for one in made):
        return None
    meant = _meant(made[0], way)
    if not needed and not meant.startswith("try "):
        return None  # it may be left out, and then it is what it is by default
    which = f"any {kind}" if len(made) > 1 else f"the {kind}"
    message = f"leads nowhere in {which} that templates deploy"
    return Finding(loc=loc, message=message, hint=meant, severity=Severity.WARNING)


def _leads(manifest: Mapping[str, Json], way: Path) -> bool:
    """Tell whether something stands at the end of a way, or may once an expression on it is filled in."""
    ends = (at(manifest, within(way, item, way)) for item in items(manifest, way))
    on_it = (at(manifest, way[:index]) for index in range(1, len(way)))
    return any(end is not None for end in ends) or any(isinstance(one, str) and has_expression(one) for one in on_it)


def _meant(manifest: Mapping[str, Json], way: Path) -> str:
    """Say what to write for the first part of a way that is not there: a name that is, if one is nearly the same."""
    for index, part in enumerate(way):
        before = way[:index]
        item = next(items(manifest, before), None)
        value = at(manifest, within(before, item, before)) if item is not None else None
        if part == EACH or (isinstance(value, Mapping) and value.get(part) is not None):
            continue
        if not isinstance(value, Mapping):
            return ""
        named = nearest(part, value)
        close = named.removeprefix("try ").strip("'")
        return f"try '{'.'.join((*before, close, *way[index + 1 :]))}'" if named.startswith("try ") else named
    return ""
