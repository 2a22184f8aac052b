"""The workload kinds that the fleet repository declares: WorkloadKinds, and OpenKruise's whitelist.

A path of a WorkloadKind that leads nowhere gives one replica and unknown pods, without an error. So each path is tried
on the objects of that kind in templates, and a path that no object has gets a warning with the nearest name. Without
the CustomResourceDefinition at hand an error would be too strict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from reconciler.core.capacity.gangs import has_chart
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.fleet.kruise_whitelist import Whitelist
from reconciler.core.fleet.objects import DeclaredValue, FleetObjects
from reconciler.core.observe.counted_object import WORKLOAD
from reconciler.core.schema.workloadkind import CountFile, PodTemplateFile, WorkloadKindFile
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS, Kinds, template, uncounted_kind
from reconciler.core.workloads.held_objects import with_wrapped
from reconciler.core.workloads.paths import at, items, within
from reconciler.errors import Severity
from reconciler.model.kubernetes.workload_kind import EACH, Count, Group, Mark, Path, PodTemplate, WorkloadKind, path
from reconciler.model.workload import DeploySpec, Json, WorkloadRef, WorkloadTemplate
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.spelling import nearest, suggested


def workload_kinds(work: FleetObjects) -> dict[str, WorkloadKind]:
    """Read the declared kinds, by ``group/Kind``; a second declaration is reported with the place of the first.

    A WorkloadKind takes precedence over Kruise's whitelist, and both over built-in kinds; fields left out stay built
    in.
    """
    kinds: dict[str, WorkloadKind] = {}
    places: dict[str, str] = {}
    firsts: dict[str, DeclaredValue[WorkloadKindFile]] = {}
    for placed in work.named(WorkloadKindFile, "WorkloadKind").values():
        kind = _kind(placed.value)
        where = f"{placed.path}:{placed.declared.line}"
        if kind.name in kinds:
            message = f"{kind.name.removeprefix('/')} is already declared in {places[kind.name]}"
            finding = Finding(loc=("spec", "kind"), message=message, hint="put both into one WorkloadKind")
            work.reject_second(placed, firsts[kind.name], finding)
            continue
        kinds[kind.name], places[kind.name], firsts[kind.name] = _over_built_in(kind), where, placed
    for listed in work.all(Whitelist):
        where = f"{listed.path}:{listed.declared.line}"
        for kind in listed.value.kinds:
            if kind.name in kinds:
                message = f"{kind.name} is declared in {places[kind.name]}, which holds"
                finding = Finding(message=message, hint="leave one of the two out", severity=Severity.WARNING)
                work.report(listed, finding)
                continue
            kinds[kind.name], places[kind.name] = _over_built_in(kind), where
    return kinds


def _over_built_in(kind: WorkloadKind) -> WorkloadKind:
    """Override a built-in kind with the declared fields."""
    built_in = BUILT_IN.get(kind.name)
    if built_in is None:
        return kind
    return replace(
        built_in,
        versions=tuple(dict.fromkeys((*built_in.versions, *kind.versions))) if kind.versions else (),
        replicas=kind.replicas or built_in.replicas,
        templates=kind.templates or built_in.templates,
        together=kind.together or built_in.together,
        marks=kind.marks or built_in.marks,
        counted=kind.counted and (built_in.counted or bool(kind.templates)),
        checked=kind.checked,
    )


def _kind(file: WorkloadKindFile) -> WorkloadKind:
    """Make the model's value of a WorkloadKind."""
    spec, together = file.spec, file.spec.groups
    return WorkloadKind(
        group=spec.group,
        kind=spec.kind,
        versions=tuple(spec.versions),
        replicas=file.ways,
        templates=tuple(_template(pod_template) for pod_template in spec.pod_templates),
        together=None
        if together is None
        else Group(
            called=together.called,
            counts=tuple(_count(count) for count in together.counts),
            gang=path(together.minimum_path) if together.minimum_path else (),
            label=together.pod_label,
        ),
        marks=tuple(Mark(label=label) for label in spec.pod_labels),
        counted=spec.makes_pods,
        checked=file.metadata.name,
    )


def _template(file: PodTemplateFile) -> PodTemplate:
    counts = (
        replace(_count(count), enough=path(count.minimum_path) if count.minimum_path else ()) for count in file.counts
    )
    return template(file.path, *counts, optional=file.optional)


def _count(file: CountFile) -> Count:
    return Count(path=path(file.path), default=file.default, less=file.less)


def warn_dead_paths(work: FleetObjects, templates: Iterable[WorkloadTemplate]) -> None:
    """Warn of paths that exist in no object of templates, at their field, with the nearest name."""
    objects: dict[str, list[Mapping[str, Json]]] = {}
    for owner in templates:
        for resource in owner.spec.manifests:
            for manifest in with_wrapped(resource.manifest, NO_KINDS):
                objects.setdefault(group_kind(manifest), []).append(manifest)
    for placed in work.all(WorkloadKindFile):
        spec = placed.value.spec
        work.warn(placed, partial(_dead_paths, placed.value, objects.get(f"{spec.group}/{spec.kind}", [])))


def _dead_paths(file: WorkloadKindFile, made: Sequence[Mapping[str, Json]]) -> Iterator[Finding]:
    """Yield a warning for each path of a kind that leads nowhere in the objects of templates."""
    for loc, field_path, needed in _paths(file):
        finding = _warn_dead_path(made, loc, field_path, file.spec.kind, needed=needed)
        if finding is not None:
            yield finding


