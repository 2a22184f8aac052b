"""Topology domains that groups of pods want for themselves: how many of a cluster's are free, and who has which.

A domain is all nodes with the same value of a label. LeaderWorkerSet's annotation ``exclusive-topology`` gives each
group one that no other group is in, and all pods of the group are inside (spread-and-groups.md, section 5); JobSet's
does so for each job. Which domains the groups that are there already have nobody tells, so that as many of those that
would do are taken to be gone: where this is wrong, it says that a group does not fit which would.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.core.fit import Room
from reconciler.core.wording import count
from reconciler.model.capacity import ClusterObservation, ReplicaShape

Pods = tuple[tuple[ReplicaShape, int], ...]
"""So many pods of a shape each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Pods that have one domain for themselves; those of `inner` have domains of their own within it."""

    pods: Pods
    inner: Domains | None = None

    @property
    def likeness(self) -> Hashable:
        """Equal for units that need the same of a domain."""
        pods = tuple((shape.likeness, number) for shape, number in self.pods)
        return pods, None if self.inner is None else self.inner.likeness


@dataclass(frozen=True, slots=True, kw_only=True)
class Domains:
    """A domain of the node label `key` for each unit; `called` is what people call a unit."""

    key: str
    units: tuple[Unit, ...]
    called: str = "group"

    @property
    def likeness(self) -> Hashable:
        """Equal for what needs the same."""
        return self.key, tuple(unit.likeness for unit in self.units)


def place(room: Room, seen: ClusterObservation, wanted: Domains, used: int = 0) -> tuple[tuple[Unit, str], ...] | str:
    """Pair each unit with the value of its domain, or say why that cannot be; nothing is taken from the room.

    `used` are the domains that others of ours have already.
    """
    values = _values(seen, wanted.key)
    if not values:
        return f"no node has a label {wanted.key}, by which each {wanted.called} wants a domain of its own"
    able = {likeness: _able(room, seen, wanted.key, values, unit) for likeness, unit in _kinds(wanted).items()}
    usable = {value for found in able.values() for value in found}
    enough = len(usable) - used >= len(wanted.units)
    pairs = _matched([unit.likeness for unit in wanted.units], able) if enough else {}
    if enough and len(pairs) == len(wanted.units):
        return tuple((wanted.units[index], pairs[index]) for index in sorted(pairs))
    taken = f", and others of ours have {used}" if used else ""
    return (
        f"needs {count(len(wanted.units), 'domain')} of {wanted.key}, one for each {wanted.called}:"
        f" {len(usable)} of {len(values)} there can hold one{taken}"
    )


def take(room: Room, pairs: Iterable[tuple[Unit, str]], key: str) -> None:
    """Take the room of units in the domains that they were paired with."""
    for unit, value in pairs:
        for shape, number in unit.pods:
            room.take(_within(shape, key, value), number)


def _values(seen: ClusterObservation, key: str) -> Sequence[str]:
    """List the values of a label among the nodes, sorted."""
    found = {
        value
        for pool in seen.pools
        for node in pool.nodes
        if (value := node.labels.get(key, pool.labels.get(key))) is not None
    }
    return sorted(found)


def _kinds(wanted: Domains) -> Mapping[Hashable, Unit]:
    return {unit.likeness: unit for unit in wanted.units}


def _able(room: Room, seen: ClusterObservation, key: str, values: Sequence[str], unit: Unit) -> list[str]:
    """List the domains that can hold a unit whole."""
    return [value for value in values if _holds(room, seen, key, value, unit)]


def _holds(room: Room, seen: ClusterObservation, key: str, value: str, unit: Unit) -> bool:
    wanted = [(_within(shape, key, value), number) for shape, number in unit.pods]
    if room.together(wanted) < len(wanted):
        return False
    return unit.inner is None or not isinstance(place(room, seen, _inside(unit.inner, key, value)), str)


def _inside(inner: Domains, key: str, value: str) -> Domains:
    """Keep units to a domain that they are within."""
    units = tuple(
        replace(one, pods=tuple((_within(shape, key, value), number) for shape, number in one.pods))
        for one in inner.units
    )
    return replace(inner, units=units)


def _within(shape: ReplicaShape, key: str, value: str) -> ReplicaShape:
    """Keep a shape to a domain; one that is kept to another already fits nowhere."""
    other = shape.node_selector.get(key, value)
    if other != value:
        return replace(shape, obstacle=f"is kept to {key}={other}")
    return replace(shape, node_selector=dict(sorted({**shape.node_selector, key: value}.items())))


def _matched(kinds: Sequence[Hashable], able: Mapping[Hashable, Sequence[str]]) -> Mapping[int, str]:
    """Pair as many as possible with one of those that its kind can have, none of which two share.

    Augmenting paths, as in Kuhn's algorithm, of which each passes a kind once: all of a kind can have the same. What is
    first in a list is taken first.
    """
    holder: dict[str, int] = {}

    def find(index: int, tried: set[Hashable]) -> bool:
        kind = kinds[index]
        tried.add(kind)
        free = next((value for value in able[kind] if value not in holder), None)
        if free is not None:
            holder[free] = index
            return True
        for value in able[kind]:
            if kinds[holder[value]] not in tried and find(holder[value], tried):
                holder[value] = index
                return True
        return False

    for index in range(len(kinds)):
        if not find(index, set()):
            break
    return {index: value for value, index in holder.items()}
