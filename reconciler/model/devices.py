"""Devices that pods claim (dynamic resource allocation, DRA): what there is of them, and what a replica asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from reconciler.model.units import Quantity

AttributeValue: TypeAlias = str | int | bool
CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""What Kubernetes puts before a DeviceClass to name it as a resource (KEP-5004)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceKind:
    """What devices have in common, by qualified name (``gpu.nvidia.com/productName``), sorted.

    What tells one device from the next, such as its UUID, is no part of it.
    """

    driver: str
    attributes: tuple[tuple[str, AttributeValue], ...] = ()
    capacity: tuple[tuple[str, Quantity], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStock:
    """Devices of one kind that a node can use: how many there are, and how many of them nobody has.

    `shared` names a stock that several nodes can use: it is there once, not once a node. Devices of one `family` are
    cut from the same hardware: once some of one kind are taken, nobody knows how many of the other kinds are left.
    """

    kind: DeviceKind
    free: int
    total: int
    shared: str = ""
    family: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOption:
    """One way to meet a request: so many devices of a class that meet every selector, which are CEL expressions.

    `every` asks for all such devices of the node, at least one, and all of them free.
    """

    device_class: str
    selectors: tuple[str, ...] = ()
    count: int = 1
    every: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """Devices that one pod claims: the first of the options that can be met."""

    options: tuple[DeviceOption, ...]


DeviceId: TypeAlias = tuple[str, str, str]
"""A device by driver, pool and name: the name is the pool's own."""
