"""Three clusters that replicas are shared out over: what the tests of strategies and the picture of the docs go by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.core.decide.distribution import ClusterShare, Layer, give_back, share_out
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Distribution, SpreadConstraint, StrategyName


def target(name: str, most: int, *, keeps: int = 0, weight: int = 1, least: int = 0, group: str = "") -> ClusterShare:
    """Make a cluster of this number that can hold so many, and comes at that place in the order."""
    return ClusterShare(
        cluster=ClusterName(f"worker-{name}"),
        rank=int(name),
        most=most,
        capacity=most,
        keeps=keeps,
        weight=weight,
        least=least,
        groups=(group,),
    )


def spread_over(label: str, *, min_groups: int = 0, max_groups: int | None = None) -> tuple[SpreadConstraint, ...]:
    """Bound the values of one label."""
    return (SpreadConstraint(label=label, min_groups=min_groups, max_groups=max_groups),)


def stays(total: int, shares: Sequence[ClusterShare], distribution: Distribution) -> Mapping[ClusterName, int]:
    """Return what stays on each cluster of a workload without subsets when so many of its replicas do."""
    (row,) = give_back(total, [Layer(shares=tuple(shares))], distribution)
    return {share.cluster: kept for share, kept in zip(shares, row, strict=True)}


CLUSTERS = (target("2", 6, weight=2), target("3", 3), target("4", 12, weight=3))
"""Six, three and twelve fit; the weights are 2, 1 and 3."""

MANY, FEW = 9, 4
"""How many are wanted at first, and how many are needed later."""


def picture() -> str:
    """Draw for each strategy where many go (#), and which of them are given back when few are needed (o)."""
    widths = [max(target.most, len(target.cluster)) for target in CLUSTERS]
    rows = [("", [str(target.cluster) for target in CLUSTERS]), ("room", ["." * target.most for target in CLUSTERS])]
    for strategy in StrategyName:
        out = share_out(MANY, CLUSTERS, Distribution(strategy=strategy)).counts
        there = [target._replace(most=out.get(target.cluster, 0)) for target in CLUSTERS]
        kept = stays(FEW, there, Distribution(strategy=strategy))
        rows.append((strategy, ["#" * kept[one.cluster] + "o" * (one.most - kept[one.cluster]) for one in there]))
    lines = (
        [name.ljust(10), *(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))]
        for name, cells in rows
    )
    return "".join("  ".join(line).rstrip() + "\n" for line in lines)
