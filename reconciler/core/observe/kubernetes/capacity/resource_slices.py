"""ResourceSlices: the devices that a driver offers, and the nodes that can use them.

Read in the form of resource.k8s.io/v1, and of v1beta1, in which a device's fields are one level deeper.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from sys import intern

from reconciler.core.pods.pod_requests import parse_amounts
from reconciler.core.pods.pod_shape import node_terms
from reconciler.model.capacity import AttributeValue, DeviceKind
from reconciler.model.kubernetes.requirements import Requirements
from reconciler.model.units import Quantity
from reconciler.model.workload import Json

_OWN = re.compile(r"uuid|guid|index|minor|serial|address|pci|bus|placement|^id$", re.IGNORECASE)
"""Attributes that identify a single device, by which few selectors choose."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VALUES: dict[str, type] = {"string": str, "int": int, "bool": bool}
_REPELLING = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceScope:
    """The nodes that can use devices: one by name, all, or those that meet a term; none if the form is unknown."""

    node: str = ""
    everywhere: bool = False
    terms: tuple[Requirements, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device."""

    name: str
    kind: DeviceKind
    reach: DeviceScope
    # False while it is tainted.
    usable: bool
    # Its use of the shared counters of its pool.
    consumes: tuple[tuple[str, str, Quantity], ...]
    # Attributes that identify it, which are no part of its kind.
    own: tuple[tuple[str, AttributeValue], ...] = ()

    def kind_with(self, named: Collection[str]) -> DeviceKind:
        """Return its kind, with those identifying attributes that selectors name."""
        chosen = [(name, value) for name, value in self.own if name.rpartition("/")[2] in named] if named else []
        if not chosen:
            return self.kind
        return _kind(self.kind.driver, tuple(sorted((*self.kind.attributes, *chosen))), self.kind.capacity)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRecord:
    """The record of a slice."""

    driver: str
    pool: str
    generation: int
    # The number of slices of a complete pool of this generation.
    slices: int
    devices: tuple[Device, ...]
    counters: tuple[tuple[str, str, Quantity], ...]


def read_slice(raw: Json) -> SliceRecord:
    """Read a ResourceSlice."""
    spec = raw["spec"]
    pool, driver = spec["pool"], spec["driver"]
    own = None if spec.get("perDeviceNodeSelection") else _reach(spec)
    return SliceRecord(
        driver=intern(driver),
        pool=intern(pool["name"]),
        generation=pool.get("generation") or 0,
        slices=pool["resourceSliceCount"],
        devices=tuple(_device(device, driver, own) for device in spec.get("devices") or ()),
        counters=tuple(_counters(spec.get("sharedCounters"), "name")),
    )


def identifying_names(expressions: Iterable[str]) -> frozenset[str]:
    """Return the names of identifying attributes that any of these selectors may be about."""
    return frozenset(
        word for expression in expressions for word in _WORD.findall(expression) if _OWN.search(word) is not None
    )


def _device(raw: Json, driver: str, reach: DeviceScope | None) -> Device:
    fields = raw.get("basic") or raw
    attributes = sorted(_attributes(fields.get("attributes"), driver))
    own = tuple(attribute for attribute in attributes if _is_own(attribute[0]))
    tainted = any(taint.get("effect") in _REPELLING for taint in fields.get("taints") or ())
    return Device(
        name=intern(raw["name"]),
        kind=_kind(
            driver,
            tuple(attribute for attribute in attributes if not _is_own(attribute[0])),
            tuple(sorted(_capacity(fields.get("capacity"), driver))),
        ),
        reach=_reach(fields) if reach is None else reach,
        usable=not tainted,
        consumes=tuple(_counters(fields.get("consumesCounters"), "counterSet")),
        own=own,
    )


def _is_own(name: str) -> bool:
    return _OWN.search(name.rpartition("/")[2]) is not None


def _reach(fields: Json) -> DeviceScope:
    return _shared_reach(
        fields.get("nodeName") or "", bool(fields.get("allNodes")), node_terms(fields.get("nodeSelector")) or ()
    )


def _attributes(raw: Json, driver: str) -> Iterator[tuple[str, AttributeValue]]:
    """Yield the attributes that selectors can use: no versions, no lists."""
    for name, value in (raw or {}).items():
        for field, kind in _VALUES.items():
            if isinstance(value.get(field), kind):
                yield _qualify(name, driver), value[field]


def _capacity(raw: Json, driver: str) -> Iterator[tuple[str, Quantity]]:
    for name, value in (raw or {}).items():
        yield _qualify(name, driver), parse_amounts({"value": value["value"]})["value"]


def _counters(raw: Json, name: str) -> Iterator[tuple[str, str, Quantity]]:
    for counters in raw or ():
        for counter, value in (counters.get("counters") or {}).items():
            yield counters[name], counter, parse_amounts({"value": value["value"]})["value"]


def _qualify(name: str, driver: str) -> str:
    """Return the qualified name of an attribute, by default in the driver's domain."""
    return name if "/" in name else f"{driver}/{name}"


@lru_cache(maxsize=4096)
def _kind(
    driver: str, attributes: tuple[tuple[str, AttributeValue], ...], capacity: tuple[tuple[str, Quantity], ...]
) -> DeviceKind:
    return DeviceKind(driver=driver, attributes=attributes, capacity=capacity)


@lru_cache(maxsize=4096)
def _shared_reach(node: str, everywhere: bool, terms: tuple[Requirements, ...]) -> DeviceScope:  # noqa: FBT001 - a cache has no names
    return DeviceScope(node=node, everywhere=everywhere, terms=terms)
