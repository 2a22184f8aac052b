"""The cached answers of files about clusters, which the passes and the plans for callers share."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.core.fleet.cluster_order import ClusterOrder
from tests.builders.inputs import desired


@dataclass(eq=False)
class OvertakenKind:
    """A kind of bursts while whose number is looked up another thread asks for one."""

    reach: ClusterOrder

    def __hash__(self) -> int:
        self.reach.kind_number("another kind")
        return 1


def test_two_kinds_of_bursts_never_share_a_number() -> None:
    reach = ClusterOrder(desired())
    kind = OvertakenKind(reach)
    assert reach.kind_number(kind) != reach.kind_number("another kind")
    assert reach.kind_number(kind) == reach.kind_number(kind)
