"""Objects that hold other objects whole: their pods, and how they run, are those of what they wrap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.paths import at, items, within
from reconciler.core.workloads.podless_kinds import makes_no_pods
from reconciler.model.kubernetes.workload_kind import Count, EndStatus, Path, PodTemplate, WorkloadKind
from reconciler.model.workload import Json


def wrapped_objects(kind: WorkloadKind, manifest: Mapping[str, Json]) -> Iterator[tuple[Path, Json]]:
    """Yield what an object of a kind holds whole, each with its place: objects, unless it is broken."""
    for item in items(manifest, kind.wraps) if kind.wraps else ():
        place = within(kind.wraps, item, kind.wraps)
        yield place, at(manifest, place)


def wrapping_kind(
    kind: WorkloadKind, manifest: Mapping[str, Json], find: Callable[[str], WorkloadKind | None]
) -> WorkloadKind:
    """Return the kind of an object that wraps others: theirs together, with their fields where they stand in it.

    It runs once if any of them does. One of an unknown kind, or that wraps others itself, makes its pods unknown.
    `find` looks a ``group/Kind`` up.
    """
    parts, unknown, once = list[WorkloadKind](), list[Path](), False
    for place, inner in wrapped_objects(kind, manifest):
        name = group_kind(inner) if isinstance(inner, Mapping) else ""
        part = find(name)
        if part is not None and part.counted and not part.wraps:
            parts.append(_moved(part, place))
            once = once or runs_once_by(part, inner)
        elif part is not None or not makes_no_pods(name):
            unknown.append(place)
    only = parts[0] if len(parts) == 1 else kind
    return replace(
        kind,
        replicas=tuple(field_path for part in parts for field_path in part.replicas),
        templates=tuple(template for part in parts for template in part.templates),
        unknown=(*unknown, *(field_path for part in parts for field_path in part.unknown)),
        once=once,
        end=_end(kind.end, parts) if once else None,
        completions=only.completions,
        runs=only.runs,
        complete_early=only.complete_early,
        deadline=only.deadline,
    )


def _end(own: EndStatus | None, parts: Iterable[WorkloadKind]) -> EndStatus | None:
    """Return how an object says that its run is over; the pods of its parts have to tell that of each, to tell it."""
    by_pods = all(part.once and (part.end is None or part.end.by_pods) for part in parts)
    return None if own is None else replace(own, by_pods=by_pods)


def runs_once_by(kind: WorkloadKind, manifest: Mapping[str, Json]) -> bool:
    """Return whether an object of a kind runs once, as a Job does with a number of completions."""
    if not kind.once:
        return False
    return not kind.once_with or any(at(manifest, field_path) is not None for field_path in kind.once_with)


def _moved(kind: WorkloadKind, place: Path) -> WorkloadKind:
    """Return a kind with the fields of its pods as they stand in an object that holds one of it at a place."""

    def moved(field_path: Path) -> Path:
        return (*place, *field_path) if field_path else ()

    def moved_count(count: Count) -> Count:
        return replace(
            count,
            path=moved(count.path),
            instead=moved(count.instead),
            over=moved(count.over),
            least=moved(count.least),
            most=moved(count.most),
            enough=moved(count.enough),
            elastic=moved(count.elastic),
        )

    def moved_template(pods: PodTemplate) -> PodTemplate:
        return replace(
            pods,
            spec=moved(pods.spec),
            instead=moved(pods.instead),
            resources=moved(pods.resources),
            reference=moved(pods.reference),
            labels=moved(pods.labels),
            counts=tuple(map(moved_count, pods.counts)),
        )

    return replace(
        kind,
        replicas=tuple(map(moved, kind.replicas)),
        templates=tuple(map(moved_template, kind.templates)),
        unknown=tuple(map(moved, kind.unknown)),
        completions=moved(kind.completions),
        runs=moved(kind.runs),
        complete_early=tuple((moved(field_path), value) for field_path, value in kind.complete_early),
        deadline=moved(kind.deadline),
    )