def _paths(file: WorkloadKindFile) -> Iterator[tuple[Loc, Path, bool]]:
    """Yield the paths of a kind, their locations, and whether objects must have a value there."""
    for index, text in enumerate(file.spec.replicas_paths):
        yield ("spec", "replicasPaths", index), path(text), False
    for index, pods in enumerate(file.spec.pod_templates):
        loc: Loc = ("spec", "podTemplates", index)
        yield (*loc, "path"), path(pods.path), not pods.optional
        for number, count in enumerate(pods.counts):
            yield (*loc, "counts", number, "path"), path(count.path), False


def _warn_dead_path(
    made: Sequence[Mapping[str, Json]], loc: Loc, field_path: Path, kind: str, *, needed: bool
) -> Finding | None:
    if not made or any(_path_exists(manifest, field_path) for manifest in made):
        return None
    meant = _path_hint(made[0], field_path)
    if not needed and not meant.startswith("try "):
        return None  # an optional field has its default
    which = f"any {kind}" if len(made) > 1 else f"the {kind}"
    message = f"leads nowhere in {which} that templates deploy"
    return Finding(loc=loc, message=message, hint=meant, severity=Severity.WARNING)


def _path_exists(manifest: Mapping[str, Json], field_path: Path) -> bool:
    """Return whether a path leads to a value, or to an expression that may yield one."""
    ends = (at(manifest, within(field_path, item, field_path)) for item in items(manifest, field_path))
    on_it = (at(manifest, field_path[:index]) for index in range(1, len(field_path)))
    return any(end is not None for end in ends) or any(
        isinstance(value, str) and has_expression(value) for value in on_it
    )


def _path_hint(manifest: Mapping[str, Json], field_path: Path) -> str:
    """Suggest a name for the first part of a path that is missing, if an existing name is close."""
    for index, part in enumerate(field_path):
        before = field_path[:index]
        item = next(items(manifest, before), None)
        value = at(manifest, within(before, item, before)) if item is not None else None
        if part == EACH or (isinstance(value, Mapping) and value.get(part) is not None):
            continue
        if not isinstance(value, Mapping):
            return ""
        named = nearest(part, value)
        close = named.removeprefix("try ").strip("'")
        return f"try '{'.'.join((*before, close, *field_path[index + 1 :]))}'" if named.startswith("try ") else named
    return ""


def warn_unknown_kind(ref: WorkloadRef, spec: DeploySpec, declared: Kinds) -> Finding | None:
    """Warn of an unknown kind, unless the template itself deploys such an object.

    Only a warning: an object of any kind that owns pods is found by its name.
    """
    known_kinds = {(kind.kind, kind.group) for kind in (*BUILT_IN.values(), *declared.values())}
    made = {
        (manifest.get("kind"), group_kind(manifest).partition("/")[0])
        for resource in spec.manifests
        for manifest in with_wrapped(resource.manifest, declared)
    }
    if not ref.kind or any(kind == ref.kind and ref.group in ("", group) for kind, group in {*known_kinds, *made}):
        return None
    # The kind may be written in plural, or with another group.
    names = {kind for kind, _ in known_kinds}
    groups = {f"{kind}.{group}" for kind, group in known_kinds if kind == ref.kind}
    likely = suggested(ref.full_kind, groups) or suggested(ref.kind, names)
    tried = f"try '{likely}/{shortened(ref.namespace)}/{shortened(ref.name)}'; " if likely else ""
    return Finding(
        loc=("metadata", "annotations", WORKLOAD),
        message=f"unknown kind {shortened(ref.full_kind)!r}",
        hint=f"{tried}known are {', '.join(sorted(names))}; a WorkloadKind adds one",
        severity=Severity.WARNING,
    )


def refuse_uncounted_kind(ref: WorkloadRef, loc: Loc, declared: Kinds) -> Finding | None:
    """Refuse to count an object of a kind without replicas, as a DaemonSet: none of its pods is missing elsewhere.

    A copy of it on another cluster would have a pod on each node there, or pods at times of its own
    (https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/).
    """
    kind = uncounted_kind(ref, declared)
    if kind is None:
        return None
    name = shortened(f"{ref.namespace}/{ref.name}")
    return Finding(
        loc=loc,
        message=f"a {ref.kind} makes {uncounted_pods(kind)}, and has no replicas that a burst could bring",
        hint=f"have a Deployment or a Job of its pods on the primary and in the template, and name that, as"
        f" 'Deployment/{name}'; each cluster's own repository may have the {ref.kind}",
    )


def uncounted_pods(kind: WorkloadKind) -> str:
    """Say what pods a kind makes whose pods nothing counts."""
    return "a pod on each node that it selects" if kind.on_each_node else "pods at times of its own"


def with_api_group(ref: WorkloadRef | None, spec: DeploySpec, declared: Kinds) -> WorkloadRef | None:
    """Add the API group to a reference if several groups have its kind and the manifests of the template decide.

    An object of the same name decides; without a chart, which may create anything, so do all objects of the kind if
    they agree.
    """
    if ref is None or ref.group or not ref.kind:
        return ref
    if len({kind.group for kind in (*BUILT_IN.values(), *declared.values()) if kind.kind == ref.kind}) <= 1:
        return ref
    made = [
        manifest
        for resource in spec.manifests
        for manifest in with_wrapped(resource.manifest, declared)
        if manifest.get("kind") == ref.kind
    ]
    named = [candidate for candidate in made if at(candidate, ("metadata", "name")) == ref.name]
    groups = {group_kind(candidate).partition("/")[0] for candidate in named or (() if has_chart(spec) else made)}
    return replace(ref, group=groups.pop()) if len(groups) == 1 else ref
