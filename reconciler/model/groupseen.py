"""What a cluster shows of pods that only run together, and what follows from it for what is lent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconciler.model.capacity import ReplicaShape  # which itself has a group


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSeen:
    """One group of a workload: so many pods of each shape, the `size` it is to have, and the `number` of groups.

    It is the one of which there is most. Where nothing tells the groups apart, `number` is 0 and all pods of the
    workload are one. A `size` of 0 says that nobody tells, and so does a `least` of 0: how many of its pods have to be
    there before any of them runs.
    """

    pods: tuple[tuple[ReplicaShape, int], ...]
    size: int = 0
    number: int = 0
    least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUnit:
    """What one replica is that goes whole and of which only the primary tells: so many pods of each shape.

    They make so many `groups` of an object that is called `name`; 0 where nothing tells its groups apart. `enough` of
    them run without the others, 0 where nobody says so. Where nobody knows what a replica is, there are no pods, and
    `unknown` says what to do about it.
    """

    name: str
    pods: tuple[tuple[ReplicaShape, int], ...] = ()
    groups: int = 0
    enough: int = 0
    unknown: str = ""
