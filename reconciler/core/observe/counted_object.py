"""The object on a primary whose replicas are counted: by its name, or by the Helm release that made it.

EGS's ``status.workloadSelector`` and a chart's step name a release, whose objects have names of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from reconciler.core.workloads.builtin_kinds import Kinds, uncounted_kind
from reconciler.core.workloads.replica_count import requests_devices
from reconciler.model.capacity import ClusterObservation, WorkloadObservation
from reconciler.model.workload import WorkloadRef
from reconciler.text.wording import count, join_names, sanitize

WORKLOAD = "overspill.dev/workload"
"""The annotation that names the object on the primary whose replicas are counted."""
_MAX_LISTED = 5
_WAY_OUT = f"Set the annotation {WORKLOAD} to the one that is meant."


def counted_object(
    ref: WorkloadRef, called: Sequence[WorkloadObservation], released: Sequence[WorkloadObservation]
) -> tuple[WorkloadObservation | None, str]:
    """Choose the object that a reference means, and say which one of several it is.

    `called` have its name, `released` are of the release of that name. Of these, in this order: one with devices, one
    with the name, the first by kind and name. Without a release, the first with the name.
    """
    own = [seen for seen in called if ref.may_be(seen.ref)]
    if not ref.release or not released:
        return (own[0] if own else None), ""
    objects = {(seen.ref.kind, seen.ref.group, seen.ref.name): seen for seen in (*own, *released)}
    able = sorted(objects.values(), key=lambda seen: (seen.ref.name != ref.name, seen.ref.kind, seen.ref.name))
    working = [seen for seen in able if seen.shape is not None and requests_devices(seen.shape)]
    chosen = (working or able)[0]
    if len(working) < 2 and (working or len(able) == 1):  # noqa: PLR2004 # one is no choice
        return chosen, ""
    choice = working or able
    what = "workloads with GPUs" if working else "workloads, none of them with GPUs"
    release = sanitize(f"{ref.namespace}/{ref.name}")
    names = join_names(_object_name(seen.ref) for seen in choice[:_MAX_LISTED])
    return chosen, (
        f"release {release} has {len(choice)} {what} ({names}), and {_object_name(chosen.ref)} is counted. {_WAY_OUT}"
    )


def counted(workloads: Iterable[WorkloadObservation], kinds: Kinds) -> Iterator[WorkloadObservation]:
    """Yield the observed objects of which pods may be missing elsewhere: of a DaemonSet and its like none is."""
    return (seen for seen in workloads if uncounted_kind(seen.ref, kinds) is None)


def not_found(ref: WorkloadRef, observation: ClusterObservation, kinds: Kinds) -> str:
    """Say that a primary reports no such object, what it reports instead, and the way out."""
    name = sanitize(f"{ref.namespace}/{ref.name}")
    what = f"object or release {name}" if ref.release else f"{ref.full_kind or 'object'} {name}"
    # 1. Its name is that of an object whose pods are not counted.
    own = next((seen.ref for seen in observation.workloads if _is_uncounted(seen.ref, kinds, ref)), None)
    if own is not None:
        return (
            f"{observation.cluster} reports no {what}; it reports {sanitize(f'{own.kind} {own.namespace}/{own.name}')},"
            f" which has no replicas that a burst could bring. Name a Deployment or a Job in the annotation {WORKLOAD}."
        )
    # 2. The cluster has other objects.
    others = dict.fromkeys((*(seen.ref for seen in observation.workloads), *observation.others))
    near = sorted(others, key=lambda other: other.namespace != ref.namespace)
    return f"{observation.cluster} reports no {what}; it reports {_list_objects(near)}. {_WAY_OUT}"


def members_of(
    workloads: Iterable[WorkloadObservation], taken: Collection[tuple[str, str]]
) -> dict[str, list[WorkloadObservation]]:
    """Return the objects of each release, without those that other templates name outright."""
    members: dict[str, list[WorkloadObservation]] = {}
    for seen in workloads:
        if seen.release and (seen.ref.namespace, seen.ref.name) not in taken:
            members.setdefault(seen.release, []).append(seen)
    return members


def _list_objects(refs: Sequence[WorkloadRef]) -> str:
    if not refs:
        return "nothing"
    names = [sanitize(f"{ref.namespace}/{ref.name}") for ref in refs[:_MAX_LISTED]]
    rest = len(refs) - len(names)
    return join_names([*names, *([count(rest, "other object")] if rest else [])])


def _is_uncounted(seen: WorkloadRef, kinds: Kinds, ref: WorkloadRef) -> bool:
    return (seen.namespace, seen.name) == (ref.namespace, ref.name) and uncounted_kind(seen, kinds) is not None


def _object_name(ref: WorkloadRef) -> str:
    return sanitize(f"{ref.kind or 'object'} {ref.name}")
