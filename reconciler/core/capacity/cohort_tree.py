"""What is left of the quotas of Kueue's ClusterQueues, with what their cohorts lend and what of theirs is lent.

The rules of `pkg/cache/scheduler/resource_node.go` of kubernetes-sigs/kueue at ff69552, those of 0.14.0 too: what a
node may lend counts in its parent, and is used there. Preemption frees nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from reconciler.model.kubernetes.queues import FlavorQuota, FlavorResource, KueueQueues
from reconciler.model.units import Quantity

_NO_QUOTA = FlavorQuota(nominal=Quantity(0))


class _Node(NamedTuple):
    """A ClusterQueue or a Cohort: they may have the same name."""

    name: str
    is_cohort: bool = True


_Amounts: TypeAlias = dict[tuple[_Node, FlavorResource], int]


class CohortTree:
    """The quotas of all ClusterQueues of a cluster, and what is reserved of them."""

    def __init__(self, queues: KueueQueues) -> None:
        """Start with what is reserved as observed."""
        self._queues = queues
        self._children: dict[str, list[_Node]] = {}
        for name, queue in queues.clusters.items():
            if queue.cohort:
                self._children.setdefault(queue.cohort, []).append(_Node(name, is_cohort=False))
        for name, cohort in queues.cohorts.items():
            if cohort.parent:
                self._children.setdefault(cohort.parent, []).append(_Node(name))
        self._subtrees: _Amounts = {}
        self._used: _Amounts = {}

    def copy(self) -> CohortTree:
        """Return a copy with what has been taken here."""
        other = object.__new__(CohortTree)
        other._queues, other._children, other._subtrees = self._queues, self._children, self._subtrees
        other._used = dict(self._used)
        return other

    def has_cycle(self, queue: str) -> bool:
        """Return whether the Cohorts above a ClusterQueue lead back to one of them; Kueue admits nothing then."""
        above: set[_Node] = set()
        for node in self._path(_Node(queue, is_cohort=False)):
            if node in above:
                return True
            above.add(node)
        return False

    def nominal(self, queue: str, wanted: FlavorResource) -> int:
        """Return the quota of a ClusterQueue's own."""
        return self._quota(_Node(queue, is_cohort=False), wanted).nominal

    def left(self, queue: str, wanted: FlavorResource) -> int:
        """Return what a ClusterQueue may still reserve, what it may borrow included; never negative."""
        return max(0, self._left(_Node(queue, is_cohort=False), wanted))

    def left_of_own(self, queue: str, wanted: FlavorResource) -> int:
        """Return what it may still reserve without borrowing; never negative."""
        node = _Node(queue, is_cohort=False)
        return max(0, min(self._left(node, wanted), self._subtree(node, wanted) - self._usage(node, wanted)))

    def most(self, queue: str, wanted: FlavorResource) -> int:
        """Return what it could reserve if nothing were used."""
        return self._most(_Node(queue, is_cohort=False), wanted)

    def reserve(self, queue: str, wanted: FlavorResource, amount: int) -> None:
        """Reserve an amount, also beyond what is left."""
        node: _Node | None = _Node(queue, is_cohort=False)
        while node is not None and amount > 0:
            stored = max(0, self._local(node, wanted) - self._usage(node, wanted))
            self._used[node, wanted] = self._usage(node, wanted) + amount
            node, amount = self._parent(node), amount - stored

    def _path(self, node: _Node) -> Iterator[_Node]:
        """Yield a node and all above it; without end where they are a cycle."""
        above: _Node | None = node
        while above is not None:
            yield above
            above = self._parent(above)

    def _parent(self, node: _Node) -> _Node | None:
        if not node.is_cohort:
            name = self._queues.clusters[node.name].cohort
        else:
            cohort = self._queues.cohorts.get(node.name)
            name = cohort.parent if cohort is not None else ""
        return _Node(name) if name else None

    def _quota(self, node: _Node, wanted: FlavorResource) -> FlavorQuota:
        of = self._queues.cohorts if node.is_cohort else self._queues.clusters
        entry = of.get(node.name)
        return _NO_QUOTA if entry is None else entry.quotas.get(wanted, _NO_QUOTA)

    def _below(self, node: _Node) -> list[_Node]:
        return self._children.get(node.name, []) if node.is_cohort else []

    def _subtree(self, node: _Node, wanted: FlavorResource) -> int:
        """Return the quota of a node with what those below it lend."""
        key = node, wanted
        if key not in self._subtrees:
            lent = sum(self._subtree(child, wanted) - self._local(child, wanted) for child in self._below(node))
            self._subtrees[key] = self._quota(node, wanted).nominal + lent
        return self._subtrees[key]

    def _local(self, node: _Node, wanted: FlavorResource) -> int:
        """Return the part of a node's quota that it lends to nobody."""
        lending = self._quota(node, wanted).lending
        return 0 if lending is None else max(0, self._subtree(node, wanted) - lending)

    def _usage(self, node: _Node, wanted: FlavorResource) -> int:
        key = node, wanted
        if key not in self._used:
            if not node.is_cohort:
                self._used[key] = self._queues.clusters[node.name].used.get(wanted, 0)
            else:
                below = self._below(node)
                lent = (self._usage(child, wanted) - self._local(child, wanted) for child in below)
                self._used[key] = sum(amount for amount in lent if amount > 0)
        return self._used[key]

    def _left(self, node: _Node, wanted: FlavorResource) -> int:
        """Return what is left for a node; negative where more than there is was admitted."""
        parent, used = self._parent(node), self._usage(node, wanted)
        if parent is None:
            return self._subtree(node, wanted) - used
        above, local = self._left(parent, wanted), self._local(node, wanted)
        borrowing = self._quota(node, wanted).borrowing
        if borrowing is not None:
            above = min(above, self._subtree(node, wanted) - local - max(0, used - local) + borrowing)
        return max(0, local - used) + above

    def _most(self, node: _Node, wanted: FlavorResource) -> int:
        parent = self._parent(node)
        if parent is None:
            return self._subtree(node, wanted)
        most, borrowing = self._local(node, wanted) + self._most(parent, wanted), self._quota(node, wanted).borrowing
        return most if borrowing is None else min(most, self._subtree(node, wanted) + borrowing)
