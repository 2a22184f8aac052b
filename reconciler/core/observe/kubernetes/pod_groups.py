"""The gangs of the pods of one object, by their labels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from reconciler.core.observe.kubernetes.controllers import ControllerRecord
from reconciler.core.observe.kubernetes.ownership import GroupMembership
from reconciler.core.observe.kubernetes.pods import PodRecord
from reconciler.core.observe.kubernetes.resources import Owner
from reconciler.core.pods.label_selectors import reject_mixed_rules
from reconciler.core.pods.resource_claims import PodClaims
from reconciler.model.capacity import ObservedGroup, ReplicaShape
from reconciler.model.kubernetes.scheduling import PodOnNode

Makers = Sequence[tuple[ControllerRecord, list[PodRecord]]]
"""The objects that create pods, and the pods of each."""


def group_of(root: Owner, groups: Iterable[GroupMembership]) -> str:
    """Return the gang of a pod among those of an object; empty if it states none."""
    return next((group.group for group in groups if group.owner == root), "")


def group_seen(
    root: Owner, pods: Iterable[PodRecord], makers: Makers, shaped: Callable[[ReplicaShape, PodClaims], ReplicaShape]
) -> ObservedGroup | None:
    """Return the largest gang of an object; None if its pods are in none.

    Pods that do not exist yet count in the gang of their template, and together if nothing distinguishes them. `shaped`
    adds the requests of its claims to a shape. A shape with rules about other pods of its gang has an obstacle.
    """
    by_group: dict[str, list[tuple[ReplicaShape, PodOnNode, int]]] = {}
    size = 0
    for membership, record, number in _members(root, pods, makers):
        if record.shape is not None and record.here is not None:
            whole = shaped(record.shape, record.claims)
            by_group.setdefault(membership.group, []).append((whole, record.here, number))
            size = max(size, membership.size)
    if not by_group:
        return None
    apart = sorted(name for name in by_group if name)
    totals = {name: sum(number for *_, number in by_group[name]) for name in apart or by_group}
    most = by_group[max(totals, key=lambda name: totals[name])]
    beside = [(shape.likeness, pod) for shape, pod, _ in most]
    alike: dict[Hashable, tuple[ReplicaShape, int]] = {}
    for shape, _, number in most:
        known_shape, others = alike.get(shape.likeness, (shape, 0))
        alike[shape.likeness] = known_shape, others + number
    return ObservedGroup(
        pods=tuple((reject_mixed_rules(shape, beside), number) for shape, number in alike.values()),
        size=size,
        number=len(apart),
    )


def _members(
    root: Owner, pods: Iterable[PodRecord], makers: Makers
) -> Iterator[tuple[GroupMembership, PodRecord | ControllerRecord, int]]:
    """Yield the pods of gangs, and those that do not exist yet, with the number of each."""
    for pod in pods:
        yield from ((group, pod, 1) for group in pod.groups if group.owner == root)
    for maker, own in makers:
        if maker.wanted > len(own):
            yield from ((group, maker, maker.wanted - len(own)) for group in maker.groups if group.owner == root)
