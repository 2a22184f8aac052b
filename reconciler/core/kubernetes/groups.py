"""The groups that the pods of one object run in, as their labels tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from reconciler.core.kubernetes.claims import PodClaims
from reconciler.core.kubernetes.controllers import ControllerRecord
from reconciler.core.kubernetes.marks import Membership
from reconciler.core.kubernetes.pods import PodRecord
from reconciler.core.kubernetes.resources import Owner
from reconciler.model.capacity import ReplicaShape
from reconciler.model.groupseen import GroupSeen

Makers = Sequence[tuple[ControllerRecord, list[PodRecord]]]
"""The objects that make pods, and the pods of each."""


def group_of(root: Owner, groups: Iterable[Membership]) -> str:
    """Return which of an object's groups a pod is of; empty where it does not say."""
    return next((one.group for one in groups if one.owner == root), "")


def group_seen(
    root: Owner, pods: Iterable[PodRecord], makers: Makers, shaped: Callable[[ReplicaShape, PodClaims], ReplicaShape]
) -> GroupSeen | None:
    """Tell what one group of an object is: the one of which there is most; None where its pods are in none.

    Pods that are yet to be made count in the group that their template names, and where they are told apart by nothing.
    `shaped` adds to a shape what its claims ask for.
    """
    found: dict[str, dict[Hashable, tuple[ReplicaShape, int]]] = {}
    size = 0
    for membership, shape, claims, number in _members(root, pods, makers):
        alike = found.setdefault(membership.group, {})
        whole = shaped(shape, claims)
        alike[whole.likeness] = whole, number + alike.get(whole.likeness, (whole, 0))[1]
        size = max(size, membership.size)
    if not found:
        return None
    apart = sorted(name for name in found if name)
    totals = Counter({name: sum(number for _, number in found[name].values()) for name in apart or found})
    most = max(totals, key=lambda name: totals[name])
    return GroupSeen(pods=tuple(found[most].values()), size=size, number=len(apart))


def _members(
    root: Owner, pods: Iterable[PodRecord], makers: Makers
) -> Iterator[tuple[Membership, ReplicaShape, PodClaims, int]]:
    for pod in pods:
        for membership in pod.groups:
            if membership.owner == root and pod.shape is not None:
                yield membership, pod.shape, pod.claims, 1
    for maker, own in makers:
        for membership in maker.groups:
            if membership.owner == root and maker.wanted > len(own):
                yield membership, maker.shape, maker.claims, maker.wanted - len(own)
