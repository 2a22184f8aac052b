"""The new version of a placement, held to what an API server lets anybody change of the objects that stand.

An engine applies what the output branch holds over the objects of the version before. Where an immutable field differs
(`validation.immutable_fields`), the API server refuses the object, the engine fails, and the whole placement would be
taken back, with its healthy replicas. So:

1. a companion, as a Job or an immutable ConfigMap beside the workload, keeps what it was created with, and the rest of
   the placement changes;
2. a workload whose pods serve keeps everything, and so does all else in its placement: its selector, the labels of its
   pods, a Service's selector and the files that its pods mount are one version. Its replicas, and the bounds of its
   autoscalers, are those of the new version, since the number that is said is the number that runs.

The kind, namespace and name of an object are its most immutable fields: an engine would prune the object, with all of
its pods at once, and make another. A workload is held where another takes its place. Only a deletion deletes: one that
has gone while no other has come is pruned, if another workload stays. A release that an engine installs itself is
uninstalled by a rename as well (`refuse_renamed_releases`); nothing else of such a chart is seen here.

Metadata is taken from the new version in both, for what engines read there can always change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from reconciler.core.engines.autoscaled_replicas import autoscaler
from reconciler.core.engines.deployment import chart_steps
from reconciler.core.engines.object_changes import object_name
from reconciler.core.safety.commands import STEP_LABEL
from reconciler.core.schema.yaml import emit, parse
from reconciler.core.validation.immutable_fields import immutable_changes
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of
from reconciler.core.workloads.paths import at, items, put, within
from reconciler.core.workloads.podless_kinds import makes_no_pods
from reconciler.errors import InvalidInput
from reconciler.model.kubernetes.object_schema import ObjectSchemas
from reconciler.model.kubernetes.workload_kind import Path
from reconciler.model.workload import DeploySpec, Json
from reconciler.text.wording import count, join_names, sanitize

ObjectKey = tuple[str, str]
"""``group/Kind``, and ``namespace/name``."""

_IDENTITY = "the kind, namespace and name"

_MOST_NAMED = 5
"""Objects that a sentence names."""

_KUSTOMIZATION = "kustomize.config.k8s.io/Kustomization"
_CHART_GROUPS = ("helm.toolkit.fluxcd.io/", "source.toolkit.fluxcd.io/")
"""Charts that Flux installs: their values hold replicas of their own."""

_TARGET: Path = ("spec", "scaleTargetRef")
"""The object that an autoscaler scales."""

_METADATA: tuple[Path, ...] = (("metadata", "annotations"), ("metadata", "labels"))
"""Where immutable fields of metadata are."""

_STEP: Path = ("metadata", "labels", STEP_LABEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFiles:
    """The files of a placement after what cannot change has been put back."""

    files: Mapping[str, bytes]
    """Contents by path below the cluster's directory, without the record and the marker."""
    kept: str = ""
    """The objects that stay as they were created, with the fields that differ; empty for none."""
    whole: bool = False
    """Whether the placement as a whole stays as it was, so that its marker has to as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileObject:
    """An object in a file of a placement."""

    path: str
    manifest: Json


def _describe(changes: Mapping[ObjectKey, Sequence[Path]]) -> str:
    """Name the immutable fields in which objects differ, of a handful of objects; one without fields is renamed."""
    texts = [
        f"{join_names('.'.join(path) for path in paths) or _IDENTITY} of {kind.rpartition('/')[2]} {name}"
        for (kind, name), paths in changes.items()
    ]
    more = len(texts) - _MOST_NAMED
    return sanitize("; ".join([*texts[:_MOST_NAMED], *([f"{count(more, 'more object')}"] if more > 0 else [])]), 500)


def hold_immutable(
    standing: Mapping[str, bytes], files: Mapping[str, bytes], kinds: Kinds, schemas: ObjectSchemas, *, charts: bool
) -> HeldFiles:
    """Put back what cannot change in the new `files` of a placement; `standing` are those of the version before.

    With `charts`, whose pods may be unknown, what runs once is no workload. Only files that differ are read. Raises
    InvalidInput where the replicas themselves are what cannot change, or are unknown under another name.
    """
    if not standing:
        return HeldFiles(files=files)
    old = read_objects(standing, {path for path, data in standing.items() if files.get(path) != data})
    new = read_objects(files, {path for path, data in files.items() if standing.get(path) != data})
    changes: dict[ObjectKey, tuple[Path, ...]] = {}
    for key, entry in new.items():
        if fields := immutable_changes(old[key].manifest, entry.manifest, schemas) if key in old else ():
            changes[key] = tuple(sorted(fields))
    renamed = _renamed(standing, files, old, new, kinds, charts=charts)
    if not changes and not renamed:
        return HeldFiles(files=files)
    workloads = _workloads(files, kinds, charts=charts) & changes.keys()
    after = {key: new[key] for key in old.keys() & new.keys()} | renamed
    for key in {*workloads, *renamed}:
        _refuse_count(key, old[key].manifest, after[key].manifest, kinds, schemas)
    named = _describe({**dict.fromkeys(renamed, ()), **changes})
    if workloads or renamed:
        kept = f"all but its replicas stays as it was placed, since nobody can change {named}"
        return HeldFiles(files=_hold_all(standing, old, after, changes, kinds), kept=kept, whole=True)
    held = dict(files)
    for key, fields in changes.items():
        held[new[key].path] = emit(_held(old[key].manifest, new[key].manifest, fields)).encode()
    return HeldFiles(files=held, kept=f"what nobody can change stays as it was placed: {named}")


def read_objects(files: Mapping[str, bytes], paths: Iterable[str]) -> dict[ObjectKey, FileObject]:
    """Read the objects of some files, in the order of their paths; a file that holds none is left out.

    A person may have put anything into the files of the output branch: what cannot be read is not compared.
    """
    objects: dict[ObjectKey, FileObject] = {}
    for path in sorted(paths):
        try:
            documents = parse(files[path], path)
        except InvalidInput:
            continue
        for document in documents:
            manifest = document.value
            metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
            if isinstance(metadata, dict) and metadata.get("name") and group_kind(manifest) != _KUSTOMIZATION:
                objects[object_key(manifest)] = FileObject(path=path, manifest=manifest)
    return objects


def object_key(manifest: Json) -> ObjectKey:
    """Return what no version of an object changes: its ``group/Kind``, and its namespace and name."""
    return group_kind(manifest), object_name(manifest)


def refuse_renamed_releases(before: DeploySpec, after: DeploySpec) -> None:
    """Refuse a version of a placement in which a release has another name or namespace. Raises InvalidInput.

    An engine would uninstall the release, with all of its pods, and install another.
    """
    old, new = (
        [(chart.release_namespace, chart.release_name) for chart in chart_steps(each)] for each in (before, after)
    )
    gone = [release for release in old if release not in new]
    if gone and set(new) - set(old):
        names = join_names(("/".join(filter(None, release)) for release in gone), _MOST_NAMED)
        raise InvalidInput(
            f"release {sanitize(names)} would be uninstalled with all of its pods (give it its name and namespace"
            " again, or end the placement with `overspill revert`)"
        )


def _workloads(files: Mapping[str, bytes], kinds: Kinds, *, charts: bool) -> frozenset[ObjectKey]:
    """Return the workloads of a placement: the objects that make pods, without those that run once beside others.

    The Job of a command is none.
    """
    every = {
        key: kind
        for key, entry in read_objects(files, files).items()
        if (kind := kind_of(entry.manifest, kinds)) and not at(entry.manifest, _STEP)
    }
    lasting = frozenset(key for key, kind in every.items() if not kind.once and kind.templates)
    return lasting or (frozenset() if charts else frozenset(every))


def _renamed(
    standing: Mapping[str, bytes],
    files: Mapping[str, bytes],
    old: Mapping[ObjectKey, FileObject],
    new: Mapping[ObjectKey, FileObject],
    kinds: Kinds,
    *,
    charts: bool,
) -> dict[ObjectKey, FileObject]:
    """Return the standing workloads in whose place others come, each with that object.

    Raises InvalidInput where it cannot be said which object has the replicas of which.
    """
    before = _workloads(standing, kinds, charts=charts)
    gone = sorted(before & (old.keys() - new.keys()), key=lambda key: old[key].path)
    if not gone:
        return {}
    come = _come(files, old, new, kinds, charts=charts, wanted=len(gone))
    if not come and len(gone) < len(before):
        return {}
    pairs = _pairs(gone, come)
    if len(come) != len(gone) or not all(_have_equal_counts(old[key], new[pairs[key]], kinds) for key in gone):
        names = join_names((f"{kind.rpartition('/')[2]} {name}" for kind, name in gone), _MOST_NAMED)
        raise InvalidInput(
            f"{sanitize(names)} would be deleted with all of its pods, and the new version does not say how many"
            " replicas it is to have (give it its kind, namespace and name again, or end the placement with"
            " `overspill revert`)"
        )
    return {key: new[pairs[key]] for key in gone}


def _come(
    files: Mapping[str, bytes],
    old: Mapping[ObjectKey, FileObject],
    new: Mapping[ObjectKey, FileObject],
    kinds: Kinds,
    *,
    charts: bool,
    wanted: int,
) -> list[ObjectKey]:
    """List the new objects that may come in the place of as many workloads as are `wanted`, by path.

    They are workloads as those that stand: what runs once beside others takes no place. Only where they are too few may
    an object of an unknown kind, which may make pods, be one of them.
    """
    added = new.keys() - old.keys()
    come = _workloads(files, kinds, charts=charts) & added
    if len(come) < wanted:
        come |= {key for key in added if not kind_of(new[key].manifest, kinds) and not makes_no_pods(key[0])}
    return sorted(come, key=lambda key: new[key].path)


def _pairs(gone: Iterable[ObjectKey], come: Iterable[ObjectKey]) -> dict[ObjectKey, ObjectKey]:
    """Give each workload that is gone an object in its place: of its name, else of its kind, else the next one."""
    pairs: dict[ObjectKey, ObjectKey] = {}
    left = [*come]
    for likeness in (itemgetter(1), itemgetter(0), lambda _: None):
        for key in gone:
            match = next((other for other in left if likeness(other) == likeness(key)), None)
            if key not in pairs and match is not None:
                pairs[key] = match
                left.remove(match)
    return pairs


def _have_equal_counts(before: FileObject, after: FileObject, kinds: Kinds) -> bool:
    """Return whether the replicas of one object can be those of another: in the same fields, or in one field each."""
    one, other = kind_of(before.manifest, kinds), kind_of(after.manifest, kinds)
    if one is None or other is None:
        return False
    return one.replicas == other.replicas or len(one.replicas) == len(other.replicas) == 1


def _refuse_count(key: ObjectKey, before: Json, after: Json, kinds: Kinds, schemas: ObjectSchemas) -> None:
    """Refuse another number of replicas where nobody can change it. Raises InvalidInput.

    That is so within an immutable field, as of a JobSet and a TrainJob, and where it is the completions of a Job too.
    """
    title = f"{key[0].rpartition('/')[2]} {key[1]}"
    if immutable_changes(before, _with_replicas(before, after, kinds), schemas):
        raise InvalidInput(
            f"{title} stands with a number of replicas that nobody can change (let it run to its end, or end the"
            " placement with `overspill revert`)"
        )
    kind = kind_of(after, kinds)
    if kind is None or not kind.completions or not kind.replicas:
        return
    old, new = ([at(job, path) for path in (kind.replicas[0], kind.completions)] for job in (before, after))
    if old[0] == old[1] and new[0] == new[1] and old != new and kind.completions != kind.replicas[0]:
        raise InvalidInput(
            f"{title} stands with {old[1]} completions, which nobody can change (let it run to its end, or give it"
            " completionMode: Indexed)"
        )


def _held(before: Json, after: Json, fields: Iterable[Path] = ()) -> Json:
    """Return an object as it stands, with the metadata of its new version but for immutable `fields` in there."""
    held: dict[str, Json] = {name: after[name] if name == "metadata" else value for name, value in before.items()}
    for path in fields:
        if path[:2] in _METADATA:
            _, part, key = path
            others = {name: value for name, value in (held["metadata"].get(part) or {}).items() if name != key}
            own = at(before, path)
            held["metadata"] = {**held["metadata"], part: others if own is None else {**others, key: own}}
    return held


def _hold_all(
    standing: Mapping[str, bytes],
    old: Mapping[ObjectKey, FileObject],
    new: Mapping[ObjectKey, FileObject],
    changes: Mapping[ObjectKey, Sequence[Path]],
    kinds: Kinds,
) -> dict[str, bytes]:
    """Return the standing files, with the replicas, metadata, autoscalers and charts of the new version.

    `new` has the new version of each object that stands, under another name or not. An autoscaler goes on scaling what
    it did, and one that is new is none of the standing files: what it scales may be what is held.
    """
    held = dict(standing)
    for key, entry in old.items():
        if key not in new:
            continue
        before, after = entry.manifest, new[key].manifest
        kept = after
        if object_key(after) != key:
            kept = _with_replicas(before, after, kinds)
        elif autoscaler(after):
            kept = _with_target(after, before)
        elif not key[0].startswith(_CHART_GROUPS):
            kept = _with_replicas(_held(before, after, changes.get(key, ())), after, kinds)
        held[entry.path] = emit(kept).encode()
    return held


def _with_target(after: Json, before: Json) -> Json:
    """Give an autoscaler the target that it stands with."""
    target = at(before, _TARGET)
    return after if target is None or at(after, _TARGET) == target else put(after, _TARGET, target)


def _with_replicas(held: Json, after: Json, kinds: Kinds) -> Json:
    """Give an object the replicas of its new version, in each field that counts them.

    Of a new version of another kind, the number of its one field is taken.
    """
    kind, own = kind_of(after, kinds), kind_of(held, kinds)
    if kind is not None and own is not None and kind.replicas != own.replicas:
        number = at(after, kind.replicas[0])
        return held if number is None else put(held, own.replicas[0], number)
    for replicas_path in kind.replicas if kind is not None else ():
        for item in items(after, replicas_path):
            path = within(replicas_path, item, replicas_path)
            number = at(after, path)
            if number is not None and isinstance(at(held, path[:-1]), Mapping):
                held = put(held, path, number)
    return held
