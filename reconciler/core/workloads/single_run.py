"""Work that runs once to completion: Jobs, training jobs and their like; a second copy would do the same work again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of, kinds_named
from reconciler.core.workloads.paths import at, items, within
from reconciler.core.workloads.podless_kinds import makes_no_pods
from reconciler.core.workloads.pods import read_pods
from reconciler.core.workloads.wrapped_kinds import runs_once_by
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_kind import Path, WorkloadKind
from reconciler.model.placement import Placement
from reconciler.model.units import bounded_seconds
from reconciler.model.workload import DeploySpec, Json, WorkloadRef, WorkloadTemplate
from reconciler.text.wording import count

_REPLICAS = re.compile(r"\{\{\s*replicas\s*\}\}")

RUNS_ONCE = "overspill.dev/runs-once"
"""The annotation of a template that says whether it must run once, whatever its kinds are."""


def runs_once(spec: DeploySpec, ref: WorkloadRef | None, kinds: Kinds) -> bool:
    """Return whether the kinds of a template must run once; the kind of its object decides for a chart."""
    if any(_is_single(resource.manifest, kinds) for resource in spec.manifests):
        return True
    if ref is None or not ref.kind or not spec.helm:
        return False
    named = [kind for kind in kinds_named(ref.kind, kinds) if ref.group in ("", kind.group)]
    return bool(named) and all(kind.once for kind in named)


def describe_second_run(pods: int, primary: ClusterName, *, copy: str, started: str = "") -> str:
    """Say that so many pods have a node at home, and so the `copy` elsewhere is one too many.

    Without any pod `started` says why it begins there all the same.
    """
    begun = f"{count(pods, 'pod')} of it {'run' if pods > 1 else 'runs'} on {primary}"
    begun = begun if pods else f"on {primary} {started}"
    return f"{begun}, and {copy} elsewhere would do the same work again"


def may_succeed(spec: DeploySpec, ref: WorkloadRef | None, kinds: Kinds, *, once: bool = False) -> bool:
    """Return whether a template may run to completion: nothing in it is known to serve, as a Deployment does.

    `once` says that the template itself states that it runs once.
    """
    made = [kind for resource in spec.manifests if (kind := kind_of(resource.manifest, kinds)) is not None]
    if ref is not None and ref.kind and spec.helm:
        made += [kind for kind in kinds_named(ref.kind, kinds) if ref.group in ("", kind.group)]
    return once or all(map(_ends, made))


def _ends(kind: WorkloadKind) -> bool:
    """Return whether an object of a kind may come to an end by itself."""
    return kind.once or kind.end is not None


def longest_run(spec: DeploySpec, kinds: Kinds) -> timedelta | None:
    """Return after how long the deadlines of what runs once have ended all of it, ten years at most.

    None where any of it has no deadline.
    """
    if spec.helm or spec.commands:
        return None
    runs = [(manifest, kind) for manifest, kind in _with_pods(spec, kinds) if kind is not None and kind.once]
    deadlines = [
        at(manifest, within(kind.deadline, item, kind.deadline)) if kind.deadline else None
        for manifest, kind in runs
        for item in items(manifest, kind.deadline)
    ]
    seconds = [deadline for deadline in deadlines if type(deadline) is int]
    return bounded_seconds(max(seconds)) if seconds and len(seconds) == len(deadlines) else None


def complete_objects(spec: DeploySpec, kinds: Kinds) -> int | None:
    """Count the objects that have to say that their run is complete; None where anything else deployed makes pods."""
    if spec.helm or spec.commands:
        return None
    made = [kind for _, kind in _with_pods(spec, kinds)]
    return len(made) if made and all(kind is not None and kind.end is not None for kind in made) else None


def completions(spec: DeploySpec, replicas: int, kinds: Kinds) -> int | None:
    """Count the pods that have to succeed by the completions of all that is deployed; None where any has none."""
    made = tuple(_with_pods(spec, kinds))
    if spec.helm or spec.commands or any(kind is None or not kind.completions for _, kind in made):
        return None
    return _pods_to_succeed(made, replicas, kinds)


def pods_to_succeed(template: WorkloadTemplate, placement: Placement, kinds: Kinds) -> int | None:
    """Count the pods of a placement that have to succeed until it is complete; None where pods do not tell.

    Without a number of completions these are all of them.
    """
    if template.spec.helm or template.spec.commands:
        return None
    made = tuple(_with_pods(template.spec, kinds))
    if not all(kind is not None and (template.runs_once or _ends(kind)) for _, kind in made):
        return None
    needed = _pods_to_succeed(made, placement.replicas, kinds)
    # An expression in a number of pods counts as one.
    exact = all(kind is not None and kind.completions for _, kind in made)
    return needed if needed is None or exact else max(needed, placement.replicas * placement.shape.group_size)


def _pods_to_succeed(
    made: Iterable[tuple[Mapping[str, Json], WorkloadKind | None]], replicas: int, kinds: Kinds
) -> int | None:
    total = 0
    for manifest, kind in made:
        pods = None
        if kind is not None:
            pods = _completions(manifest, kind, replicas) if kind.completions else _pods_made(manifest, kind, kinds)
        if not pods:
            return None
        total += pods
    return total or None


def _pods_made(manifest: Mapping[str, Json], kind: WorkloadKind, kinds: Kinds) -> int | None:
    """Count all pods of an object; None where some of them are unknown, or do not end."""
    if not kind.counted or (kind.end is not None and not kind.end.by_pods):
        return None
    try:
        numbers = [pods.replicas for pods in read_pods(manifest, kinds)]
    except (AttributeError, LookupError, TypeError, ValueError):
        return None
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _with_pods(spec: DeploySpec, kinds: Kinds) -> Iterator[tuple[Mapping[str, Json], WorkloadKind | None]]:
    """List the objects that may make pods, with their kind; None for an unknown one."""
    for resource in spec.manifests:
        kind = kind_of(resource.manifest, kinds)
        if kind is not None or not makes_no_pods(group_kind(resource.manifest)):
            yield resource.manifest, kind


def _completions(manifest: Mapping[str, Json], kind: WorkloadKind, replicas: int) -> int | None:
    """Sum up the completions of the jobs of an object; None where it may be complete with fewer pods."""
    if any(at(manifest, field_path) not in (None, [], value) for field_path, value in kind.complete_early):
        return None
    total = 0
    for item in items(manifest, kind.completions):
        pods = _completions_of_job(manifest, within(kind.completions, item, kind.completions), replicas)
        jobs = at(manifest, within(kind.runs, item, kind.completions)) if kind.runs else None
        if pods is None or not isinstance(jobs, int | None):
            return None
        total += pods * (1 if jobs is None else jobs)
    return total or None


def _completions_of_job(manifest: Mapping[str, Json], field_path: Path, replicas: int) -> int | None:
    """Read the completions of a job; one without them is complete with its first pod, unless it has several."""
    number = at(manifest, field_path)
    if at(manifest, (*field_path[:-1], "successPolicy")) is not None:  # fewer pods may be enough
        return None
    if number is None:
        return 1 if at(manifest, (*field_path[:-1], "parallelism")) in (None, 1) else None
    if isinstance(number, str):
        return replicas if _REPLICAS.fullmatch(number.strip()) else None
    return number if isinstance(number, int) and number > 0 else None


def _is_single(manifest: Mapping[str, Json], kinds: Kinds) -> bool:
    kind = kind_of(manifest, kinds)
    return kind is not None and runs_once_by(kind, manifest)
