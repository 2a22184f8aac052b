"""The device stock of each node: the devices in slices, less those in claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from reconciler.core.observe.kubernetes.capacity.nodes import NodeRecord
from reconciler.core.observe.kubernetes.capacity.resource_slices import Device, DeviceScope, SliceRecord
from reconciler.model.capacity import DeviceId, DeviceKind, DeviceStock
from reconciler.model.kubernetes.requirements import any_met

_Lot: TypeAlias = tuple[DeviceScope, DeviceKind, str]
"""Devices of one scope, kind, and family; the family is empty for a device of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stocked:
    """A stock and the nodes that can use it."""

    reach: DeviceScope
    stock: DeviceStock


class NodeDevices:
    """Sums up the devices that each node can use; an unchanged pool is not summed up again.

    The rules are the scheduler's (dynamic-resource-allocation's GatherPools): of a pool only the newest generation
    counts, and nothing of it until all its slices exist, or while two devices have one name.
    """

    def __init__(self) -> None:
        self._pools: dict[tuple[str, str], tuple[list[SliceRecord], set[str], tuple[_Stocked, ...]]] = {}
        self._named: frozenset[str] = frozenset()

    def by_node(
        self,
        slices: Mapping[str, SliceRecord],
        claimed: Iterable[tuple[DeviceId, ...]],
        nodes: Mapping[str, NodeRecord],
        named: frozenset[str] = frozenset(),
    ) -> dict[str, tuple[DeviceStock, ...]]:
        """Return the stock of each node, given the devices of each claim.

        `named` are identifying attributes that selectors name: devices that differ in them are of different kinds.
        """
        if named != self._named:
            self._named, self._pools = named, {}
        held: dict[tuple[str, str], set[str]] = {}
        for devices in claimed:
            for driver, pool, device in devices:
                held.setdefault((driver, pool), set()).add(device)
        members: dict[tuple[str, str], list[SliceRecord]] = {}
        for _, record in sorted(slices.items()):
            members.setdefault((record.driver, record.pool), []).append(record)
        before, self._pools = self._pools, {}
        stocks_by_node: dict[str, list[DeviceStock]] = {}
        for key, records in sorted(members.items()):
            names = held.get(key, set())
            made = before.get(key)
            if made is None or made[:2] != (records, names):
                made = (records, names, tuple(_stocks("/".join(key), _newest(records), names, named)))
            self._pools[key] = made
            for stocked in made[2]:
                for node in _nodes_in_scope(stocked.reach, nodes):
                    stocks_by_node.setdefault(node, []).append(stocked.stock)
        return {node: tuple(stocks) for node, stocks in stocks_by_node.items()}


def _newest(members: list[SliceRecord]) -> list[SliceRecord]:
    """Return the slices of the newest generation; none while some are missing, or if two devices have one name."""
    newest = max(record.generation for record in members)
    current = [record for record in members if record.generation == newest]
    names = Counter(device.name for record in current for device in record.devices)
    whole = all(record.slices == len(current) for record in current)
    return current if whole and all(count == 1 for count in names.values()) else []


def _stocks(pool: str, slices: list[SliceRecord], held: Collection[str], named: Collection[str]) -> Iterator[_Stocked]:
    """Group the devices of a pool by their scope and kind, and those that share counters by their hardware."""
    lots: dict[_Lot, list[Device]] = {}
    devices = [device for record in slices for device in record.devices]
    families = _families(devices)
    for device in devices:
        family = families[device.consumes[0][0]] if device.consumes else ""
        lots.setdefault((device.reach, device.kind_with(named), family), []).append(device)
    left = _counters_left(slices, held)
    for number, ((reach, kind, family), lot) in enumerate(lots.items()):
        free = [device for device in lot if device.usable and device.name not in held]
        count = _count_allocatable(free, left) if family else len(free)
        stock = DeviceStock(
            kind=kind,
            free=count,
            total=len(lot),
            shared="" if reach.node else f"{pool} {number}",
            family=f"{pool} {family}" if family else "",
        )
        yield _Stocked(reach=reach, stock=stock)


def _families(devices: Iterable[Device]) -> dict[str, str]:
    """Return the family of each set of counters: a name that is equal for sets that one device consumes together."""
    families: dict[str, str] = {}
    for device in devices:
        joined = {families.setdefault(counters, counters) for counters, _, _ in device.consumes}
        if len(joined) > 1:
            first = min(joined)
            families = {counters: first if known in joined else known for counters, known in families.items()}
    return families


def _counters_left(slices: list[SliceRecord], held: Collection[str]) -> dict[tuple[str, str], int]:
    """Return the rest of the counters that devices share; none while an unknown device is held."""
    devices = {device.name: device for record in slices for device in record.devices}
    if any(name not in devices for name in held):  # of an older generation: its use is unknown
        return {}
    left = {(name, counter): int(value) for record in slices for name, counter, value in record.counters}
    for name in held:
        for of, counter, value in devices[name].consumes:
            left[of, counter] = left.get((of, counter), 0) - value
    return left


def _count_allocatable(devices: Iterable[Device], left: Mapping[tuple[str, str], int]) -> int:
    """Count the devices of one kind that can be allocated together."""
    rest = dict(left)
    count = 0
    for device in devices:
        if all(rest.get((of, counter), 0) >= value for of, counter, value in device.consumes):
            count += 1
            for of, counter, value in device.consumes:
                rest[of, counter] -= value
    return count


def _nodes_in_scope(reach: DeviceScope, nodes: Mapping[str, NodeRecord]) -> Iterable[str]:
    """List the nodes in a scope."""
    if reach.node:
        return [reach.node] if reach.node in nodes else []
    if reach.everywhere:
        return nodes
    if not reach.terms:  # a scope in an unknown form
        return ()
    return [name for name, record in nodes.items() if any_met(reach.terms, dict(record.labels), name)]
