"""How many nodes Karpenter may still launch for a NodePool.

The rules are those of Karpenter 1.6: a NodePool that is not Ready is passed over, and no node is launched whose
resources, with those of the nodes that are there, would exceed a limit
(https://karpenter.sh/docs/concepts/nodepools/#speclimits, `filterByRemainingResources` and `Limits.ExceededBy` of
https://github.com/kubernetes-sigs/karpenter/tree/v1.6.0/pkg). Limits count what nodes have in all, of which a Cluster
declares what pods may have: so a limit of cpu or memory may turn out to be reached a node earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.model.capacity import NodePool
from reconciler.model.cluster import ScalableNodes
from reconciler.model.units import ONE, Quantity, Resources, format_quantity, total
from reconciler.text.wording import count as counted

_NODES = "nodes"
"""The resource by which limits bound the number of nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Nodes of one kind that an autoscaler may still add."""

    nodes: ScalableNodes
    count: int
    """How many; 0 for none."""
    held: str = ""
    """Why a NodePool lets no more be added, although its Cluster does; empty where it does not matter."""
    remedy: str = ""
    """How more could be added."""


class NodePoolRoom:
    """What one NodePool leaves, less what kinds of nodes have taken of it."""

    def __init__(self, name: str, pool: NodePool, there: Sequence[Resources]) -> None:
        """Begin with a NodePool, and the allocatable resources of each of its nodes that is there.

        Its status lags behind nodes that have just come, and runs ahead of those that are launched and no nodes yet.
        """
        self._name = name
        self._pool = pool
        present = {**total(there).amounts, _NODES: Quantity(len(there) * ONE)}
        used = {**pool.used.amounts}
        for resource, amount in present.items():
            used[resource] = max(used.get(resource, Quantity(0)), amount)
        self._used = used
        self._coming = (used[_NODES] - present[_NODES]) // ONE
        self._taken = dict[str, int]()

    def take(self, nodes: ScalableNodes, most: int) -> Growth:
        """Take up to so many nodes, at least one: first those that have been launched already."""
        coming = min(self._coming, most)
        self._coming -= coming
        if coming == most:
            return Growth(nodes=nodes, count=most)
        if self._pool.obstacle:
            held = f"NodePool {self._name} {self._pool.obstacle}"
            return Growth(
                nodes=nodes, count=coming, held=held, remedy=f"mend NodePool {self._name}, or declare nodes of another"
            )
        bounds = [(self._room(resource, nodes), resource) for resource in self._pool.limits.amounts]
        room, tightest = min(bounds, default=(most, ""))
        new, before = min(most - coming, room), self._taken.get(tightest, 0)
        for resource, amount in (*nodes.allocatable.amounts.items(), (_NODES, ONE)):
            self._taken[resource] = self._taken.get(resource, 0) + amount * new
        if coming + new == most:
            return Growth(nodes=nodes, count=most)
        held = f"NodePool {self._name}: limit {tightest} {self._format(tightest, before)}"
        if coming + new:
            held += f", {counted(coming + new, 'node')} to come"
        remedy = f"raise limit {tightest} of NodePool {self._name}"
        return Growth(nodes=nodes, count=coming + new, held=held, remedy=remedy)

    def _room(self, resource: str, nodes: ScalableNodes) -> int:
        """Count the nodes that one limit lets be launched; many where they have nothing of the resource."""
        left = self._pool.limits.amounts[resource] - self._used.get(resource, 0) - self._taken.get(resource, 0)
        each = ONE if resource == _NODES else nodes.allocatable.amounts.get(resource, Quantity(0))
        if left < 0:
            return 0
        return left // each if each else nodes.most

    def _format(self, resource: str, taken: int) -> str:
        """Write how much of a limit is used, with what other kinds of its nodes may take: ``12 of 16 used``."""
        used, limit = Quantity(self._used.get(resource, 0) + taken), self._pool.limits.amounts[resource]
        return f"{format_quantity(used)} of {format_quantity(limit)} used{' or to come' if taken else ''}"
