"""What is kept of the objects of one API server: held to a number of each resource, and to an amount of memory."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from collections.abc import Set as AbstractSet
from enum import Enum
from types import BuiltinFunctionType, FunctionType, ModuleType

from reconciler.adapters import operating_system
from reconciler.core.observe.kubernetes.resources import Watched
from reconciler.errors import Transient
from reconciler.model.bounds import CLUSTER_MEMORY, CLUSTER_OBJECTS

_STEP = 32 << 20
"""Bytes that a server sends between two measurements."""
_SMALL = 384 << 20
"""Resident bytes of this process below which no cluster can take too much."""
_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType, Enum)
"""What a program has once, whatever it keeps."""


class TooMuchKept(Transient):
    """A server has more objects than may be kept of it; the caller drops those of the resource, and lists it again."""


class KeptObjects:
    """Checks what is kept of some resources of a server before more is added.

    To count and to measure take time that grows with the cluster. So objects are counted only once an upper bound
    passes the bound, and not at each event, and memory is measured after every `_STEP` that has come, while the process
    is not `_SMALL`. It is measured, and not estimated by what came, since most of what comes is read and dropped.
    """

    def __init__(self, received: Callable[[], int], roots: Callable[[], Iterable[object]]) -> None:
        """Take how many bytes the server has sent, and what all that is kept of its objects can be reached from."""
        self._received = received
        self._roots = roots
        self._measured_at = received()
        self._most: Counter[Watched] = Counter()

    def admit(self, resource: Watched, keys: Collection[str], kept: Callable[[], AbstractSet[str]]) -> None:
        """Check that some objects may be added; `kept` returns the keys of the objects of their resource.

        Raises TooMuchKept.
        """
        most = self._most[resource] + len(keys)
        if most > CLUSTER_OBJECTS.most:
            there = kept()
            most = len(there) + sum(key not in there for key in keys)
            if most > CLUSTER_OBJECTS.most:
                del self._most[resource]
                raise too_many(resource)
        self._most[resource] = most
        received = self._received()
        if received - self._measured_at >= _STEP:
            self._measured_at = received
            if self._may_be_large() and kept_bytes(*self._roots()) > CLUSTER_MEMORY.most:
                del self._most[resource]
                raise _too_much(f"takes over {CLUSTER_MEMORY} here, {resource.full_name} last")

    @staticmethod
    def _may_be_large() -> bool:
        resident = operating_system.resident_memory()
        return not resident or resident > _SMALL


def too_many(resource: Watched) -> TooMuchKept:
    """Return the error of a resource with more objects than its bound."""
    return _too_much(f"has over {CLUSTER_OBJECTS} of {resource.full_name}")


def _too_much(why: str) -> TooMuchKept:
    return TooMuchKept(f"{why} (delete objects that nobody needs there, or take the cluster out of the fleet)")


def kept_bytes(*roots: object) -> int:
    """Return the bytes of all objects that can be reached from some, but for the program's own."""
    seen: set[int] = set()
    total = 0
    layer = list(roots)
    while layer:
        fresh = []
        for each in layer:
            if id(each) not in seen and not isinstance(each, _CODE):
                seen.add(id(each))
                total += sys.getsizeof(each)
                fresh.append(each)
        layer = gc.get_referents(*fresh)
    return total
