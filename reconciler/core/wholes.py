"""What demand lends whole: templates with an object whose pods only run in groups (spread-and-groups.md, section 6).

What their manifests say is in `grouped`; what a chart deploys is known by its pods alone, as `charted` has it.

A replica of such a template is what its expressions mean by ``replicas``: a group of a LeaderWorkerSet, a worker of a
RayCluster. Where no number of its pods follows from that, it is one copy, and there is never more than one. What is
seen of the primary counts pods; here those become replicas, by the groups that they say they are of or by their number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

from reconciler.core.headcount import asks_for_devices
from reconciler.core.needs import Gang, PodRequirements, PodSet
from reconciler.model.capacity import MissingReplicas, ReplicaShape, WorkloadObservation

_MOST = 1024
"""Numbers of replicas of one template whose pods are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangCount:
    """What so many replicas take, how they are grouped, and how many `pods` in how many `groups` are looked at.

    `enough` of these pods are what they can start with.
    """

    needs: PodRequirements
    gangs: tuple[Gang, ...]
    pods: int
    groups: int
    enough: int


@dataclass(frozen=True, kw_only=True)  # no slots, for what is worked out once
class GangWorkload(ABC):
    """What so many replicas of a template take, all of them beside each other.

    `counts` tells that some expression reads ``replicas``.
    """

    counts: bool
    _known: dict[int, GangCount] = field(default_factory=dict)

    def of(self, replicas: int) -> PodRequirements:
        """Return what so many replicas take; `unknown` says what of it cannot be counted."""
        return self._counted(replicas).needs

    def pods(self, replicas: int) -> int:
        """Count the pods of so many replicas as the primary shows them: of the object that is looked at there.

        Where it is none of the template's own manifests, those count that run in groups.
        """
        return self._counted(replicas).pods

    def groups(self, replicas: int) -> int:
        """Count the groups of those pods."""
        return self._counted(replicas).groups

    def gangs(self, replicas: int) -> tuple[Gang, ...]:
        """Say how the pods of so many replicas are grouped, by object."""
        return self._counted(replicas).gangs

    @property
    def divisible(self) -> bool:
        """Whether there may be more than one replica: more of them are more pods."""
        return self.counts and self.pods(2) > self.pods(1)

    @property
    def unknown(self) -> str:
        """Say why nobody knows what it takes, empty where that is known."""
        one = self._counted(1)
        return "" if one.gangs else one.needs.unknown or "nothing of it makes pods that run in groups"

    @property
    def shape(self) -> ReplicaShape | None:
        """One replica as it is recorded: the pods that take most of a node, as many as have devices where any do.

        Those are what is counted as having come; a replica whose pods need different numbers of GPUs is told as if all
        needed the most. What is there once for all replicas, as a head, is none of it.
        """
        if self.unknown:
            return None
        parts = more(self.of(2), self.of(1)).parts if self.divisible else self.of(1).parts
        able = [part for part in parts if asks_for_devices(part.shape)] or list(parts)
        return replace(able[0].shape, group_size=sum(part.replicas for part in able))

    def replicas(self, pods: int, groups: int = 0) -> int:
        """Return the fewest replicas that make so many pods, and so many groups if more groups are more replicas."""
        if not self.divisible:
            return 1 if pods > 0 or groups > 0 else 0
        told_apart = groups and self.groups(2) > self.groups(1)
        return max(_fewest(self.pods, pods), _fewest(self.groups, groups) if told_apart else 0)

    def seen(self, workload: WorkloadObservation) -> WorkloadObservation:
        """Turn pods into replicas in what is seen of the workload on its primary.

        A group that lacks one pod is missing as a whole: of pods that say which they are of, each group counts. The one
        copy of a gang that runs there with its minimum is not missing: another would be the same job twice.
        """
        size = workload.shape.group_size if workload.shape is not None else 1
        if self._runs(workload.running * size):
            return replace(workload, wanted=1, running=1, waiting=(), shape=self.shape)
        steps: list[MissingReplicas] = []
        pods = reached = 0
        groups: set[str] = set()
        for wait in sorted(workload.waiting, key=lambda one: one.since):
            pods += wait.replicas * size
            groups |= {wait.group} if wait.group else set()
            level = self.replicas(pods, len(groups))
            if level > reached:
                steps.append(replace(wait, replicas=level - reached))
            reached = level
        missing = max(reached, self.replicas(max(0, workload.wanted - workload.running) * size))
        there = workload.group.number if workload.group is not None else 0
        wanted = max(missing, self.replicas(workload.wanted * size, there))
        return replace(
            workload,
            wanted=wanted,
            running=wanted - missing,
            waiting=tuple(steps),
            shape=self.shape,
        )

    def _runs(self, pods: int) -> bool:
        """Tell whether so many pods are enough for the one copy that there is, and not all of it."""
        one = self._counted(1)
        return 0 < one.enough < one.pods and one.enough <= pods and not self.divisible

    def _counted(self, replicas: int) -> GangCount:
        found = self._known.get(replicas)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[replicas] = self._count(replicas)
        return found

    @abstractmethod
    def _count(self, replicas: int) -> GangCount: ...


def _fewest(made: Callable[[int], int], wanted: int) -> int:
    """Return the fewest replicas of which so much is made, or of which most is: an expression may bound them."""
    if wanted <= 0:
        return 0
    low, high, most = 0, wanted, min(wanted, made(wanted))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if made(middle) >= most else (middle, high)
    return high


def more(needed: PodRequirements, there: PodRequirements) -> PodRequirements:
    """Return what is needed beyond what is there already, pods that are alike counted against each other.

    All of it is, whatever the minimum of a gang: what is there runs without it.
    """
    had = Counter[Hashable]()
    for part in there.parts:
        had[part.shape.recorded.likeness] += part.replicas
    parts: list[PodSet] = []
    for part in needed.parts:
        known = min(part.replicas, had[part.shape.recorded.likeness])
        had[part.shape.recorded.likeness] -= known
        parts += [replace(part, replicas=part.replicas - known, least=None)] if part.replicas > known else []
    if not parts:
        return replace(
            needed, main=PodSet(shape=needed.main.shape, replicas=0), others=(), domains=(), loose=(), marked={}
        )
    units = tuple(
        replace(one, units=one.units[len(had_.units) :])
        for one, had_ in zip(needed.domains, there.domains, strict=False)
    )
    marked = {mark: max(0, number - there.marked.get(mark, 0)) for mark, number in needed.marked.items()}
    return replace(needed, main=parts[0], others=tuple(parts[1:]), domains=units, marked=marked)
